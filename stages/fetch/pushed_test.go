package fetch

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

const stockPage = "https://a.example/stock"

// handlePushed hands p to a stage and returns what goes on to its page.
func handlePushed(t *testing.T, p pipeline.Pushed) (pipeline.Pushed, error) {
	t.Helper()
	s := newStage(Config{Publisher: &outbox{}, Readers: NewReaders(bodyReader{}), Now: func() time.Time { return t0 }})
	store := txtest.New()
	if err := store.Handle(t.Context(), s, flow.PushedMessage(p)); err != nil {
		return pipeline.Pushed{}, err
	}
	out := store.Take()
	if len(out) != 1 || out[0].Topic != flow.TopicDocuments || out[0].Type != flow.TypePushed || out[0].Key != "https://a.example/stock" {
		t.Fatalf("got %+v, want one message to the page", out)
	}
	got, err := flow.TakenFrom(out[0])
	if err != nil {
		t.Fatal(err)
	}
	return got, nil
}

func TestAPushedPageGoesToItsPageInUTF8(t *testing.T) {
	for _, tc := range []struct{ contentType, body, want string }{
		{"text/plain", "café", "café"},
		{"text/plain; charset=iso-8859-1", "caf\xe9", "café"},
		{"Text/Plain; charset=UTF-8", "\xef\xbb\xbfcafé", "café"},
		{"text/plain", "\xff\xfea\x00b\x00", "ab"},
	} {
		p, err := handlePushed(t, pipeline.Pushed{URL: "HTTPS://A.example/stock", ContentType: tc.contentType, Body: []byte(tc.body), ID: "1"})
		if err != nil || string(p.Body) != tc.want || p.ID != "1" || !p.Time.Equal(t0) || p.URL != "HTTPS://A.example/stock" {
			t.Errorf("%s: got %+v with %q, %v, want %q", tc.contentType, p, p.Body, err, tc.want)
		}
	}
	at := t0.Add(-time.Hour)
	if p, err := handlePushed(t, pipeline.Pushed{URL: stockPage, Text: "x", Time: at, ID: "1"}); err != nil || !p.Time.Equal(at) {
		t.Errorf("got %+v, %v, want the time that it came with", p, err)
	}
}

func TestAPushedPageThatNobodyCanRead(t *testing.T) {
	for want, p := range map[string]pipeline.Pushed{
		"there is no reader for pages of type": {ContentType: "application/pdf", Body: []byte("%PDF")},
		"is not UTF-8":                         {ContentType: "text/plain", Body: []byte("caf\xe9")},
		"as its type":                          {ContentType: `text/plain; charset="utf8"`, Body: []byte("caf\xe9")},
		"in UTF-8; at most":                    {ContentType: "text/plain; charset=iso-8859-1", Body: bytes.Repeat([]byte("\xe9"), pipeline.MaxPushed/2+1)},
	} {
		p.URL, p.ID = stockPage, "1"
		_, err := handlePushed(t, p)
		if class, _ := failure.ClassOf(err); class != failure.ClassPermanent || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a permanent error with %q", err, want)
		}
	}
}

func TestReadPushed(t *testing.T) {
	s := newStage(Config{Publisher: &outbox{}, Readers: NewReaders(bodyReader{})})
	req := flow.Request{Page: stockPage, Incarnation: "i", Documents: []flow.RequestDocument{
		{ID: "whole"}, {ID: "some", View: pipeline.View{Ignore: []string{"[0-9]+"}}},
	}}
	p := pipeline.Pushed{URL: stockPage, ContentType: "text/plain", Body: []byte("seen at 10\n"), Time: t0}
	os := s.ReadPushed(t.Context(), req, p)
	if len(os) != 2 || os[0].Kind != flow.OutcomeRead || os[0].Document != "whole" || os[1].Document != "some" || os[1].Body == nil ||
		os[0].Check != 0 || os[0].BodyHash != "" || os[0].Parts != 2 || !os[0].Time.Equal(t0) || os[0].Bytes != int64(len(p.Body)) {
		t.Fatalf("got %+v", os)
	}
	// The next one differs in what one document ignores.
	for i := range os {
		req.Documents[i].TextHash = os[i].TextHash
	}
	p.Body = []byte("seen at 11\n")
	if os = s.ReadPushed(t.Context(), req, p); os[0].Kind != flow.OutcomeRead || os[1].Kind != flow.OutcomeUnchanged {
		t.Errorf("got %+v, want one text and one that stands", os)
	}
	for _, size := range []int{10, flow.MaxStoredBody, flow.MaxStoredBody + 1} { // the packed body is kept as it came, unless it is too large
		req.Packed = make([]byte, size)
		body := s.ReadPushed(t.Context(), req, p)[1].Body
		if kept := body != nil && slices.Equal(body.Packed, req.Packed); kept != (size <= flow.MaxStoredBody) {
			t.Errorf("%d bytes: kept %v", size, kept)
		}
	}
	p.ContentType = "application/pdf" // its reader went meanwhile
	if os = s.ReadPushed(t.Context(), req, p); len(os) != 1 || os[0].Class != pipeline.FailType {
		t.Errorf("got %+v, want that there is no reader", os)
	}
}

// slowReader reads until its context ends.
type slowReader struct{}

func (slowReader) ContentTypes() []string { return []string{"text/plain"} }
func (slowReader) Read(ctx context.Context, _ pipeline.Raw, _ pipeline.View) (pipeline.Text, error) {
	<-ctx.Done()
	return pipeline.Text{}, context.Cause(ctx)
}

func TestReadingAPushedPageIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(Config{Publisher: &outbox{}, Readers: NewReaders(slowReader{}), Timeout: time.Second})
		p := pipeline.Pushed{URL: stockPage, ContentType: "text/plain", Body: []byte("x"), Time: t0}
		if os := s.ReadPushed(t.Context(), newRequest(stockPage, 0), p); len(os) != 1 || os[0].Class != pipeline.FailUnreadable || !strings.Contains(os[0].Reason, "longer than 1s") {
			t.Errorf("got %+v, want that it took too long", os)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if os := s.ReadPushed(ctx, newRequest(stockPage, 0), p); os != nil {
			t.Errorf("got %+v of a process that ends", os)
		}
	})
}

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
