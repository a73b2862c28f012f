package httpsource

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
)

// TestBombs fetches bodies that are far larger than the bound, or never end.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 1<<20)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/zeros": // 1 GB of zeros, gzipped as it goes
			w.Header().Set("Content-Encoding", "gzip")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			for range 1 << 10 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
			z.Close()
		case "/endless":
			for {
				if _, err := w.Write(zeros); err != nil {
					return
				}
			}
		case "/brotli", "/zstd": // 1 GB of zeros
			enc, z := "br", io.WriteCloser(brotli.NewWriterLevel(w, 1))
			if r.URL.Path == "/zstd" {
				enc = "zstd"
				z, _ = zstd.NewWriter(w)
			}
			w.Header().Set("Content-Encoding", enc)
			for range 1 << 10 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
			z.Close()
		case "/frames": // no end of zstd frames of 1 KiB, each of them skipped
			w.Header().Set("Content-Encoding", "zstd")
			frames := bytes.Repeat([]byte("\x50\x2a\x4d\x18\x00\x04\x00\x00"+strings.Repeat("x", 1<<10)), 100)
			for {
				if _, err := w.Write(frames); err != nil {
					return
				}
			}
		case "/members": // no end of gzip members, each of them empty
			w.Header().Set("Content-Encoding", "gzip")
			members := bytes.Repeat(gzipBytes(nil), 1000)
			for {
				if _, err := w.Write(members); err != nil {
					return
				}
			}
		}
	})
	f := New(Config{Allow: loopback})
	defer f.Close()
	for _, path := range []string{"/zeros", "/endless", "/members", "/brotli", "/zstd", "/frames"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		resp, err := f.Fetch(t.Context(), pipeline.FetchRequest{URL: srv.URL + path})
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		runtime.ReadMemStats(&after)
		e, _ := errors.AsType[*pipeline.FetchError](err)
		if e == nil || e.Class != pipeline.FailTooLarge || e.Reason != "the page is larger than 10 MiB" {
			t.Errorf("%s: got %v, want too_large", path, err)
		}
		if n > DefaultMaxBody {
			t.Errorf("%s: %d bytes were handed out", path, n)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 { // both ends of the connection
			t.Errorf("%s: %d bytes were allocated", path, grown)
		}
	}
}

func TestBodyBound(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		text := strings.Repeat("x", len(r.URL.Path)-1)
		if r.URL.RawQuery == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(gzipBytes([]byte(text)))
			return
		}
		w.(http.Flusher).Flush() // no Content-Length
		io.WriteString(w, text)
	})
	f := New(Config{Allow: loopback, MaxBody: 100})
	for _, query := range []string{"", "?gzip"} {
		for n, ok := range map[int]bool{1: true, 99: true, 100: true, 101: false, 200: false} {
			_, b, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/" + strings.Repeat("p", n) + query})
			if ok && (err != nil || len(b) != n) {
				t.Errorf("%d bytes%s: got %d, %v", n, query, len(b), err)
			}
			if e, _ := errors.AsType[*pipeline.FetchError](err); !ok && (e == nil || e.Class != pipeline.FailTooLarge) {
				t.Errorf("%d bytes%s: got %v, want too_large", n, query, err)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 9, 1, 10, 0, 0, 500, time.UTC)
	for _, tc := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"", 0, false},
		{"0", 0, true},
		{"120", 2 * time.Minute, true},
		{" 120 ", 2 * time.Minute, true},
		{"86401", outbound.MaxRetryAfter, true},
		{"9223372036854775807", outbound.MaxRetryAfter, true},
		{"9223372036854775808", 0, false},
		{"-1", 0, false},
		{"+5", 0, false},
		{"1e3", 0, false},
		{"1.5", 0, false},
		{"soon", 0, false},
		{"Tue, 01 Sep 2026 10:00:10 GMT", 10 * time.Second, true},
		{"Tuesday, 01-Sep-26 10:00:10 GMT", 10 * time.Second, true},
		{"Tue Sep  1 10:00:10 2026", 10 * time.Second, true},
		{"Tue, 01 Sep 2026 09:00:00 GMT", 0, true},
		{"Fri, 01 Jan 2100 00:00:00 GMT", outbound.MaxRetryAfter, true},
		{"Fri, 01 Jan 9999 00:00:00 GMT", outbound.MaxRetryAfter, true},
		{"2026-09-01T10:00:10Z", 0, false},
	} {
		got, ok := retryAfter(tc.value, now)
		if got != tc.want || ok != tc.ok {
			t.Errorf("%q: got %v, %v, want %v, %v", tc.value, got, ok, tc.want, tc.ok)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Tue, 01 Sep 2026 10:00:10 GMT")
	now := time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		if d, ok := retryAfter(value, now); d < 0 || d > outbound.MaxRetryAfter || (!ok && d != 0) {
			t.Errorf("%q: got %v, %v", value, d, ok)
		}
	})
}

// compress returns b in a content coding.
func compress(t *testing.T, enc string, b []byte) []byte {
	t.Helper()
	if enc == "" {
		return b
	}
	var buf bytes.Buffer
	z := map[string]func() io.WriteCloser{
		"gzip":   func() io.WriteCloser { return gzip.NewWriter(&buf) },
		"x-gzip": func() io.WriteCloser { return gzip.NewWriter(&buf) },
		"br":     func() io.WriteCloser { return brotli.NewWriter(&buf) },
		"zstd": func() io.WriteCloser {
			w, err := zstd.NewWriter(&buf)
			if err != nil {
				t.Fatal(err)
			}
			return w
		},
	}[enc]()
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestCodings reads pages whose header names several codings, one that does not exist, or none beside one.
func TestCodings(t *testing.T) {
	page := []byte("<p>vokter watches</p>")
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header()["Content-Encoding"] = q["name"]
		body := page
		for enc := range strings.SplitSeq(q.Get("in"), ",") {
			body = compress(t, enc, body)
		}
		w.Write(body)
	})
	f := New(Config{Allow: loopback})
	defer f.Close()
	for query, ok := range map[string]bool{
		"name=none": true, "name=UTF-8": true, "name=aws-chunked": true, "name=identity": true, "name=Identity,none": true, "name=": true,
		"name=binary": true, "name=text/html": true, "name=gzip,aws-chunked&in=gzip": true, "name=none&name=br&in=br": true,
		"in=gzip": true, "name=none&in=gzip": true, // compressed all the same
		"name=deflate": false, "name=compress": false, "name=gzip": false, "name=xz": false,
		"name=gzip,gzip&in=gzip,gzip": true, "name=gzip&name=br&in=gzip,br": true, "name=zstd,gzip&in=zstd,gzip": true,
		"name=gzip,gzip&in=gzip": true, // said twice, done once
		"name=br,br&in=br":       false, "name=gzip,deflate&in=gzip": false, "name=gzip,br&in=br,gzip": false,
		"name=rot13&in=br": false, "name=none&in=zstd": false, // text in a coding that nobody knows
		"name=gzip,gzip,gzip,gzip,gzip&in=gzip,gzip,gzip,gzip,gzip": false,
	} {
		_, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/?" + query})
		e, _ := errors.AsType[*pipeline.FetchError](err)
		if ok && (err != nil || !bytes.Equal(body, page)) || !ok && (e == nil || e.Class != pipeline.FailUnreadable) {
			t.Errorf("%s: got %q, %v", query, body, err)
		}
	}
}

// TestBehindStream reads compressed pages with something behind them.
func TestBehindStream(t *testing.T) {
	page := []byte(strings.Repeat("<p>vokter watches</p>\n", 5000))
	bodies := map[string][]byte{"/gzip members": append(gzipBytes(page[:500]), gzipBytes(page[500:])...)}
	for _, enc := range []string{"gzip", "br", "zstd"} {
		for what, behind := range map[string]string{"zeros": strings.Repeat("\x00", 1000), "text": "<!-- cached -->", "a byte": "\x1f"} {
			if enc != "zstd" || what != "a byte" { // it looks like a stream that was cut off
				bodies["/"+enc+" "+what] = append(compress(t, enc, page), behind...)
			}
		}
	}
	cut := gzipBytes(page)
	bodies["/gzip cut"] = append(gzipBytes(page), cut[:len(cut)/2]...)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		enc, _, _ := strings.Cut(r.URL.Path[1:], " ")
		w.Header().Set("Content-Encoding", enc)
		w.Write(bodies[r.URL.Path])
	})
	f := New(Config{Allow: loopback})
	defer f.Close()
	for path := range bodies {
		_, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + path})
		if e, _ := errors.AsType[*pipeline.FetchError](err); path == "/gzip cut" {
			if e == nil || e.Class != pipeline.FailNetwork {
				t.Errorf("%s: got %d bytes, %v", path, len(body), err)
			}
		} else if err != nil || !bytes.Equal(body, page) {
			t.Errorf("%s: got %d bytes, %v", path, len(body), err)
		}
	}
}

// TestEncodings: a page comes through each content coding, also after one that was damaged, cut
// off, or empty.
func TestEncodings(t *testing.T) {
	page := []byte(strings.Repeat("<p>vokter watches</p>\n", 5000))
	var asked string
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Accept-Encoding")
		enc, kind, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		w.Header().Set("Content-Encoding", enc)
		body := compress(t, enc, page)
		switch kind {
		case "half":
			body = body[:len(body)/2]
		case "damaged":
			body = []byte("<p>this is not compressed at all</p>")
		case "empty":
			body = nil
		}
		w.Write(body)
	})
	f := New(Config{Allow: loopback})
	defer f.Close()
	for _, enc := range []string{"gzip", "x-gzip", "br", "zstd"} {
		for kind, class := range map[string]string{"half": pipeline.FailNetwork, "damaged": pipeline.FailUnreadable, "empty": "", "whole": ""} {
			_, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/" + enc + "/" + kind})
			e, _ := errors.AsType[*pipeline.FetchError](err)
			if class == "" && err != nil || class != "" && (e == nil || e.Class != class) {
				t.Errorf("%s, %s: got %v, want class %q", enc, kind, err, class)
			}
			if kind == "whole" && !bytes.Equal(body, page) || kind == "empty" && len(body) > 0 {
				t.Errorf("%s, %s: got %d bytes", enc, kind, len(body))
			}
		}
	}
	if asked != "gzip, zstd, br" {
		t.Errorf("asked for %q", asked)
	}
}
