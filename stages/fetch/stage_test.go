package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

func TestOutcomesArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			if strings.HasSuffix(r.URL, "gone") {
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailStatus, Status: 404, Reason: "HTTP status 404 Not Found"}
			}
			return newResponse("hello\n")
		})
		b.sendRequests(t, newRequest("http://a.example/", 7), newRequest("http://b.example/gone", 8), newRequest("ftp://c.example/", 9))
		synctest.Wait()
		got := b.out.takeOutcomes()
		if o := got["http://a.example/"]; o.Kind != flow.OutcomeRead || o.Check != 7 || o.Nonce != "n" || o.Incarnation != "i" || o.Document != "d" || o.Parts != 1 || o.Status != 200 || o.Bytes != 6 {
			t.Errorf("got %+v", o)
		}
		if o := got["http://b.example/gone"]; o.Kind != flow.OutcomeFailed || o.Class != pipeline.FailStatus || o.Status != 404 || o.Parts != 0 {
			t.Errorf("got %+v", o)
		}
		if o := got["ftp://c.example/"]; o.Class != pipeline.FailURL {
			t.Errorf("got %+v", o)
		}
		if len(b.out.trace) != 3 || !strings.HasPrefix(b.out.trace[0], "trace-") {
			t.Errorf("traces: got %q", b.out.trace)
		}
		if !b.Idle() {
			t.Error("the stage is not idle")
		}
		time.Sleep(time.Minute) // of the bubble
		synctest.Wait()
		if n := len(b.queue.hosts); n != 0 {
			t.Errorf("%d idle hosts are remembered", n)
		}
	})
}

func TestDocumentsOfAPageArePublishedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{}, func(context.Context, pipeline.FetchRequest) (pipeline.Response, error) { return newResponse("x") })
		r := newRequest("http://a.example/", 1)
		r.Documents = append(r.Documents, flow.RequestDocument{ID: "e"}, flow.RequestDocument{ID: "f"})
		b.sendRequests(t, r)
		synctest.Wait()
		if len(b.out.calls) != 1 || len(b.out.calls[0]) != 3 {
			t.Fatalf("got %v, want one call with three outcomes", b.out.calls)
		}
		for i, o := range b.out.calls[0] {
			if o.Part != i || o.Parts != 3 || o.Document != string(rune('d'+i)) {
				t.Errorf("part %d: got %+v", i, o)
			}
		}
	})
}

// Hosts that never answer, each with many pages, do not hold up others.
func TestHangingHosts(t *testing.T) {
	for _, concurrency := range []int{2, 8, 64} {
		synctest.Test(t, func(t *testing.T) {
			var hanging atomic.Int32
			b := startStage(t, Config{Concurrency: concurrency, Rate: 1000, Timeout: 24 * time.Hour}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
				if strings.Contains(r.URL, "hangs") {
					hanging.Add(1)
					<-ctx.Done()
					return pipeline.Response{}, ctx.Err()
				}
				return newResponse("x")
			})
			for page := range 100 {
				for host := range 64 {
					b.sendRequests(t, newRequest(fmt.Sprintf("http://hangs%d.example/%d", host, page), 1))
				}
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if n := int(hanging.Load()); n < 64 || n > 64*concurrency || n > 512 {
				t.Errorf("%d fetches hang", n)
			}
			for host := range 1000 {
				b.sendRequests(t, newRequest(fmt.Sprintf("http://free%d.example/", host), 1))
			}
			synctest.Wait()
			if got := len(b.out.takeOutcomes()); got != 1000 {
				t.Errorf("concurrency %d: %d of 1000 free pages were checked", concurrency, got)
			}
		})
	}
}

func TestPoliteness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		var started []time.Duration
		begin := time.Now()
		b := startStage(t, Config{Concurrency: 2, Rate: 1}, func(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
			mu.Lock()
			started = append(started, time.Since(begin).Truncate(time.Millisecond))
			mu.Unlock()
			<-release
			return newResponse("x")
		})
		for i := range 5 {
			b.sendRequests(t, newRequest(fmt.Sprintf("http://a.example/%d", i), 1))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := fmt.Sprint(started), "[0s 1s]"; got != want {
			t.Errorf("two at once, one a second: got %v, want %v", got, want)
		}
		close(release)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := fmt.Sprint(started), "[0s 1s 1m0s 1m1s 1m2s]"; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestRetryAfterPausesTheHostAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var asked []string
		b := startStage(t, Config{Concurrency: 1, Rate: 1000}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			mu.Lock()
			asked = append(asked, r.URL)
			mu.Unlock()
			if strings.HasSuffix(r.URL, "/busy") {
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailBusy, Status: 429, RetryAfter: time.Minute}
			}
			return newResponse("x")
		})
		b.sendRequests(t, newRequest("http://a.example/busy", 1))
		synctest.Wait()
		soon, patient := newRequest("http://a.example/soon", 1), newRequest("http://a.example/patient", 1)
		soon.NotAfter, patient.NotAfter = time.Now().Add(30*time.Second), time.Now().Add(90*time.Second)
		b.sendRequests(t, soon, patient, newRequest("http://b.example/", 1))
		synctest.Wait()
		got := b.out.takeOutcomes()
		if o := got["http://a.example/busy"]; o.Class != pipeline.FailBusy || o.RetryAfter != time.Minute {
			t.Errorf("busy: got %+v", o)
		}
		if o := got["http://a.example/soon"]; o.Class != pipeline.FailBusy || o.RetryAfter != time.Minute || o.Status != 0 {
			t.Errorf("soon, which cannot wait: got %+v", o)
		}
		if o, ok := got["http://b.example/"]; !ok || o.Kind != flow.OutcomeRead {
			t.Errorf("another host: got %+v", o)
		}
		if _, ok := got["http://a.example/patient"]; ok {
			t.Error("patient was asked for at once")
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if o := b.out.takeOutcomes()["http://a.example/patient"]; o.Kind != flow.OutcomeRead {
			t.Errorf("patient: got %+v", o)
		}
		if want := "[http://a.example/busy http://b.example/ http://a.example/patient]"; fmt.Sprint(asked) != want { // in this order
			t.Errorf("asked for %v, want %v", asked, want)
		}
	})
}

func TestDuplicatesAndLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var asked atomic.Int32
		b := startStage(t, Config{Concurrency: 1, Rate: 1000, Queue: 4}, func(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
			asked.Add(1)
			<-release
			return newResponse("x")
		})
		late := newRequest("http://a.example/late", 1)
		late.NotAfter = time.Now().Add(time.Second)
		b.sendRequests(t, newRequest("http://a.example/", 1))
		synctest.Wait()
		b.sendRequests(t,
			newRequest("http://a.example/", 1),  // in flight
			newRequest("http://a.example/b", 3), // waits
			newRequest("http://a.example/b", 2), // overtaken
			newRequest("http://a.example/b", 4), // overtakes
			late,
			newRequest("http://a.example/c", 1), // no room
		)
		time.Sleep(2 * time.Second)
		close(release)
		synctest.Wait()
		got := b.out.takeOutcomes()
		if len(got) != 2 || got["http://a.example/b"].Check != 4 || asked.Load() != 2 {
			t.Errorf("got %v after %d fetches", got, asked.Load())
		}
		// What was dropped can be asked for again.
		b.sendRequests(t, newRequest("http://a.example/late", 2), newRequest("http://a.example/", 1))
		synctest.Wait()
		if got := b.out.takeOutcomes(); len(got) != 2 {
			t.Errorf("again: got %v", got)
		}
	})
}

func TestNothingIsPublishedAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			<-ctx.Done()
			if strings.HasSuffix(r.URL, "body") {
				return newResponse("x") // it came in the last moment
			}
			return pipeline.Response{}, ctx.Err()
		})
		b.sendRequests(t, newRequest("http://a.example/", 1), newRequest("http://b.example/body", 1))
		synctest.Wait()
		if b.Idle() {
			t.Error("idle while pages are fetched")
		}
		if err := b.Run(t.Context()); err == nil {
			t.Error("a second Run was allowed")
		}
		b.stop()
		synctest.Wait()
		if got := b.out.takeOutcomes(); len(got) != 0 {
			t.Errorf("got %v, want nothing", got)
		}
		if !b.Idle() {
			t.Error("not idle")
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{Timeout: 30 * time.Second}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			if strings.HasSuffix(r.URL, "body") {
				resp, _ := newResponse("")
				resp.Body = io.NopCloser(blockingBody{ctx})
				return resp, nil
			}
			if strings.HasSuffix(r.URL, "own") {
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailTimeout, Reason: "it took longer than 4s"}
			}
			<-ctx.Done()
			return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailTimeout, Reason: "a.example did not answer in time"}
		})
		b.sendRequests(t, newRequest("http://a.example/", 1), newRequest("http://b.example/body", 1), newRequest("http://c.example/own", 1))
		time.Sleep(31 * time.Second)
		synctest.Wait()
		got := b.out.takeOutcomes()
		if o := got["http://a.example/"]; o.Class != pipeline.FailTimeout || o.Reason != "a.example did not answer in time (30s)" || o.Took != 30*time.Second {
			t.Errorf("got %+v", o)
		}
		if o := got["http://b.example/body"]; o.Class != pipeline.FailTimeout {
			t.Errorf("got %+v", o)
		}
		if o := got["http://c.example/own"]; o.Class != pipeline.FailTimeout || o.Reason != "it took longer than 4s" {
			t.Errorf("the limit of a Fetcher: got %+v", o)
		}
	})
}

// blockingBody is a body that never comes.
type blockingBody struct{ ctx context.Context }

func (e blockingBody) Read([]byte) (int, error) { <-e.ctx.Done(); return 0, e.ctx.Err() }

func TestLossAndPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			panic("a fetcher's mistake")
		})
		b.out.err = errors.New("the topic is gone")
		b.sendRequests(t, newRequest("http://a.example/", 1))
		synctest.Wait()
		if o := b.out.takeOutcomes()["http://a.example/"]; o.Class != pipeline.FailNetwork || !b.Idle() {
			t.Errorf("got %+v", o)
		}
	})
}

func TestProcessRefuses(t *testing.T) {
	s := newStage(Config{Publisher: &outbox{}, Readers: NewReaders()})
	for _, m := range []flow.Message{
		{ID: "1", Type: "other.v1", Source: "https://example.com/"},
		{ID: "2", Type: flow.TypeRequest, Body: []byte("{")},
		{ID: "3", Type: flow.TypeRequest, Body: []byte("{}")},
		{ID: "4", Type: flow.TypeRequest, Body: []byte(`{"page":"http://a.example/"}`)},
	} {
		err := txtest.New().Handle(t.Context(), s, m)
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
			t.Errorf("%s: got %v, want a permanent error", m.ID, err)
		}
	}
	err := txtest.New().Handle(t.Context(), s, flow.Message{ID: "5", Type: "vokter.request.v2"})
	if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
		t.Errorf("a request of a newer version: got %v, want one that is broken", err)
	}
	if !s.Idle() {
		t.Error("something was queued")
	}
}

func TestNothingIsQueuedWithoutCommit(t *testing.T) {
	s := newStage(Config{Publisher: &outbox{}, Readers: NewReaders()})
	tx := txtest.New().Begin()
	m := flow.Message{ID: "1", Type: flow.TypeRequest, Body: []byte(`{"page":"http://a.example/","documents":[{"id":"d"}]}`)}
	if err := s.Process(t.Context(), tx, m); err != nil || !s.Idle() {
		t.Fatalf("before the commit: %v, idle %v", err, s.Idle())
	}
	tx.Commit()
	if s.Idle() {
		t.Error("after the commit: nothing is queued")
	}
}
