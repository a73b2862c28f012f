package fetch

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
)

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
