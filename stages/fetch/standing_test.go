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
