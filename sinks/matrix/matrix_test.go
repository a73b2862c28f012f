package matrix_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/templates"
	"github.com/vokter/vokter/sinks/matrix"
	"github.com/vokter/vokter/test/chattest"
)

var acceptAnswer = chattest.Answer(200, `{"event_id":"$Rqnc-F-dvnEYJTyHq_iKxU2bZ1CI92-kuZq3a5lr5Zg"}`)

const room = "!QtykxKocfZaZOUrTwp:matrix.org"

func TestConformance(t *testing.T) {
	f := pipelinetest.HTTPSinkFeatures{
		Accept: acceptAnswer,
		Imposters: []http.HandlerFunc{
			chattest.Answer(204, ""), chattest.Answer(200, ""), chattest.Answer(200, "{}"), chattest.Answer(200, `{"event_id":""}`),
			chattest.Answer(200, `{"event_id":1}`), chattest.Answer(200, `{"errcode":"M_FORBIDDEN","error":"x"}`), chattest.Answer(200, "<html>welcome</html>"),
		},
		Decode: func(h http.Header, body []byte) (string, []string, error) {
			if !strings.HasPrefix(h.Get("Authorization"), "Bearer ") {
				t.Error("there is no token")
			}
			c := chattest.Decode[receivedMessage](t, body)
			quotes, links := visibleText(t, c)
			if len(links) > 1 || len(links) == 1 && links[0] != "https://example.com/" {
				t.Errorf("there are links to %q", links)
			}
			return c.Ours.ID, quotes, nil
		},
		ForPeople: true,
	}
	pipelinetest.TestHTTPSink(t, f, func(t *testing.T, rawURL string, o pipelinetest.HTTPSinkOptions) pipeline.Sink {
		u, err := url.Parse(rawURL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = nil // the token logs in
		c := matrix.Config{Homeserver: registry.NewSecret(u.String()), Room: room, Token: registry.NewSecret(o.Secret)}
		return chattest.Build(t, matrix.New, c, registry.Connection{Allow: o.Allow, RootCAs: o.RootCAs})
	})
}

// receivedMessage is what a homeserver reads of a request.
type receivedMessage struct {
	MsgType  string `json:"msgtype"`
	Body     string
	Format   string
	HTML     string              `json:"formatted_body"`
	Mentions *map[string]any     `json:"m.mentions"`
	Ours     struct{ ID string } `json:"io.vokter.notification"`
}

// allowedElements are those that messages may have.
var allowedElements = map[string]bool{"p": true, "strong": true, "del": true, "br": true, "a": true, "blockquote": true}

// visibleText returns the quotes in the HTML of c, and the targets of its links. It fails the test
// where c mentions anybody, is too long, or has other elements.
func visibleText(t *testing.T, c receivedMessage) (quotes, links []string) {
	t.Helper()
	if c.Mentions == nil || len(*c.Mentions) != 0 || c.Body == "" || len(c.Body)+len(c.HTML) > 45_000 {
		t.Errorf("mentions %v, %d and %d bytes", c.Mentions, len(c.Body), len(c.HTML))
	}
	if c.HTML == "" {
		return nil, nil
	}
	if c.Format != "org.matrix.custom.html" {
		t.Errorf("the format is %q", c.Format)
	}
	quote := false
	z := html.NewTokenizer(strings.NewReader(c.HTML))
	for {
		kind := z.Next()
		token := z.Token()
		switch kind {
		case html.ErrorToken:
			return quotes, links
		case html.TextToken:
			if quote {
				quotes[len(quotes)-1] += token.Data
			}
		case html.StartTagToken, html.EndTagToken:
			if !allowedElements[token.Data] || len(token.Attr) > 1 || len(token.Attr) == 1 && token.Data+token.Attr[0].Key != "ahref" {
				t.Errorf("there is %s in %.300q", token, c.HTML)
			}
			if token.Data == "blockquote" {
				if quote = kind == html.StartTagToken; quote {
					quotes = append(quotes, "")
				}
			}
			for _, a := range token.Attr {
				links = append(links, a.Val)
			}
		default:
			t.Errorf("there is %s in %.300q", token, c.HTML)
		}
	}
}

func newLocalSink(t *testing.T, rawURL string) pipeline.Sink {
	t.Helper()
	c := matrix.Config{Homeserver: registry.NewSecret(rawURL + "/"), Room: room, Token: registry.NewSecret("syt_secret")}
	return chattest.Build(t, matrix.New, c)
}

// deliver returns what a homeserver reads.
func deliver(t *testing.T, n pipeline.Notification) (chattest.Caught, receivedMessage) {
	t.Helper()
	return chattest.Send[receivedMessage](t, acceptAnswer, newLocalSink, n)
}

func TestGolden(t *testing.T) {
	for name, n := range chattest.Samples() {
		got, c := deliver(t, n)
		want := "PUT /_matrix/client/v3/rooms/%21QtykxKocfZaZOUrTwp:matrix.org/send/m.room.message/" + n.ID
		if got.Method+" "+got.URI != want || c.MsgType != "m.notice" || c.Ours.ID != n.ID {
			t.Errorf("got %s %s, want %s; %s of %s", got.Method, got.URI, want, c.MsgType, c.Ours.ID)
		}
		visibleText(t, c)
		chattest.Golden(t, name, got.Body)
	}
}

func TestBounds(t *testing.T) {
	n := chattest.Long()
	for i := range n.Diffs { // each of these takes five bytes in HTML
		n.Diffs[i].Snippet = strings.Repeat("<&", 100) + n.Diffs[i].Snippet
	}
	got, c := deliver(t, n)
	if quotes, _ := visibleText(t, c); len(quotes) < 5 || !strings.Contains(c.HTML, "more") || len(got.Body) > 50_000 {
		t.Errorf("%d differences in %d bytes: %s", len(quotes), len(got.Body), c.HTML)
	}
}

func TestLink(t *testing.T) {
	n := chattest.Notification()
	n.URL, n.Diffs = `https://u:p@example.com/?x="><script>&copy;`, nil
	_, c := deliver(t, n)
	if _, links := visibleText(t, c); len(links) != 1 || links[0] != `https://example.com/?x="><script>&copy;` {
		t.Errorf("got links to %q", links)
	}
}

func TestVerdicts(t *testing.T) {
	chattest.Verdicts(t, newLocalSink,
		chattest.Means(429, `{"errcode":"M_LIMIT_EXCEEDED","error":"Too Many Requests","retry_after_ms":2500}`, failure.ClassLimited, "M_LIMIT_EXCEEDED", 2500*time.Millisecond),
		chattest.Refuses(401, `{"errcode":"M_UNKNOWN_TOKEN","error":"Invalid access token passed."}`, "the token is refused: answered 401 Unauthorized: M_UNKNOWN_TOKEN: Invalid"),
		chattest.Refuses(401, `{"errcode":"M_UNKNOWN_TOKEN","error":"expired","soft_logout":true}`, "expired"),
		chattest.Refuses(403, `{"errcode":"M_USER_DEACTIVATED","error":"This account has been deactivated"}`, "the account is deactivated"),
		chattest.Refuses(403, `{"errcode":"M_FORBIDDEN","error":"User @v:matrix.org not in room"}`, "the account is not in the room: answered 403 Forbidden: M_FORBIDDEN: User @v:matrix.org not in room; invite the account to "+room+" and let it join there"),
		chattest.Refuses(403, `{"errcode":"M_FORBIDDEN","error":"You don't have permission to post that to the room."}`, "the account may not do that in the room"),
		chattest.Means(404, `{"errcode":"M_NOT_FOUND","error":"Unknown room"}`, failure.ClassGone, "Unknown room", 0),
		chattest.Means(404, `{"errcode":"M_UNRECOGNIZED","error":"Unrecognized request"}`, failure.ClassRetry, "M_UNRECOGNIZED", 0),
		chattest.Refuses(403, `<html>a proxy</html>`, "403"),
		chattest.Means(413, `{"errcode":"M_TOO_LARGE","error":"event too large"}`, failure.ClassRefused, "event too large", 0),
		chattest.Means(500, `{"errcode":"M_FORBIDDEN","error":"syt_secret"}`, failure.ClassRetry, "***", 0),
		chattest.Without(200, `{}`, "answered 200 OK, but without "),
	)
}

func TestBreaksOff(t *testing.T) { chattest.BreaksOff(t, acceptAnswer, newLocalSink) }

func TestRetryAfterIsTheLonger(t *testing.T) {
	r := chattest.NewReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"errcode":"M_LIMIT_EXCEEDED","retry_after_ms":2500}`))
	})
	if _, wait := failure.ClassOf(newLocalSink(t, r.URL).Deliver(t.Context(), chattest.Notification())); wait != 7*time.Second {
		t.Errorf("wait %v, want 7s", wait)
	}
}

func TestRefusedLayoutGivesWayToPlainText(t *testing.T) {
	_, plain := chattest.GivesWay(t, chattest.Answer(400, `{"errcode":"M_BAD_JSON","error":"no"}`), acceptAnswer, newLocalSink)
	c := chattest.Decode[receivedMessage](t, plain)
	if c.Format != "" || c.HTML != "" {
		t.Errorf("got %s", plain)
	}
	visibleText(t, c)
}

func TestTemplate(t *testing.T) {
	for source, want := range map[string]string{
		`<em>{{.title}}</em>{{html .url}}`: `<em>Zeus &amp; Co [*sale*]</em>https://shop.example/item_(1)?a=b&amp;c=*d*`,
		strings.Repeat("{{.title}}", 1500): "",
	} {
		r := chattest.NewReceiver(t, acceptAnswer)
		a := &chattest.Attempt{}
		c := matrix.Config{Homeserver: registry.NewSecret(r.URL), Room: room, Token: registry.NewSecret("t"), MsgType: "m.text", Template: templates.New(source)}
		if err := chattest.Build(t, matrix.New, c).Deliver(pipeline.WithAttempt(t.Context(), a), chattest.Notification()); err != nil {
			t.Fatal(err)
		}
		got := chattest.Decode[receivedMessage](t, r.Got[0].Body)
		if got.MsgType != "m.text" {
			t.Errorf("got %s", r.Got[0].Body)
		}
		switch {
		case want != "" && got.HTML != want:
			t.Errorf("got %s, want %s", got.HTML, want)
		case want == "" && (len(a.Reasons) != 1 || !strings.Contains(got.HTML, "<blockquote>")):
			t.Errorf("told %q, got %s", a.Reasons, got.HTML)
		}
	}
}

func TestNoID(t *testing.T) {
	for _, id := range []string{"", ".", ".."} {
		err := newLocalSink(t, "http://127.0.0.1:1").Deliver(t.Context(), pipeline.Notification{ID: id})
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
			t.Errorf("%q: got %v, want a permanent error", id, err)
		}
	}
}

func TestConfig(t *testing.T) {
	url, token := registry.NewSecret("https://matrix.example.org"), registry.NewSecret("SECRET")
	for field, list := range map[string][]matrix.Config{
		"homeserver": {{Room: room, Token: token}, {Homeserver: registry.NewSecret("matrix.org/SECRET"), Room: room, Token: token},
			{Homeserver: registry.NewSecret("https://u:SECRET@matrix.org"), Room: room, Token: token}},
		"room":    {{Homeserver: url, Token: token}, {Homeserver: url, Token: token, Room: "#room:matrix.org"}, {Homeserver: url, Token: token, Room: "!a/b"}},
		"token":   {{Homeserver: url, Room: room}, {Homeserver: url, Room: room, Token: registry.NewSecret("SECRET\n")}},
		"msgtype": {{Homeserver: url, Room: room, Token: token, MsgType: "m.image"}},
	} {
		for _, c := range list {
			_, err := matrix.New(c)
			chattest.Refused(t, err, field, "SECRET")
		}
	}
}

// TestCheck asks homeservers whether the room is encrypted.
func TestCheck(t *testing.T) {
	const encrypted = `{"algorithm":"m.megolm.v1.aes-sha2"}`
	for _, tt := range []struct {
		name         string
		status       int
		body         string
		allow        bool
		says, advice string // of the error; empty: there is none
	}{
		{"not encrypted", 404, `{"errcode":"M_NOT_FOUND","error":"Event not found."}`, false, "", ""},
		{"encrypted", 200, encrypted, false, "the room is encrypted", "allow_unencrypted: true"},
		{"encrypted, allowed", 200, encrypted, true, "", ""},
		{"not in the room", 403, `{"errcode":"M_FORBIDDEN","error":"User @v:matrix.org not in room !x"}`, true, "the account is not in the room: answered 403 Forbidden: M_FORBIDDEN: User @v:matrix.org not in room", "invite the account to " + room},
		{"wrong token", 401, `{"errcode":"M_UNKNOWN_TOKEN","error":"Invalid access token passed."}`, false, "the token is refused", ""},
		{"no homeserver", 404, `<html>not here</html>`, false, "answered 404 Not Found", ""},
		{"another API", 404, `{"errcode":"M_UNRECOGNIZED","error":"Unrecognized request"}`, false, "M_UNRECOGNIZED", ""},
		{"broken", 502, `no`, true, "answered 502 Bad Gateway", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := chattest.NewReceiver(t, chattest.Answer(tt.status, tt.body))
			s := chattest.Build(t, matrix.New, matrix.Config{
				Homeserver: registry.NewSecret(r.URL), Room: room, Token: registry.NewSecret("syt_secret"), AllowUnencrypted: tt.allow,
			})
			c, ok := registry.CheckerOf(registry.LimitRate(s, 1, 1)) // as with a rate in the configuration
			if !ok {
				t.Fatal("it cannot be asked")
			}
			err := c.Check(t.Context())
			if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			advised, ok := errors.AsType[*outbound.Advised](err)
			if ok != (tt.advice != "") || ok && !strings.Contains(advised.Advice, tt.advice) {
				t.Errorf("got the advice of %v, want %q", err, tt.advice)
			}
			want := chattest.Caught{Method: http.MethodGet, URI: "/_matrix/client/v3/rooms/%21QtykxKocfZaZOUrTwp:matrix.org/state/m.room.encryption"}
			if got := r.Got; len(got) != 1 || got[0].Method != want.Method || got[0].URI != want.URI || len(got[0].Body) != 0 {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
