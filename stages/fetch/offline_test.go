package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// playSteps runs steps through a tracker. A step is a host and what happens there: "a>" a fetch
// begins that goes on; "a+" it answers, "a-" it fails, "a=" it says nothing (each ends a
// fetch that goes on, or one of its own); "a-7" fails as the seven checks before it did,
// "a-n" is the first check of a page. The steps "ON" and "OFF" say what the process is.
func playSteps(t *testing.T, tr *offlineTracker, steps string) {
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
		req := newRequest("http://"+host+".example/", 1)
		req.Documents[0].TextHash = "h"
		if under[host] == 0 || what == ">" {
			tr.beginFetch(host)
			under[host]++
		}
		if what == ">" {
			continue
		}
		r := map[byte]networkResult{'+': resultAnswered, '-': resultFailing, '=': resultNeutral}[what[0]]
		if what[1:] == "n" {
			req.Documents[0].TextHash = ""
		} else if what[1:] != "" {
			if _, err := fmt.Sscan(what[1:], &req.Failures); err != nil {
				t.Fatal(err)
			}
		}
		under[host]--
		offline = tr.endFetch(host, req, r, t0)
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
		t.Run(name, func(t *testing.T) { playSteps(t, newOfflineTracker(), steps) })
	}
}

func TestOfflineRun(t *testing.T) {
	tr := newOfflineTracker()
	playSteps(t, tr, "a+ b+ c+ d+ e+ f+ a- b- c- a- d- e- f- OFF")
	offline, r := tr.state()
	if want := "http://a.example/ http://b.example/ http://c.example/ http://d.example/ http://e.example/"; !offline || r.hosts != 6 || strings.Join(r.pages, " ") != want || !r.since.Equal(t0) {
		t.Errorf("got %v, %+v", offline, r)
	}
	if tr.openFetches != 0 || tr.hostsWithResult != 6 || tr.failingHosts != 6 {
		t.Errorf("%d fetches are under way, %d of %d hosts fail", tr.openFetches, tr.failingHosts, tr.hostsWithResult)
	}
}

func TestOfflineForgets(t *testing.T) {
	tr := newOfflineTracker()
	tr.beginFetch("held")
	for i := range maxTrackedHosts + 10 {
		host := fmt.Sprint(i)
		tr.beginFetch(host)
		tr.endFetch(host, newRequest("http://a.example/", 1), []networkResult{resultAnswered, resultFailing}[i%2], t0)
	}
	if len(tr.hosts) != maxTrackedHosts || tr.hosts["held"] == nil || tr.hostsWithResult != maxTrackedHosts-1 {
		t.Errorf("%d hosts, %d with a result", len(tr.hosts), tr.hostsWithResult)
	}
	tr = newOfflineTracker()
	for i := range 100 {
		host := fmt.Sprint(i)
		tr.beginFetch(host)
		tr.endFetch(host, newRequest("http://a.example/", 1), resultNeutral, t0)
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
		want     networkResult
	}{
		{nil, resultNeutral},
		{[]flow.Outcome{read}, resultAnswered},
		{[]flow.Outcome{unchanged}, resultAnswered},
		{[]flow.Outcome{failed(pipeline.FailSelectorGone)}, resultAnswered},
		{[]flow.Outcome{failed(pipeline.FailEmpty)}, resultAnswered},
		{[]flow.Outcome{failed(pipeline.FailBusy)}, resultAnswered},
		{[]flow.Outcome{failed(pipeline.FailUnreadable), read}, resultAnswered},
		{[]flow.Outcome{failed(pipeline.FailUnreadable), failed(pipeline.FailTooLarge)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailDNS)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailRefused)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailTLS)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailStatus)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailTimeout)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailNetwork)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailRedirect)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailType)}, resultFailing},
		{[]flow.Outcome{behindTLS(pipeline.FailStatus)}, resultAnswered},
		{[]flow.Outcome{behindTLS(pipeline.FailType)}, resultAnswered},
		{[]flow.Outcome{behindTLS(pipeline.FailUnreadable)}, resultAnswered},
		{[]flow.Outcome{behindTLS(pipeline.FailTooLarge)}, resultAnswered},
		{[]flow.Outcome{behindTLS(pipeline.FailRedirect)}, resultAnswered},
		{[]flow.Outcome{behindTLS(pipeline.FailTLS)}, resultFailing},
		{[]flow.Outcome{behindTLS(pipeline.FailRefused)}, resultFailing},
		{[]flow.Outcome{behindTLS(pipeline.FailTimeout)}, resultFailing},
		{[]flow.Outcome{behindTLS(pipeline.FailNetwork)}, resultFailing},
		{[]flow.Outcome{failed(pipeline.FailAddress)}, resultNeutral},
		{[]flow.Outcome{failed(pipeline.FailURL)}, resultNeutral},
	} {
		if got := networkResultOf(tc.outcomes); got != tc.want {
			t.Errorf("%+v: got %d, want %d", tc.outcomes, got, tc.want)
		}
	}
}

// fakeNetwork is a fetcher whose hosts answer or do not.
type fakeNetwork struct{ down map[string]bool }

func (n *fakeNetwork) fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	if n.down[pageurl.Host(r.URL)] {
		return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailRefused, Reason: "connection refused"}
	}
	return newResponse("hello " + r.URL)
}

// checkHosts checks one page of each host and returns what was found.
func (b *testStage) checkHosts(t *testing.T, check uint64, hosts ...string) map[string]flow.Outcome {
	t.Helper()
	for _, h := range hosts {
		r := newRequest("http://"+h+".example/", check)
		r.Documents[0].TextHash = "h"
		b.sendRequests(t, r)
		time.Sleep(time.Minute) // of the bubble
		synctest.Wait()
	}
	return b.out.takeOutcomes()
}

func (n *fakeNetwork) setDown(down bool, hosts ...string) {
	n.down = make(map[string]bool)
	for _, h := range hosts {
		n.down[h+".example:80"] = down
	}
}

// describeOutcomes says which of the outcomes of hosts are marked.
func describeOutcomes(got map[string]flow.Outcome, hosts ...string) string {
	var s []string
	for _, h := range hosts {
		o, ok := got["http://"+h+".example/"]
		s = append(s, fmt.Sprintf("%s:%v", o.Kind, ok && o.Offline))
	}
	return strings.Join(s, " ")
}

func TestOfflineIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n fakeNetwork
		b := startStage(t, Config{}, n.fetch)
		hosts := []string{"a", "b", "c", "d"}
		if got := describeOutcomes(b.checkHosts(t, 1, hosts...), hosts...); got != "read:false read:false read:false read:false" {
			t.Errorf("got %s", got)
		}
		n.setDown(true, hosts...)
		begun := time.Now()
		if got := describeOutcomes(b.checkHosts(t, 2, hosts...), hosts...); got != "failed:false failed:false failed:true failed:true" {
			t.Errorf("got %s", got)
		}
		if got := describeOutcomes(b.checkHosts(t, 3, hosts...), hosts...); got != "failed:true failed:true failed:true failed:true" {
			t.Errorf("got %s", got)
		}
		if len(b.out.events) != 1 {
			t.Fatalf("got events %+v, want one", b.out.events)
		}
		e := b.out.events[0]
		if e.Event != pipeline.HealthOffline || e.Count != 3 || e.after != 2 || !e.Since.Equal(begun) || e.Reason == "" ||
			strings.Join(e.URLs, " ") != "http://a.example/ http://b.example/ http://c.example/" {
			t.Errorf("got %+v", e)
		}
		n.setDown(false)
		if got := describeOutcomes(b.checkHosts(t, 4, "b", "a"), "b", "a"); got != "read:false read:false" {
			t.Errorf("got %s", got)
		}
		if len(b.out.events) != 2 {
			t.Fatalf("got events %+v, want two", b.out.events)
		}
		if f := b.out.events[1]; f.Event != pipeline.HealthOnline || f.after != 0 || !f.Since.Equal(begun) || f.ID == e.ID {
			t.Errorf("got %+v", f)
		}
		n.setDown(true, hosts...)
		b.checkHosts(t, 5, hosts...)
		if len(b.out.events) != 3 || b.out.events[2].ID == e.ID {
			t.Errorf("got events %+v, want three with IDs of their own", b.out.events)
		}
	})
}

func TestOfflineIsToldAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n fakeNetwork
		b := startStage(t, Config{}, n.fetch)
		n.setDown(true, "a", "b", "c")
		b.out.err = errors.New("the store is gone")
		b.checkHosts(t, 1, "a", "b", "c")
		b.out.err = nil
		if len(b.out.events) != 0 {
			t.Fatalf("got %+v", b.out.events)
		}
		got := b.checkHosts(t, 2, "a", "b")
		if s := describeOutcomes(got, "a", "b"); s != "failed:true failed:true" || len(b.out.events) != 1 || b.out.events[0].after != 0 {
			t.Errorf("got %s, events %+v", s, b.out.events)
		}
	})
}

// Pages without a host, hosts that are left alone and those that the guard refuses say
// nothing about the network.
func TestOfflineIsAboutHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n fakeNetwork
		b := startStage(t, Config{}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			switch r.URL {
			case "http://busy.example/1":
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailBusy, RetryAfter: time.Hour, Reason: "HTTP status 429"}
			case "http://inner.example/":
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailAddress, Reason: "10.0.0.1 is refused"}
			case "http:///gone/1", "http:///gone/2", "http:///gone/3":
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "no such file"}
			}
			return n.fetch(ctx, r)
		})
		check := func(url string) flow.Outcome {
			r := newRequest(url, 1)
			r.NotAfter = time.Now().Add(time.Minute)
			b.sendRequests(t, r)
			synctest.Wait()
			return b.out.takeOutcomes()[url]
		}
		b.checkHosts(t, 1, "a", "b", "c")
		check("http://busy.example/1")
		check("http:///gone/1")
		check("http:///gone/2")
		check("http:///gone/3")
		if len(b.out.events) != 0 {
			t.Fatalf("pages without hosts fail: got %+v", b.out.events)
		}
		n.setDown(true, "a", "b", "c")
		b.checkHosts(t, 2, "a", "b")
		check("http:///there")
		b.checkHosts(t, 2, "c")
		if len(b.out.events) != 1 {
			t.Fatalf("a page without a host answers: got %+v", b.out.events)
		}
		if o := check("http://busy.example/2"); o.Class != pipeline.FailBusy || o.Offline {
			t.Errorf("got %+v", o)
		}
		if o := check("http://inner.example/"); o.Class != pipeline.FailAddress || o.Offline {
			t.Errorf("got %+v", o)
		}
		if len(b.out.events) != 1 {
			t.Errorf("got %+v", b.out.events)
		}
		// A host that is too busy does answer.
		time.Sleep(2 * time.Hour) // of the bubble
		check("http://busy.example/1")
		if len(b.out.events) != 2 || b.out.events[1].Event != pipeline.HealthOnline {
			t.Errorf("got %+v", b.out.events)
		}
	})
}

// Hosts that answer are there, though all their pages be gone: those may expire.
func TestGonePagesAreNotOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{}, func(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
			return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailStatus, Status: 404, Reason: "HTTP status 404 Not Found"}
		})
		for check := range uint64(3) {
			for _, page := range []string{"https://a.example/", "https://b.example/", "https://c.example/"} {
				b.sendRequests(t, newRequest(page, check))
				time.Sleep(time.Minute) // of the bubble
				synctest.Wait()
				if o := b.out.takeOutcomes()[page]; o.Class != pipeline.FailStatus || o.Offline {
					t.Errorf("got %+v", o)
				}
			}
		}
		if len(b.out.events) != 0 {
			t.Errorf("got events %+v", b.out.events)
		}
	})
}

func TestOfflineEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{}, func(ctx context.Context, _ pipeline.FetchRequest) (pipeline.Response, error) {
			<-ctx.Done()
			return pipeline.Response{}, ctx.Err()
		})
		b.sendRequests(t, newRequest("http://a.example/", 1), newRequest("http://b.example/", 1), newRequest("http://c.example/", 1))
		synctest.Wait()
		if n := b.health.tracker.openFetches; n != 3 {
			t.Errorf("%d fetches are under way", n)
		}
		b.stop()
		synctest.Wait()
		if tr := b.health.tracker; tr.openFetches != 0 || tr.hostsWithResult != 0 || len(b.out.events) != 0 {
			t.Errorf("what was broken off counts: %+v, events %+v", tr, b.out.events)
		}
	})
}
