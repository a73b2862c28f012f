package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// site serves pages of 8 KB that never change, and counts its answers.
type site struct {
	server *http.Server
	addr   string
	body   []byte

	unchanged, all atomic.Int64
}

func newSite() (*site, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &site{addr: l.Addr().String()}
	var body strings.Builder
	body.WriteString("<!doctype html><html lang=en><title>A page</title>\n")
	for n := 0; body.Len() < 8000; n++ {
		fmt.Fprintf(&body, "<p>Paragraph %d of a page about the weather in the mountains, which never changes.</p>\n", n)
	}
	s.body = []byte(body.String())
	s.server = &http.Server{Handler: s}
	go s.server.Serve(l) //nolint:errcheck // It ends with Close.
	return s, nil
}

func (s *site) close()           { s.server.Close() }
func (s *site) url(n int) string { return fmt.Sprintf("http://%s/%d", s.addr, n) }

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.all.Add(1)
	w.Header().Set("ETag", `"1"`)
	if r.Header.Get("If-None-Match") == `"1"` {
		s.unchanged.Add(1)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(s.body) //nolint:errcheck // Who went away asks again.
}

// count returns how many requests came since the last count, and how many of them got 304.
func (s *site) count() (unchanged, all int) {
	return int(s.unchanged.Swap(0)), int(s.all.Swap(0))
}
