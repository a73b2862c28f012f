package recorded

import (
	"context"
	"flag"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

var (
	versions  = flag.Int("recorded.versions", 40, "versions of each page to replay")
	stride    = flag.Int("recorded.stride", 1, "replay every so many-th version, so that edits add up")
	onlyNames = flag.String("recorded.only", "", "replay only pages whose name contains this")
)

// keywords are looked for on every page: words that real edits of terms and policies
// touch, and phrases of them.
var keywords = []string{
	"privacy", "data", "personal data", "the", "you may", "account", "third party", "cookies", "information",
	"terms of service", "security", "email", "2024", "2025", "contact us", "California", "users", "delete",
}

// TestWhole replays every page as it is.
func TestWhole(t *testing.T) { replayPages(t, func(string) declaration { return declaration{} }) }

// TestDeclared replays the parts that the curators chose.
func TestDeclared(t *testing.T) {
	all := declarations(t, corpusDir(t))
	if len(all) == 0 {
		t.Skip("there is no folder of declarations beside VOKTER_CORPUS")
	}
	replayPages(t, func(name string) declaration { return all[name] })
}

func replayPages(t *testing.T, part func(name string) declaration) {
	dir := corpusDir(t)
	for _, name := range pageNames(t, dir) {
		if !strings.Contains(name, *onlyNames) {
			continue
		}
		t.Run(name, func(t *testing.T) { replayPage(t, loadRecording(t, dir, name, *versions, *stride), part(name)) })
	}
}

// replayPage runs the pipeline over one page and compares versions and notifications
// with what the independent extraction and oracle say.
func replayPage(t *testing.T, r recording, d declaration) {
	url, gets := serveRecordings(t, []recording{r})
	var mu sync.Mutex
	var got []pipeline.Notification
	var zero time.Duration
	router, err := vokter.New(vokter.Config{
		Sinks: map[string]pipeline.Sink{"keep": pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, n)
			return nil
		})},
		Subscriptions: []pipeline.Subscription{{
			URL: url + "/" + r.name, Keywords: keywords, Sinks: []string{"keep"}, View: d.view(),
		}},
		Fetch:  vokter.FetchConfig{Concurrency: 8, Rate: 1000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Checks: len(r.bodies), Every: &zero,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := router.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := gets(r.name); n != len(r.bodies) {
		t.Errorf("%d GETs for %d checks", n, len(r.bodies))
	}

	texts, failed := distinctTexts(r, d)
	s := router.Summary()
	if s.Versions != len(texts) {
		t.Errorf("%d versions, want the %d distinct texts of an independent extraction", s.Versions, len(texts))
	}
	if s.Failed != failed {
		t.Errorf("%d failed checks, want %d: those where the chosen part is not there", s.Failed, failed)
	}
	if t.Failed() {
		return
	}
	compareNotifications(t, texts, d.view(), got)
	t.Logf("%d checks, %d failed, %d versions, %d notifications", s.Checks, s.Failed, s.Versions, len(got))
}

// view is d as a subscription says it.
func (d declaration) view() pipeline.View {
	var v pipeline.View
	for _, s := range d.selectors {
		v.Select = append(v.Select, pipeline.Selector{CSS: s})
	}
	if d.from != "" {
		v.Select = []pipeline.Selector{{From: d.from, To: d.to}}
	}
	for _, s := range d.removed {
		v.Remove = append(v.Remove, pipeline.Selector{CSS: s})
	}
	return v
}

// distinctTexts returns the texts that are versions: each that differs from the one before.
func distinctTexts(r recording, d declaration) (texts []extraction, failed int) {
	for _, body := range r.bodies {
		e, ok := extract(body, d)
		if !ok || e.visibleText() == "" {
			failed++
			continue
		}
		if len(texts) == 0 || texts[len(texts)-1].visibleText() != e.visibleText() {
			texts = append(texts, e)
		}
	}
	return texts, failed
}

// TestExtraction holds the independent extraction to a page made for it.
func TestExtraction(t *testing.T) {
	page := `<html><head><title>T</title><script>no</script></head><body><p>a&nbsp; b<br>c<ul><li>d <b>e</b><li>f</ul>
		<p hidden>no</p><a href="/cdn-cgi/l/email-protection#422b2c242d02273a232f322e276c212d2f">x</a></body></html>`
	e, ok := extract([]byte(page), declaration{})
	want := []string{"T", "a b", "c", "d e", "f", "info@example.com"}
	if got := strings.Split(e.visibleText(), "\n"); !ok || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReplaced replays every page, whole and in the part that the curators chose, with and without
// replaced: true. It must withhold no version of these pages except shells.
func TestReplaced(t *testing.T) {
	dir := corpusDir(t)
	all := declarations(t, dir)
	for _, name := range pageNames(t, dir) {
		if !strings.Contains(name, *onlyNames) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := loadRecording(t, dir, name, *versions, *stride)
			for part, view := range map[string]pipeline.View{"whole": {}, "declared": all[name].view()} {
				if part == "declared" && view.IsZero() {
					continue
				}
				without, failed := countVersions(t, r, view)
				view.Replaced = true
				with, more := countVersions(t, r, view)
				t.Logf("%s: %d checks, %d versions, %d withheld", part, len(r.bodies), without, more-failed)
				if part == "whole" && shellPages[name] {
					continue
				}
				if with != without || more != failed {
					t.Errorf("%s: %d versions and %d failed checks with replaced, %d and %d without", part, with, more, without, failed)
				}
			}
		})
	}
}

// shellPages are the pages of which some recorded versions are shells, as docs/internals/recorded-pages.md says.
var shellPages = map[string]bool{
	"brevo-privacy-policy":                       true, // "Privacy Policy | Brevo"
	"open-terms-archive-privacy-policy":          true, // "You should be redirected quickly, if not click here."
	"open-terms-archive-accessibility-statement": true, // the same
}

// countVersions replays r and returns how many versions and how many failed checks there were.
func countVersions(t *testing.T, r recording, view pipeline.View) (versions, failed int) {
	url, _ := serveRecordings(t, []recording{r})
	var zero time.Duration
	router, err := vokter.New(vokter.Config{
		Sinks: map[string]pipeline.Sink{"none": pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return nil })},
		Subscriptions: []pipeline.Subscription{{
			URL: url + "/" + r.name, Keywords: []string{"no such word on any page"}, Sinks: []string{"none"}, View: view,
		}},
		Fetch:  vokter.FetchConfig{Concurrency: 8, Rate: 1000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Checks: len(r.bodies), Every: &zero,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := router.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := router.Summary()
	return s.Versions, s.Failed
}
