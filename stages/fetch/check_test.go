package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// readCounter counts what is read of bodies, by page.
type readCounter struct {
	mu sync.Mutex
	n  map[string]int
}

func (d *readCounter) add(page string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == nil {
		d.n = make(map[string]int)
	}
	d.n[page] += n
}

// countedBody is a body that is counted.
type countedBody struct {
	io.Reader
	page string
	by   *readCounter
}

func (c countedBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.by.add(c.page, n)
	return n, err
}

// blockingReader is a reader that waits for open.
type blockingReader struct {
	bodyReader
	open chan struct{}
}

func (h blockingReader) Read(ctx context.Context, raw pipeline.Raw, v pipeline.View) (pipeline.Text, error) {
	<-h.open
	return h.bodyReader.Read(ctx, raw, v)
}

// Four large bodies have a place each with these limits, and small ones have 64 KiB.
const (
	inFlight = 4096
	maxBody  = maxBodyMemory / 4
	smallMax = 64 << 10
)

// What waits to be read is bounded in bytes, and in the end all of it is read.
func TestBodiesWaitWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies readCounter
		b := startStage(t, Config{InFlight: inFlight, MaxBody: maxBody}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			size := smallMax
			if strings.Contains(r.URL, "large") {
				size *= 4
			}
			return pipeline.Response{Status: 200, Header: http.Header{"Content-Type": {"text/plain"}},
				Body: io.NopCloser(countedBody{strings.NewReader(strings.Repeat("x", size)), r.URL, &bodies})}, nil
		})
		open := make(chan struct{})
		b.cfg.Readers.Register(blockingReader{open: open})
		for i := range 20 {
			b.sendRequests(t, newRequest(fmt.Sprintf("http://large%d.example/", i), 1), newRequest(fmt.Sprintf("http://small%d.example/", i), 1))
		}
		synctest.Wait()
		whole := 0
		for page, n := range bodies.n {
			if strings.Contains(page, "large") && n > smallMax+1 {
				whole++
			} else if strings.Contains(page, "small") && n != smallMax {
				t.Errorf("%d bytes of %s came", n, page)
			}
		}
		if len(bodies.n) != 40 || whole != 4 {
			t.Errorf("of %d bodies %d are held that are larger than any may be without a place", len(bodies.n), whole)
		}
		close(open)
		synctest.Wait()
		if got := len(b.out.takeOutcomes()); got != 40 {
			t.Errorf("%d of 40 pages were read", got)
		}
		if len(b.bodySemaphore) != 0 {
			t.Errorf("%d places are taken by nobody", len(b.bodySemaphore))
		}
	})
}

// Large bodies that trickle hold up no small ones, and no page fails because it had to wait.
func TestTricklingBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{InFlight: inFlight, MaxBody: maxBody}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			resp, err := newResponse("x")
			if strings.Contains(r.URL, "large") {
				resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 2*smallMax)), blockingBody{ctx}))
			}
			return resp, err
		})
		for i := range 4 {
			b.sendRequests(t, newRequest(fmt.Sprintf("http://large%d.example/", i), 1))
		}
		time.Sleep(time.Second)
		b.sendRequests(t, newRequest("http://large4.example/", 1), newRequest("http://small.example/", 1))
		synctest.Wait()
		if got := b.out.takeOutcomes(); len(got) != 1 || got["http://small.example/"].Kind != flow.OutcomeRead {
			t.Errorf("got %+v, want the small page", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		got := b.out.takeOutcomes()
		for i := range 4 {
			if o := got[fmt.Sprintf("http://large%d.example/", i)]; o.Class != pipeline.FailTimeout {
				t.Errorf("got %+v", o)
			}
		}
		if len(got) != 4 || len(b.bodySemaphore) != 0 || !b.Idle() {
			t.Errorf("got %d outcomes and %d places taken, idle %v; one that had to wait says nothing", len(got), len(b.bodySemaphore), b.Idle())
		}
	})
}

// fakePoster is a Poster that keeps what it gets, and refuses where err says so.
type fakePoster struct {
	outbox
	refuse error
}

func (p *fakePoster) Post(ctx context.Context, m flow.Message) error {
	if p.refuse != nil {
		return p.refuse
	}
	return p.Publish(ctx, m)
}

// TestWhatIsPosted: outcomes without news of pages that this process owns are posted; all others, and
// those of pages that went to another process meanwhile, are published.
func TestWhatIsPosted(t *testing.T) {
	known := newRequest("http://a.example/", 1)
	sum := sha256.Sum256([]byte("hello\n"))
	known.BodyHash = hex.EncodeToString(sum[:])
	keep := newRequest("http://a.example/", 1)
	keep.Documents[0].TextHash, keep.KeepBody = text.Hash("hello"), true
	tests := map[string]struct {
		request                   flow.Request
		moved, foreign            bool
		posted, unsynced, durable int
	}{
		"nothing new":                     {request: known, posted: 1},
		"a text":                          {request: newRequest("http://a.example/", 1), durable: 1},
		"no new text, but a body":         {request: keep, unsynced: 1},
		"a failure":                       {request: newRequest("ftp://a.example/", 1), unsynced: 1},
		"the page of another process":     {request: known, foreign: true, unsynced: 1},
		"the page went while it was read": {request: known, moved: true, unsynced: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				post, unsynced := &fakePoster{}, &outbox{}
				if tt.moved {
					post.refuse = flow.ErrMoved
				}
				b := startStage(t, Config{Poster: post, Unsynced: unsynced, Owned: func(string) bool { return !tt.foreign }},
					func(context.Context, pipeline.FetchRequest) (pipeline.Response, error) { return newResponse("hello\n") })
				b.sendRequests(t, tt.request)
				synctest.Wait()
				if p, u, d := len(post.takeOutcomes()), len(unsynced.takeOutcomes()), len(b.out.takeOutcomes()); p != tt.posted || u != tt.unsynced || d != tt.durable {
					t.Errorf("%d posted, %d published without sync, %d with; want %d, %d and %d", p, u, d, tt.posted, tt.unsynced, tt.durable)
				}
			})
		})
	}
}

// deafReader is a reader that does not look at its context on pages with "deaf" in them: it goes on until release.
type deafReader struct{ release chan struct{} }

func (deafReader) ContentTypes() []string { return []string{"text/deaf"} }
func (r deafReader) Read(_ context.Context, raw pipeline.Raw, _ pipeline.View) (pipeline.Text, error) {
	if strings.Contains(string(raw.Body), "deaf") {
		<-r.release
	}
	return pipeline.Text{Content: string(raw.Body) + "\n"}, nil
}

// TestAReadingThatDoesNotEnd: it fails its own document alone and gives its turn back; the document is not read
// again while that goes on, nor afterwards until its page changes.
func TestAReadingThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		reader := deafReader{release}
		body := "deaf"
		readers := NewReaders(reader)
		s := startStageWith(t, Config{Rate: 1000, Readers: readers}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			if strings.Contains(r.URL, "good") {
				return newResponse(r.URL, "Content-Type", "text/deaf")
			}
			return newResponse(body, "Content-Type", "text/deaf")
		})
		check := func(n uint64, after time.Duration, want string) {
			t.Helper()
			s.sendRequests(t, newRequest("http://a.example/", n))
			time.Sleep(after) // of the bubble
			synctest.Wait()
			o, ok := s.out.takeOutcomes()["http://a.example/"]
			if !ok || !strings.Contains(o.Class+" "+o.Reason+" "+o.Text, want) {
				t.Errorf("check %d: got %v, %q %q, want %q", n, ok, o.Reason, o.Text, want)
			}
		}
		check(1, time.Minute, "took longer than 30s")
		if n, all := readers.Stuck(); n != 1 || all != (runtime.GOMAXPROCS(0) == 1) {
			t.Errorf("stuck: got %d, %v", n, all)
		}
		check(2, 0, "an earlier reading of the page with these settings has not ended")
		for i := range 20 {
			s.sendRequests(t, newRequest(fmt.Sprintf("http://good%d.example/", i), 1))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(s.out.takeOutcomes()); n != 20 {
			t.Errorf("%d of 20 other pages were read", n)
		}
		close(release)
		synctest.Wait()
		if n, _ := readers.Stuck(); n != 0 {
			t.Errorf("stuck after its end: %d", n)
		}
		check(3, 0, "did not end in time before")
		body = "it is deaf no more"
		check(4, 0, "it is deaf no more")
	})
}
