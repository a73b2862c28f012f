package outbound

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// requestAnswer makes a request that is answered with exactly answer, after which the connection stays
// open.
func requestAnswer(ctx context.Context, t *testing.T, answer string) (*Answer, error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { close(done); ln.Close() })
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = c.Write([]byte(answer))
			<-done
		}
	}()
	s := newLocalSender(t)
	return s.Do(ctx, http.MethodPost, &url.URL{Scheme: "http", Host: ln.Addr().String()}, nil, []byte("x"))
}

// TestSwitchingProtocols: the context does not end the reading from a connection whose
// protocol was changed, so that nothing must be read from it.
func TestSwitchingProtocols(t *testing.T) {
	a, err := requestAnswer(t.Context(), t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if err != nil || a.Err() == nil {
		t.Errorf("got %v, %v, want an answer that is a failure", a, err)
	}
}

// slowTransport answers after no time, with a body whose last byte comes after d.
type slowTransport struct{ d time.Duration }

func (s slowTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "o")
		select {
		case <-time.After(s.d):
			_, _ = io.WriteString(w, "k")
			w.Close()
		case <-req.Context().Done():
			w.CloseWithError(req.Context().Err())
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: r, Request: req}, nil
}

// TestSlowBodies: a body that decides is waited for, one that does not is not, and none for
// ever.
func TestSlowBodies(t *testing.T) {
	for _, tt := range []struct {
		name          string
		after, within time.Duration
		decides       bool
		want, broken  string
		took          time.Duration
	}{
		{"it decides", 10 * time.Second, time.Minute, true, "ok", "", 10 * time.Second},
		{"it does not decide", 10 * time.Second, time.Minute, false, "o", "the answer broke off: its end did not come in time", time.Second},
		{"it never ends", time.Hour, time.Minute, true, "o", "the answer broke off: its end did not come in time", 15 * time.Second},
		{"the attempt ends", time.Hour, 5 * time.Second, true, "o", "the answer broke off: the timeout of the sink is over", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.within)
				defer cancel()
				s := Sender{Client: &http.Client{Transport: slowTransport{tt.after}}, BodyDecides: tt.decides, Now: time.Now}
				began := time.Now()
				a, err := s.Do(ctx, http.MethodPost, &url.URL{Scheme: "http", Host: "example.com"}, nil, nil)
				if err != nil || string(a.Body) != tt.want || time.Since(began) != tt.took || a.Err() != nil {
					t.Fatalf("got %+v, %v after %s, want %q after %s", a, err, time.Since(began), tt.want, tt.took)
				}
				if tt.broken == "" && a.Broken != nil || tt.broken != "" && (a.Broken == nil || a.Broken.Error() != tt.broken) {
					t.Errorf("got %v, want %q", a.Broken, tt.broken)
				}
				without := a.Without("a word")
				if class, _ := failure.ClassOf(without); class != failure.ClassRetry || !failure.IsAmbiguous(without) {
					t.Errorf("got %v of class %d, ambiguous %v", without, class, failure.IsAmbiguous(without))
				}
			})
		})
	}
}

// TestReasonsAreShort: errors of package net/http quote whatever was sent.
func TestReasonsAreShort(t *testing.T) {
	long := strings.Repeat("x", 30_000)
	for name, answer := range map[string]string{
		"no HTTP":        long + "\r\n\r\n",
		"status":         "HTTP/1.1 " + long + "\r\n\r\n",
		"header":         "HTTP/1.1 200 OK\r\n" + long + "\r\n\r\n",
		"location":       "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: :" + long + "\r\n\r\n",
		"content-length": "HTTP/1.1 200 OK\r\nContent-Length: " + long + "\r\n\r\n",
	} {
		_, err := requestAnswer(t.Context(), t, answer)
		if err == nil || render.Runes(err.Error()) > maxReason+4 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestReasonsOfBrokenAnswers: the reasons are plain sentences, which quote nothing of the answer.
func TestReasonsOfBrokenAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, c := range map[string]struct{ answer, want string }{
		"no HTTP":        {"\x1b[31mpwn\x00\r\n\r\n", "no valid answer: the other side answered with something that is not HTTP"},
		"status":         {"HTTP/1.1 aaaa\r\n\r\n", "no valid answer: the other side answered with something that is not HTTP"},
		"header":         {ok + "pwn\r\n\r\n", "no valid answer: the other side answered with something that is not HTTP"},
		"long header":    {ok + "X: " + strings.Repeat("x", 100<<10) + "\r\n\r\n", "no valid answer: the response's header is larger than 64 KB"},
		"location":       {"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: :pwn\r\n\r\n", "no valid answer: a redirect leads to something that is no URL"},
		"content-length": {ok + "Content-Length: -5\r\n\r\n", "no valid answer: the other side answered with an invalid Content-Length"},
		"chunk":          {ok + "Transfer-Encoding: chunked\r\n\r\npwn\r\n", "the answer broke off: the other side answered with a damaged chunk"},
	} {
		a, err := requestAnswer(t.Context(), t, c.answer)
		if err == nil {
			err = a.Broken
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	s := newLocalSender(t)
	closing := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // an unread request would reset the connection
		panic(http.ErrAbortHandler)
	}))
	defer closing.Close()
	u, _ := url.Parse(closing.URL)
	_, err := s.Do(t.Context(), http.MethodPost, u, nil, []byte("x"))
	if err == nil || err.Error() != "no answer: the connection was closed" {
		t.Errorf("closed: got %v", err)
	}
}

func TestParseURL(t *testing.T) {
	for raw, ok := range map[string]bool{
		"https://example.com": true, "http://[::1]:8080/x": true, "http://example.com:/": true, "HTTPS://EXAMPLE.COM/": true,
		"": false, "example.com": false, "//SECRET": false, "ftp://SECRET": false, "http://:80/SECRET": false, "http://SECRET:0/": false,
		"http://SECRET:65536/": false, "http://SECRET:99999999999999999999/": false, "http://[SECRET": false, "http://SECRET\r\n": false, "%zz SECRET": false,
	} {
		u, err := ParseURL(raw, "https://example.com/hook")
		if (err == nil) != ok || (u != nil) != ok || err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: got %v, %v", raw, u, err)
		}
	}
}

// newLocalSender returns a Sender to servers on this machine.
func newLocalSender(t *testing.T) Sender {
	t.Helper()
	s, err := newSender(registry.Connection{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRetryAfterOnAnyFailure checks that the wait that a receiver asks for does not depend on
// what it refuses.
func TestRetryAfterOnAnyFailure(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "example.com"}
	for status, want := range map[int]failure.Class{
		302: failure.ClassRetry, 400: failure.ClassRefused, 401: failure.ClassRetry, 404: failure.ClassRetry,
		413: failure.ClassRefused, 429: failure.ClassLimited, 500: failure.ClassRetry, 503: failure.ClassRetry,
	} {
		a := &Answer{Status: status, Header: http.Header{"Retry-After": {"90"}}, url: u, now: time.Now()}
		if class, after := failure.ClassOf(a.Err()); class != want || after != 90*time.Second {
			t.Errorf("%d: class %d after %s, want %d after 1m30s", status, class, after, want)
		}
	}
	a := &Answer{Status: http.StatusNoContent, Header: http.Header{"Retry-After": {"90"}}}
	if err := a.Err(); err != nil {
		t.Errorf("204: got %v", err)
	}
}

// TestRedirectsAreNamedInShort: who redirects chooses the name of the host.
func TestRedirectsAreNamedInShort(t *testing.T) {
	for host, want := range map[string]string{
		"b.example":                 "answered 302 Found, to https://b.example; redirects are not followed",
		"b\u202e.example":           "answered 302 Found, to https://b.example; redirects are not followed",
		strings.Repeat("x", 30_000): "answered 302 Found, to https://" + strings.Repeat("x", 92) + " ...; redirects are not followed",
	} {
		a := &Answer{Status: http.StatusFound, Header: http.Header{"Location": {"https://" + host + "/?secret"}}, url: &url.URL{Scheme: "https", Host: "a.example"}}
		if got := a.Err().Error(); got != want {
			t.Errorf("got %.300q, want %q", got, want)
		}
	}
}

func TestObserver(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newLocalSender(t)
	var seen string
	if _, err := s.Do(WithObserver(t.Context(), func(status string) { seen = status }), http.MethodGet, u, nil, nil); err != nil {
		t.Fatal(err)
	}
	if want := "418 I'm a teapot"; seen != want {
		t.Errorf("saw %q, want %q", seen, want)
	}
}

func TestReasonStaysTheSame(t *testing.T) {
	addr := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port} }
	reset := func(port int) error {
		return &net.OpError{Op: "read", Net: "tcp", Source: addr(port), Addr: addr(80), Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	}
	for _, tt := range []struct{ a, b error }{
		{reset(40001), reset(40002)},
		{&net.DNSError{Name: "x.example", Err: "read udp 10.0.0.1:1", IsTimeout: true}, &net.DNSError{Name: "x.example", Err: "read udp 10.0.0.1:2", IsTimeout: true}},
		{x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 1"}, x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2"}},
	} {
		if a, b := errorText(tt.a), errorText(tt.b); a != b {
			t.Errorf("%q differs from %q", a, b)
		}
	}
	if got, want := errorText(reset(1)), "read: connection reset by peer"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScrubber(t *testing.T) {
	u, err := url.Parse("https://bot:hunter22@example.com/hooks/T0KEN?sig=ABCDEFG")
	if err != nil {
		t.Fatal(err)
	}
	var s Scrubber
	s.AddURL(u)
	for _, text := range []string{u.String(), u.Path, u.RequestURI(), u.RawQuery, "hunter22"} {
		got := s.Wrap("x", fmt.Errorf("malformed %q", text)).Error()
		for _, secret := range []string{"T0KEN", "ABCDEFG", "hunter22"} {
			if strings.Contains(got, secret) {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

// TestTransformedSecrets: what answers may have made of a secret before it comes back.
func TestTransformedSecrets(t *testing.T) {
	u, err := url.Parse("https://robot:hunter%2022%26%22@example.com/")
	if err != nil {
		t.Fatal(err)
	}
	var s Scrubber
	s.AddURL(u)
	s.Add("T0KEN+A/", "T0KEN+A/B and more")
	for in, want := range map[string]string{
		`for hunter 22&"`:                       "for ***",
		"for hunter+22%26%22":                   "for ***",
		"for hunter%2022&%22":                   "for ***",
		`for hunter 22&\"`:                      "for ***",
		"Basic cm9ib3Q6aHVudGVyIDIyJiI= is bad": "Basic ***= is bad",
		"T0KEN+A/B and more":                    "***",
		"T0KEN%2BA%2FB+and+more":                "***",
	} {
		if got := s.Clean(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestRetryAfterNeverFails(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"0", 0, true},
		{"007", 7 * time.Second, true},
		{"Fri, 02 Jan 2026 03:05:05 GMT", time.Minute, true},
		{"Fri, 02 Jan 2026 03:03:05 GMT", 0, true},
		{"Fri, 02 Jan 2099 03:03:05 GMT", MaxRetryAfter, true},
		{"9223372036854775807", MaxRetryAfter, true},
		{"9223372036854775808", 0, false},
		{"+5", 0, false},
		{"2026-01-02T03:05:05Z", 0, false},
	} {
		if got, ok := RetryAfter(tt.value, now); got != tt.want || ok != tt.ok {
			t.Errorf("%q: got %v, %v, want %v, %v", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

func TestRooted(t *testing.T) {
	for in, want := range map[string]string{"": "http://a/", "x/y": "http://a/x/y", "/x": "http://a/x", "x%2Fy": "http://a/x%2Fy"} {
		u := &url.URL{Scheme: "http", Host: "a"}
		if in != "" {
			u = u.JoinPath(in)
		}
		got := withRootedPath(u)
		if req := got.Scheme + "://" + got.Host + got.RequestURI(); req != want {
			t.Errorf("%q: got %s, want %s", in, req, want)
		}
	}
}
