package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/internal/rest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

// The pages that the tenant acme asks for. They have names of one length, so that answers can be compared.
const (
	ownPage     = "https://example.com/page-mine"
	foreignPage = "https://example.com/page-ofvictim"
	unknownPage = "https://example.com/page-ofnobody"
	sharedPage  = "https://example.com/page-shared"
	accessPage  = "https://example.com/page-secret"
	hookOfOther = "http://127.0.0.1:9/hook-of-victim"
)

// secretsOfOthers are the bytes that no answer to acme may have.
var secretsOfOthers = []string{"ofvictim", "shared-secret", "keyword-of-victim", "sink-of-victim", "tag-of-victim", "first words of victim", "second words of victim", "victim"}

// changingPages serves a text for each of the first two fetches of a page, and afterwards one that everybody may see.
type changingPages struct {
	mu      sync.Mutex
	fetched map[string]int
}

func (p *changingPages) Schemes() []string { return []string{"https"} }

func (p *changingPages) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	p.mu.Lock()
	p.fetched[r.URL]++
	n := p.fetched[r.URL]
	p.mu.Unlock()
	body := "<p>public words"
	if n <= 2 && strings.Contains(r.URL, "ofvictim") {
		body = "<p>" + []string{"first", "second"}[n-1] + " words of victim keyword-of-victim " + fmt.Sprint(n)
	}
	return pipeline.Response{URL: r.URL, Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// refusingSink refuses all notifications for good, so that they are dead letters.
type refusingSink struct{}

func (refusingSink) Deliver(context.Context, pipeline.Notification) error {
	return failure.Permanent(errors.New("refused sink-of-victim"))
}

// walker asks everything that a process serves in the name of acme.
type walker struct {
	t       *testing.T
	site    *Site
	api     *manage.API
	rest    http.Handler
	session string
	foreign map[string]string // values of others, each with one of its length that nobody has
	asked   int
}

// newWalker runs a pipeline with pages of acme and of victim.
func newWalker(t *testing.T) *walker {
	t.Helper()
	receivers, err := rest.NewReceivers(webhook.Config{})
	if err != nil {
		t.Fatal(err)
	}
	own := pipeline.Subscription{URL: ownPage, Client: "acme", Keywords: []string{"public"}, Sinks: []string{"sink-of-acme"}, Interval: pipeline.Every(time.Hour)}
	other := pipeline.Subscription{URL: foreignPage, Client: "victim", Keywords: []string{"keyword-of-victim", "2"}, Sinks: []string{"sink-of-victim"}, Tags: []string{"tag-of-victim"}, Interval: pipeline.Every(time.Hour)}
	ownShared, otherShared, hooked := own, other, other
	ownShared.URL, otherShared.URL = sharedPage, sharedPage
	otherShared.Select = []pipeline.Selector{pipeline.ParseSelector("p")}
	hooked.Client, hooked.Sinks = hookOfOther, []string{hookOfOther}
	r, err := vokter.New(vokter.Config{
		Sinks:  map[string]pipeline.Sink{"sink-of-acme": refusingSink{}, "sink-of-victim": refusingSink{}},
		SinkOf: receivers.SinkOf, Fetchers: []pipeline.Fetcher{&changingPages{fetched: make(map[string]int)}}, Fetch: vokter.FetchConfig{Rate: 1e6, Concurrency: 16},
		Subscriptions: []pipeline.Subscription{own, other, ownShared, otherShared, hooked},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	given := make(chan struct{}, 100)
	r.Observe(func(o flow.Observation) {
		if o.Kind == flow.KindDead {
			given <- struct{}{}
		}
	})
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	<-r.Running()
	await := func(ok func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the pipeline does not get there")
			}
		}
	}
	version := func(page string) uint64 {
		h, err := r.Versions(t.Context(), page, inspect.DocumentFilter{})
		if err != nil || len(h.Versions) == 0 {
			return 0
		}
		return h.Versions[0].N
	}
	for _, page := range []string{foreignPage, ownPage} {
		await(func() bool { return version(page) == 1 })
	}
	if err := r.CheckNow(t.Context(), foreignPage); err != nil {
		t.Fatal(err)
	}
	await(func() bool { return version(foreignPage) == 2 })
	<-given // a dead letter of victim

	access := new(manage.Access)
	if err := access.Configure(config.API{Tokens: []config.Token{{
		Name: "acme", Hash: config.HashToken("acme"), Scopes: []config.Scope{config.ScopeRead, config.ScopeWrite, config.ScopeAdmin}, Clients: []string{"acme"}, Sinks: []string{"sink-of-acme"},
	}}}); err != nil {
		t.Fatal(err)
	}
	api, err := manage.New(r, manage.Options{Process: client.Process{Data: "/var/lib/victim"}, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	w := &walker{t: t, api: api, site: New(Options{API: api, Gauges: r.Gauges, Settings: new(Settings)}), rest: rest.New(r, rest.Options{Token: registry.NewSecret("a-token-of-rest")})}
	if w.session, err = api.Logins().Begin(config.HashToken("acme")); err != nil {
		t.Fatal(err)
	}
	w.foreign = map[string]string{
		foreignPage: unknownPage, "victim": "nobody", "tag-of-victim": "tag-of-nobody", "sink-of-victim": "sink-of-nobody", "keyword-of-victim": "keyword-of-nobody", hookOfOther: "http://127.0.0.1:9/hook-of-nobody",
		flow.DocumentID(foreignPage, pipeline.View{}): flow.DocumentID(unknownPage, pipeline.View{}),
		flow.DocumentID(sharedPage, otherShared.View): flow.DocumentID(sharedPage, pipeline.View{Select: []pipeline.Selector{pipeline.ParseSelector("h1")}}),
	}
	return w
}

// packed matches what may be base64.
var packed = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}`)

// unpacked returns text with everything in it that is base64, decoded.
func unpacked(text string) string {
	var b strings.Builder
	b.WriteString(text)
	for _, run := range packed.FindAllString(text, -1) {
		run = strings.NewReplacer("-", "+", "_", "/").Replace(run)
		for from := range min(4, len(run)) {
			part := run[from:]
			if plain, err := base64.RawStdEncoding.DecodeString(part[:len(part)/4*4]); err == nil {
				b.WriteString("\n")
				b.Write(plain)
			}
		}
	}
	return b.String()
}

// changes matches what differs between two answers to the same request.
var changes = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|\d\d:\d\d(:\d\d)?|[A-Za-z0-9_-]{300,}`)

// ask sends the request that with makes of a value of others and of one that nobody has, and fails where an answer has
// a secret, or where the answers always differ: a list of pages that takes too long on a busy machine is cut off.
func (w *walker) ask(h http.Handler, what string, with func(map[string]string) *http.Request) {
	w.t.Helper()
	same := make(map[string]string)
	for value := range w.foreign {
		same[value] = value
	}
	var foreign, nobodys string
	for range 5 {
		if foreign, nobodys = w.answer(h, what, with(same)), w.answer(h, what, with(w.foreign)); foreign == nobodys {
			return
		}
	}
	at := 0
	for at < min(len(foreign), len(nobodys)) && foreign[at] == nobodys[at] {
		at++
	}
	at = max(at-100, 0)
	w.t.Errorf("%s: acme learns that there is something:\n%.700s\n%.700s", what, foreign[at:], nobodys[at:])
}

// answer returns what h answers to r, without what differs between two answers to the same request.
func (w *walker) answer(h http.Handler, what string, r *http.Request) string {
	w.t.Helper()
	w.asked++
	asked := ""
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		asked = string(b)
		r.Body = io.NopCloser(strings.NewReader(asked))
	}
	asked += " " + r.URL.String()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	got := &firstPart{ResponseRecorder: httptest.NewRecorder(), end: cancel}
	h.ServeHTTP(got, r.WithContext(ctx))
	header := got.Header().Clone()
	header.Del("Retry-After")
	text := fmt.Sprint(got.Code, " ", header, " ", got.Body)
	plain := unpacked(text)
	for _, secret := range secretsOfOthers {
		if strings.Contains(plain, secret) && !strings.Contains(asked, secret) {
			w.t.Errorf("%s: the answer to acme has %q: %.600s", what, secret, plain)
		}
	}
	text = strings.NewReplacer("victim", "X", "nobody", "X").Replace(text)
	for one, another := range w.foreign {
		if !strings.Contains(one, "victim") { // the ID of a document
			text = strings.NewReplacer(one, "ID", another, "ID").Replace(text)
		}
	}
	return changes.ReplaceAllString(text, "TIME")
}

// firstPart records an answer. A stream ends after its first part.
type firstPart struct {
	*httptest.ResponseRecorder
	end context.CancelFunc
}

func (f *firstPart) Flush() {
	if f.Header().Get("Content-Type") == "text/event-stream" {
		f.end()
	}
}

func (f *firstPart) SetWriteDeadline(time.Time) error { return nil }

// operation is what the walk needs of an operation of an OpenAPI document.
type operation struct {
	OperationID string
	Parameters  []struct {
		Name     string
		Required bool
		Schema   map[string]any
	}
	RequestBody *struct {
		Content map[string]struct{ Schema map[string]any }
	}
}

// sample returns a value for the field or parameter name with a schema.
func (w *walker) sample(name string, schema map[string]any, all map[string]map[string]any) any {
	if ref, ok := schema["$ref"].(string); ok {
		schema = all[ref[strings.LastIndexByte(ref, '/')+1:]]
	}
	if values, ok := schema["enum"].([]any); ok {
		return values[0]
	}
	kind := schema["type"]
	if several, ok := kind.([]any); ok {
		kind = several[0]
	}
	switch {
	case kind == "boolean":
		return true
	case kind == "integer" || kind == "number":
		return 1
	case kind == "array" && name == "sinks":
		return []string{"sink-of-acme"}
	case kind == "array" && name == "keywords":
		return []string{"k"}
	case kind == "object" && name == "subscription":
		return map[string]any{"url": foreignPage, "sinks": []string{"sink-of-acme"}, "client": "acme"}
	case kind != "string":
		return nil
	}
	switch {
	case name == "url":
		return foreignPage
	case name == "client":
		return "victim"
	case name == "document":
		return flow.DocumentID(foreignPage, pipeline.View{})
	case name == "sink" || name == "tag":
		return name + "-of-victim"
	case schema["format"] == "date-time":
		return "2026-01-31T15:04:05Z"
	}
	return "keyword-of-victim"
}

// TestWalk: acme asks every route of the API, the web page and the REST API for what belongs to others. No answer has
// a byte of it, nor differs from the answer about what nobody has. A new route is walked without being added here.
func TestWalk(t *testing.T) {
	t.Parallel()
	w := newWalker(t)
	var document struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]map[string]any }
	}
	got := httptest.NewRecorder()
	w.api.ServeHTTP(got, w.request(http.MethodGet, client.Prefix+"/openapi.json", nil))
	if err := json.Unmarshal(got.Body.Bytes(), &document); err != nil || len(document.Paths) < 20 {
		t.Fatalf("got %v %d %s", err, got.Code, got.Body)
	}
	subscribe := client.Prefix + "/subscriptions"
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			if path != subscribe || method != "post" {
				w.walkOperation(strings.ToUpper(method), path, document.Paths[path][method], document.Components.Schemas)
			}
		}
	}
	w.walkSite()
	w.walkRest()
	// This makes acme a watcher of the page, so it comes last.
	w.walkOperation(http.MethodPost, subscribe, document.Paths[subscribe]["post"], document.Components.Schemas)
	if w.asked < 500 {
		t.Errorf("only %d requests were sent", w.asked)
	}
}

// variants are the clients and documents that requests name; "" stands for none.
var (
	variantClients   = []string{"", "acme", "victim"}
	variantDocuments = []string{"", flow.DocumentID(foreignPage, pipeline.View{})}
)

// walkOperation asks a route of the API for the page of others, and for a document of others on a shared page.
func (w *walker) walkOperation(method, path string, o operation, schemas map[string]map[string]any) {
	fields := make(map[string]map[string]any)
	required := make(map[string]bool)
	for _, p := range o.Parameters {
		fields[p.Name], required[p.Name] = p.Schema, p.Required
	}
	if o.RequestBody != nil {
		ref, _ := o.RequestBody.Content["application/json"].Schema["$ref"].(string)
		schema := schemas[ref[strings.LastIndexByte(ref, '/')+1:]]
		all, _ := schema["properties"].(map[string]any)
		for name, p := range all {
			fields[name], _ = p.(map[string]any)
		}
		names, _ := schema["required"].([]any)
		for _, name := range names {
			required[fmt.Sprint(name)] = true
		}
	}
	given := make(map[string]any)
	for name, schema := range fields {
		if required[name] || name == "url" {
			given[name] = w.sample(name, schema, schemas)
		}
	}
	try := func(more map[string]any) {
		all := maps.Clone(given)
		maps.Copy(all, more)
		maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil || v == "" })
		w.ask(w.api, fmt.Sprint(method, " ", path, " ", all), func(replace map[string]string) *http.Request {
			if method == http.MethodGet {
				q := url.Values{}
				for name, v := range all {
					q.Set(name, replaced(fmt.Sprint(v), replace))
				}
				return w.request(method, path+"?"+q.Encode(), nil)
			}
			b, err := json.Marshal(all)
			if err != nil {
				w.t.Fatal(err)
			}
			return w.request(method, path, strings.NewReader(replaced(string(b), replace)))
		})
	}
	for _, of := range variantClients {
		about := map[string]any{}
		if fields["client"] != nil {
			about["client"] = of
		}
		try(about)
		for name, schema := range fields {
			if name != "client" && given[name] == nil {
				more := maps.Clone(about)
				more[name] = w.sample(name, schema, schemas)
				try(more)
			}
		}
	}
	if fields["url"] != nil && fields["document"] != nil {
		try(map[string]any{"url": sharedPage, "document": flow.DocumentID(sharedPage, pipeline.View{Select: []pipeline.Selector{pipeline.ParseSelector("p")}})})
	}
	if fields["url"] != nil && !required["url"] {
		try(map[string]any{"url": ""})
		try(map[string]any{"url": "", "limit": nil, "client": nil})
	}
}

// replaced returns text with the values of others replaced.
func replaced(text string, replace map[string]string) string {
	for _, one := range slices.Sorted(maps.Keys(replace)) {
		text = strings.ReplaceAll(text, one, replace[one])
	}
	return text
}

// request returns a request of acme to the API.
func (w *walker) request(method, target string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(w.t.Context(), method, "http://localhost"+target, body)
	r.Header.Set("Authorization", "Bearer acme")
	r.Header.Set("Content-Type", "application/json")
	return r
}

// walkSite asks for all pages and actions of the web page.
func (w *walker) walkSite() {
	ask := func(method, path string, form url.Values) {
		w.ask(w.site, method+" "+path+" "+form.Encode(), func(replace map[string]string) *http.Request {
			given := url.Values{}
			for name, values := range form {
				given.Set(name, replaced(values[0], replace))
			}
			var body io.Reader
			if method == http.MethodGet {
				path = strings.Split(path, "?")[0] + "?" + given.Encode()
			} else {
				body = strings.NewReader(given.Encode())
			}
			r := httptest.NewRequestWithContext(w.t.Context(), method, "http://localhost"+path, body)
			r.Header.Set("Origin", "http://localhost")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.AddCookie(&http.Cookie{Name: sessionCookie, Value: w.session})
			return r
		})
	}
	for _, r := range routes {
		path, ok := strings.CutPrefix(r.pattern, "GET ")
		if !ok {
			continue // an action
		}
		path = strings.TrimSuffix(path, "{$}")
		for _, of := range variantClients {
			for _, document := range variantDocuments {
				ask(http.MethodGet, path, url.Values{"url": {foreignPage}, "client": {of}, "document": {document}, "term": {"public"}})
			}
			ask(http.MethodGet, path, url.Values{"client": {of}, "tag": {"tag-of-victim"}, "sink": {"sink-of-victim"}})
		}
		ask(http.MethodGet, path, url.Values{"url": {sharedPage}, "document": {flow.DocumentID(sharedPage, pipeline.View{Select: []pipeline.Selector{pipeline.ParseSelector("p")}})}})
		ask(http.MethodGet, path, url.Values{})
	}
	for action := range actions {
		for _, of := range variantClients {
			ask(http.MethodPost, "/do/"+action, url.Values{"url": {foreignPage}, "client": {of}, "sink": {"sink-of-victim"}, "sure": {"1"}, "keywords": {"k"}, "document": {flow.DocumentID(foreignPage, pipeline.View{})}, "back": {"/page?url=" + foreignPage}})
		}
	}
}

// walkRest sends the commands of the REST API about pages that others watch.
func (w *walker) walkRest() {
	for _, command := range []string{"subscribe", "cancel", "exampleRequest", "exampleResponse"} {
		for _, to := range []string{"http://127.0.0.1:9/hook-of-acme", hookOfOther} {
			if command == "subscribe" && to == hookOfOther {
				continue // it is a receiver of its own: who says its URL may say what it gets
			}
			w.ask(w.rest, "REST "+command+" "+to, func(replace map[string]string) *http.Request {
				body := `{"documentUrl":"` + foreignPage + `","clientUrl":"` + to + `","keywords":["k"]}`
				method := http.MethodPost
				if strings.HasPrefix(command, "example") {
					method = http.MethodGet
				}
				r := w.request(method, "/vokter/v1/"+command, strings.NewReader(replaced(body, replace)))
				r.Header.Set("Authorization", "Bearer a-token-of-rest")
				return r
			})
		}
	}
}
