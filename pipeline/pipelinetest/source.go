package pipelinetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// Upstream is the system that a source under test reads from. It is empty at first.
type Upstream struct {
	// New makes the source, as a starting process does. Two sources never run at the same time.
	New func(t *testing.T) pipeline.Source
	// Send writes pages to the upstream, in this order: with URL, ContentType and Body, and
	// other fields if the upstream can carry them.
	Send func(t *testing.T, ps ...pipeline.Pushed)
}

// TestSource tests that a source keeps the contract of pipeline.Source. It emits all pages, in
// order for each URL and with unique IDs. It emits a page that was not acknowledged again, in
// the process and after a restart, with the same ID. It emits unusable pages, too. Run ends
// with its context. Each test gets an upstream of its own.
func TestSource(t *testing.T, upstream func(t *testing.T) Upstream) {
	for _, test := range []struct {
		name string
		test func(t *testing.T, u Upstream)
	}{
		{"HandsOverAll", testHandsOverAll},
		{"RefusedComesAgain", testRefusedComesAgain},
		{"RestartLosesNothing", testRestartLosesNothing},
		{"PoisonIsHandedOver", testPoisonIsHandedOver},
	} {
		t.Run(test.name, func(t *testing.T) { test.test(t, upstream(t)) })
	}
}

// sourceRun is a source that runs as in a Router, and the pages that were taken from it.
type sourceRun struct {
	t    *testing.T
	got  chan pipeline.Pushed
	stop func()
}

// startSource runs a source until stop is called. Pages that take accepts are put into got.
func (u Upstream) startSource(t *testing.T, take func(ctx context.Context, p pipeline.Pushed) error) *sourceRun {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &sourceRun{t: t, got: make(chan pipeline.Pushed, 1000)}
	emit := func(ctx context.Context, p pipeline.Pushed) error {
		if err := take(ctx, p); err != nil {
			return err
		}
		p.Body = bytes.Clone(p.Body)
		f.got <- p
		return nil
	}
	src := u.New(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if err := src.Run(ctx, emit); err == nil && ctx.Err() == nil {
				t.Error("Run returned nil though its context goes on")
				return
			}
		}
	}()
	f.stop = func() {
		cancel()
		receive(t, ended, "Run does not end with its context")
	}
	t.Cleanup(f.stop)
	return f
}

func acceptAll(context.Context, pipeline.Pushed) error { return nil }

// nextPage returns the next page that was taken.
func (f *sourceRun) nextPage() pipeline.Pushed {
	f.t.Helper()
	return receive(f.t, f.got, "a page")
}

// testPage is page n of a URL.
func testPage(url string, n int) pipeline.Pushed {
	return pipeline.Pushed{URL: "https://source.example/" + url, ContentType: "text/html; charset=utf-8", Body: fmt.Appendf(nil, "<p>%s %d", url, n)}
}

func testHandsOverAll(t *testing.T, u Upstream) {
	const pages, each = 3, 20
	f := u.startSource(t, acceptAll)
	var sent []pipeline.Pushed
	for n := range each {
		for url := range pages {
			sent = append(sent, testPage(fmt.Sprint(url), n))
		}
	}
	u.Send(t, sent[:7]...)
	first := f.nextPage()
	u.Send(t, sent[7:]...)
	ids, seen := map[string]bool{}, map[string]int{}
	for i := range sent {
		p := first
		if i > 0 {
			p = f.nextPage()
		}
		if p.ID == "" || ids[p.ID] {
			t.Fatalf("page %d has the ID %q, want one of its own", i, p.ID)
		}
		ids[p.ID] = true
		url := p.URL[len("https://source.example/"):]
		want := testPage(url, seen[url])
		if p.URL != want.URL || p.ContentType != want.ContentType || !bytes.Equal(p.Body, want.Body) {
			t.Fatalf("got %+v with %q, want %+v with %q", p, p.Body, want, want.Body)
		}
		seen[url]++
	}
}

func testRefusedComesAgain(t *testing.T, u Upstream) {
	var mu sync.Mutex
	refused := map[string]int{}
	f := u.startSource(t, func(_ context.Context, p pipeline.Pushed) error {
		mu.Lock()
		defer mu.Unlock()
		if refused[p.ID]++; refused[p.ID] < 3 {
			return errors.New("not now")
		}
		return nil
	})
	for n := range 3 {
		u.Send(t, testPage("a", n))
	}
	for n := range 3 {
		if p := f.nextPage(); !bytes.Equal(p.Body, testPage("a", n).Body) {
			t.Fatalf("got %q, want page %d", p.Body, n)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(refused) != 3 {
		t.Errorf("got the IDs %v, want three, each as often as it was refused", refused)
	}
}

func testRestartLosesNothing(t *testing.T, u Upstream) {
	const all, some = 20, 5
	var sent []pipeline.Pushed
	for n := range all {
		sent = append(sent, testPage("a", n))
	}
	u.Send(t, sent...)
	taken, held := map[string]string{}, make(chan struct{}, 1)
	n := 0
	f := u.startSource(t, func(ctx context.Context, p pipeline.Pushed) error {
		if n++; n <= some {
			return nil
		}
		signal(held)
		<-ctx.Done() // it is not acknowledged when the process ends
		return context.Cause(ctx)
	})
	for range some {
		p := f.nextPage()
		taken[string(p.Body)] = p.ID
	}
	receive(t, held, "the page that is held")
	f.stop()
	f = u.startSource(t, acceptAll)
	for len(taken) < all {
		p := f.nextPage()
		if id, again := taken[string(p.Body)]; again && id != p.ID {
			t.Errorf("%q came again under the ID %q, it was %q", p.Body, p.ID, id)
		}
		taken[string(p.Body)] = p.ID
	}
}

// testPoisonIsHandedOver has a page that is unusable, which is handed over once, and holds up
// nothing.
func testPoisonIsHandedOver(t *testing.T, u Upstream) {
	poisoned := make(chan pipeline.Pushed, 100)
	f := u.startSource(t, func(_ context.Context, p pipeline.Pushed) error {
		if p.URL != "" {
			return nil
		}
		p.Body = bytes.Clone(p.Body)
		poisoned <- p
		return fmt.Errorf("%w: it has no URL", pipeline.ErrUnusable)
	})
	poison, fine := pipeline.Pushed{Body: []byte("poison")}, testPage("a", 1)
	u.Send(t, poison, fine)
	if p := receive(t, poisoned, "the page without a URL"); p.ID == "" || !bytes.Equal(p.Body, poison.Body) {
		t.Errorf("got %+v, want it with an ID", p)
	}
	if p := f.nextPage(); p.URL != fine.URL {
		t.Errorf("got %+v, want the page behind it", p)
	}
	f.stop()
	if len(poisoned) > 0 {
		t.Error("the page without a URL was handed over again")
	}
}
