package web

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// TestPagesNeedALogin: without a session no page shows anything and no action is carried out.
func TestPagesNeedALogin(t *testing.T) {
	f := new(fake)
	b := logIn(t, f, "")
	for _, path := range append(paths(t), "/events") {
		r, body := b.get(t, path)
		if r.StatusCode != http.StatusUnauthorized || strings.Contains(body, "tea") {
			t.Errorf("%s: got %s %s", path, r.Status, body)
		}
	}
	for action := range actions {
		if r, _ := b.post(t, "/do/"+action, url.Values{"url": {pageURL}, "sure": {"yes"}}); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got %s", action, r.Status)
		}
	}
	if len(f.done)+len(f.filters) > 0 {
		t.Errorf("the pipeline was asked: %v %v", f.done, f.filters)
	}
}

// TestPageTextIsText: whatever a page, a client or a sink is called, no page has markup of it.
func TestPageTextIsText(t *testing.T) {
	b := logIn(t, &fake{source: hostile + watched}, aToken)
	u := url.QueryEscape(pageURL)
	styled := regexp.MustCompile(`<[^>]* (style|on[a-z]+)=|<script>|javascript:`)
	for _, path := range append(paths(t), "/text?version=2&url="+u, "/diff?view=side&all=yes&url="+u, "/?q="+url.QueryEscape(hostile), "/login", "/nowhere") {
		r, body := b.get(t, path)
		if r.StatusCode != http.StatusOK && path != "/nowhere" {
			t.Errorf("%s: got %s %s", path, r.Status, body)
		}
		if found := styled.FindString(body); found != "" {
			t.Errorf("%s: the page has %s", path, found)
		}
		if strings.HasPrefix(path, "/pick/frame") {
			continue // TestPicker
		}
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(r.Header.Get("Content-Security-Policy"), want) {
				t.Errorf("%s: the policy lacks %s: %s", path, want, r.Header.Get("Content-Security-Policy"))
			}
		}
		if !strings.Contains(body, `<main id="main"`) || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %v %s", path, r.Header, body)
		}
	}
}

// TestDifference: the words that differ and the keywords are marked, in both layouts.
func TestDifference(t *testing.T) {
	b := logIn(t, new(fake), aToken)
	for _, layout := range []string{"", "side"} {
		_, body := b.get(t, "/diff?url=https://example.com/&view="+layout)
		for _, want := range []string{"green <mark>tea</mark> <del>&lt;script&gt;", "green <mark>tea</mark> <ins>&lt;script&gt;", "3 unchanged parts"} {
			if !strings.Contains(body, want) {
				t.Errorf("%q: %s is missing in %s", layout, want, body)
			}
		}
	}
}

// TestOtherSites: a request that another web site sends changes nothing.
func TestOtherSites(t *testing.T) {
	f := new(fake)
	b := logIn(t, f, aToken)
	for name, header := range map[string]map[string]string{
		"nothing is said": nil, "another origin": {"Origin": "https://evil.example"}, "no origin": {"Origin": "null"},
		"another site": {"Sec-Fetch-Site": "cross-site", "Origin": b.base}, "a sibling": {"Sec-Fetch-Site": "same-site", "Origin": b.base},
	} {
		for _, path := range []string{"/do/check", "/do/pause", "/login", "/logout"} {
			if r, _ := b.send(t, http.MethodPost, path, url.Values{"url": {pageURL}, "client": {"c"}}, header); r.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: got %s", name, path, r.Status)
			}
		}
	}
	if len(f.done) > 0 {
		t.Errorf("it was carried out: %v", f.done)
	}
	if r, _ := b.send(t, http.MethodGet, "/", nil, map[string]string{"Host": "evil.example"}); r.StatusCode != http.StatusForbidden {
		t.Errorf("a name that points here: got %s", r.Status)
	}
}

// TestLinksFromOutside: who follows a link in a mail is asked again by the page itself, because the
// browser sends no cookie of this strictness before.
func TestLinksFromOutside(t *testing.T) {
	b := logIn(t, new(fake), "")
	r, body := b.send(t, http.MethodGet, "/diff?url=x&from=1", nil, map[string]string{"Sec-Fetch-Site": "cross-site"})
	if r.StatusCode != http.StatusOK || !strings.Contains(body, `content="0; url=/diff?url=x&amp;from=1"`) {
		t.Errorf("got %s %s", r.Status, body)
	}
}

// TestLinksFromOutsideDoNothing: a page that fetches another page in the name of the user waits for the user.
func TestLinksFromOutsideDoNothing(t *testing.T) {
	b := logIn(t, new(fake), "")
	for _, path := range []string{"/pick?url=http://a.example/", "/pick/frame?url=http://a.example/", "/subscribe?url=http://a.example/"} {
		for _, site := range []string{"cross-site", "same-site"} {
			r, body := b.send(t, http.MethodGet, path, nil, map[string]string{"Sec-Fetch-Site": site})
			if r.StatusCode != http.StatusOK || strings.Contains(body, "http-equiv") || !strings.Contains(body, `class="button" href="`+path+`"`) {
				t.Errorf("%s from %s: got %s %s", path, site, r.Status, body)
			}
		}
	}
}

// TestMissing: a document that is not on its page shows why, in the list and on the page.
func TestMissing(t *testing.T) {
	for state, want := range map[string]string{
		inspect.StateSelectorGone: "price: no value is found on the page.",
		inspect.StatePageReplaced: "price: the page looks replaced by an error page",
	} {
		b := logIn(t, &fake{missing: state}, aToken)
		for _, path := range []string{"/", "/page?url=" + url.QueryEscape(pageURL)} {
			if _, body := b.get(t, path); strings.Count(body, want) != 1 {
				t.Errorf("%s: got %s, want %q once", path, body, want)
			}
		}
	}
}

// TestAccessAdvice: a page that asks for credentials says where they can be given.
func TestAccessAdvice(t *testing.T) {
	b := logIn(t, &fake{reason: "HTTP status 401 Unauthorized"}, aToken)
	for _, path := range []string{"/page", "/why"} {
		want := "If the page needs credentials, give them in access of the configuration."
		if _, body := b.get(t, path+"?url="+url.QueryEscape(pageURL)); strings.Count(body, want) != 1 {
			t.Errorf("%s: got %s, want %q once", path, body, want)
		}
	}
}

// TestLastChange: the first text of a page is no change.
func TestLastChange(t *testing.T) {
	for baseline, want := range map[bool]string{true: "<dt>Last change</dt><dd>–</dd>", false: `<dt>Last change</dt><dd><time datetime="2026-01-31T`} {
		if _, body := logIn(t, &fake{baseline: baseline}, aToken).get(t, "/"); !strings.Contains(body, want) {
			t.Errorf("baseline %v: got %s, want %q", baseline, body, want)
		}
	}
}

// TestPausedPage: it says when it goes on, and offers no check, which would be refused.
func TestPausedPage(t *testing.T) {
	b := logIn(t, &fake{pausedUntil: time.Now().Add(24*time.Hour + time.Minute)}, aToken)
	_, body := b.get(t, "/page?url="+url.QueryEscape(pageURL))
	if !regexp.MustCompile(`Resumes <time [^>]*>in 24 hours</time>`).MatchString(body) || !strings.Contains(body, "<dt>Next check</dt><dd>none</dd>") ||
		strings.Contains(body, "/do/check") || strings.Contains(body, "/do/pause") || !strings.Contains(body, "/do/resume") {
		t.Errorf("got %s", body)
	}
}

// TestActions: each button asks the API and returns to its page with a note.
func TestActions(t *testing.T) {
	f := new(fake)
	b := logIn(t, f, aToken)
	form := url.Values{"url": {pageURL}, "client": {"ann"}, "sink": {"ops"}, "sure": {"yes"}, "back": {"/page?url=x"}}
	for _, action := range []string{"check", "pause", "resume", "cancel", "retry", "test", "replay"} {
		r, body := b.post(t, "/do/"+action, form)
		if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/page?url=x" {
			t.Fatalf("%s: got %s %s", action, r.Status, body)
		}
		if _, body := b.get(t, "/"); !strings.Contains(body, `role="status"`) {
			t.Errorf("%s: there is no note in %s", action, body)
		}
		if _, body := b.get(t, "/"); strings.Contains(body, `role="status"`) {
			t.Errorf("%s: the note stays", action)
		}
	}
	want := []string{"check " + pageURL, "pause " + pageURL + " ann", "resume " + pageURL + " ann", "cancel " + pageURL + " ann", "retry ops", "test ops", "replay ops"}
	if !slices.Equal(f.done, want) {
		t.Errorf("got %q, want %q", f.done, want)
	}
	form.Set("for", "24h")
	if r, body := b.post(t, "/do/pause", form); r.StatusCode != http.StatusSeeOther || f.done[len(f.done)-1] != "pause "+pageURL+" ann for 24h0m0s" {
		t.Errorf("pause for a day: got %s %s, did %q", r.Status, body, f.done)
	}
	for length, why := range map[string]string{"x": "is not a duration", "9999999h": "is too long"} {
		form.Set("for", length)
		if r, body := b.post(t, "/do/pause", form); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, why) {
			t.Errorf("pause for %s: got %s %s, want %q", length, r.Status, body, why)
		}
	}
	want = f.done
	form.Del("sure")
	if r, _ := b.post(t, "/do/cancel", form); r.StatusCode != http.StatusUnprocessableEntity || len(f.done) != len(want) {
		t.Errorf("a cancel that is not confirmed: got %s", r.Status)
	}
	form.Set("back", "//evil.example/")
	if r, _ := b.post(t, "/do/check", form); r.Header.Get("Location") != "/" {
		t.Errorf("an action leads to %s", r.Header.Get("Location"))
	}
	if r, _ := b.post(t, "/do/nothing", form); r.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown action: got %s", r.Status)
	}
}

// TestTokens: a user may do what the token may do, and sees what it may see.
func TestTokens(t *testing.T) {
	f := new(fake)
	reader := logIn(t, f, "reader")
	form := url.Values{"url": {pageURL}, "client": {"ann"}, "sink": {"ops"}, "sure": {"yes"}}
	for action := range actions {
		if r, _ := reader.post(t, "/do/"+action, form); r.StatusCode != http.StatusForbidden {
			t.Errorf("a reader, %s: got %s", action, r.Status)
		}
	}
	if _, body := reader.get(t, "/page?url=https://example.com/"); strings.Contains(body, "/do/") {
		t.Errorf("a reader sees buttons: %s", body)
	}
	acme := logIn(t, f, "acme")
	f.filters = nil
	if r, _ := acme.get(t, "/"); r.StatusCode != http.StatusOK || len(f.filters) != 1 || !slices.Equal(f.filters[0].Clients, []string{"acme"}) {
		t.Errorf("a tenant: got %s, asked %+v", r.Status, f.filters)
	}
	for _, path := range []string{"/receivers"} {
		if r, _ := acme.get(t, path); r.StatusCode != http.StatusForbidden {
			t.Errorf("a tenant, %s: got %s", path, r.Status)
		}
	}
	if _, body := acme.get(t, "/subscribe"); !strings.Contains(body, `value="acme"`) || strings.Contains(body, `value="default"`) {
		t.Errorf("the form of a tenant proposes another client: %s", body)
	}
	if _, body := acme.get(t, "/dead-letters"); !strings.Contains(body, "There are no dead letters.") {
		t.Errorf("a tenant sees dead letters of others: %s", body)
	}
	for _, action := range []string{"pause", "resume", "cancel", "retry", "test", "replay"} {
		if r, _ := acme.post(t, "/do/"+action, form); r.StatusCode < 400 {
			t.Errorf("a tenant, %s for another client: got %s", action, r.Status)
		}
	}
	if len(f.done) > 0 {
		t.Errorf("it was carried out: %v", f.done)
	}
	writer := logIn(t, f, "writer")
	if r, _ := writer.get(t, "/"); r.StatusCode != http.StatusForbidden {
		t.Errorf("a token without read: got %s", r.Status)
	}
}

// TestLogin: a session needs a valid token, is no token itself, and ends with the token or the logout.
func TestLogin(t *testing.T) {
	b := logIn(t, new(fake), "")
	if r, body := b.post(t, "/login", url.Values{"token": {"wrong"}, "back": {"/page?url=x"}}); r.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "neither a valid token nor the password") {
		t.Errorf("a wrong token: got %s %s", r.Status, body)
	}
	for back, want := range map[string]string{"/page?url=x": "/page?url=x", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/", "": "/"} {
		if r, _ := b.post(t, "/login", url.Values{"token": {aToken}, "back": {back}}); r.Header.Get("Location") != want {
			t.Errorf("back to %q: got %q", back, r.Header.Get("Location"))
		}
	}
	r, _ := b.post(t, "/login", url.Values{"token": {aToken}})
	set := r.Header.Get("Set-Cookie")
	if strings.Contains(set, aToken) || strings.Contains(set, config.HashToken(aToken)) || !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") {
		t.Errorf("the cookie is %s", set)
	}
	if r, _ := b.post(t, "/logout", nil); r.StatusCode != http.StatusSeeOther {
		t.Errorf("logout: got %s", r.Status)
	}
	if r, _ := b.send(t, http.MethodGet, "/", nil, map[string]string{"Cookie": strings.Split(set, ";")[0]}); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the logout: got %s", r.Status)
	}
	b.post(t, "/login", url.Values{"token": {aToken}})
	if r, _ := b.get(t, "/"); r.StatusCode != http.StatusOK {
		t.Errorf("after the login: got %s", r.Status)
	}
	if err := b.access.Configure(config.API{}); err != nil {
		t.Fatal(err)
	}
	if r, _ := b.get(t, "/"); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("after the token was removed: got %s", r.Status)
	}
}

// TestErrors: what the API refuses shows as a page with its status.
func TestErrors(t *testing.T) {
	b := logIn(t, &fake{err: inspect.ErrElsewhere}, aToken)
	for _, path := range []string{"/?url=x", "/text?url=https://example.com/", "/diff?url=https://example.com/"} {
		if r, body := b.get(t, path); r.StatusCode != http.StatusMisdirectedRequest || !strings.Contains(body, "nother process owns it") {
			t.Errorf("%s: got %s %s", path, r.Status, body)
		}
	}
	for _, path := range []string{"/text?url=no-url", "/diff?url=https://example.com/&from=x"} {
		if r, _ := b.get(t, path); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %s", path, r.Status)
		}
	}
}

// TestSubscribe sends the form as a preview, and then to add and to change a subscription.
func TestSubscribe(t *testing.T) {
	f := new(fake)
	b := logIn(t, f, aToken)
	form := url.Values{
		"url": {" " + pageURL}, "client": {"ann"}, "keywords": {"tea\r\n\r\ngreen tea\r\n"}, "interval": {"1h"}, "sink": {"ops", "mail, ops"},
		"select": {"main\n//p"}, "match_case": {"true"}, "expire.after": {"never"}, "expire.retry": {"30d"},
	}
	_, body := b.get(t, "/subscribe?"+form.Encode())
	for _, want := range []string{"green <mark>tea</mark> &lt;script&gt;", "of the last 1 change", `value="true" checked> Match case`, ">tea\ngreen tea</textarea>", `value="1h"`, `name="expire.after" value="never"`, `name="expire.retry" value="720h"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the preview lacks %s: %s", want, body)
		}
	}
	if r, _ := b.post(t, "/do/subscribe", form); r.StatusCode != http.StatusSeeOther || !strings.HasPrefix(r.Header.Get("Location"), "/page?url=") {
		t.Errorf("subscribe: got %s", r.Status)
	}
	form.Set("document", "d1")
	if r, _ := b.post(t, "/do/subscribe", form); r.StatusCode != http.StatusSeeOther {
		t.Errorf("change: got %s", r.Status)
	}
	want := []string{`subscribe ` + pageURL + ` ann ["tea" "green tea"] [ops mail] 1h0m0s [main xpath://p] true`, `change d1 ann ["tea" "green tea"]`}
	if !slices.Equal(f.done, want) {
		t.Errorf("got %q, want %q", f.done, want)
	}
	for field, bad := range map[string]string{"interval": "often", "min_change": "much", "expire.after": "0", "expire.retry": "soon"} {
		wrong := url.Values{"url": {pageURL}, "sink": {"ops"}}
		wrong.Set(field, bad)
		back := `<a href="/subscribe?` + strings.ReplaceAll(wrong.Encode(), "&", "&amp;") + `">Back to the form</a>`
		if r, body := b.post(t, "/do/subscribe", wrong); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, back) {
			t.Errorf("%s %s: got %s %s", field, bad, r.Status, body)
		}
		if r, body := b.get(t, "/subscribe?"+wrong.Encode()); r.StatusCode != http.StatusOK || !strings.Contains(body, `role="alert"`) {
			t.Errorf("%s %s: got %s %s", field, bad, r.Status, body)
		}
	}
	if len(f.done) != 2 {
		t.Errorf("it was carried out: %q", f.done)
	}
	form = url.Values{"url": {pageURL}, "client": {hostile}, "document": {"d1"}}
	if _, body := b.get(t, "/subscribe?"+form.Encode()); !strings.Contains(body, "Change a subscription") || !strings.Contains(body, "\ntea</textarea>") {
		t.Errorf("the form of a subscription is %s", body)
	}
	acme := logIn(t, f, "acme")
	form = url.Values{"url": {pageURL}, "client": {"ann"}, "sink": {"ops"}}
	if r, _ := acme.post(t, "/do/subscribe", form); r.StatusCode != http.StatusUnprocessableEntity || len(f.done) != 2 {
		t.Errorf("a tenant, for another client: got %s", r.Status)
	}
}

func TestPieces(t *testing.T) {
	segments := []inspect.Segment{{Text: "one two"}, {Text: " three", Event: pipeline.Added}}
	for _, c := range []struct {
		name   string
		places []inspect.Place
		want   []piece
	}{
		{"none", nil, []piece{{"one two", "", false}, {" three", pipeline.Added, false}}},
		{"within", []inspect.Place{{Start: 14, End: 17}}, []piece{{"one ", "", false}, {"two", "", true}, {" three", pipeline.Added, false}}},
		{"across", []inspect.Place{{Start: 14, End: 20}}, []piece{{"one ", "", false}, {"two", "", true}, {" th", pipeline.Added, true}, {"ree", pipeline.Added, false}}},
		{"begins before", []inspect.Place{{Start: 5, End: 13}}, []piece{{"one", "", true}, {" two", "", false}, {" three", pipeline.Added, false}}},
		{"elsewhere", []inspect.Place{{Start: 1, End: 3}, {Start: 30, End: 33}}, []piece{{"one two", "", false}, {" three", pipeline.Added, false}}},
		{"ends behind", []inspect.Place{{Start: 18, End: 40}}, []piece{{"one two", "", false}, {" ", pipeline.Added, false}, {"three", pipeline.Added, true}}},
	} {
		if got := cutPieces(10, segments, c.places); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestTagsAndDeliveries: lists are filtered by tag, tags are shown, and the deliveries of all pages are
// selected by sink, state and client, part by part.
func TestTagsAndDeliveries(t *testing.T) {
	f := &fake{more: 3}
	b := logIn(t, f, aToken)
	last := func() inspect.ListFilter { return f.filters[len(f.filters)-1] }
	_, body := b.get(t, "/?tag=shop")
	if last().Tag != "shop" || !strings.Contains(body, `<bdi class="chip tag">shop</bdi>`) || !regexp.MustCompile(`cursor=[\w-]+&amp;tag=shop">More pages`).MatchString(body) || last().After == "" || strings.Contains(body, "data-further") {
		t.Errorf("the list: got %+v %s", last(), body)
	}
	f.more = 1 << 30
	if _, body := b.get(t, "/?tag=rare"); !strings.Contains(body, "No page matches so far.") || !strings.Contains(body, "data-further") || !strings.Contains(body, ">Look further</a>") {
		t.Errorf("a list without a match so far: got %s", body)
	}
	f.more = 0
	if _, body := b.get(t, "/changes?tag=shop"); last().Tag != "shop" && f.filters[0].Tag != "shop" || !strings.Contains(body, "&amp;tag=shop") {
		t.Errorf("the changes: got %+v %s", last(), body)
	}
	f.partial = true
	for _, path := range []string{"/changes?tag=shop", "/deliveries?sink=ops"} {
		if _, body := b.get(t, path); !strings.Contains(body, "still being read") || !strings.Contains(body, `<a href="`+path+`">Show the list again</a>`) {
			t.Errorf("%s while the state is read: got %s", path, body)
		}
	}
	f.partial = false
	if _, body := b.get(t, "/page?url="+url.QueryEscape(pageURL)); !strings.Contains(body, `href="/?tag=shop"`) {
		t.Errorf("a page: got %s", body)
	}
	_, body = b.get(t, "/deliveries?sink=ops&state=dead&client=ann")
	if got := last(); got.Contains != "ops" || got.State != "dead" || got.Client != "ann" {
		t.Errorf("the deliveries were asked with %+v", got)
	}
	for _, want := range []string{`<span class="state dead">dead</span>`, "/diff?document=d1&amp;to=2&amp;url=", "client=ann&amp;cursor=", "&amp;sink=ops&amp;state=dead"} {
		if !strings.Contains(body, want) {
			t.Errorf("the deliveries: %s is missing in %s", want, body)
		}
	}
	if r, _ := b.get(t, "/deliveries?state=wrong"); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("an unknown state: got %s", r.Status)
	}
}

// TestValueForm: the form makes a subscription to a value with conditions and tags.
func TestValueForm(t *testing.T) {
	f := new(fake)
	b := logIn(t, f, aToken)
	form := url.Values{"url": {"https://shop.example.com/"}, "client": {"ann"}, "sink": {"ops"}, "value": {"price"}, "below": {" 100 "}, "tags": {"shop, ,lamps,shop"}}
	if r, body := b.post(t, "/do/subscribe", form); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("got %s %s", r.Status, body)
	}
	if want := `subscribe https://shop.example.com/ ann [] [ops] 10m0s [] false tags ["shop" "lamps"] Price {Below:100 Above: ChangesBy: Becomes:}`; f.done[0] != want {
		t.Errorf("got %s, want %s", f.done[0], want)
	}
	form.Set("below", "a hundred")
	if r, body := b.post(t, "/do/subscribe", form); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(body, "is not a number") {
		t.Errorf("got %s %s", r.Status, body)
	}
}

// TestScreenshots: the difference shows the pictures of both versions, and each is served as a picture in
// which nothing runs, to users who may see the page.
func TestScreenshots(t *testing.T) {
	f := new(fake)
	b := logIn(t, f, "acme")
	_, body := b.get(t, "/diff?url="+url.QueryEscape(pageURL))
	for _, want := range []string{"Before: version 1 has no screenshot", `<img src="/screenshot?document=d1&amp;url=https%3A%2F%2Fexample.com%2F%3Fa%3D1%26b%3D%253Cscript%253E&amp;version=2"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
	r, body := b.get(t, "/screenshot?url=https://example.com/&version=2")
	if h := r.Header; r.StatusCode != http.StatusOK || h.Get("Content-Type") != "image/webp" || h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; sandbox") || body != hostile {
		t.Errorf("got %s %v %s", r.Status, h, body)
	}
	if got := f.filters[len(f.filters)-1].Clients; !slices.Equal(got, []string{"acme"}) {
		t.Errorf("the picture was asked for as %v", got)
	}
	if r, _ := logIn(t, f, "").get(t, "/screenshot?url=https://example.com/&version=2"); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a login: got %s", r.Status)
	}
}
