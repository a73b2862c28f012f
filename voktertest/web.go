package voktertest

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// Web is a web whose pages a test sets. It takes the place of the built-in fetcher of http and https, so that no
// connection is made. A page that was never set has the status 404. The zero Web has no pages. It is safe for
// concurrent use.
type Web struct {
	mu    sync.Mutex
	pages map[string]page
	reads map[string]int
}

// page is what a URL answers.
type page struct {
	status            int
	contentType, body string
	err               error
}

var _ pipeline.Fetcher = (*Web)(nil)

// Set makes url answer with the status 200 and an HTML page. The body may be a part of a page, such as
// "<p>out of stock</p>".
func (w *Web) Set(url, html string) {
	w.SetResponse(url, http.StatusOK, "text/html; charset=utf-8", html)
}

// SetResponse makes url answer with a status, a content type and a body, such as 200, "application/json" and "[]". A
// check of a page with a status other than 200 fails.
func (w *Web) SetResponse(url string, status int, contentType, body string) {
	w.set(url, page{status: status, contentType: contentType, body: body})
}

// Fail makes the checks of url fail with err until its page is set again. A *pipeline.FetchError names the class of
// the failure; any other error is one of the network.
func (w *Web) Fail(url string, err error) { w.set(url, page{err: err}) }

func (w *Web) set(url string, p page) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pages == nil {
		w.pages = make(map[string]page)
	}
	w.pages[canonical(url)] = p
}

// Fetches returns how often url was fetched.
func (w *Web) Fetches(url string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads[canonical(url)]
}

// canonical returns the spelling of url that a Router fetches. It panics where no Router would fetch it.
func canonical(url string) string {
	c, err := pageurl.Canonical(url)
	if err != nil {
		panic(fmt.Sprintf("voktertest: %q: %v", url, err))
	}
	return c
}

// Schemes returns http and https.
func (w *Web) Schemes() []string { return []string{"http", "https"} }

// maxBody is the size of the largest page, in bytes, as that of the built-in fetcher.
const maxBody = 10 << 20

// Fetch answers with the page of r.URL, or with 304 where it is the one that r knows by its ETag.
func (w *Web) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	w.mu.Lock()
	if w.reads == nil {
		w.reads = make(map[string]int)
	}
	w.reads[r.URL]++
	p, ok := w.pages[r.URL]
	w.mu.Unlock()
	if !ok {
		p = page{status: http.StatusNotFound, contentType: "text/plain", body: "no page was set here"}
	}
	switch {
	case p.err != nil:
		return pipeline.Response{}, p.err
	case p.status != http.StatusOK:
		return pipeline.Response{}, &pipeline.FetchError{
			Class: pipeline.FailStatus, Status: p.status, Reason: fmt.Sprintf("HTTP status %d %s", p.status, http.StatusText(p.status)),
		}
	case int64(len(p.body)) > max(maxBody, r.MaxBody):
		return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page is larger than 10 MiB"}
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q", p.contentType, p.body)
	etag := fmt.Sprintf(`"%x"`, h.Sum64())
	resp := pipeline.Response{
		URL: r.URL, Status: p.status,
		Header: http.Header{"Content-Type": {p.contentType}, "Etag": {etag}},
		Body:   io.NopCloser(strings.NewReader(p.body)),
	}
	if r.ETag == etag {
		resp.Status, resp.Body = http.StatusNotModified, http.NoBody
	}
	return resp, nil
}
