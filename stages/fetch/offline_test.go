package fetch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// play runs steps through a tracker. A step is a host and what happens there: "a>" a fetch
// begins that goes on; "a+" it answers, "a-" it fails, "a=" it says nothing (each ends a
// fetch that goes on, or one of its own); "a-7" fails as the seven checks before it did,
// "a-n" is the first check of a page. The steps "ON" and "OFF" say what the process is.
func play(t *testing.T, tr *tracker, steps string) {
	t.Helper()
	under := make(map[string]int)
	offline := false
	for i, step := range strings.Fields(steps) {
		if step == "ON" || step == "OFF" {
			if offline != (step == "OFF") {
				t.Errorf("%s: at step %d it is offline: %v", steps, i, offline)
			}
			continue
		}
		cut := strings.IndexAny(step, ">+-=")
		host, what := step[:cut], step[cut:]
		req := request("http://"+host+".example/", 1)
		req.Documents[0].TextHash = "h"
		if under[host] == 0 || what == ">" {
			tr.begin(host)
			under[host]++
		}
		if what == ">" {
			continue
		}
		r := map[byte]result{'+': answered, '-': failing, '=': neutral}[what[0]]
		if what[1:] == "n" {
			req.Documents[0].TextHash = ""
		} else if what[1:] != "" {
			if _, err := fmt.Sscan(what[1:], &req.Failures); err != nil {
				t.Fatal(err)
			}
		}
		under[host]--
		offline = tr.end(host, req, r, t0)
	}
}

func TestOffline(t *testing.T) {
	for name, steps := range map[string]string{
		"all hosts go and come back":              "a+ b+ c+ ON a- b- ON c- OFF a- OFF b+ ON a- c- ON",
		"two hosts are too few":                   "a+ b+ a- b- a- b- a- b- ON",
		"some of many":                            "a+ b+ c+ d+ e+ a- b- ON c- OFF d+ ON",
		"pages read by an earlier process":        "a- b- ON c- OFF",
		"pages of hosts that are dead":            "x+ a-5 b-5 c-5 ON d-9 ON",
		"dead hosts, checked first at a start":    "a-5 b-5 c-5 ON d-5 ON",
		"one that is new to it, at a start":       "a-5 b-5 c-1 OFF",
		"new pages that cannot be reached":        "x+ a-n b-n c-n ON",
		"nothing but such pages":                  "a-n b-n c-n OFF",
		"one of the dead answers":                 "a+ b+ c+ a- b- c- OFF c+ ON c- ON a- b- OFF",
		"a host that fails again is one host":     "a+ b+ c+ a- a- a- a- ON b- b- ON c- OFF",
		"a host between them answers":             "a+ b+ c+ d+ a- b- d+ c- ON a- b- ON d- OFF",
		"dead ones do not make two into three":    "x+ a+ b+ d-5 x+ d-6 e-5 f-5 ON a- ON b- OFF",
		"refusals of the guard say nothing":       "a+ b+ c+ a- b- d= d= e= ON c- OFF d= OFF e= OFF a+ ON",
		"a start with many dead hosts":            "a> b> c> d> e> f> g> a-n b-n c-n ON d-n OFF",
		"a start where others answer":             "a> b> c> d> e> f> a-n b-n c-n ON d+ ON e+ ON f+ ON",
		"fetches of hosts that fail show nothing": "d-5 e-5 a+ b+ c+ d> d> e> a- b- c- OFF",
		"many hosts, all at once":                 "a+ b+ c+ d+ e+ f+ a> b> c> d> e> f> a- b- c- ON d- OFF e- f- OFF",
		"a fetch that began before goes on":       "a+ b+ c+ d+ d> d> d> a- b- c- ON d- OFF",
		"it stays so whatever begins":             "a+ b+ c+ a- b- c- OFF d> e> f> g> a- OFF d- OFF e+ ON",
		"more fetches of a host that fails":       "a+ b+ c+ a> a> a> a> a- b- c- OFF",
		"it ends without a word":                  "a+ b+ c+ d> e> f> a- b- c- ON d= ON a- OFF",
	} {
		t.Run(name, func(t *testing.T) { play(t, newTracker(), steps) })
	}
}

func TestOfflineRun(t *testing.T) {
	tr := newTracker()
	play(t, tr, "a+ b+ c+ d+ e+ f+ a- b- c- a- d- e- f- OFF")
	offline, r := tr.state()
	if want := "http://a.example/ http://b.example/ http://c.example/ http://d.example/ http://e.example/"; !offline || r.hosts != 6 || strings.Join(r.pages, " ") != want || !r.since.Equal(t0) {
		t.Errorf("got %v, %+v", offline, r)
	}
	if tr.pending != 0 || tr.count != 6 || tr.down != 6 {
		t.Errorf("%d fetches are under way, %d of %d hosts fail", tr.pending, tr.down, tr.count)
	}
}

func TestOfflineForgets(t *testing.T) {
	tr := newTracker()
	tr.begin("held")
	for i := range maxHosts + 10 {
		host := fmt.Sprint(i)
		tr.begin(host)
		tr.end(host, request("http://a.example/", 1), []result{answered, failing}[i%2], t0)
	}
	if len(tr.hosts) != maxHosts || tr.hosts["held"] == nil || tr.count != maxHosts-1 {
		t.Errorf("%d hosts, %d with a result", len(tr.hosts), tr.count)
	}
	tr = newTracker()
	for i := range 100 {
		host := fmt.Sprint(i)
		tr.begin(host)
		tr.end(host, request("http://a.example/", 1), neutral, t0)
	}
	if len(tr.hosts) != 0 {
		t.Errorf("%d hosts are remembered for nothing", len(tr.hosts))
	}
}

func TestResultOf(t *testing.T) {
	failed := func(class string) flow.Outcome {
		return flow.Outcome{Page: "http://a.example/", Kind: flow.OutcomeFailed, Class: class}
	}
	behindTLS := func(class string) flow.Outcome {
		return flow.Outcome{Page: "https://a.example/", Kind: flow.OutcomeFailed, Class: class}
	}
	read, unchanged := flow.Outcome{Kind: flow.OutcomeRead}, flow.Outcome{Kind: flow.OutcomeUnchanged}
	for _, tc := range []struct {
		outcomes []flow.Outcome
		want     result
	}{
		{nil, neutral},
		{[]flow.Outcome{read}, answered},
		{[]flow.Outcome{unchanged}, answered},
		{[]flow.Outcome{failed(pipeline.FailSelectorGone)}, answered},
		{[]flow.Outcome{failed(pipeline.FailEmpty)}, answered},
		{[]flow.Outcome{failed(pipeline.FailBusy)}, answered},
		{[]flow.Outcome{failed(pipeline.FailUnreadable), read}, answered},
		{[]flow.Outcome{failed(pipeline.FailUnreadable), failed(pipeline.FailTooLarge)}, failing},
		{[]flow.Outcome{failed(pipeline.FailDNS)}, failing},
		{[]flow.Outcome{failed(pipeline.FailRefused)}, failing},
		{[]flow.Outcome{failed(pipeline.FailTLS)}, failing},
		{[]flow.Outcome{failed(pipeline.FailStatus)}, failing},
		{[]flow.Outcome{failed(pipeline.FailTimeout)}, failing},
		{[]flow.Outcome{failed(pipeline.FailNetwork)}, failing},
		{[]flow.Outcome{failed(pipeline.FailRedirect)}, failing},
		{[]flow.Outcome{failed(pipeline.FailType)}, failing},
		{[]flow.Outcome{behindTLS(pipeline.FailStatus)}, answered},
		{[]flow.Outcome{behindTLS(pipeline.FailType)}, answered},
		{[]flow.Outcome{behindTLS(pipeline.FailUnreadable)}, answered},
		{[]flow.Outcome{behindTLS(pipeline.FailTooLarge)}, answered},
		{[]flow.Outcome{behindTLS(pipeline.FailRedirect)}, answered},
		{[]flow.Outcome{behindTLS(pipeline.FailTLS)}, failing},
		{[]flow.Outcome{behindTLS(pipeline.FailRefused)}, failing},
		{[]flow.Outcome{behindTLS(pipeline.FailTimeout)}, failing},
		{[]flow.Outcome{behindTLS(pipeline.FailNetwork)}, failing},
		{[]flow.Outcome{failed(pipeline.FailAddress)}, neutral},
		{[]flow.Outcome{failed(pipeline.FailURL)}, neutral},
	} {
		if got := resultOf(tc.outcomes); got != tc.want {
			t.Errorf("%+v: got %d, want %d", tc.outcomes, got, tc.want)
		}
	}
}
