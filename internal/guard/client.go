// Package guard makes the HTTP clients and dialers by which Vokter talks to others:
// whatever a URL, a redirect or a name server says, they connect to public addresses only,
// unless a network is allowed.
package guard

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
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

// NewDialer returns a dialer that connects to the addresses that c permits, decided after
// the name was looked up; of c it uses Allow, DialTimeout and Resolver. A refusal is an
// *AddressError within the dialer's error.
func NewDialer(c Config) *net.Dialer {
	return &net.Dialer{
		Timeout:  orDefault(c.DialTimeout, defaultDialTimeout),
		Resolver: c.Resolver,
		Control: func(_, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return err // a TCP dialer gets here with addresses only
			}
			return Check(ap.Addr(), c.Allow)
		},
	}
}

// NewClient returns a client whose every connection, also those of redirects, is made by
// the dialer of c. A refusal is an *AddressError within the client's error. It uses no proxy,
// since the proxy's address would be all that could be decided on, verifies TLS and has no
// overall time limit: that is the request's context.
func NewClient(c Config) *http.Client {
	t := &http.Transport{
		DialContext:            NewDialer(c).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12},
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
