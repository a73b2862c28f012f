// Package outbound makes requests to other hosts. Its clients and dialers connect only to
// public addresses and allowed networks, whatever a URL, a redirect or a name server says.
// Sinks send with a Sender. It follows no redirects, limits every read, and returns classified
// errors without secrets.
package outbound

import (
	"cmp"
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

// Limits of a client.
const (
	// defaultDialTimeout is the timeout for looking up the name and connecting.
	defaultDialTimeout = 3 * time.Second
	// defaultResponseHeaderTimeout is how long a server may take until the header of its
	// response.
	defaultResponseHeaderTimeout = 15 * time.Second
	// maxResponseHeaderBytes is the largest size of a response's header.
	maxResponseHeaderBytes = 64 << 10

	tlsHandshakeTimeout = 5 * time.Second
	idleConnTimeout     = 30 * time.Second
	maxIdle             = 512
	pingTimeout         = 15 * time.Second
)

// Config configures a client. The zero Config is right for a sink: public addresses only, no
// redirects.
type Config struct {
	// Allow lists networks to which connections are allowed besides public addresses.
	Allow []netip.Prefix
	// Permit returns an error for an address that must not be connected to. Nil means that
	// Allow decides.
	Permit func(netip.Addr) error
	// Proxy is a result of parseProxy. Nil means no proxy. Addresses that can be looked up here
	// are checked before the proxy connects to them.
	Proxy *url.URL
	// Certificate returns the client certificate for a server that asks for one. Nil means
	// none.
	Certificate func() (*tls.Certificate, error)
	// CheckRedirect is http.Client's; nil means noRedirects.
	CheckRedirect func(req *http.Request, via []*http.Request) error
	// DialTimeout is defaultDialTimeout if 0.
	DialTimeout time.Duration
	// ResponseHeaderTimeout is defaultResponseHeaderTimeout if 0, and none if negative.
	ResponseHeaderTimeout time.Duration
	// RootCAs are the certificate authorities to trust. Nil means those of the system.
	RootCAs *x509.CertPool
	// Resolver looks up host names. Nil means net.DefaultResolver.
	Resolver *net.Resolver
	// KeepCompressed leaves Content-Encoding to the caller.
	KeepCompressed bool
	// MaxIdleConnsPerHost is how many idle connections to one host are kept, of 512 in all. 0 means
	// 512. It should be at least the number of concurrent requests to a host: other connections are
	// closed after each request.
	MaxIdleConnsPerHost int
	// IdleConnTimeout is how long an idle connection is kept. 0 means 30 s: a request that is sent
	// just when the server closes its connection fails, unless it can be repeated.
	IdleConnTimeout time.Duration
}

// Dialer makes connections.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// NewDialer returns a dialer that connects only to addresses that c permits. It checks an
// address after the name is looked up. It uses Allow, Permit, DialTimeout, Resolver and Proxy
// of c; Proxy must be a SOCKS proxy. A refusal wraps an *AddressError or the error of Permit.
func NewDialer(c Config) Dialer {
	if c.Proxy != nil {
		return c.newSocksDialer()
	}
	return &net.Dialer{
		Timeout:  cmp.Or(c.DialTimeout, defaultDialTimeout),
		Resolver: c.Resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return err // cannot happen: a TCP dialer passes addresses
			}
			return c.permit(ap.Addr())
		},
	}
}

// permit returns an error if a must not be connected to.
func (c Config) permit(a netip.Addr) error {
	if c.Permit != nil {
		return c.Permit(a)
	}
	return Check(a, c.Allow)
}

// TLS returns the TLS settings for connections to servers.
func (c Config) TLS() *tls.Config {
	t := &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12}
	if c.Certificate != nil {
		t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.Certificate() }
	}
	return t
}

// NewClient returns a client that makes every connection, also for redirects, with the dialer
// of c. A refusal wraps an *AddressError. The client ignores proxies of the environment and
// verifies TLS. It has no timeout of its own: the context of a request limits it.
func NewClient(c Config) *http.Client {
	t := &http.Transport{
		TLSClientConfig:        c.TLS(),
		TLSHandshakeTimeout:    tlsHandshakeTimeout,
		DisableCompression:     c.KeepCompressed,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    cmp.Or(c.MaxIdleConnsPerHost, maxIdle),
		IdleConnTimeout:        cmp.Or(c.IdleConnTimeout, idleConnTimeout),
		ResponseHeaderTimeout:  max(cmp.Or(c.ResponseHeaderTimeout, defaultResponseHeaderTimeout), 0),
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingTimeout, PingTimeout: pingTimeout},
	}
	if c.Proxy != nil {
		c.useProxy(t)
	} else {
		t.DialContext = NewDialer(c).DialContext
	}
	if c.CheckRedirect == nil {
		c.CheckRedirect = noRedirects
	}
	return &http.Client{Transport: t, CheckRedirect: c.CheckRedirect}
}

// RedirectError says why a redirect was not followed.
type RedirectError struct {
	Reason string
}

func (e *RedirectError) Error() string { return e.Reason }

// privateHeaders are the headers that only the host and port of the first request may get:
// credentials, and validators, which can identify a visitor.
var privateHeaders = []string{"Authorization", "Proxy-Authorization", "Cookie", "If-None-Match", "If-Modified-Since"}

// noRedirects returns the redirect response to the caller.
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
		// The client sends user information in Location as Authorization. A relative Location
		// inherits that of the previous URL.
		if u := req.URL.User; u != nil && (u.String() != last.User.String() || !sameServer(req.URL, last)) {
			return &RedirectError{"a redirect leads to a URL with a user name or password in it, which is not followed"}
		}
		// The client copies the headers of the first request into each following one.
		if !sameServer(req.URL, via[0].URL) {
			for _, name := range privateHeaders {
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
