package fetch

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// A host that asked to be left alone for a second is asked again after one, also where the
// clock is set back meanwhile.
func TestClockSetBack(t *testing.T) {
	for name, queued := range map[string]bool{"before it is asked for": false, "while it waits": true} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 2, 14, 0, 0, 0, time.UTC)
			q := newQueue(limits{maxPerHost: 1, rate: 1000, burst: 100, maxInFlight: 10, maxWaiting: 10}, func() time.Time { return now })
			add := func(check uint64) {
				if !q.add(&job{req: flow.Request{Page: "http://example.com/", Check: check, NotAfter: now.Add(time.Hour)}}) {
					t.Fatal("there is no room")
				}
			}
			add(1)
			jobs, _, _ := q.takeReady()
			q.finish(jobs[0], time.Second, answerPrompt)
			if queued {
				add(2)
			}
			now = now.Add(-4 * time.Hour)
			if !queued {
				add(2)
			}
			jobs, after, again := q.takeReady()
			if len(jobs) != 0 || !again || after != time.Second {
				t.Fatalf("%d jobs may be taken, and others after %v", len(jobs), after)
			}
			now = now.Add(after)
			if jobs, _, _ = q.takeReady(); len(jobs) != 1 || jobs[0].busyError != nil {
				t.Errorf("after a second %+v may be taken, want the page", jobs)
			}
		})
	}
}

// TestLaterRequestStays: of two requests for a page that wait, the one that was made later is fetched,
// whatever the order in which they come.
func TestLaterRequestStays(t *testing.T) {
	now := time.Date(2026, 1, 2, 14, 0, 0, 0, time.UTC)
	request := func(check uint64, made time.Duration, nonce string) flow.Request {
		return flow.Request{Page: "http://example.com/", Check: check, NotAfter: now.Add(time.Hour + made), Nonce: nonce}
	}
	for name, c := range map[string]struct{ first, second flow.Request }{
		"the later one first":            {request(2, time.Second, "wanted"), request(1, 0, "")},
		"the later one last":             {request(1, 0, ""), request(2, time.Second, "wanted")},
		"a number that was given before": {request(2, 0, ""), request(1, time.Second, "wanted")},
		"at the same time":               {request(1, 0, ""), request(1, 0, "wanted")},
	} {
		q := newQueue(limits{maxPerHost: 1, rate: 1000, burst: 100, maxInFlight: 10, maxWaiting: 10}, func() time.Time { return now })
		for _, r := range []flow.Request{c.first, c.second} {
			if !q.add(&job{req: r}) {
				t.Fatal("there is no room")
			}
		}
		if jobs, _, _ := q.takeReady(); len(jobs) != 1 || jobs[0].req.Nonce != "wanted" {
			t.Errorf("%s: got %+v", name, jobs)
		}
	}
}

// TestLaterRequestAfterTheClockWasSetBack: a request that was made before that gives way to the next one.
func TestLaterRequestAfterTheClockWasSetBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 14, 0, 0, 0, time.UTC)
	q := newQueue(limits{maxPerHost: 1, rate: 1000, burst: 100, maxInFlight: 10, maxWaiting: 10}, func() time.Time { return now })
	for _, nonce := range []string{"old", "wanted"} {
		if !q.add(&job{req: flow.Request{Page: "http://example.com/", NotAfter: now.Add(2 * time.Minute), Nonce: nonce}}) {
			t.Fatal("there is no room")
		}
		now = now.Add(-4 * time.Hour)
	}
	if jobs, _, _ := q.takeReady(); len(jobs) != 1 || jobs[0].req.Nonce != "wanted" {
		t.Errorf("got %+v", jobs)
	}
}

// A host at the limit of its rate is asked again when that allows it, also where the clock is
// set back meanwhile.
func TestRateWhenTheClockIsSetBack(t *testing.T) {
	now := time.Date(2026, 1, 2, 14, 0, 0, 0, time.UTC)
	q := newQueue(limits{maxPerHost: 2, rate: 1, burst: 1, maxInFlight: 10, maxWaiting: 10}, func() time.Time { return now })
	for _, page := range []string{"http://example.com/a", "http://example.com/b"} {
		if !q.add(&job{req: flow.Request{Page: page, NotAfter: now.Add(time.Hour)}}) {
			t.Fatal("there is no room")
		}
	}
	if jobs, _, _ := q.takeReady(); len(jobs) != 1 {
		t.Fatalf("%d jobs may be taken at once, want 1", len(jobs))
	}
	now = now.Add(-4 * time.Hour)
	q.takeReady()
	now = now.Add(2 * time.Second)
	if jobs, after, _ := q.takeReady(); len(jobs) != 1 {
		t.Errorf("after two seconds %d jobs may be taken, and others after %v", len(jobs), after)
	}
}

// One host cannot take the room of others: it gets half of it, the next one half of the rest.
func TestOneHostLeavesRoomForOthers(t *testing.T) {
	q := newQueue(limits{maxPerHost: 1, rate: 1, burst: 1, maxInFlight: 10, maxWaiting: 100}, time.Now)
	for _, host := range []struct {
		name string
		want int
	}{{"a", 50}, {"b", 25}, {"c", 13}, {"a", 0}} {
		got := 0
		for i := range 100 {
			if q.add(&job{req: flow.Request{Page: fmt.Sprintf("http://%s.example/%d/%d", host.name, i, host.want)}}) {
				got++
			}
		}
		if got != host.want {
			t.Errorf("%d requests of host %s have room, want %d", got, host.name, host.want)
		}
	}
}

// TestSilentHosts: far more hosts than there are requests at once, which never answer or answer slowly, take at most
// one check in twenty from the others, also if their names are new each time.
func TestSilentHosts(t *testing.T) {
	for name, c := range map[string]struct {
		names  func(second, i int) string
		answer time.Duration // 0: never
	}{
		"the same silent names": {func(_, i int) string { return fmt.Sprintf("http://silent%d.example/", i) }, 0},
		"new silent names":      {func(second, i int) string { return fmt.Sprintf("http://silent%d-%d.example/", second, i) }, 0},
		"slow names":            {func(_, i int) string { return fmt.Sprintf("http://silent%d.example/", i) }, 25 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var good atomic.Int64
				s := startStage(t, Config{Rate: 1000}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
					if strings.Contains(r.URL, "good") {
						good.Add(1)
						time.Sleep(50 * time.Millisecond)
						return newResponse(r.URL)
					}
					if c.answer > 0 {
						select {
						case <-time.After(c.answer):
							return newResponse(r.URL)
						case <-ctx.Done():
						}
					}
					<-ctx.Done()
					return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailTimeout, Reason: "no answer"}
				})
				const seconds, hosts, silent = 300, 20, 2000
				for second := range seconds {
					for i := range hosts {
						r := newRequest(fmt.Sprintf("http://good%d.example/", i), uint64(second+1))
						s.sendRequests(t, r)
					}
					if second%10 == 0 {
						for i := range silent {
							r := newRequest(c.names(second, i), uint64(second+1))
							r.NotAfter = time.Now().Add(time.Minute)
							s.sendRequests(t, r)
						}
					}
					time.Sleep(time.Second) // of the bubble
				}
				if n := good.Load(); n < seconds*hosts*95/100 {
					t.Errorf("%d of %d checks of other hosts were made", n, seconds*hosts)
				}
				_ = s.out.takeOutcomes()
			})
		})
	}
}

// TestAHostThatBecameSlowIsReadAgain: every fourth request to a host that did not answer waits as long as others.
func TestAHostThatBecameSlowIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := 40 * time.Second
		s := startStage(t, Config{Rate: 1000}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			select {
			case <-time.After(took):
				return newResponse("hello")
			case <-ctx.Done():
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailTimeout, Reason: "no answer in time"}
			}
		})
		for n, want := range []string{"no answer in time (30s)", "did not answer within 5s", "did not answer within 5s", "did not answer within 5s", "hello", "hello"} {
			if n == 1 {
				took = 20 * time.Second
			}
			s.sendRequests(t, newRequest("http://a.example/", uint64(n+1)))
			time.Sleep(time.Minute)
			synctest.Wait()
			if o := s.out.takeOutcomes()["http://a.example/"]; !strings.Contains(o.Reason+o.Text, want) || o.Kind == flow.OutcomeFailed && o.Class != pipeline.FailTimeout {
				t.Errorf("check %d: got %q %q, want %q", n+1, o.Reason, o.Text, want)
			}
		}
	})
}
