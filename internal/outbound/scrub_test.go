package outbound

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
		if a, b := reason(tt.a), reason(tt.b); a != b {
			t.Errorf("%q differs from %q", a, b)
		}
	}
	if got, want := reason(reset(1)), "read: connection reset by peer"; got != want {
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
		got := rooted(u)
		if req := got.Scheme + "://" + got.Host + got.RequestURI(); req != want {
			t.Errorf("%q: got %s, want %s", in, req, want)
		}
	}
}
