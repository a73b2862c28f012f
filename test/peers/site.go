package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
)

// site serves pages that do not change, and counts the answers.
type site struct {
	*httptest.Server
	body    string
	answers atomic.Int64
	// full counts the answers with a body.
	full atomic.Int64
}

func newSite() *site {
	var b strings.Builder
	b.WriteString("<!doctype html><html lang=en><title>A page</title><body>\n")
	for i := 0; b.Len() < 8000; i++ {
		fmt.Fprintf(&b, "<p>Paragraph %d says that nothing is new today.</p>\n", i)
	}
	s := &site{body: b.String()}
	s.Server = httptest.NewServer(s)
	return s
}

// page returns the URL of the page with a number.
func (s *site) page(n int) string { return fmt.Sprintf("%s/%d", s.URL, n) }

func (s *site) reset() {
	s.answers.Store(0)
	s.full.Store(0)
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.answers.Add(1)
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") == `"1"` {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.full.Add(1)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, s.body)
}
