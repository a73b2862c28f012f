package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// printedText is the text that print makes at noon.
func printedText(t *testing.T, print func(*results)) string {
	t.Helper()
	var b strings.Builder
	a := &app{stdout: &b}
	r := a.newResults()
	r.now = noon
	print(r)
	if err := r.flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func samplePages() []inspect.Page {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	main := pipeline.View{Select: []pipeline.Selector{{CSS: "main"}}}
	subscription := func(client, state, reason string, keywords ...string) inspect.Subscription {
		s := inspect.Subscription{State: state, Reason: reason, Origin: "yaml", Document: "D1",
			Subscription: pipeline.Subscription{Client: client, Keywords: keywords, Sinks: []string{"ops", "team"}}}
		if state == inspect.StateExpired {
			s.Since = ago(time.Hour)
		}
		return s
	}
	return []inspect.Page{
		{
			URL: "https://example.com/terms", State: inspect.StateFailing, Reason: "main matches nothing", Since: ago(time.Hour), Checks: 12, LastCheck: ago(time.Minute), NextCheck: noon.Add(9 * time.Minute), Keep: []string{"yaml"},
			Documents: []inspect.Document{
				{ID: "D1", State: inspect.StateActive, Version: 3, Time: ago(48 * time.Hour), Title: "Terms \x1b[2Jof service", Language: "en", LanguageFrom: text.FromPage, TextHash: "h"},
				{ID: "D2", State: inspect.StateSelectorGone, View: main, Version: 1, Time: ago(time.Hour), TextHash: "i"},
			},
			Subscriptions: []inspect.Subscription{
				subscription("legal", inspect.StateActive, "", "privacy", "personal data"),
				subscription("shop", inspect.StateExpired, "all its receivers expired", "price"),
			},
		},
		{
			URL: "https://example.com/gone", State: inspect.StateExpired, Reason: "the server\nanswered 500", Since: ago(3 * time.Hour), Failures: 10, Checks: 10, LastCheck: ago(3 * time.Hour),
			Subscriptions: []inspect.Subscription{subscription("default", inspect.StateExpired, "the server answered 500", "a")},
		},
		{URL: "https://example.com/new", State: inspect.StateActive, Documents: []inspect.Document{{ID: "D3", State: inspect.StateActive}}},
		{URL: "https://example.com/same", State: inspect.StateActive, Checks: 1, LastCheck: ago(time.Second), NextCheck: noon, Documents: []inspect.Document{{ID: "D4", State: inspect.StateActive, Version: 1, Time: ago(time.Second), TextHash: "h"}}},
	}
}

func TestListText(t *testing.T) {
	got := printedText(t, func(r *results) {
		for _, p := range samplePages() {
			r.printPage(p)
		}
	})
	want := `failing  https://example.com/terms
         since 11:00:00: main matches nothing
         12 checks, the last 11:59:00, the next 12:09:00
         version 3 of 27 Feb 12:00  "Terms [2Jof service"  language: en (declared by the page)  document D1
         version 1 of 11:00:00                                                                  document D2  a selector matches nothing, or the text is empty
         legal  privacy, personal data  to ops, team  document D1  of the configuration
         shop   price                   to ops, team  document D1  of the configuration  expired since 11:00:00: all its receivers expired
         kept by yaml
expired  https://example.com/gone
         since 09:00:00: 10 checks in a row failed: the server answered 500
         10 checks, the last 09:00:00
         default  a  to ops, team  of the configuration  expired since 11:00:00: the server answered 500
active   https://example.com/new
         not checked yet
         no version yet
active   https://example.com/same
         1 check, the last 11:59:59, the next is due
         version 1 of 11:59:59
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestListPages is a line for each page.
func TestListPages(t *testing.T) {
	pages := samplePages()
	pages[2].State, pages[2].Documents[0].State = inspect.StateFailing, inspect.StateSelectorGone
	paused := pages[2]
	paused.URL, paused.State, paused.Since = "https://example.com/rest", inspect.StatePaused, noon.Add(-time.Hour)
	pages = append(pages, paused)
	got := printedText(t, func(r *results) { r.printPages(pages, false) })
	want := `failing  https://example.com/terms  2 subscriptions  a selector matches nothing, or the text is empty; 12 checks, the last 11:59:00, the next 12:09:00
expired  https://example.com/gone   1 subscription   since 09:00:00: 10 checks in a row failed: the server answered 500
failing  https://example.com/new    0 subscriptions  a selector matches nothing, or the text is empty; not checked yet
active   https://example.com/same   0 subscriptions  1 check, the last 11:59:59, the next is due
paused   https://example.com/rest   0 subscriptions  since 11:00:00
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	narrow := printedText(t, func(r *results) {
		r.columns = 60
		r.printPages(pages[1:2], false)
	})
	want = `expired  https://example.com/gone  1 subscription  since
    09:00:00: 10 checks in a row failed: the server answered
    500
`
	if narrow != want {
		t.Errorf("in 60 columns: got\n%s\nwant\n%s", narrow, want)
	}
}

// TestNothingMatches checks that filters which select nothing say so.
func TestNothingMatches(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	s.check(t, "<p>Zeus. In stock.</p>")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"no page is watched for client \"nobody\"", []string{"list", "--client", "nobody"}},
		{"no page is watched at http://nope/", []string{"list", "--url", "http://nope/"}},
		{"there is no such dead letter", []string{"replay", "--sink", "hook"}},
		{"there is no such dead letter", []string{"replay", "--sink", "hook", "--dry-run"}},
	} {
		if r := runCLI(t, append(c.args, "-c", s.config)...); r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%q: got %+v, want 1 and %q", c.args, r, c.want)
		}
	}
	if r := runCLI(t, "replay", "--sink", "nope", "--dry-run", "-c", s.config); r.code != 2 || !strings.Contains(r.stderr, `no sink is named "nope"`) {
		t.Errorf("got %+v", r)
	}
	if r := runCLI(t, "replay", "-c", s.config); r.code != 0 || r.stdout != "there are no dead letters\n" {
		t.Errorf("without filters: got %+v", r)
	}
}

func TestListSinksText(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	got := printedText(t, func(r *results) {
		r.printSinks(withUnused([]inspect.Receiver{
			{Sink: "ops", State: inspect.StateActive, Used: true, LastSuccess: ago(time.Minute)},
			{Sink: "before", State: inspect.StateActive, Used: true, LastSuccess: ago(time.Minute), LastFailure: ago(48 * time.Hour), LastError: "answered 500"},
			{Sink: "old", State: inspect.StateActive, Used: true, Pending: 2, Collected: 3, NextDigest: noon.Add(time.Hour)},
			{Sink: "team", State: inspect.StateFailing, Reason: "answered 503", Since: ago(time.Hour), Failures: 4, NextAttempt: noon.Add(time.Hour),
				Pending: 12, Dead: 1, Used: true, LastSuccess: ago(2 * time.Hour), LastFailure: ago(time.Minute), LastError: "answered 503"},
			{Sink: "due", State: inspect.StateFailing, Reason: "answered 503", Since: ago(time.Hour), Failures: 1, NextAttempt: ago(1), Pending: 1, Used: true, LastFailure: ago(time.Hour), LastError: "answered 503"},
			{Sink: "gone", State: inspect.StateExpired, Reason: "the receiver is gone: answered \x1b410", Since: ago(time.Hour), Failures: 1, Dead: 3, Used: true, LastFailure: ago(time.Hour), LastError: "answered 410"},
		}, []string{"ops", "unused", "team"}))
	})
	want := `SINK    HEALTH                  WAITING                          DEAD  LAST SUCCESS  LAST ERROR
before  ok                      0                                0     11:59:00      27 Feb 12:00: answered 500
due     failing since 11:00:00  1                                0     none known    11:00:00: answered 503 (1 attempt in a row, the next is due)
gone    expired since 11:00:00  0                                3     none known    11:00:00: the receiver is gone: answered 410 (1 attempt in a row)
old     ok                      5 (3 in digests until 13:00:00)  0     none known
ops     ok                      0                                0     11:59:00
team    failing since 11:00:00  12                               1     10:00:00      11:59:00: answered 503 (4 attempts in a row, the next 13:00:00)
unused  never used              0                                0
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := printedText(t, func(r *results) { r.printSinks(nil) }); got != "" {
		t.Errorf("without sinks: %s", got)
	}
}

// TestTree draws a tree in which last children have and have not children of their own.
func TestTree(t *testing.T) {
	page := func(path string) inspect.Page {
		return inspect.Page{URL: "https://example.com" + path, State: inspect.StateActive}
	}
	root := page("/")
	link := func(from, to string) inspect.LinkedPage {
		return inspect.LinkedPage{URL: "https://example.com" + to, From: "https://example.com" + from}
	}
	root.Subscriptions = []inspect.Subscription{{Linked: []inspect.LinkedPage{link("/", "/a"), link("/", "/b"), link("/a", "/a1"), link("/a", "/a2"), link("/b", "/b1")}}}
	got := printedText(t, func(r *results) {
		r.printTrees([]inspect.Page{root, page("/a"), page("/b"), page("/a1"), page("/a2"), page("/b1")})
	})
	var urls []string
	for line := range strings.Lines(got) {
		urls = append(urls, strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(line, "active")), "not checked yet")))
	}
	want := strings.ReplaceAll(`X/
├ X/a
│ ├ X/a1
│ └ X/a2
└ X/b
  └ X/b1`, "X", "https://example.com")
	for i, line := range strings.Split(want, "\n") {
		want := strings.TrimSpace(line)
		if i >= len(urls) || urls[i] != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestExplainText(t *testing.T) {
	at := noon.Add(-time.Minute)
	page := inspect.Page{URL: "https://example.com/", State: inspect.StateActive, Checks: 9, LastCheck: at}
	match := func(client, delivery string, attempts int, reason string) inspect.Match {
		return inspect.Match{Client: client, Keywords: []string{"privacy"}, Sink: "ops", Delivery: delivery, Attempts: attempts, Reason: reason, DeliveryTime: noon}
	}
	got := printedText(t, func(r *results) {
		r.printExplanation(inspect.Explanation{
			Page: page,
			Checks: []inspect.Check{
				{Check: 9, Time: at, Result: flow.OutcomeFailed, Class: pipeline.FailStatus, Reason: "the server answered 500", Status: 500, Took: pipeline.Duration(12345 * time.Microsecond)},
				{Check: 8, Time: at, Result: flow.OutcomeUnchanged, Status: 304},
				{Check: 7, Time: at, Result: flow.OutcomeRead, Status: 200, Bytes: 1234, Versions: map[string]uint64{"D": 2}},
				{Check: 6, Time: at, Result: flow.OutcomeRead},
			},
			Changes: []inspect.Change{
				{Version: 0, Status: pipeline.StatusExpired, Reason: "timeout: too slow", Time: at, Matches: []inspect.Match{match("a", inspect.DeliveryPending, 2, "answered 503")}},
				{Version: 2, Check: 7, Time: at, Omitted: 3, Matches: []inspect.Match{
					match("a", inspect.DeliveryDelivered, 1, ""), match("bb", inspect.DeliveryDead, 9, "answered 500"), match("c", inspect.DeliveryDropped, 0, ""), match("d", inspect.DeliveryForgotten, 0, ""),
				}},
				{Version: 1, Check: 6, Time: at},
			},
			Keywords: []inspect.Keyword{
				{Client: "a", Keyword: "privacy", Version: 2, Matched: true},
				{Client: "a", Keyword: "price", Version: 2, Why: "it is in neither version"},
			},
		}, inspect.ExplainFilter{})
	})
	want := `active   https://example.com/
         9 checks, the last 11:59:00

Checks
  11:59:00  check 9  failed: the server answered 500 (12ms)
  11:59:00  check 8  nothing new (status 304)
  11:59:00  check 7  read, version 2 (status 200, 1234 bytes)
  11:59:00  check 6  read, no other text

Expired at 11:59:00 (timeout: too slow), notified
  a  privacy  by ops  not delivered yet after 2 attempts, tried next at 12:00:00: answered 503

Version 2, found by check 7 at 11:59:00, notified
  a   privacy  by ops  delivered at 12:00:00 after 1 attempt
  bb  privacy  by ops  given up at 12:00:00 after 9 attempts: answered 500 (replay brings it back)
  c   privacy  by ops  dropped, since the subscription was cancelled first
  d   privacy  by ops  too long ago to be known
  and 3 more

Version 1, found by check 6 at 11:59:00, nobody notified

Keywords, in the last change
  a  privacy  matched
  a  price    did not match: it is in neither version
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	empty := printedText(t, func(r *results) { r.printExplanation(inspect.Explanation{Page: page}, inspect.ExplainFilter{}) })
	if !strings.Contains(empty, "none is known") || !strings.Contains(empty, "No change is known.") {
		t.Errorf("got %s", empty)
	}
}

// TestListSinks has a sink that took something and fails since, and one that nothing was sent to.
func TestListSinks(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	s.check(t, "<p>Zeus. In stock.</p>")
	s.hook.answers <- http.StatusOK
	s.check(t, "<p>Zeus. Out of stock.</p>")
	s.hook.answers <- http.StatusServiceUnavailable
	s.check(t, "<p>Zeus. In stock.</p>")

	check := func(where string, args ...string) {
		t.Helper()
		args = append([]string{"list", "--sinks"}, args...)
		found := objects(t, runCLI(t, append(args, "--format", "json")...))
		if len(found) != 1 || len(found["receiver"]) != 3 || found["receiver"][1]["sink"] != "inbox" {
			t.Fatalf("%s: got %v", where, found)
		}
		hook, out := found["receiver"][0], found["receiver"][2]
		if hook["sink"] != "hook" || hook["health"] != "failing" || hook["state"] != "failing" || hook["pending"] != 1.0 || hook["last_error"] != "answered 503 Service Unavailable" ||
			hook["last_success"] == nil || hook["last_failure"] == nil || hook["since"] != hook["last_failure"] {
			t.Errorf("%s: got %v", where, hook)
		}
		if out["sink"] != "out" || out["health"] != "never_used" || out["used"] != false || out["pending"] != 0.0 || out["last_success"] != nil {
			t.Errorf("%s: got %v", where, out)
		}
		r := runCLI(t, args...)
		if r.code != 0 || strings.Count(r.stdout, "\n") != 4 || !strings.Contains(r.stdout, "\nhook   failing since ") || !strings.Contains(r.stdout, "\nout    never used") {
			t.Errorf("%s: got %+v", where, r)
		}
	}
	check("a stopped directory", "-c", s.config)

	// What is only in the configuration is no part of other lists, nor of the directory.
	for _, args := range [][]string{{"list", "--data", s.data}, {"list", "--sinks", "--data", s.data}, {"list", "--sinks", "--client", "legal", "-c", s.config}} {
		if r := runCLI(t, args...); r.code != 0 || !strings.Contains(r.stdout, "hook") || strings.Contains(r.stdout, "out  ") {
			t.Errorf("%v: got %+v", args, r)
		}
	}

	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.awaitAddress(t, s.data)
	check("a running process", "--data", s.data)
	check("a running process, with its configuration", "-c", s.config)
	run.stop()
	if code := <-run.ended; code != 0 {
		t.Errorf("exit code %d, stderr %s", code, &run.err)
	}
}

func TestHowPushedPagesAreShown(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := &results{now: now}
	for want, p := range map[string]inspect.Page{
		"not pushed yet": {Pushed: true},
		"pushed, the last time " + formatTime(now, now): {Pushed: true, LastCheck: now},
		"not checked yet": {},
		"1 check, the last " + formatTime(now, now) + "": {Checks: 1, LastCheck: now},
	} {
		if got := r.checksText(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if checkName(0) != "a push" || checkName(3) != "check 3" {
		t.Errorf("got %q and %q", checkName(0), checkName(3))
	}
}

// TestExplainValue holds that a subscription to a value is not said to report every change.
func TestExplainValue(t *testing.T) {
	v := pipeline.View{Value: &pipeline.Value{Offer: pipeline.OfferPrice}}
	got := printedText(t, func(r *results) {
		r.printExplanation(inspect.Explanation{
			Page: inspect.Page{
				URL: "https://example.com/", State: inspect.StateActive, Documents: []inspect.Document{{ID: "D", State: inspect.StateActive, View: v}},
				Subscriptions: []inspect.Subscription{{State: inspect.StateActive, Subscription: pipeline.Subscription{
					Client: "shop", Sinks: []string{"s"}, View: v, Condition: pipeline.Condition{Below: "100"},
				}}},
			},
			Changes:  []inspect.Change{{Document: "D", Version: 2, Check: 7, Time: noon, Matches: []inspect.Match{{Client: "shop", Sink: "s", Delivery: inspect.DeliveryDelivered}}}},
			Keywords: []inspect.Keyword{{Client: "shop", Document: "D", Version: 2, Matched: true}},
		}, inspect.ExplainFilter{})
	})
	for _, want := range []string{"shop  the value  to s  value: {offer: price}, below: 100\n", "shop  the value  by s  delivered", "shop  the value  matched\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
	}
}

func TestListShowsWhatKeepsAPageSilent(t *testing.T) {
	page := inspect.Page{
		URL: "https://example.com/", State: inspect.StateFailing, Since: noon,
		Documents: []inspect.Document{{ID: "D", State: inspect.StatePageReplaced, View: pipeline.View{Replaced: true}}},
		Subscriptions: []inspect.Subscription{{State: inspect.StateActive, Subscription: pipeline.Subscription{
			Client: "a", Keywords: []string{"k"}, Sinks: []string{"s"}, MinChange: pipeline.MinChange{Share: 250},
			View: pipeline.View{Confirm: 2, FlipFlop: 3, Replaced: true},
		}}},
	}
	got := printedText(t, func(r *results) {
		r.printPage(page)
		r.printPages([]inspect.Page{page}, false)
	})
	want := `failing  https://example.com/
         since 12:00:00
         not checked yet
         no version yet  document D  the page looks replaced by an error page, a login wall or an empty page
         a  k  to s  min_change: 2.5%, confirm: 2, flip_flop: 3, replaced: true
failing  https://example.com/  1 subscription  the page looks replaced by an error page, a login wall or an empty page; not checked yet
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
