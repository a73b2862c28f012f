// Package pictures makes the pictures of the web page and of a Slack message in docs/images:
//
//	go test ./test/pictures -update
//
// needs Chromium. The picture of a mail is made in sinks/email.
package pictures

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"html/template"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/internal/web"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/sinks/slack"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/match"
	"github.com/vokter/vokter/test/slackfake"
)

var update = flag.Bool("update", false, "make the pictures again, in Chromium")

const (
	folder = "../../docs/images"
	// maxBytes is how large a picture may be.
	maxBytes = 150_000
)

// TestPictures: each picture is there and small enough to be part of the repository.
func TestPictures(t *testing.T) {
	if *update {
		makePictures(t)
	}
	for _, name := range []string{"web.png", "slack.png", "email.png"} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(bytes.NewReader(b)); err != nil || len(b) > maxBytes {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}

// TestSlackMessage: the page of the picture shows all text of the message as text.
func TestSlackMessage(t *testing.T) {
	got := slackPage(t)
	for _, want := range []string{"Terms of service</a>", "<b>personal data</b> &amp; usage with &lt;selected&gt; partners.", `<span class="button danger">Cancel</span>`} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
	if bytes.Contains(got, []byte("<b>notice period</b>")) {
		t.Errorf("a keyword that stays in the text is reported: %s", got)
	}
}

// makePictures makes the pictures of the web page and of a Slack message.
func makePictures(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/", site(t))
	mux.HandleFunc("GET /slack", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(slackPage(t))
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("there is no Chromium; apt-get install chromium: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("no-sandbox", os.Geteuid() == 0), chromedp.Flag("hide-scrollbars", true))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(s.URL+"/login"), chromedp.SendKeys("input[name=token]", token+"\n"), chromedp.WaitVisible("nav")); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}},
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		file, path    string
		width, height int64
	}{{"web.png", "/page?url=" + url.QueryEscape(lamp), 1000, 840}, {"slack.png", "/slack", 760, 280}} {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(p.width, p.height), chromedp.Navigate(s.URL+p.path)); err != nil {
			t.Fatal(err)
		}
		shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, p.file), shot.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shop is a pipeline that watches the price of a lamp.
type shop struct {
	manage.Service // panics for what the picture does not show
}

const (
	lamp     = "https://shop.example.com/lamp"
	document = "2I3HJU67"
	token    = "a-token-for-the-picture"
)

// site is the web page of a shop.
func site(t *testing.T) http.Handler {
	t.Helper()
	access := new(manage.Access)
	all := []config.Scope{config.ScopeRead, config.ScopeWrite, config.ScopeAdmin}
	if err := access.Configure(config.API{Tokens: []config.Token{{Name: "ann", Hash: config.HashToken(token), Scopes: all}}}); err != nil {
		t.Fatal(err)
	}
	api, err := manage.New(shop{}, manage.Options{Access: access})
	if err != nil {
		t.Fatal(err)
	}
	return web.New(web.Options{API: api})
}

func (shop) Ready() error { return nil }

func (shop) Running() <-chan struct{} {
	running := make(chan struct{})
	close(running)
	return running
}

func (shop) Gauges() []flow.Gauge { return nil }

var price = pipeline.View{Value: &pipeline.Value{Offer: pipeline.OfferPrice}}

func (shop) Pages(context.Context, inspect.ListFilter) ([]inspect.Page, string, error) {
	now := time.Now()
	s := pipeline.Subscription{
		URL: lamp, Client: "ann", View: price, Sinks: []string{"slack", "mail"}, Tags: []string{"shop", "lamps"},
		Condition: pipeline.Condition{Below: "100"}, Interval: pipeline.Interval{Every: pipeline.Duration(time.Hour)},
	}.WithDefaults()
	return []inspect.Page{{
		URL: lamp, State: inspect.StateActive, LastCheck: now.Add(-10 * time.Minute), NextCheck: now.Add(50 * time.Minute),
		Documents:     []inspect.Document{{ID: document, View: price, Title: "Desk lamp, oak", State: inspect.StateActive, Time: now.Add(-26 * time.Hour)}},
		Subscriptions: []inspect.Subscription{{Subscription: s, Document: document, Origin: "api", State: inspect.StateActive}},
	}}, "", nil
}

func (shop) Versions(context.Context, string, inspect.DocumentFilter) (inspect.History, error) {
	h := inspect.History{URL: lamp, Document: document, View: price}
	now := time.Now()
	for i, v := range []struct {
		value string
		days  int // ago
	}{{"97.00 EUR", 1}, {"104.00 EUR", 4}, {"99.00 EUR", 9}, {"101.00 EUR", 11}, {"94.00 EUR", 14}, {"95.00 EUR", 17}, {"120.00 EUR", 30}} {
		n := uint64(7 - i)
		version := inspect.Version{N: n, Time: now.AddDate(0, 0, -v.days), Title: "Desk lamp, oak", Value: v.value, Baseline: n == 1}
		if v.value == "97.00 EUR" || v.value == "99.00 EUR" || v.value == "95.00 EUR" {
			version.Matches = []inspect.Match{{Client: "ann", Sink: "slack", Delivery: inspect.DeliveryDelivered}, {Client: "ann", Sink: "mail", Delivery: inspect.DeliveryDelivered}}
		}
		h.Versions = append(h.Versions, version)
	}
	return h, nil
}

// block is a part of a Slack message, as its JSON has it: a block, a section of one, a text or a button.
type block struct {
	Type     string
	Text     label
	URL      string
	Elements []block
	Style    json.RawMessage
}

// label is a text, which in a button is an object.
type label string

func (l *label) UnmarshalJSON(b []byte) error {
	var object struct{ Text string }
	if len(b) > 0 && b[0] == '{' {
		err := json.Unmarshal(b, &object)
		*l = label(object.Text)
		return err
	}
	return json.Unmarshal(b, (*string)(l))
}

// Says returns the text. Few machines have a font for the signs of added and removed text.
func (b block) Says() string {
	return strings.NewReplacer("➕", "+", "➖", "−").Replace(string(b.Text))
}

// Has reports whether the text has a style, such as bold, and whether the button does, such as danger.
func (b block) Has(style string) bool { return strings.Contains(string(b.Style), `"`+style+`"`) }

// notified is what a client is notified of when the terms of a service change.
func notified(t *testing.T) pipeline.Notification {
	t.Helper()
	const terms = "https://example.com/terms"
	s := pipeline.Subscription{URL: terms, Client: "legal", Keywords: []string{"30 days", "personal data", "notice period"}, Sinks: []string{"slack"}}.WithDefaults()
	change, ok := diff.ChangeOf(flow.Snapshot{
		Page: terms, Document: flow.DocumentID(terms, s.View), N: 7, Previous: 6, Time: time.Date(2026, 1, 31, 9, 41, 0, 0, time.UTC), Title: "Terms of service", Language: "en",
		Old: "The notice period is 30 days for both parties.\nWe share usage with selected partners.\n",
		New: "The notice period is 14 days for both parties.\nWe share personal data & usage with <selected> partners.\n",
	})
	all := match.Preview([]flow.Change{change}, s, text.NewLanguages())
	if !ok || len(all) != 1 {
		t.Fatalf("got %+v, want one notification", all)
	}
	return all[0]
}

// slackPage is a page that shows, as Slack does, what the sink posts of a notification.
func slackPage(t *testing.T) []byte {
	t.Helper()
	fake := slackfake.Start(t, nil)
	sink, err := slack.New(slack.Config{
		Token: registry.NewSecret(slackfake.Token), Channel: "C1", APIURL: fake.API(), SigningSecret: registry.NewSecret("a-secret-of-the-app-of-the-picture"),
		Connection: registry.Connection{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := notified(t)
	n.Link = "https://vokter.example.com/diff?url=" + url.QueryEscape(n.URL)
	if err := sink.Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	var blocks []block
	if err := json.Unmarshal(fake.Messages()[0].Blocks, &blocks); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := slackLayout.Execute(&out, blocks); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var slackLayout = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>A Slack message</title><style>
body { font: 15px/1.46 Lato, system-ui, sans-serif; color: #1d1c1d; background: #fff; margin: 20px; display: flex; gap: 10px; }
.who { flex: none; width: 36px; height: 36px; border-radius: 8px; background: #14535c; color: #fff; font-weight: 900; display: grid; place-items: center; }
.name { font-weight: 900; } .app { font-size: 11px; background: #eee; color: #555; padding: 1px 3px; border-radius: 2px; } .time { font-size: 12px; color: #616061; }
a { color: #1264a3; text-decoration: none; } p { margin: 4px 0; white-space: pre-wrap; overflow-wrap: anywhere; }
blockquote { margin: 4px 0; padding-left: 12px; border-left: 4px solid #ddd; white-space: pre-wrap; overflow-wrap: anywhere; }
.button { display: inline-block; border: 1px solid #bbb; border-radius: 4px; padding: 3px 12px; margin: 4px 4px 0 0; font-weight: 700; } .danger { color: #b3113b; border-color: #b3113b; }
</style><div class="who">V</div><main><span class="name">Vokter</span> <span class="app">APP</span> <span class="time">9:41 AM</span>
{{range .}}{{if eq .Type "actions"}}<p>{{range .Elements}}<span class="button{{if .Has "danger"}} danger{{end}}">{{.Says}}</span> {{end}}</p>{{else}}{{range .Elements}}{{if eq .Type "rich_text_quote"}}<blockquote>{{template "texts" .Elements}}</blockquote>{{else}}<p>{{template "texts" .Elements}}</p>{{end}}{{end}}{{end}}{{end}}</main>
{{define "texts"}}{{range .}}{{if eq .Type "link"}}<a href="{{.URL}}">{{.Says}}</a>{{else if .Has "strike"}}<s>{{.Says}}</s>{{else if .Has "bold"}}<b>{{.Says}}</b>{{else}}{{.Says}}{{end}}{{end}}{{end}}
`))
