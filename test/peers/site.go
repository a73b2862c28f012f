package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
)

// site serves pages of 8 KB, and counts the answers.
type site struct {
	*httptest.Server
	before, after string // the parts of a body in front of the version number and behind it
	// validators says that a page has an ETag, so that a check of a version that is known is answered by
	// 304.
	validators bool
	// changed is how many of 100 answers are a new version of their page.
	changed int64
	pages   []servedPage // by number
	answers atomic.Int64
	// settled counts the pages that were asked for twice.
	settled atomic.Int64
	// full counts the answers with a body.
	full atomic.Int64
}

// servedPage is the version of a page, and how many answers it gave.
type servedPage struct{ version, answers atomic.Int64 }

func newSite(validators bool, changed int64) *site {
	var b strings.Builder
	for i := 0; b.Len() < 7900; i++ {
		fmt.Fprintf(&b, "<p>Paragraph %d says that nothing is new today.</p>\n", i)
	}
	s := &site{
		before: "<!doctype html><html lang=en><title>A page</title><body>\n<p>This is version ", after: " of the page.</p>\n" + b.String(),
		validators: validators, changed: changed,
	}
	s.Server = httptest.NewServer(s)
	return s
}

// page returns the URL of the page with a number.
func (s *site) page(n int) string { return fmt.Sprintf("%s/%d", s.URL, n) }

// reset makes the site serve a number of pages, all of them in their first version.
func (s *site) reset(pages int) {
	s.pages = make([]servedPage, pages)
	s.answers.Store(0)
	s.settled.Store(0)
	s.full.Store(0)
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Path[1:])
	if err != nil || n < 0 || n >= len(s.pages) {
		http.NotFound(w, r) // for example robots.txt
		return
	}
	if answer := s.answers.Add(1); answer*s.changed/100 > (answer-1)*s.changed/100 {
		s.pages[n].version.Add(1)
	}
	if s.pages[n].answers.Add(1) == 2 {
		s.settled.Add(1)
	}
	version := s.pages[n].version.Load()
	if s.validators {
		tag := fmt.Sprintf(`"%d"`, version)
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	s.full.Add(1)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, s.before, version, s.after)
}
