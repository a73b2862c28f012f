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
	builtin "github.com/vokter/vokter/stages/fetch/readers"
	"github.com/vokter/vokter/stages/fetch/readers/markdown"
)

// namedReader is a reader that names itself.
type namedReader struct {
	types []string
	name  string
}

func (r namedReader) ContentTypes() []string { return r.types }
func (r namedReader) Read(context.Context, pipeline.Raw, pipeline.View) (pipeline.Text, error) {
	return pipeline.Text{Content: r.name + "\n"}, nil
}

// TestLayersOfReaders: a configured reader stands over a built-in one, and one that is registered
// over both, whatever the configuration becomes.
func TestLayersOfReaders(t *testing.T) {
	r := NewReaders(namedReader{[]string{"a/a", "a/b", "a/c"}, "built in"})
	check := func(when, want string) {
		t.Helper()
		var got []string
		for _, mediaType := range []string{"a/a", "a/b", "a/c", "a/d"} {
			name := "none"
			if e, ok := r.forType(mediaType); ok {
				name = e.Reader.(endingReader).Reader.(namedReader).name
			}
			got = append(got, name)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: got %s, want %s", when, s, want)
		}
	}
	r.Replace(namedReader{[]string{"a/b", "a/d"}, "first"}, namedReader{[]string{"A/D"}, "second"})
	check("configured", "built in, first, built in, second")
	before := r.snapshot()
	r.Register(namedReader{[]string{"a/a"}, "registered"})
	r.Unregister("a/c")
	check("registered", "registered, first, none, second")
	r.Replace(namedReader{[]string{"a/a", "a/c"}, "third"})
	check("replaced", "registered, built in, none, none")
	r = before
	check("a check that began before", "built in, first, built in, second")
}

// TestReaderThatWasNotGiven: what would read a page that has no reader is said with its failed check.
func TestReaderThatWasNotGiven(t *testing.T) {
	r := NewReaders(builtin.Builtin()...)
	for mediaType, want := range map[string]string{
		"text/markdown": "markdown.New()", "text/x-markdown": "markdown.New()", "application/pdf": "pdftotext", "text/html": "", "text/x-log": "",
	} {
		_, err := r.find(mediaType)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", mediaType, err, want)
		}
	}
	r.Replace(markdown.New())
	if e, err := r.find("text/markdown"); err != nil || fmt.Sprint(e.ContentTypes()) != fmt.Sprint(markdown.New().ContentTypes()) {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestSlowReaderDelaysNoOther: the pages of a reader that hangs wait for each other alone.
func TestSlowReaderDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := startStage(t, Config{}, func(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			if strings.Contains(r.URL, "slow") {
				return newResponse("x", "Content-Type", "text/x-slow")
			}
			return newResponse("x")
		})
		b.cfg.Readers.Replace(slowOtherReader{})
		for i := range 100 {
			b.sendRequests(t, newRequest(fmt.Sprintf("http://slow%d.example/", i), 1))
		}
		synctest.Wait()
		b.sendRequests(t, newRequest("http://other.example/", 1))
		synctest.Wait()
		if got := b.out.takeOutcomes(); len(got) != 1 || got["http://other.example/"].Kind != flow.OutcomeRead {
			t.Errorf("got %+v, want the other page", got)
		}
	})
}

// slowOtherReader is a reader that ends with its context.
type slowOtherReader struct{ slowReader }

func (slowOtherReader) ContentTypes() []string { return []string{"text/x-slow"} }

// TestSlowPagesDelayEachOther has more pages that take all of their time than can be read at once. They
// end one after the other, while another page is read at once.
func TestSlowPagesDelayEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Stage{cfg: Config{Timeout: 30 * time.Second}}
		reader, err := NewReaders(bodyReader{}).find("text/plain")
		if err != nil {
			t.Fatal(err)
		}
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
		pages := 3 * cap(reader.semaphore)
		ended := make(chan flow.Outcome, pages)
		for range pages {
			go func() { ended <- s.readInTurn(t.Context(), flow.Outcome{}, reader, reading(time.Hour))[0] }()
		}
		time.Sleep(3*quickReadLimit + 1) // all have had a turn
		start := time.Now()
		if o := s.readInTurn(t.Context(), flow.Outcome{}, reader, reading(quickReadLimit/2)); o[0].Kind != flow.OutcomeRead || time.Since(start) != quickReadLimit/2 {
			t.Errorf("a page beside slow ones: got %+v after %v", o, time.Since(start))
		}
		if got := len(reader.slowSemaphore); got != cap(reader.slowSemaphore) {
			t.Errorf("%d slow pages are being read, want %d", got, cap(reader.slowSemaphore))
		}
		for range pages {
			if o := <-ended; o.Reason != "reading the page took longer than 30s" {
				t.Errorf("a slow page: got %+v", o)
			}
		}
		if o := s.readInTurn(t.Context(), flow.Outcome{}, reader, reading(5*quickReadLimit)); o[0].Kind != flow.OutcomeRead {
			t.Errorf("a page that takes longer than a quick one: got %+v", o)
		}
	})
}
