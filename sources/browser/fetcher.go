// Package browser fetches pages that need a browser: it opens them in Chromium and returns the
// document as its scripts left it.
//
// Each page gets a process of its own, with a new profile. It knows nothing of other pages, and ends
// with the check. All its connections pass a proxy in this process, which connects to public and
// allowed addresses only and bounds their number and their bytes.
package browser

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// minDocumentWords is how many words a page with scripts has at least that Auto takes for a document.
const minDocumentWords = 50

// Fetcher fetches pages over http and https: those of Config.Pages as they say, and all others with
// FetchRequest.Next. It is safe for concurrent use.
type Fetcher struct {
	config  Config
	pages   atomic.Pointer[map[string]Page]
	tabs    chan struct{}
	counts  statsCounter
	cleanUp sync.Once
}

var _ pipeline.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher, for the Fetchers of a vokter.Config. It starts no browser. Its error is that of Check, and
// names what is wrong with Pages.
func New(c Config) (*Fetcher, error) {
	errs := []error{c.Check()}
	for _, page := range slices.Sorted(maps.Keys(c.Pages)) {
		if err := c.Pages[page].Check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", page, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	c.Tabs = cmp.Or(c.Tabs, 2)
	c.Memory = cmp.Or(c.Memory, 1<<30)
	c.Timeout = cmp.Or(c.Timeout, 25*time.Second)
	if c.MaxBody <= 0 {
		c.MaxBody = 10 << 20
	}
	f := &Fetcher{config: c, tabs: make(chan struct{}, c.Tabs)}
	f.counts.Ended = make(map[Limit]int)
	f.SetPages(c.Pages)
	return f, nil
}

// SetPages replaces Config.Pages for the fetches that begin later.
func (f *Fetcher) SetPages(pages map[string]Page) {
	canonical := make(map[string]Page, len(pages))
	for raw, p := range pages {
		if page, err := pageurl.Canonical(raw); err == nil { // another one is never fetched
			canonical[page] = p
		}
	}
	f.pages.Store(&canonical)
}

// Config returns the Config of New with its defaults and with the Pages of now, by their canonical URLs. Pages must not
// be changed.
func (f *Fetcher) Config() Config {
	c := f.config
	c.Pages = *f.pages.Load()
	return c
}

// Schemes returns http and https.
func (f *Fetcher) Schemes() []string { return []string{"http", "https"} }

// browserAccess is Response.Access of pages that the browser opened.
const browserAccess = "browser"

// Fetch fetches r. If ctx is cancelled it returns the error of ctx. A page from the browser has no
// validators: each check opens it.
func (f *Fetcher) Fetch(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	if r.Next == nil {
		return pipeline.Response{}, errNoNext
	}
	page := (*f.pages.Load())[r.URL]
	if r.Page != "" && r.Page != r.URL { // robots.txt
		return r.Next.Fetch(ctx, r)
	}
	switch page.Mode {
	case Rendered:
		return f.render(ctx, r, page.Steps)
	case Auto:
		return f.fetchAuto(ctx, r)
	}
	return r.Next.Fetch(ctx, r)
}

// errNoNext says what a caller that is no Router forgot.
var errNoNext = errors.New("browser: FetchRequest.Next is nil; set it to the fetcher of the pages that need no browser")

// fetchAuto fetches r, and opens it in the browser where it is a shell.
func (f *Fetcher) fetchAuto(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	resp, err := r.Next.Fetch(ctx, r)
	if err != nil || resp.Status != http.StatusOK || !isHTML(resp.Header.Get("Content-Type")) {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return pipeline.Response{}, err
	}
	if isShell(body) {
		return f.render(ctx, r, nil)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// isHTML reports whether contentType is that of a page with elements.
func isHTML(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "text/html" || kind == "application/xhtml+xml")
}

// isShell reports whether page has scripts and hardly any words.
func isShell(page []byte) bool {
	scripts, words, hidden := false, 0, ""
	for t := html.NewTokenizer(bytes.NewReader(page)); ; {
		switch t.Next() {
		case html.ErrorToken:
			return scripts && words < minDocumentWords
		case html.StartTagToken:
			name, _ := t.TagName()
			switch string(name) {
			case "script", "style", "template", "noscript", "title":
				if hidden == "" {
					hidden = string(name)
				}
				scripts = scripts || string(name) == "script"
			}
		case html.EndTagToken:
			if name, _ := t.TagName(); string(name) == hidden {
				hidden = ""
			}
		case html.TextToken:
			if hidden == "" {
				words += len(strings.Fields(string(t.Text())))
			}
		}
		if words >= minDocumentWords {
			return false
		}
	}
}

// render opens r in the browser.
func (f *Fetcher) render(ctx context.Context, r pipeline.FetchRequest, steps []Step) (pipeline.Response, error) {
	path, err := f.config.readyPath()
	if err != nil {
		return pipeline.Response{}, unavailableError(err)
	}
	f.cleanUp.Do(removeAbandonedProfiles)
	if err := f.acquireTab(ctx); err != nil {
		return pipeline.Response{}, err
	}
	defer f.releaseTab()
	limited, cancel := context.WithTimeout(ctx, f.config.Timeout)
	defer cancel()
	doc, err := f.openPage(limited, path, r, steps)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return pipeline.Response{}, context.Canceled
		}
		f.counts.countLimit(err)
		return pipeline.Response{}, err
	}
	if !isHTML(doc.mime) {
		return r.Next.Fetch(ctx, r)
	}
	return pipeline.Response{
		URL: doc.url, Status: http.StatusOK, Access: browserAccess,
		Header: http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		Body:   io.NopCloser(strings.NewReader(doc.html)), Screenshot: doc.screenshot,
	}, nil
}

// acquireTab waits until a page may be opened. Then release must be called.
func (f *Fetcher) acquireTab(ctx context.Context) error {
	f.counts.update(func(s *Stats) { s.Waiting++ })
	defer f.counts.update(func(s *Stats) { s.Waiting-- })
	select {
	case f.tabs <- struct{}{}:
		f.counts.update(func(s *Stats) { s.Open++ })
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.Canceled) {
			return context.Canceled
		}
		f.counts.countLimit(errNoFreeTab)
		return errNoFreeTab
	}
}

// releaseTab gives back what acquireTab took.
func (f *Fetcher) releaseTab() {
	<-f.tabs
	f.counts.update(func(s *Stats) { s.Open-- })
}

// errNoFreeTab says that other pages took too long. It is not the fault of the page.
var errNoFreeTab = &pipeline.FetchError{Class: pipeline.FailBusy, Reason: "no tab of the browser became free in time; allow more with browser.tabs", Err: LimitTabs}

// unavailableError is the error of a check that the browser could not begin. It is not the fault of the
// page: like an answer of a busy host, it ends no subscription.
func unavailableError(err error) error {
	return &pipeline.FetchError{Class: pipeline.FailBusy, Reason: err.Error(), Err: err}
}

// timeoutError is the error of a page that took too long, or context.Canceled.
func timeoutError(ctx context.Context, reason string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return &pipeline.FetchError{Class: pipeline.FailTimeout, Reason: reason, Err: ctx.Err()}
}
