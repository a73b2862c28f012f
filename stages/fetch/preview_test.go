package fetch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestPreviewWaitsForItsTurn makes three previews of one host with a request each ten seconds: the second
// one waits, the third one would wait for longer than it may.
func TestPreviewWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		s := newStage(Config{Rate: 0.1, Timeout: 15 * time.Second, Readers: NewReaders(bodyReader{}), Fetchers: []pipeline.Fetcher{
			fetcherFunc(func(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
				fetched++
				return newResponse("text")
			}),
		}})
		preview := func(ctx context.Context, page string) (time.Duration, error) {
			begin := time.Now()
			_, err := s.Preview(ctx, page, pipeline.View{})
			return time.Since(begin), err
		}
		if took, err := preview(t.Context(), "https://a.example/1"); err != nil || took != 0 {
			t.Errorf("the first one: took %v, %v", took, err)
		}
		short, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		busy := &pipeline.FetchError{}
		if took, err := preview(short, "https://a.example/2"); !errors.As(err, &busy) || took != 0 || !strings.Contains(busy.Reason, "a.example:443 may be asked again in 10s only") {
			t.Errorf("past the deadline: took %v, %v", took, err)
		}
		if took, err := preview(t.Context(), "https://b.example/"); err != nil || took != 0 {
			t.Errorf("another host: took %v, %v", took, err)
		}
		go func() {
			time.Sleep(time.Second)
			if took, err := preview(t.Context(), "https://a.example/3"); !errors.As(err, &busy) || took != 0 {
				t.Errorf("behind one that waits: took %v, %v", took, err)
			}
		}()
		if took, err := preview(t.Context(), "https://a.example/2"); err != nil || took < 10*time.Second || took > 11*time.Second {
			t.Errorf("the second one: took %v, %v", took, err)
		}
		if fetched != 3 {
			t.Errorf("%d pages were fetched, want 3", fetched)
		}
	})
}

// TestTurnsAreShared: a check waits behind a preview.
func TestTurnsAreShared(t *testing.T) {
	now := time.Now()
	q := newQueue(limits{maxPerHost: 2, rate: 0.1, burst: 1, maxInFlight: 10, maxWaiting: 10}, func() time.Time { return now })
	if wait, ok := q.reserve("a.example:443", 0); !ok || wait > 0 {
		t.Fatalf("the preview waits %v, %v", wait, ok)
	}
	q.add(&job{req: flow.Request{Page: "https://a.example/"}})
	if jobs, after, again := q.takeReady(); len(jobs) > 0 || !again || after < 9*time.Second {
		t.Errorf("got %d jobs, the next after %v, %v", len(jobs), after, again)
	}
	now = now.Add(11 * time.Second)
	if jobs, _, _ := q.takeReady(); len(jobs) != 1 {
		t.Errorf("got %d jobs after the pause, want 1", len(jobs))
	}
}
