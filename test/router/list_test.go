package router_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// listed returns a subscription for a list.
func listed(page, client string, keywords ...string) pipeline.Subscription {
	return pipeline.Subscription{URL: page, Client: client, Keywords: keywords, Sinks: []string{"box"}}
}

// wantReport checks a report. want has a line for each subscription: its number, client, outcome, and a part of the
// reason.
func wantReport(t *testing.T, r flow.ApplyReport, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	counted := map[string]int{"created": r.Created, "changed": r.Changed, "unchanged": r.Unchanged, "removed": r.Removed, "refused": r.Refused}
	var got []string
	for i, a := range r.Subscriptions {
		counted[a.Outcome]--
		line := fmt.Sprintf("%d %s %s", a.Entry, a.Client, a.Outcome)
		if i < len(want) && strings.HasPrefix(want[i], line+" ") && strings.Contains(a.Reason, strings.TrimPrefix(want[i], line+" ")) {
			line = want[i]
		}
		got = append(got, line)
		if a.URL == "" || a.Document == "" && a.Outcome != flow.AppliedRefused {
			t.Errorf("%s names no document: %+v", line, a)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %q", r.Subscriptions, want)
	}
	for outcome, n := range counted {
		if n != 0 {
			t.Errorf("the report counts %d more %s than it lists", n, outcome)
		}
	}
}

// keywordsByClient returns the keywords of all subscriptions of a Router.
func keywordsByClient(t *testing.T, r *vokter.Router) map[string]string {
	t.Helper()
	l, err := r.List(t.Context(), inspect.ListFilter{})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, p := range l.Pages {
		for _, s := range p.Subscriptions {
			all[s.Client] += s.Origin + " " + strings.Join(s.Keywords, " ") + " " + s.State + ";"
		}
	}
	return all
}

func TestApply(t *testing.T) {
	const a, b = "https://example.com/a", "https://example.com/b"
	cfg := vokter.Config{Dir: t.TempDir(), Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetchers: []pipeline.Fetcher{&countingFetcher{}},
		Subscriptions: []pipeline.Subscription{listed(a, "configured", "k")}}
	r, stop := startRouter(t, cfg)
	ctx := t.Context()
	apply := func(origin string, list []pipeline.Subscription, want ...string) {
		t.Helper()
		report, err := r.Apply(ctx, origin, list)
		wantReport(t, report, err, want...)
	}
	if err := r.Subscribe(ctx, listed(a, "single", "k")); err != nil {
		t.Fatal(err)
	}
	list := []pipeline.Subscription{listed(a, "ann", "k"), listed(b, "ann", "k"), listed(a, "bob", "k")}
	apply("crm", list, "1 ann created", "2 ann created", "3 bob created")
	apply("crm", list, "1 ann unchanged", "2 ann unchanged", "3 bob unchanged")
	if err := r.Cancel(ctx, b, "ann"); err != nil {
		t.Fatal(err)
	}
	apply("crm", list, "1 ann unchanged", "2 ann created", "3 bob unchanged")
	apply("other", []pipeline.Subscription{listed(a, "cy", "k"), listed(a, "ann", "k")},
		"1 cy created", `2 ann refused by a subscription of origin "api/crm"`)

	// What is refused is so alone, and of its client nothing on the page ends.
	invalid, unknown, elsewhere := listed(a, "bob", "!!!"), listed(b, "ann", "k"), listed("ftp:/", "ann")
	unknown.Sinks = []string{"nowhere"}
	twice := listed(a+"#again", "ann", "other")
	apply("crm", []pipeline.Subscription{listed(a, "ann", "new"), twice, invalid, unknown, elsewhere, listed(a, "single", "k"), listed(a, "configured", "k")},
		"1 ann changed", "2 ann refused by subscription 1 of the list", "3 bob refused keywords[0]", `4 ann refused no sink is named "nowhere"`, "5 ann refused url",
		`6 single refused origin "api"`, `7 configured refused origin "go"`)
	want := map[string]string{"configured": "go k active;", "single": "api k active;", "cy": "api/other k active;", "bob": "api/crm k active;", "ann": "api/crm new active;api/crm k active;"}
	if got := keywordsByClient(t, r); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := r.Apply(ctx, "yaml/x", nil); err == nil {
		t.Error("a name of a list with a slash was taken")
	}

	// Lists of some clients leave those of others.
	only := func(dry bool, clients []string, list []pipeline.Subscription, want ...string) {
		t.Helper()
		report, err := r.ApplyList(ctx, vokter.SubscriptionList{Origin: "crm", Clients: clients, Subscriptions: list, DryRun: dry})
		wantReport(t, report, err, want...)
	}
	moved := []pipeline.Subscription{listed("https://example.com/c", "ann", "k"), listed(a, "bob", "stolen")}
	for _, dry := range []bool{true, false} {
		only(dry, []string{"ann"}, moved, "1 ann created", "2 bob refused", "0 ann removed", "0 ann removed")
	}
	only(false, []string{}, list, "1 ann refused", "2 ann refused", "3 bob refused")
	stop()

	// A list lasts, also where only commands are carried out.
	r, stop = startRouter(t, vokter.Config{Dir: cfg.Dir, Mode: vokter.ModeCommands})
	if err := r.Pause(ctx, a, "bob", time.Time{}); err != nil {
		t.Error(err)
	}
	apply("crm", []pipeline.Subscription{listed(a, "bob", "new")}, "1 bob changed it stays paused", "0 ann removed")
	apply("crm", nil, "0 bob removed")
	stop()
	r, stop = startRouter(t, cfg)
	defer stop()
	want = map[string]string{"configured": "go k active;", "single": "api k active;", "cy": "api/other k active;"}
	if got := keywordsByClient(t, r); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestApplyKeepsTheBaseline: a subscription that changes is told of what comes after the version that it began with.
func TestApplyKeepsTheBaseline(t *testing.T) {
	web, box := &sequenceFetcher{contentType: "text/html", bodies: []string{"<p>one</p>", "<p>one two</p>"}}, newMailbox()
	r, stop := startRouter(t, vokter.Config{Sinks: map[string]pipeline.Sink{"box": box}, Fetchers: []pipeline.Fetcher{web}})
	defer stop()
	for _, keyword := range []string{"one", "two"} {
		list := []pipeline.Subscription{listed("http://example.com/a", "ann", keyword)}
		if report, err := r.Apply(t.Context(), "crm", list); err != nil || report.Refused > 0 {
			t.Fatal(report, err)
		}
		waitFor(t, "the first version", func() bool { return r.Summary().Versions > 0 })
	}
	if err := r.CheckNow(t.Context(), "http://example.com/a"); err != nil {
		t.Fatal(err)
	}
	<-box.arrived
	if got := box.take(); len(got[0].Diffs) != 1 || got[0].Diffs[0].Keyword != "two" {
		t.Errorf("got %+v", got)
	}
}

// TestApplyAfterACrash ends a list in its middle, and gives it again.
func TestApplyAfterACrash(t *testing.T) {
	cfg := vokter.Config{Dir: t.TempDir(), Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetchers: []pipeline.Fetcher{&countingFetcher{}}}
	var old, list []pipeline.Subscription
	for i := range 600 {
		s := listed(fmt.Sprintf("https://example.com/%d", i), "ann", "k")
		if old = append(old, s); i%2 == 0 {
			s.Keywords = []string{"new"}
			list = append(list, s)
		}
	}
	r, stop := startRouter(t, cfg)
	if report, err := r.Apply(t.Context(), "crm", old); err != nil || report.Created != len(old) {
		t.Fatal(report, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Apply(ctx, "crm", list); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	stop()
	r, stop = startRouter(t, cfg)
	defer stop()
	if report, err := r.Apply(t.Context(), "crm", list); err != nil || report.Changed+report.Unchanged != len(list) || report.Refused > 0 {
		t.Errorf("got %d changed, %d unchanged, %v", report.Changed, report.Unchanged, err)
	}
	report, err := r.Apply(t.Context(), "crm", list)
	if err != nil || report.Unchanged != len(list) || report.Removed > 0 {
		t.Errorf("got %d unchanged and %d removed the second time, %v", report.Unchanged, report.Removed, err)
	}
	if l, err := r.List(t.Context(), inspect.ListFilter{}); err != nil || len(l.Pages) != len(list) {
		t.Errorf("got %d pages, %v, want %d", len(l.Pages), err, len(list))
	}
}

// TestApplyOverLanes: a list needs the state of all pages.
func TestApplyOverLanes(t *testing.T) {
	m, pages := newMember(sharedTransport(t), "a"), laneOfURLs(1)
	m.own(0)
	r, stop := startRouter(t, vokter.Config{Transport: m, Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetchers: []pipeline.Fetcher{&countingFetcher{}}})
	defer stop()
	list := []pipeline.Subscription{listed(pages[0][0], "ann", "k"), listed(pages[1][0], "ann", "k")}
	_, err := r.Apply(t.Context(), "crm", list)
	if refused, ok := errors.AsType[*flow.Refusal](err); !ok || refused.Code != flow.CodeConflict || !strings.Contains(err.Error(), "1 of 2 lanes") {
		t.Errorf("got %v", err)
	}
	m.own(0, 1)
	report, err := r.Apply(t.Context(), "crm", list)
	wantReport(t, report, err, "1 ann created", "2 ann created")
	report, err = r.Apply(t.Context(), "crm", list[:1])
	wantReport(t, report, err, "1 ann unchanged", "0 ann removed")
}
