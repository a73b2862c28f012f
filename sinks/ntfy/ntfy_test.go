package ntfy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/ntfy"
	"github.com/vokter/vokter/test/chattest"
)

func local(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	c := ntfy.Config{URL: registry.NewSecret(rawURL + "/my-topic"), Token: registry.NewSecret("tk_secret"), Priority: 4, Tags: []string{"eyes"}}
	return chattest.Build(t, ntfy.New, c)
}

// deliver returns what ntfy reads.
func deliver(t *testing.T, n pipeline.Notification) (chattest.Caught, received) {
	t.Helper()
	r := chattest.NewReceiver(t, accept)
	if err := local(t, r.URL).Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	m, err := read(r.Got[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	bounded(t, m)
	return r.Got[0], m
}

func TestGolden(t *testing.T) {
	for name, n := range chattest.Samples() {
		got, m := deliver(t, n)
		if got.Method+" "+got.URI != "POST /" || m.Topic != "my-topic" {
			t.Errorf("got %s %s, the topic %q", got.Method, got.URI, m.Topic)
		}
		chattest.Golden(t, name, got.Body)
	}
}

// TestBounds: a whole request has at most 8,192 bytes, also where JSON needs two for one.
func TestBounds(t *testing.T) {
	n := chattest.Long()
	n.URL = "https://shop.example/" + strings.Repeat("x", 1900)
	for i := range n.Diffs {
		n.Diffs[i].Snippet = strings.Repeat(`"\`, 100) + n.Diffs[i].Snippet
	}
	got, m := deliver(t, n)
	if len(got.Body) > 8192 || !strings.Contains(m.Message, "more") || strings.Count(m.Message, "\n- ") < 4 {
		t.Errorf("%d bytes: %s", len(got.Body), m.Message)
	}
}

func TestLogin(t *testing.T) {
	var header string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Get("Authorization")
		_, _ = io.Copy(io.Discard, r.Body)
		accept(w, r)
	}))
	defer server.Close()
	url := registry.NewSecret(server.URL + "/topic/")
	for want, c := range map[string]ntfy.Config{
		"":                           {URL: url},
		"Bearer tk_secret":           {URL: url, Token: registry.NewSecret("tk_secret")},
		"Basic cGhpbDpteXNlY3JldA==": {URL: url, Username: "phil", Password: registry.NewSecret("mysecret")},
	} {
		if err := chattest.Build(t, ntfy.New, c).Deliver(t.Context(), chattest.Notification()); err != nil {
			t.Fatal(err)
		}
		if header != want {
			t.Errorf("got %q, want %q", header, want)
		}
	}
}

// TestLoginIsNotTold: a proxy may send the header back.
func TestLoginIsNotTold(t *testing.T) {
	r := chattest.NewReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"the header `+req.Header.Get("Authorization")+` is bad"}`)
	})
	c := ntfy.Config{URL: registry.NewSecret(r.URL + "/topic"), Username: "phil", Password: registry.NewSecret("mysecret")}
	err := chattest.Build(t, ntfy.New, c).Deliver(t.Context(), chattest.Notification())
	if err == nil || !strings.Contains(err.Error(), "the header Basic ***") || strings.Contains(err.Error(), "cGhpb") {
		t.Errorf("got %v", err)
	}
}

func TestVerdicts(t *testing.T) {
	chattest.Verdicts(t, local,
		chattest.Refuses(401, `{"code":40101,"http":401,"error":"unauthorized","link":"https://ntfy.sh/docs/publish/#authentication"}`, "the token is refused, or the password: answered 401 Unauthorized: check it, or the user and password: unauthorized"),
		chattest.Refuses(403, `{"code":40301,"http":403,"error":"forbidden"}`, "the token, or the user, may not write to the topic: forbidden"),
		chattest.Refuses(403, `<html>a proxy</html>`, "403"),
		chattest.Means(413, `{"code":41303,"http":413,"error":"JSON body too large"}`, pipeline.ClassRefused, "JSON body too large", 0),
		chattest.Means(429, `{"code":42901,"http":429,"error":"limit reached: too many requests"}`, pipeline.ClassLimited, "too many requests", 0),
		chattest.Means(429, `{"code":42908,"http":429,"error":"limit reached: daily message quota reached"}`, pipeline.ClassLimited, "quota", time.Hour),
		chattest.Means(507, `{"code":50701,"http":507,"error":"cannot publish to UnifiedPush topic without previously active subscriber"}`, pipeline.ClassRetry, "507", 0),
		chattest.Without(200, `{"error":"my-topic and tk_secret are bad"}`, "*** and *** are bad"),
		chattest.Without(200, `{}`, "answered 200 OK, but without "),
	)
}

func TestBreaksOff(t *testing.T) { chattest.BreaksOff(t, accept, local) }

func TestTemplate(t *testing.T) {
	r := chattest.NewReceiver(t, accept)
	c := ntfy.Config{URL: registry.NewSecret(r.URL + "/t"), Template: registry.Template("Look: {{.title}}" + strings.Repeat("ä", 3000))}
	if err := chattest.Build(t, ntfy.New, c).Deliver(t.Context(), chattest.Notification()); err != nil {
		t.Fatal(err)
	}
	m, err := read(r.Got[0].Body)
	if err != nil || !strings.HasPrefix(m.Message, "Look: Zeus & Co [*sale*]ää") || !strings.HasSuffix(m.Message, "ä…") {
		t.Errorf("got %s", r.Got[0].Body)
	}
	bounded(t, m)
}

func TestConfig(t *testing.T) {
	good := registry.NewSecret("https://ntfy.sh/topic")
	secret := registry.NewSecret("SECRET")
	for _, raw := range []string{"", "ntfy.sh/SECRET", "https://ntfy.sh", "https://ntfy.sh/", "https://ntfy.sh/SECRET.topic", "https://ntfy.sh/a%2FSECRET"} {
		_, err := ntfy.New(ntfy.Config{URL: registry.NewSecret(raw)})
		chattest.Refused(t, err, "url", "SECRET")
	}
	for field, list := range map[string][]ntfy.Config{
		"url":      {{URL: registry.NewSecret("https://u:SECRET@ntfy.sh/topic"), Token: secret}, {URL: registry.NewSecret("https://u:SECRET@ntfy.sh/topic"), Username: "u", Password: secret}},
		"token":    {{URL: good, Token: secret, Username: "u"}, {URL: good, Token: registry.NewSecret("SECRET\x7f")}},
		"password": {{URL: good, Username: "u"}},
		"username": {{URL: good, Password: secret}, {URL: good, Username: "a:b", Password: secret}},
		"priority": {{URL: good, Priority: 6}},
		"tags":     {{URL: good, Tags: slices.Repeat([]string{"a"}, 11)}},
		"tags[1]":  {{URL: good, Tags: []string{"a", "b,c"}}},
	} {
		for _, c := range list {
			_, err := ntfy.New(c)
			chattest.Refused(t, err, field, "SECRET")
		}
	}
	var r registry.Registry
	ntfy.Register(&r)
	if _, ok := r.LookupSink("ntfy"); !ok {
		t.Error("ntfy is not registered")
	}
}

// TestHealthTitle: the title of a health event says what happened, and to which page or sink.
func TestHealthTitle(t *testing.T) {
	for want, h := range map[string]pipeline.Health{
		"failing: shop.example/item":  {Event: pipeline.HealthFailing, URL: "https://shop.example/item"},
		"receiver failing: sink team": {Event: pipeline.HealthReceiverFailing, Receiver: &pipeline.Receiver{Sink: "team"}},
	} {
		n := pipeline.Notification{ID: "H", Type: pipeline.NotificationTypeHealth, Status: string(h.Event), Health: &h}
		if _, m := deliver(t, n); m.Title != want {
			t.Errorf("got the title %q, want %q", m.Title, want)
		}
	}
}
