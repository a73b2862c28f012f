package pipelinetest

import (
	"context"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// FetcherSite is a Fetcher under test, and what it fetches. Fields whose case the Fetcher does not have
// are empty, except Put and MaxBody.
type FetcherSite struct {
	Fetcher pipeline.Fetcher
	// Put makes a page with the given body, or gives the page another body. It returns the URL, which is
	// always the same.
	Put func(t *testing.T, body string) (url string)
	// MaxBody is the size of the largest body that the Fetcher returns, in bytes.
	MaxBody int
	// Missing is the URL of a page that does not exist.
	Missing string
	// Redirect is the URL of a page that redirects to another one.
	Redirect string
	// Hang is the URL of a page that is answered only after the request was given up.
	Hang string
}

// TestFetcher tests that a fetcher keeps the contract of pipeline.Fetcher. It returns the page, and says
// with its validators that it did not change. Failures have a class and a reason, bodies have a bound,
// a redirect is asked for, Fetch ends with its context, and may be called by several goroutines. Each
// test gets a site of its own.
func TestFetcher(t *testing.T, site func(t *testing.T) FetcherSite) {
	for _, test := range []struct {
		name string
		test func(t *testing.T, s FetcherSite)
	}{
		{"Reads", testFetcherReads},
		{"Validators", testFetcherValidators},
		{"Missing", testFetcherMissing},
		{"Bound", testFetcherBound},
		{"Redirect", testFetcherRedirect},
		{"Cancel", testFetcherCancel},
		{"Concurrent", testFetcherConcurrent},
	} {
		t.Run(test.name, func(t *testing.T) { test.test(t, site(t)) })
	}
}

// fetch returns a page and its body.
func (s FetcherSite) fetch(t *testing.T, r pipeline.FetchRequest) (pipeline.Response, string) {
	t.Helper()
	resp, err := s.Fetcher.Fetch(t.Context(), r)
	if err != nil {
		t.Fatalf("Fetch: %v", err)
	}
	if resp.Body == nil {
		t.Fatal("the body is nil")
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("reading the body: %v", err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Errorf("closing the body: %v", err)
	}
	return resp, string(b)
}

func testFetcherReads(t *testing.T, s FetcherSite) {
	page := s.Put(t, "in stock")
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	if schemes := s.Fetcher.Schemes(); !slices.Contains(schemes, u.Scheme) || slices.ContainsFunc(schemes, func(s string) bool { return s != strings.ToLower(s) }) {
		t.Errorf("the schemes are %q; want them in lower case, %s among them", schemes, u.Scheme)
	}
	resp, body := s.fetch(t, pipeline.FetchRequest{URL: page})
	if resp.Status != 200 || resp.URL != page || body != "in stock" {
		t.Errorf("got status %d, URL %s, body %q; want 200, %s and the page", resp.Status, resp.URL, body, page)
	}
}

func testFetcherValidators(t *testing.T, s FetcherSite) {
	page := s.Put(t, "in stock")
	first, _ := s.fetch(t, pipeline.FetchRequest{URL: page})
	again := pipeline.FetchRequest{
		URL: page, ETag: first.Header.Get("ETag"), LastModified: first.Header.Get("Last-Modified"), Access: first.Access,
	}
	resp, body := s.fetch(t, again)
	switch {
	case again.ETag != "" && resp.Status != 304:
		t.Errorf("got status %d for the ETag of the page, want 304", resp.Status)
	case resp.Status == 304 && body != "":
		t.Errorf("a page that is not modified has the body %q", body)
	}
	s.Put(t, "sold out today")
	if resp, body := s.fetch(t, again); resp.Status != 200 || body != "sold out today" {
		t.Errorf("after a change: got status %d, body %q; want 200 and the new page", resp.Status, body)
	}
}

// wantFetchError fails t unless err is a FetchError with a class and a reason.
func wantFetchError(t *testing.T, err error) *pipeline.FetchError {
	t.Helper()
	e, ok := errors.AsType[*pipeline.FetchError](err)
	if !ok || e.Class == "" || e.Reason == "" {
		t.Fatalf("got the error %v, want a FetchError with a class and a reason", err)
	}
	return e
}

func testFetcherMissing(t *testing.T, s FetcherSite) {
	if s.Missing == "" {
		t.Skip("no page is missing")
	}
	resp, err := s.Fetcher.Fetch(t.Context(), pipeline.FetchRequest{URL: s.Missing})
	if err == nil {
		_ = resp.Body.Close()
	}
	_ = wantFetchError(t, err)
}

func testFetcherBound(t *testing.T, s FetcherSite) {
	page := s.Put(t, strings.Repeat("x", s.MaxBody))
	if _, body := s.fetch(t, pipeline.FetchRequest{URL: page}); len(body) != s.MaxBody {
		t.Errorf("got %d bytes, want %d", len(body), s.MaxBody)
	}
	s.Put(t, strings.Repeat("x", s.MaxBody+1))
	resp, err := s.Fetcher.Fetch(t.Context(), pipeline.FetchRequest{URL: page})
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	if e := wantFetchError(t, err); e.Class != pipeline.FailTooLarge {
		t.Errorf("one byte too many: got class %s, want %s", e.Class, pipeline.FailTooLarge)
	}
}

func testFetcherRedirect(t *testing.T, s FetcherSite) {
	if s.Redirect == "" {
		t.Skip("no page redirects")
	}
	refused := errors.New("not there")
	asked := ""
	resp, err := s.Fetcher.Fetch(t.Context(), pipeline.FetchRequest{URL: s.Redirect, Redirect: func(_ context.Context, to string) error {
		asked = to
		return refused
	}})
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, refused) || asked == "" || asked == s.Redirect {
		t.Errorf("asked for %q, got the error %v; want the error of the redirect", asked, err)
	}
	if resp, _ := s.fetch(t, pipeline.FetchRequest{URL: s.Redirect}); resp.URL != asked {
		t.Errorf("the URL after the redirect is %s, want %s", resp.URL, asked)
	}
}

func testFetcherCancel(t *testing.T, s FetcherSite) {
	if s.Hang == "" {
		t.Skip("no page hangs")
	}
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(10*time.Millisecond, cancel)
	defer timer.Stop()
	resp, err := s.Fetcher.Fetch(ctx, pipeline.FetchRequest{URL: s.Hang})
	if err == nil {
		_ = resp.Body.Close()
		t.Error("got a page, want an error when the context ends")
	}
}

func testFetcherConcurrent(t *testing.T, s FetcherSite) {
	page := s.Put(t, "in stock")
	var wait sync.WaitGroup
	defer wait.Wait()
	for range 20 {
		wait.Go(func() {
			resp, err := s.Fetcher.Fetch(t.Context(), pipeline.FetchRequest{URL: page})
			if err != nil {
				t.Errorf("Fetch: %v", err)
				return
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "in stock" {
				t.Errorf("got %q, %v", b, err)
			}
		})
	}
}
