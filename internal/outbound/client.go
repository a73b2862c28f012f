// Package outbound makes the requests by which this program talks to others. Its clients and
// dialers connect to public addresses only, unless a network is allowed, whatever a URL, a
// redirect or a name server says. What sinks send goes through a Sender: without redirects,
// with every read bounded, and with errors that say what to do next and hold no secret.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Bounds of a client.
const (
	// defaultDialTimeout covers looking up the name and connecting.
	defaultDialTimeout = 3 * time.Second
	// defaultResponseHeaderTimeout is how long a server may think.
	defaultResponseHeaderTimeout = 15 * time.Second
	// maxResponseHeaderBytes is how large the header of a response may be.
	maxResponseHeaderBytes = 64 << 10

	tlsHandshakeTimeout = 5 * time.Second
	idleConnTimeout     = 30 * time.Second
	maxIdlePerHost      = 2
	pingTimeout         = 15 * time.Second
)

// Config alters a client. The zero Config is good for a sink: public addresses only, no
// redirects.
type Config struct {
	// Allow lists networks that may be reached besides public addresses.
	Allow []netip.Prefix
	// Permit says why an address must not be connected to; nil means that Allow decides.
	Permit func(netip.Addr) error
	// Proxy is what parseProxy returned; nil means that there is none. What can be known here
	// of the addresses that it connects to is decided on here.
	Proxy *url.URL
	// Certificate returns what a server gets that asks who the client is; nil means nothing.
	Certificate func() (*tls.Certificate, error)
	// CheckRedirect is http.Client's; nil means noRedirects.
	CheckRedirect func(req *http.Request, via []*http.Request) error
	// DialTimeout is defaultDialTimeout if 0.
	DialTimeout time.Duration
	// ResponseHeaderTimeout is defaultResponseHeaderTimeout if 0, and none if negative.
	ResponseHeaderTimeout time.Duration
	// RootCAs are the authorities to trust; nil means the system's.
	RootCAs *x509.CertPool
	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
	// KeepCompressed leaves Content-Encoding to the caller.
	KeepCompressed bool
	// MaxIdleConnsPerHost is how many connections to one host are kept for the next
	// request; 2 if 0. It should not be less than the requests that one host gets at once:
	// what is beyond is closed after each of them, and made anew.
	MaxIdleConnsPerHost int
}

// Dialer makes connections.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// NewDialer returns a dialer that connects to the addresses that c permits, decided after
// the name was looked up; of c it uses Allow, Permit, DialTimeout, Resolver and Proxy, which has
// to be a SOCKS proxy. A refusal is an *AddressError within the dialer's error, or what Permit
// says.
func NewDialer(c Config) Dialer {
	if c.Proxy != nil {
		return c.socks()
	}
	return &net.Dialer{
		Timeout:  orDefault(c.DialTimeout, defaultDialTimeout),
		Resolver: c.Resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return err // a TCP dialer gets here with addresses only
			}
			return c.permit(ap.Addr())
		},
	}
}

// permit says why a must not be connected to.
func (c Config) permit(a netip.Addr) error {
	if c.Permit != nil {
		return c.Permit(a)
	}
	return Check(a, c.Allow)
}

// TLS returns the settings of connections to servers.
func (c Config) TLS() *tls.Config {
	t := &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12}
	if c.Certificate != nil {
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.Certificate() }
	}
	return t
}

// NewClient returns a client whose every connection, also those of redirects, is made by
// the dialer of c. A refusal is an *AddressError within the client's error. It heeds no proxy
// of the environment, verifies TLS and has no overall time limit: that is the request's
// context.
func NewClient(c Config) *http.Client {
	t := &http.Transport{
		TLSClientConfig:        c.TLS(),
		TLSHandshakeTimeout:    tlsHandshakeTimeout,
		DisableCompression:     c.KeepCompressed,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    orDefault(c.MaxIdleConnsPerHost, maxIdlePerHost),
		IdleConnTimeout:        idleConnTimeout,
		ResponseHeaderTimeout:  max(orDefault(c.ResponseHeaderTimeout, defaultResponseHeaderTimeout), 0),
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout},
	}
	if c.Proxy != nil {
		c.proxied(t)
	} else {
		t.DialContext = NewDialer(c).DialContext
	}
	check := c.CheckRedirect
	if check == nil {
		check = noRedirects
	}
	return &http.Client{Transport: t, CheckRedirect: check}
}

// orDefault is v, or def where v is not set.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// RedirectError says why a redirect was not followed.
type RedirectError struct {
	Reason string
}

func (e *RedirectError) Error() string { return e.Reason }

// private are the headers of a request that only the host and port that it was made for may
// see: credentials, and validators, which tell one visitor from another.
var private = []string{"Authorization", "Proxy-Authorization", "Cookie", "If-None-Match", "If-Modified-Since"}

// noRedirects hands the redirecting response to the caller.
func noRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Redirects follows at most n redirects, to http and https only. A request to a host or port
// other than the first one carries no credentials and no validators, and one to a host or port
// other than the one before carries no Referer. What it refuses is a *RedirectError.
func Redirects(n int) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if len(via) > n {
			return &RedirectError{fmt.Sprintf("more than %d redirects", n)}
		}
		if s := req.URL.Scheme; s != "http" && s != "https" {
			return &RedirectError{fmt.Sprintf("a redirect leads to the scheme %q; only http and https are followed", s)}
		}
		if req.URL.Hostname() == "" {
			return &RedirectError{"a redirect leads to a URL without a host"}
		}
		last := via[len(via)-1].URL
		// The client sends what Location says here as Authorization. A relative one inherits that
		// of the URL before.
		if u := req.URL.User; u != nil && (u.String() != last.User.String() || !sameServer(req.URL, last)) {
			return &RedirectError{"a redirect leads to a URL with a user name or password in it, which is not followed"}
		}
		// The client copies the headers of the first request into each one that follows.
		if !sameServer(req.URL, via[0].URL) {
			for _, name := range private {
				req.Header.Del(name)
			}
		}
		if !sameServer(req.URL, last) {
			req.Header.Del("Referer")
		}
		return nil
	}
}

// sameServer reports whether a and b have the same host and port.
func sameServer(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b)
}

func portOf(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
