package router_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// turning serves a page for each fetch.
type turning struct {
	page func(i int) string
	n    atomic.Int64
}

func (f *turning) Schemes() []string { return []string{"noise"} }

func (f *turning) Fetch(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
	body := f.page(int(f.n.Add(1) - 1))
	return pipeline.Response{URL: "noise://host/page", Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// watchTurning lets a Router check a page that often, for subscriptions that differ from the plain one to every
// change, and returns what each was told: for each check with a notification its number and the texts.
func watchTurning(t *testing.T, checks int, page func(i int) string, with ...func(*pipeline.Subscription)) (cfg vokter.Config, told [][]string, notices [][]pipeline.Muting) {
	t.Helper()
	m := newMailbox()
	every := time.Duration(0)
	cfg = vokter.Config{
		Fetchers: []pipeline.Fetcher{&turning{page: page}}, Sinks: map[string]pipeline.Sink{"box": m}, Dir: t.TempDir(),
		Fetch: vokter.FetchConfig{Concurrency: 8, Rate: 1e9}, Checks: checks, Every: &every,
	}
	for i, set := range with {
		s := pipeline.Subscription{URL: "noise://host/page", Client: fmt.Sprint(i), Sinks: []string{"box"}}
		set(&s)
		cfg.Subscriptions = append(cfg.Subscriptions, s)
	}
	runToEnd(t, cfg)
	told, notices = make([][]string, len(with)), make([][]pipeline.Muting, len(with))
	for _, n := range m.take() {
		var texts []string
		for _, d := range n.Diffs {
			texts = append(texts, string(d.Event[0])+":"+d.Text)
		}
		k := slices.IndexFunc(cfg.Subscriptions, func(s pipeline.Subscription) bool { return s.Client == n.Client })
		told[k] = append(told[k], fmt.Sprintf("%d %s", n.Version, strings.Join(texts, " ")))
		if n.Muting != nil {
			notices[k] = append(notices[k], *n.Muting)
		}
	}
	return cfg, told, notices
}

func plainly(*pipeline.Subscription) {}

const paragraph = "<p>The owl of the house sees what comes and what goes, at night as by day, and tells it to those who ask.</p>"

// TestClockIsMuted: a clock and a counter are told at three checks, the last time with a notice, and never again; a
// true change is. A subscription that asks for all is told of all, and a keyword is found in a counter.
func TestClockIsMuted(t *testing.T) {
	page := func(i int) string {
		s := fmt.Sprintf("<p>%02d:%02d:%02d</p><p>By Hera · %d views</p>", i/60, i%60, i*7%60, 1000+13*i) + paragraph + paragraph
		if i >= 10 {
			s += "<p>A second owl came</p>"
		}
		return s
	}
	cfg, told, notices := watchTurning(t, 20, page, plainly,
		func(s *pipeline.Subscription) { s.Restless = pipeline.RestlessTell },
		func(s *pipeline.Subscription) { s.Keywords = []string{"1065"} },
		func(s *pipeline.Subscription) { s.MinChange.Tokens = 4 })
	if n := len(told[0]); n != 4 || !strings.HasPrefix(told[0][3], "11 a:A second owl came") || strings.Contains(told[0][3], "views") {
		t.Errorf("told %q", told[0])
	}
	if n := notices[0]; len(n) != 1 || n[0].Count != 2 || n[0].Whole || !slices.Equal(n[0].Places, []string{"[00:03:21]", "By Hera · [1039] views"}) {
		t.Errorf("the notices are %+v", n)
	}
	if len(told[1]) != 19 || len(notices[1]) != 0 {
		t.Errorf("with restless: tell, told %d times, with notices %+v", len(told[1]), notices[1])
	}
	if want := []string{"6 a:1065", "7 r:1065"}; !slices.Equal(told[2], want) || len(notices[2]) != 0 {
		t.Errorf("of a keyword told %q, want %q", told[2], want)
	}
	if last := told[3][len(told[3])-1]; !strings.HasPrefix(last, "11 a:A second") {
		t.Errorf("with min_change told %q", told[3])
	}
	e := explainPage(t, cfg, inspect.ExplainFilter{})
	if len(e.Changes) != 19 { // each of them told somebody
		t.Errorf("explain has %d changes", len(e.Changes))
	}
}

// TestMutedVersionsReplaceEachOther: of versions that nobody was told of the last one stays, so that the
// versions that are kept are changes.
func TestMutedVersionsReplaceEachOther(t *testing.T) {
	page := func(i int) string {
		return fmt.Sprintf("<p>Viewed %d times</p>", 1000+13*i) + paragraph + paragraph + fmt.Sprintf("<p>The owl is in town %s</p>", strings.Repeat("i", i/15))
	}
	cfg, told, _ := watchTurning(t, 60, page, plainly)
	if len(told[0]) != 6 {
		t.Errorf("told %q", told[0])
	}
	e := explainPage(t, cfg, inspect.ExplainFilter{})
	if n := len(e.Changes); n != 3+3*2+1 {
		t.Errorf("explain has %d changes: %+v", n, e.Changes)
	}
	if why := e.Keywords[0].Why; !strings.Contains(why, "restless") {
		t.Errorf("explain says %q", why)
	}
}

// TestClockAloneAsks: where a page has nothing but restless places, it is told until somebody answers.
func TestClockAloneAsks(t *testing.T) {
	page := func(i int) string {
		return fmt.Sprintf("<h1>Weather</h1><p>Now %d °C, wind %d km/h</p>", i*3%17, i*5%29)
	}
	_, told, notices := watchTurning(t, 12, page, plainly, func(s *pipeline.Subscription) { s.Restless = pipeline.RestlessMuteNumbers })
	if len(told[0]) != 11 || len(notices[0]) != 1 || !notices[0][0].Whole {
		t.Errorf("told %q, notices %+v", told[0], notices[0])
	}
	if len(told[1]) != 3 || len(notices[1]) != 1 || notices[1][0].Whole {
		t.Errorf("with restless: mute numbers told %q, notices %+v", told[1], notices[1])
	}
}

// TestMoneyIsTold: amounts of money are never muted, whatever changes beside them.
func TestMoneyIsTold(t *testing.T) {
	page := func(i int) string {
		return fmt.Sprintf("<p>ARGUS %d.%02d EUR at %02d:%02d</p>", 100+i, i*7%100, i/60, i%60) + paragraph + paragraph
	}
	_, told, _ := watchTurning(t, 30, page, plainly, func(s *pipeline.Subscription) { s.Restless = pipeline.RestlessMuteNumbers })
	if len(told[0]) != 29 || len(told[1]) != 29 {
		t.Errorf("told %d and %d times of 29 prices", len(told[0]), len(told[1]))
	}
}

// TestClockIsConfirmed: with confirm and flip_flop, texts are compared without what is restless in them.
func TestClockIsConfirmed(t *testing.T) {
	clock := func(i int) string { return fmt.Sprintf("<p>Viewed %d times</p>", 1000+13*i) + paragraph + paragraph }
	page := func(i int) string {
		if i >= 8 {
			return clock(i) + "<p>Argus is here</p>"
		}
		return clock(i)
	}
	_, told, _ := watchTurning(t, 30, page, func(s *pipeline.Subscription) { s.Keywords, s.Confirm = []string{"Argus"}, 2 })
	if len(told[0]) != 1 || !strings.HasSuffix(told[0][0], "a:Argus is here") {
		t.Errorf("with confirm: 2 told %q", told[0])
	}
	turns := func(i int) string { return clock(i) + []string{"<p>Buy a lantern</p>", "<p>Sleep well</p>"}[i%2] }
	_, told, _ = watchTurning(t, 40, turns, func(s *pipeline.Subscription) { s.FlipFlop = 2 })
	if n := len(told[0]); n > 6 {
		t.Errorf("with flip_flop: 2 told %d times: %q", n, told[0])
	}
}

// TestConfirmedBesideAnAdvertisement: a place also changes at the check at which it is again as it was in the version.
func TestConfirmedBesideAnAdvertisement(t *testing.T) {
	page := func(i int) string {
		s := "<aside>" + []string{"Buy a lantern", "Win a voyage", "Sleep on wool", "Eat figs"}[i%4] + "</aside>" + paragraph + paragraph
		if i >= 12 {
			s += "<p>Argus is here</p>"
		}
		return s
	}
	_, told, _ := watchTurning(t, 14, page, func(s *pipeline.Subscription) { s.Keywords, s.Confirm = []string{"Argus"}, 2 })
	if len(told[0]) != 1 || !strings.HasSuffix(told[0][0], "a:Argus is here") {
		t.Errorf("told %q", told[0])
	}
}

// TestAdvertisementIsMutedAfterAYes: words that rotate are told to everybody but to a subscription with restless:
// mute, and explain names the option that leaves them out.
func TestAdvertisementIsMutedAfterAYes(t *testing.T) {
	page := func(i int) string {
		s := "<aside>" + []string{"Buy a lantern", "Win a voyage", "Sleep on wool"}[i%3] + "</aside>" + paragraph + paragraph
		if i >= 12 {
			s += "<p>A second owl came</p>"
		}
		return s
	}
	cfg, told, notices := watchTurning(t, 16, page, plainly, func(s *pipeline.Subscription) { s.Restless = pipeline.RestlessMute })
	if len(told[0]) != 15 || len(notices[0]) != 0 {
		t.Errorf("without restless told %d times, with notices %+v", len(told[0]), notices[0])
	}
	if n := len(told[1]); n != 7 || !strings.HasPrefix(told[1][6], "13 a:A second owl came") || len(notices[1]) != 1 || notices[1][0].Count != 1 {
		t.Errorf("with restless: mute told %q, with notices %+v", told[1], notices[1])
	}
	e := explainPage(t, cfg, inspect.ExplainFilter{})
	if len(e.Proposals) != 1 || e.Proposals[0].YAML() != "remove: ['aside']" {
		t.Errorf("the proposals are %+v", e.Proposals)
	}
	// With confirm hardly a check makes a version, so that the stored page has the words of an earlier one.
	others := func(i int) string {
		return strings.Replace(page(i), "</aside>", " of "+strings.Repeat("x", i+1)+"</aside>", 1)
	}
	cfg, _, _ = watchTurning(t, 11, others, func(s *pipeline.Subscription) { s.Keywords, s.Confirm = []string{"Argus"}, 2 })
	if e = explainPage(t, cfg, inspect.ExplainFilter{}); len(e.Proposals) != 1 || e.Proposals[0].YAML() != "remove: ['aside']" {
		t.Errorf("with confirm the proposals are %+v", e.Proposals)
	}
}
