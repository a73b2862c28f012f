package httpsource

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/test/expiring"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

// fetch gets url and reads its body.
func fetch(ctx context.Context, f *Fetcher, r pipeline.FetchRequest) (pipeline.Response, []byte, error) {
	resp, err := f.Fetch(ctx, r)
	if err != nil {
		return resp, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, b, err
}

func gzipBytes(b []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	z.Write(b)
	z.Close()
	return buf.Bytes()
}

func TestFetch(t *testing.T) {
	var got http.Header
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		switch r.URL.Path {
		case "/from":
			http.Redirect(w, r, "/page", http.StatusFound)
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(gzipBytes([]byte("hello")))
		case "/304":
			w.Header().Set("ETag", `"b"`)
			w.WriteHeader(http.StatusNotModified)
		case "/void":
			w.Header().Set("Content-Encoding", "gzip")
		}
	})
	f := New(Config{Allow: loopback, Version: "1.2.3"})
	defer f.Close()

	resp, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/from"})
	if err != nil || string(body) != "hello" || resp.Status != 200 || resp.URL != srv.URL+"/page" || resp.Header.Get("Content-Type") != "text/html" {
		t.Errorf("got %+v, %q, %v", resp, body, err)
	}
	if ua := got.Get("User-Agent"); ua != "vokter/1.2.3 (+https://github.com/vokter/vokter)" {
		t.Errorf("user agent: got %q", ua)
	}
	if got.Get("If-None-Match")+got.Get("If-Modified-Since") != "" {
		t.Errorf("validators were invented: %v", got)
	}

	resp, body, err = fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/304", ETag: `W/"a"`, LastModified: "Tue, 01 Sep 2026 10:00:00 GMT"})
	if err != nil || resp.Status != 304 || len(body) != 0 || resp.Header.Get("ETag") != `"b"` {
		t.Errorf("conditional: got %+v, %q, %v", resp, body, err)
	}
	if got.Get("If-None-Match") != `W/"a"` || got.Get("If-Modified-Since") != "Tue, 01 Sep 2026 10:00:00 GMT" {
		t.Errorf("validators: got %v", got)
	}

	if _, body, err = fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/void"}); err != nil || len(body) != 0 {
		t.Errorf("nothing gzipped: got %q, %v", body, err)
	}

	named := New(Config{Allow: loopback, UserAgent: "Example/1"})
	if _, _, err := fetch(t.Context(), named, pipeline.FetchRequest{URL: srv.URL + "/page"}); err != nil || got.Get("User-Agent") != "Example/1" {
		t.Errorf("user agent: got %q, %v", got.Get("User-Agent"), err)
	}
}

func TestFailures(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/404":
			w.WriteHeader(404)
		case "/204":
			w.WriteHeader(204)
		case "/304":
			w.WriteHeader(304)
		case "/500":
			w.WriteHeader(500)
		case "/503":
			w.WriteHeader(503)
		case "/503-after":
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(503)
		case "/429":
			w.WriteHeader(429)
		case "/429-after":
			w.Header().Set("Retry-After", "9999999")
			w.WriteHeader(429)
		case "/loop":
			http.Redirect(w, r, "/loop?token=hunter2", http.StatusFound)
		case "/file":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(302)
		case "/nowhere":
			w.Header().Set("Location", "http://user:hunter2@[::bad")
			w.WriteHeader(302)
		case "/private":
			w.Header().Set("Location", "http://10.0.0.1/?token=hunter2")
			w.WriteHeader(302)
		case "/user":
			w.Header().Set("Location", "http://user:hunter2@10.0.0.1/?token=hunter2")
			w.WriteHeader(302)
		case "/header":
			w.Header().Set("X-Long", strings.Repeat("x", 70<<10))
		case "/compress":
			w.Header().Set("Content-Encoding", "compress")
		case "/nogzip":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "<p>this is no gzip at all</p>")
		case "/halfgzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzipBytes([]byte(strings.Repeat("vokter ", 10000)))
			w.Write(z[:len(z)/2])
		case "/badgzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzipBytes([]byte("vokter"))
			z[len(z)-6] ^= 1 // the checksum
			w.Write(z)
		case "/cutgzip":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", "100")
			w.Write(gzipBytes([]byte("vokter"))[:20])
		case "/length":
			c, _, _ := http.NewResponseController(w).Hijack()
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n")
			c.Close()
		case "/chunk":
			c, _, _ := http.NewResponseController(w).Hijack()
			io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhunter2\r\n")
			c.Close()
		case "/half":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "half")
		case "/large":
			w.Header().Set("Content-Length", "99999999")
		case "/drop":
			c, _, _ := http.NewResponseController(w).Hijack()
			c.Close()
		case "/nohttp":
			c, _, _ := http.NewResponseController(w).Hijack()
			io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n")
			c.Close()
		}
	})
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused.Close()
	f := New(Config{Allow: loopback, Resolver: failingResolver()})
	defer f.Close()
	secret := strings.Replace(srv.URL, "http://", "http://user:hunter2@", 1)

	for _, tc := range []struct {
		url, class, reason string
		status, after      int
	}{
		{secret + "/404?token=hunter2", pipeline.FailStatus, "HTTP status 404 Not Found", 404, 0},
		{secret + "/204", pipeline.FailStatus, "HTTP status 204 No Content", 204, 0},
		{secret + "/304", pipeline.FailStatus, "HTTP status 304 Not Modified, though nothing was asked for conditionally", 304, 0},
		{secret + "/500", pipeline.FailStatus, "HTTP status 500 Internal Server Error", 500, 0},
		{secret + "/503", pipeline.FailStatus, "HTTP status 503 Service Unavailable", 503, 0},
		{secret + "/503-after", pipeline.FailBusy, "HTTP status 503 Service Unavailable; the host asks to wait for 2m0s", 503, 120},
		{secret + "/429", pipeline.FailBusy, "HTTP status 429 Too Many Requests", 429, 0},
		{secret + "/429-after", pipeline.FailBusy, "HTTP status 429 Too Many Requests; the host asks to wait for 24h0m0s", 429, 86400},
		{secret + "/loop", pipeline.FailRedirect, "more than 10 redirects", 0, 0},
		{secret + "/file", pipeline.FailRedirect, `a redirect leads to the scheme "file"; only http and https are followed`, 0, 0},
		{secret + "/nowhere", pipeline.FailRedirect, "a redirect leads to something that is no URL", 0, 0},
		{secret + "/private", pipeline.FailAddress, "10.0.0.1 is not a public address; permit it with allow: {fetch: [10.0.0.1/32]}", 0, 0},
		{secret + "/user", pipeline.FailRedirect, "a redirect leads to a URL with a user name or password in it, which is not followed", 0, 0},
		{secret + "/header", pipeline.FailTooLarge, "the response's header is larger than 64 KB", 0, 0},
		{secret + "/compress", pipeline.FailUnreadable, `the page is encoded as "compress", which was not asked for`, 0, 0},
		{secret + "/nogzip", pipeline.FailUnreadable, "the page's compression is damaged", 0, 0},
		{secret + "/halfgzip", pipeline.FailNetwork, "the page's compressed data ends too early", 0, 0},
		{secret + "/cutgzip", pipeline.FailNetwork, "127.0.0.1 closed the connection before the page was complete", 0, 0},
		{secret + "/length", pipeline.FailNetwork, "127.0.0.1 answered with an invalid Content-Length", 0, 0},
		{secret + "/chunk", pipeline.FailNetwork, "127.0.0.1 answered with a damaged chunk", 0, 0},
		{secret + "/badgzip", pipeline.FailUnreadable, "the page's compression is damaged", 0, 0},
		{secret + "/half", pipeline.FailNetwork, "127.0.0.1 closed the connection before the page was complete", 0, 0},
		{secret + "/large", pipeline.FailTooLarge, "the page is larger than 10 MiB", 0, 0},
		{secret + "/drop", pipeline.FailNetwork, "127.0.0.1 closed the connection before the page was complete", 0, 0},
		{secret + "/nohttp", pipeline.FailNetwork, "127.0.0.1 answered with something that is not HTTP", 0, 0},
		{strings.Replace(secret, "http:", "https:", 1), pipeline.FailTLS, "127.0.0.1 answers in plain HTTP there; write http:// in place of https://, or the port of its secure pages", 0, 0},
		{"http://user:hunter2@" + refused.Addr().String(), pipeline.FailRefused, "127.0.0.1 refused the connection", 0, 0},
		{"http://user:hunter2@nowhere.example/", pipeline.FailDNS, "the name nowhere.example could not be looked up", 0, 0},
		{"http://user:hunter2@127.0.0.2/", pipeline.FailAddress, "127.0.0.2 is not a public address; permit it with allow: {fetch: [127.0.0.2/32]}", 0, 0},
		{"ftp://user:hunter2@example.com/", pipeline.FailURL, "this is not an http or https URL", 0, 0},
		{"http://user:hunter2@/", pipeline.FailURL, "this is not an http or https URL", 0, 0},
		{"http://user:hunter2@exa mple/%zz", pipeline.FailURL, "this is not an http or https URL", 0, 0},
	} {
		_, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: tc.url})
		e, ok := errors.AsType[*pipeline.FetchError](err)
		if !ok {
			t.Errorf("%s: got %v, want a FetchError", tc.url, err)
			continue
		}
		if e.Class != tc.class || e.Reason != tc.reason || e.Status != tc.status || e.RetryAfter != time.Duration(tc.after)*time.Second {
			t.Errorf("%s:\ngot  %s %q %d %v (%v)\nwant %s %q %d %d s", tc.url, e.Class, e.Reason, e.Status, e.RetryAfter, e.Err, tc.class, tc.reason, tc.status, tc.after)
		}
		if strings.Contains(e.Reason, "hunter2") {
			t.Errorf("%s: the reason holds a secret: %s", tc.url, e.Reason)
		}
	}
}

// TestStatusOfPages holds which answers are pages.
func TestStatusOfPages(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		fmt.Sscanf(r.URL.Path, "/%d", &status)
		if part := r.URL.Query().Get("part"); part != "" {
			w.Header().Set("Content-Range", part)
		}
		w.WriteHeader(status)
		io.WriteString(w, "the page")
	})
	f := New(Config{Allow: loopback})
	for path, want := range map[string]string{
		"200": "", "201": "", "203": "", "206?part=bytes+0-7/8": "",
		"202":                    "HTTP status 202 Accepted",
		"205":                    "HTTP status 205 Reset Content",
		"206":                    "HTTP status 206 Partial Content, though no part was asked for",
		"206?part=bytes+0-7/100": "HTTP status 206 Partial Content, though no part was asked for",
		"206?part=bytes+0-7/*":   "HTTP status 206 Partial Content, though no part was asked for",
		"206?part=bytes+1-8/9":   "HTTP status 206 Partial Content, though no part was asked for",
	} {
		_, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/" + path})
		if e, _ := errors.AsType[*pipeline.FetchError](err); want == "" {
			if err != nil || string(body) != "the page" {
				t.Errorf("%s: got %q, %v", path, body, err)
			}
		} else if e == nil || e.Class != pipeline.FailStatus || e.Reason != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
}

// failingResolver is a resolver whose name servers cannot be reached.
func failingResolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server in this test")
	}}
}

func TestCertificates(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	_, _, err := fetch(t.Context(), New(Config{Allow: loopback}), pipeline.FetchRequest{URL: srv.URL})
	e, _ := errors.AsType[*pipeline.FetchError](err)
	if e == nil || e.Class != pipeline.FailTLS || e.Reason != "the certificate of 127.0.0.1 is signed by an unknown authority" {
		t.Errorf("unknown authority: got %v", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	if _, _, err := fetch(t.Context(), New(Config{Allow: loopback, RootCAs: pool}), pipeline.FetchRequest{URL: srv.URL}); err != nil {
		t.Errorf("known authority: got %v", err)
	}
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	_, _, err = fetch(t.Context(), New(Config{Allow: loopback, RootCAs: pool}), pipeline.FetchRequest{URL: "https://localhost:" + port})
	if e, _ := errors.AsType[*pipeline.FetchError](err); e == nil || e.Reason != "the certificate of localhost is for another name" {
		t.Errorf("other name: got %v", err)
	}
}

func TestTimeoutAndCancel(t *testing.T) {
	release := make(chan struct{})
	arrived := make(chan struct{}, 8)
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			io.WriteString(w, "begins")
			w.(http.Flusher).Flush()
		}
		arrived <- struct{}{}
		<-release
	})
	defer close(release)
	f := New(Config{Allow: loopback})
	for _, path := range []string{"/headers", "/body"} {
		late, expire := expiring.New(t.Context())
		go func() { <-arrived; expire() }()
		_, _, err := fetch(late, f, pipeline.FetchRequest{URL: srv.URL + path})
		if e, _ := errors.AsType[*pipeline.FetchError](err); e == nil || e.Class != pipeline.FailTimeout || e.Reason != "127.0.0.1 did not answer in time" {
			t.Errorf("%s: got %v, want a timeout", path, err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		_, _, err = fetch(ctx, f, pipeline.FetchRequest{URL: srv.URL + path})
		if class, _ := failure.ClassOf(err); class != failure.ClassCanceled {
			t.Errorf("%s: got %v, want canceled", path, err)
		}
	}
}

// TestRedirectsAreEncoded follows redirects whose Location is written as no URL is, as browsers do.
func TestRedirectsAreEncoded(t *testing.T) {
	for location, want := range map[string]string{
		"/s?q=red lamp":           "/s?q=red%20lamp",
		"/s?q=grün&x='":           "/s?q=gr%C3%BCn&x=%27",
		"/s?q=\xfc":               "/s?q=%FC",
		"/a%2Fb c/ü":              "/a%2Fb%20c/%C3%BC",
		"/100%?x=100%":            "/100%25?x=100%",
		"/s?a[]={1|2}+%20#a b%":   "/s?a[]={1|2}+%20",
		`\s\t`:                    "/s/t",
		" /s ":                    "/s",
		"?q=a b":                  "/?q=a%20b",
		"//HOST/s?<q>":            "/s?%3Cq%3E",
		"http://HOST/s?q=\"a b\"": "/s?q=%22a%20b%22",
	} {
		var got string
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.RequestURI == "/" {
				w.Header()["Location"] = []string{strings.ReplaceAll(location, "HOST", r.Host)}
				w.WriteHeader(http.StatusFound)
				return
			}
			got = r.RequestURI
		})
		f := New(Config{Allow: loopback})
		var permitted string
		resp, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/", Redirect: func(_ context.Context, url string) error {
			permitted = url
			return nil
		}})
		if err != nil || got != want || permitted != srv.URL+want || resp.URL != srv.URL+want {
			t.Errorf("%q: requested %q, asked for %q, got %q, %v; want %q", location, got, permitted, resp.URL, err, want)
		}
	}
}
