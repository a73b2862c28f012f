package fetch

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	httpsource "github.com/vokter/vokter/sources/http"
	"github.com/vokter/vokter/stages/fetch/readers/html"
	"github.com/vokter/vokter/stages/fetch/readers/plain"
	"github.com/vokter/vokter/test/txtest"
)

// outcomes is a Publisher that hands on what it gets.
type outcomes chan flow.Outcome

func (c outcomes) Publish(_ context.Context, ms ...flow.Message) error {
	for _, m := range ms {
		o, err := flow.OutcomeFrom(m)
		if err != nil {
			return err
		}
		c <- o
	}
	return nil
}

// TestOverHTTP runs the stage over a real client and server.
func TestOverHTTP(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("ETag", `"1"`)
			if r.Header.Get("If-None-Match") == `"1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Content-Type", "text/html; charset=koi8-r")
			io.WriteString(w, "<title>T</title><p>\xd0\xd2\xc9\xd7\xc5\xd4")
		case "/zeros":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			zeros := make([]byte, 1<<20)
			for range 1 << 10 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
			z.Close()
		case "/nested":
			io.WriteString(w, "<html>"+strings.Repeat("<div>", 100_000)+"end")
		case "/error":
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, "<p>an error page is no version")
		}
	}))
	defer srv.Close()
	got := make(outcomes, 1)
	stage := newStage(Config{
		Publisher: got, Readers: NewReaders(html.New(), plain.New()), Rate: 1000,
		Fetchers: []pipeline.Fetcher{httpsource.New(httpsource.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- stage.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	store := txtest.New()
	check := uint64(0)
	ask := func(req flow.Request) flow.Outcome {
		t.Helper()
		check++
		req.Incarnation, req.Check, req.Documents = "i", check, []flow.RequestDocument{{ID: "d"}}
		body, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Handle(ctx, stage, flow.Message{ID: "r", Type: flow.TypeRequest, Body: body}); err != nil {
			t.Fatal(err)
		}
		return <-got
	}

	first := ask(flow.Request{Page: srv.URL + "/page"})
	text, err := flow.UnpackText(first.Packed)
	if first.Kind != flow.OutcomeRead || err != nil || text != "T\nпривет\n" || first.Title != "T" || first.ETag != `"1"` {
		t.Errorf("page: got %+v, %q", first, text)
	}
	again := ask(flow.Request{Page: srv.URL + "/page", BodyHash: first.BodyHash})
	if again.Kind != flow.OutcomeUnchanged || again.Status != 200 || again.Against != first.BodyHash {
		t.Errorf("equal body: got %+v", again)
	}
	again = ask(flow.Request{Page: srv.URL + "/page", BodyHash: first.BodyHash, ETag: first.ETag})
	if again.Kind != flow.OutcomeUnchanged || again.Status != 304 || again.Against != first.BodyHash {
		t.Errorf("304: got %+v", again)
	}
	if o := ask(flow.Request{Page: srv.URL + "/zeros"}); o.Class != pipeline.FailTooLarge || o.Reason != "the page is larger than 10 MiB" {
		t.Errorf("zeros: got %+v", o)
	}
	if o := ask(flow.Request{Page: srv.URL + "/nested"}); o.Kind != flow.OutcomeRead {
		t.Errorf("nested: got %+v", o)
	}
	if o := ask(flow.Request{Page: srv.URL + "/error"}); o.Class != pipeline.FailStatus || o.Status != 500 {
		t.Errorf("error: got %+v", o)
	}
	if o := ask(flow.Request{Page: "http://127.0.0.2/"}); o.Class != pipeline.FailAddress || o.Reason != "127.0.0.2 is not a public address; permit it with allow: {fetch: [127.0.0.2/32]}" {
		t.Errorf("private: got %+v", o)
	}
}
