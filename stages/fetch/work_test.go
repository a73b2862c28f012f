package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// drawn counts what is read of bodies, by page.
type drawn struct {
	mu sync.Mutex
	n  map[string]int
}

func (d *drawn) add(page string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n == nil {
		d.n = make(map[string]int)
	}
	d.n[page] += n
}

// counted is a body that is counted.
type counted struct {
	io.Reader
	page string
	by   *drawn
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.by.add(c.page, n)
	return n, err
}

// held is a reader that waits for open.
type held struct {
	lines
	open chan struct{}
}

func (h held) Read(ctx context.Context, raw pipeline.Raw, v pipeline.View) (pipeline.Text, error) {
	<-h.open
	return h.lines.Read(ctx, raw, v)
}

// Four large bodies have a place each with these limits, and small ones have 64 KiB.
const (
	inFlight = 4096
	maxBody  = bodyMemory / 4
	smallMax = 64 << 10
)

// What waits to be read is bounded in bytes, and in the end all of it is read.
func TestBodiesWaitWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies drawn
		b := start(t, Config{InFlight: inFlight, MaxBody: maxBody}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			size := smallMax
			if strings.Contains(r.URL, "large") {
				size *= 4
			}
			return pipeline.Response{Status: 200, Header: http.Header{"Content-Type": {"text/plain"}},
				Body: io.NopCloser(counted{strings.NewReader(strings.Repeat("x", size)), r.URL, &bodies})}, nil
		})
		open := make(chan struct{})
		b.cfg.Readers.Register(held{open: open})
		for i := range 20 {
			b.ask(t, request(fmt.Sprintf("http://large%d.example/", i), 1), request(fmt.Sprintf("http://small%d.example/", i), 1))
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
		if got := len(b.out.take()); got != 40 {
			t.Errorf("%d of 40 pages were read", got)
		}
		if len(b.places) != 0 {
			t.Errorf("%d places are taken by nobody", len(b.places))
		}
	})
}

// Large bodies that trickle hold up no small ones, and no page fails because it had to wait.
func TestTricklingBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{InFlight: inFlight, MaxBody: maxBody}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			resp, err := answer("x")
			if strings.Contains(r.URL, "large") {
				resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 2*smallMax)), endless{ctx}))
			}
			return resp, err
		})
		for i := range 4 {
			b.ask(t, request(fmt.Sprintf("http://large%d.example/", i), 1))
		}
		time.Sleep(time.Second)
		b.ask(t, request("http://large4.example/", 1), request("http://small.example/", 1))
		synctest.Wait()
		if got := b.out.take(); len(got) != 1 || got["http://small.example/"].Kind != flow.OutcomeRead {
			t.Errorf("got %+v, want the small page", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		got := b.out.take()
		for i := range 4 {
			if o := got[fmt.Sprintf("http://large%d.example/", i)]; o.Class != pipeline.FailTimeout {
				t.Errorf("got %+v", o)
			}
		}
		if len(got) != 4 || len(b.places) != 0 || !b.Idle() {
			t.Errorf("got %d outcomes and %d places taken, idle %v; one that had to wait says nothing", len(got), len(b.places), b.Idle())
		}
	})
}
