package vokter

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// timetable is a page whose text is another one after an hour.
type timetable struct{ began time.Time }

func (timetable) Schemes() []string { return []string{"https"} }

func (p timetable) Fetch(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
	body := "<p>The train leaves at nine.</p>"
	if time.Since(p.began) > time.Hour {
		body = "<p>The train leaves at ten.</p>"
	}
	return pipeline.Response{
		URL: "https://example.com/", Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		cfg := watchConfig("https://example.com/", func(n pipeline.Notification) { got = append(got, n.Diffs[0].Text) }, []string{"ten"})
		cfg.Fetchers = []pipeline.Fetcher{timetable{time.Now()}}
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		if err := r.Run(ctx); err != nil || len(got) != 1 || got[0] != "ten" {
			t.Errorf("got %v, %v, want one call with the new word", got, err)
		}
	})
	if err := Watch(t.Context(), "example.com", nil); err == nil || !strings.Contains(err.Error(), "url") {
		t.Errorf("got %v, want an error about the URL", err)
	}
}
