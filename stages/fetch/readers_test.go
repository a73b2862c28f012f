package fetch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// tagged is a reader that names itself.
type tagged struct {
	types []string
	name  string
}

func (r tagged) ContentTypes() []string { return r.types }
func (r tagged) Read(context.Context, pipeline.Raw, pipeline.View) (pipeline.Text, error) {
	return pipeline.Text{Content: r.name + "\n"}, nil
}

// TestLayersOfReaders: a configured reader stands over a built-in one, and one that is registered
// over both, whatever the configuration becomes.
func TestLayersOfReaders(t *testing.T) {
	r := NewReaders(tagged{[]string{"a/a", "a/b", "a/c"}, "built in"})
	check := func(when, want string) {
		t.Helper()
		var got []string
		for _, mediaType := range []string{"a/a", "a/b", "a/c", "a/d"} {
			name := "none"
			if e, ok := r.forType(mediaType); ok {
				name = e.Reader.(tagged).name
			}
			got = append(got, name)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: got %s, want %s", when, s, want)
		}
	}
	r.Replace(tagged{[]string{"a/b", "a/d"}, "first"}, tagged{[]string{"A/D"}, "second"})
	check("configured", "built in, first, built in, second")
	before := r.snapshot()
	r.Register(tagged{[]string{"a/a"}, "registered"})
	r.Unregister("a/c")
	check("registered", "registered, first, none, second")
	r.Replace(tagged{[]string{"a/a", "a/c"}, "third"})
	check("replaced", "registered, built in, none, none")
	r = before
	check("a check that began before", "built in, first, built in, second")
}

// TestSlowReaderDelaysNoOther: the pages of a reader that hangs wait for each other alone.
func TestSlowReaderDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			if strings.Contains(r.URL, "slow") {
				return answer("x", "Content-Type", "text/x-slow")
			}
			return answer("x")
		})
		b.cfg.Readers.Replace(sleepy{})
		for i := range 100 {
			b.ask(t, request(fmt.Sprintf("http://slow%d.example/", i), 1))
		}
		synctest.Wait()
		b.ask(t, request("http://other.example/", 1))
		synctest.Wait()
		if got := b.out.take(); len(got) != 1 || got["http://other.example/"].Kind != flow.OutcomeRead {
			t.Errorf("got %+v, want the other page", got)
		}
	})
}

// sleepy is a reader that ends with its context.
type sleepy struct{ slow }

func (sleepy) ContentTypes() []string { return []string{"text/x-slow"} }

// TestSlowPagesDelayEachOther has more pages that take all of their time than can be read at once. They
// end one after the other, while another page is read at once.
func TestSlowPagesDelayEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Stage{cfg: Config{Timeout: 30 * time.Second}}
		reader, err := NewReaders(lines{}).find("text/plain")
		if err != nil {
			t.Fatal(err)
		}
		failed := func(err error) flow.Outcome { return flow.Outcome{Kind: flow.OutcomeFailed, Reason: err.Error()} }
		// reading returns a function that reads for so long, unless it is ended.
		reading := func(d time.Duration) func(context.Context) []flow.Outcome {
			return func(ctx context.Context) []flow.Outcome {
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(d):
					return []flow.Outcome{{Kind: flow.OutcomeRead}}
				}
			}
		}
		pages := 3 * cap(reader.turns)
		ended := make(chan flow.Outcome, pages)
		for range pages {
			go func() { ended <- s.inTurn(t.Context(), reader, reading(time.Hour), failed)[0] }()
		}
		time.Sleep(3*quick + 1) // all have had a turn
		start := time.Now()
		if o := s.inTurn(t.Context(), reader, reading(quick/2), failed); o[0].Kind != flow.OutcomeRead || time.Since(start) != quick/2 {
			t.Errorf("a page beside slow ones: got %+v after %v", o, time.Since(start))
		}
		if got := len(reader.slow); got != cap(reader.slow) {
			t.Errorf("%d slow pages are being read, want %d", got, cap(reader.slow))
		}
		for range pages {
			if o := <-ended; o.Reason != "reading the page took longer than 30s" {
				t.Errorf("a slow page: got %+v", o)
			}
		}
		if o := s.inTurn(t.Context(), reader, reading(5*quick), failed); o[0].Kind != flow.OutcomeRead {
			t.Errorf("a page that takes longer than a quick one: got %+v", o)
		}
	})
}
