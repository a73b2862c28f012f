// Package httpsource fetches pages over http and https.
package httpsource

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// Bounds of a fetch.
const (
	// DefaultMaxBody is the default of Config.MaxBody, in bytes.
	DefaultMaxBody = 10 << 20
	// maxRedirects is how many redirects a fetch follows.
	maxRedirects = 10

	dialTimeout = 10 * time.Second
	// idleConnTimeout keeps the connections of pages that are checked each minute. A request for a page
	// can be repeated if the server closes its connection at that moment.
	idleConnTimeout = 90 * time.Second
)

// Config configures a Fetcher. The zero Config is right for the public internet.
type Config struct {
	// Allow lists networks that the Fetcher may connect to besides public addresses.
	Allow []netip.Prefix
	// UserAgent is sent with every request. Empty means DefaultUserAgent(Version).
	UserAgent string
	// Version is the version of the program, for the default user agent.
	Version string
	// MaxBody is the size of the largest decoded body, in bytes. 0 means DefaultMaxBody.
	MaxBody int64
	// RootCAs are the certificate authorities to trust. Nil means those of the system.
	RootCAs *x509.CertPool
	// Resolver looks up host names. Nil means net.DefaultResolver.
	Resolver *net.Resolver
	// Concurrency is how many idle connections to one host are kept. Set it to the number of
	// concurrent requests to a host. 0 means 2.
	Concurrency int
	// Now is the clock for dates in Retry-After. Nil means time.Now.
	Now func() time.Time
}

// DefaultUserAgent returns the user agent of Vokter in that version.
func DefaultUserAgent(version string) string {
	return "vokter/" + cmp.Or(version, "dev") + " (+https://github.com/vokter/vokter)"
}

// Fetcher fetches pages over http and https. It connects to public addresses and to those that
// Config.Allow lists. It has no timeout of its own: the context of a fetch limits it.
type Fetcher struct {
	config    Config
	client    *http.Client
	access    atomic.Pointer[accessTable]
	userAgent string
	maxBody   int64
	now       func() time.Time
}

var _ pipeline.Fetcher = (*Fetcher)(nil)

// New returns a Fetcher.
func New(c Config) *Fetcher {
	f := &Fetcher{config: c, userAgent: cmp.Or(c.UserAgent, DefaultUserAgent(c.Version)), maxBody: c.MaxBody, now: c.Now}
	if f.maxBody <= 0 {
		f.maxBody = DefaultMaxBody
	}
	if f.now == nil {
		f.now = time.Now
	}
	f.client = f.newClient(outbound.Config{RootCAs: c.RootCAs})
	return f
}

// newClient returns a client with c and the settings of all connections of the Fetcher.
func (f *Fetcher) newClient(c outbound.Config) *http.Client {
	c.Allow, c.Resolver, c.CheckRedirect = f.config.Allow, f.config.Resolver, outbound.Redirects(maxRedirects)
	c.DialTimeout, c.ResponseHeaderTimeout, c.KeepCompressed = dialTimeout, -1, true
	c.MaxIdleConnsPerHost, c.IdleConnTimeout = f.config.Concurrency, idleConnTimeout
	if c.RootCAs == nil {
		c.RootCAs = f.config.RootCAs
	}
	client := outbound.NewClient(c)
	client.Transport = &lenientTransport{client.Transport}
	return client
}

// SetAccess replaces the settings of single hosts and pages, by their names, for the fetches that
// begin later. Open sessions of settings that stay the same stay open. Its error is that of
// CheckAccess.
func (f *Fetcher) SetAccess(settings map[string]Access) error {
	old := f.access.Load()
	if old != nil && reflect.DeepEqual(old.settings, settings) {
		return nil
	}
	all, err := f.newAccessTable(settings, old)
	if err != nil {
		return err
	}
	f.access.Store(all)
	old.closeIdle()
	return nil
}

// Schemes returns http and https.
func (f *Fetcher) Schemes() []string { return []string{"http", "https"} }

// Close closes idle connections.
func (f *Fetcher) Close() error {
	f.client.CloseIdleConnections()
	f.access.Load().closeIdle()
	return nil
}

// Fetch fetches r. If ctx is cancelled it returns the error of ctx. Every other error, of Fetch
// and of Response.Body, is a *pipeline.FetchError.
func (f *Fetcher) Fetch(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	a := f.access.Load().accessFor(cmp.Or(r.Page, r.URL))
	id := ""
	if a != nil {
		id = a.id()
	}
	if r.Access != id {
		r.ETag, r.LastModified = "", ""
	}
	var resp pipeline.Response
	var err error
	switch {
	case a == nil:
		resp, err = f.fetchWith(ctx, f.client, r)
	case a.session == nil || r.Page != "" && r.Page != r.URL:
		resp, err = f.fetchWith(ctx, a.client, r)
	default:
		resp, err = f.fetchInSession(ctx, a, r)
	}
	resp.Access = id
	return resp, err
}

// fetchWith fetches r with client.
func (f *Fetcher) fetchWith(ctx context.Context, client *http.Client, r pipeline.FetchRequest) (pipeline.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, pageurl.Encode(r.URL), nil)
	if err != nil || req.URL.Hostname() == "" || (req.URL.Scheme != "http" && req.URL.Scheme != "https") {
		return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailURL, Reason: "this is not an http or https URL"}
	}
	f.setHeaders(req)
	conditional := false
	if r.ETag != "" {
		req.Header.Set("If-None-Match", r.ETag)
		conditional = true
	}
	if r.LastModified != "" {
		req.Header.Set("If-Modified-Since", r.LastModified)
		conditional = true
	}
	resp, err := forFetch(client, r.Redirect).Do(req)
	if err != nil {
		return pipeline.Response{}, classify(ctx, err, req.URL.Hostname())
	}
	if failed := f.statusError(resp, conditional); failed != nil {
		resp.Body.Close()
		return pipeline.Response{URL: withoutUser(resp.Request.URL)}, failed
	}
	body, err := newBody(ctx, resp, max(f.maxBody, r.MaxBody), req.URL.Hostname())
	if err != nil {
		resp.Body.Close()
		return pipeline.Response{}, err
	}
	return pipeline.Response{URL: withoutUser(resp.Request.URL), Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// setHeaders sets the headers of every request.
func (f *Fetcher) setHeaders(req *http.Request) {
	req.Header.Set("User-Agent", f.userAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.8")
	req.Header.Set("Accept-Encoding", acceptEncoding)
}

// forFetch returns client for one fetch. Unless client has a jar, that of a session, the fetch has its own:
// many websites set a cookie, lead to the same page again, and show it to who sends the cookie back. Unless
// permit is nil it is asked before each redirect.
func forFetch(client *http.Client, permit func(context.Context, string) error) *http.Client {
	c := *client
	if c.Jar == nil {
		c.Jar = newCookieStore()
	}
	if permit == nil {
		return &c
	}
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if err := client.CheckRedirect(req, via); err != nil {
			return err
		}
		return permit(req.Context(), req.URL.String())
	}
	return &c
}

// statusError returns the error for a response whose status is not a success, or nil.
func (f *Fetcher) statusError(resp *http.Response, conditional bool) error {
	status := resp.StatusCode
	if isPage(resp) || (status == http.StatusNotModified && conditional) {
		return nil
	}
	wait, asked := retryAfter(resp.Header.Get("Retry-After"), f.now())
	e := &pipeline.FetchError{Class: pipeline.FailStatus, Status: status}
	e.Reason = strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", status, http.StatusText(status)))
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && asked:
		e.Class, e.RetryAfter = pipeline.FailBusy, wait
		if wait > 0 {
			e.Reason += fmt.Sprintf("; the host asks to wait for %v", wait)
		}
	case status == http.StatusNotModified:
		e.Reason += ", though nothing was asked for conditionally"
	case status == http.StatusPartialContent:
		e.Reason += ", though no part was asked for"
	}
	return e
}

// isPage reports whether resp has the page. 203 is a page as a proxy passed it on. 202 and 204 are answers
// without the page: some protections against robots send their test as 202. A part is a page if it is the
// whole.
func isPage(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusCreated, http.StatusNonAuthoritativeInfo:
		return true
	case http.StatusPartialContent:
		var last, size int64
		_, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes 0-%d/%d", &last, &size)
		return err == nil && last == size-1
	}
	return false
}

func withoutUser(u *url.URL) string {
	if u.User == nil {
		return u.String()
	}
	c := *u
	c.User = nil
	return c.String()
}

// classify turns an error of the client or of a body into a *pipeline.FetchError. Its reason
// names the host and never the URL, whose query and user may be secret. context.Canceled stays
// as it is.
func classify(ctx context.Context, err error, host string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the message of url.Error contains the URL
	}
	class, reason := reasonOf(ctx, err, host)
	return &pipeline.FetchError{Class: class, Reason: reason, Err: err}
}

func reasonOf(ctx context.Context, err error, host string) (class, reason string) {
	if e, ok := errors.AsType[*outbound.AddressError](err); ok {
		return pipeline.FailAddress, e.Permit("fetch")
	}
	if e, ok := errors.AsType[*outbound.RedirectError](err); ok {
		return pipeline.FailRedirect, e.Error()
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsNotFound {
			return pipeline.FailDNS, "the name " + e.Name + " does not exist"
		}
		return pipeline.FailDNS, "the name " + e.Name + " could not be looked up"
	}
	if ctx.Err() != nil || isTimeout(err) {
		return pipeline.FailTimeout, host + " did not answer in time"
	}
	if reason, ok := proxyReason(err); ok {
		return pipeline.FailNetwork, reason
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return pipeline.FailRefused, host + " refused the connection"
	}
	if reason, ok := tlsReason(err, host); ok {
		return pipeline.FailTLS, reason
	}
	if class, reason := outbound.BadAnswer(err, host); class != "" {
		return class, reason
	}
	switch {
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return pipeline.FailNetwork, host + " cannot be reached from here"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return pipeline.FailNetwork, host + " closed the connection before the page was complete"
	}
	return pipeline.FailNetwork, "the connection to " + host + " failed"
}

// proxyReason returns why a proxy did not connect, and whether that is the cause of err. The name of
// the proxy is not shown, since it can be a secret.
func proxyReason(err error) (reason string, ok bool) {
	op, isOp := errors.AsType[*net.OpError](err)
	if p, is := errors.AsType[*outbound.ProxyError](err); is {
		return p.Error(), true
	}
	if !isOp || op.Op != "proxyconnect" && op.Op != "socks connect" { // of net/http and of x/net/proxy
		return "", false
	}
	switch text := op.Err.Error(); {
	case errors.Is(op.Err, syscall.ECONNREFUSED):
		return "the proxy refused the connection", true
	case strings.Contains(text, "authentication"):
		return "the proxy refused the user name and password", true
	case op.Op == "socks connect":
		return "the proxy did not connect: " + fmt.Sprintf("%.100q", text), true
	}
	return "the connection to the proxy failed", true
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func tlsReason(err error, host string) (string, bool) {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate of " + host + " is signed by an unknown authority", true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate of " + host + " is for another name", true
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "the certificate of " + host + " has expired or is not valid yet", true
		}
		return "the certificate of " + host + " is not valid", true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate of " + host + " is not valid", true
	}
	const certificateRequired = 116 // RFC 8446, section 6
	number, alert := errors.AsType[tls.AlertError](err)
	if alert && number == certificateRequired || strings.Contains(err.Error(), "tls: certificate required") {
		return host + " asks for a client certificate; give it one with cert and key in access", true
	}
	record, isRecord := errors.AsType[tls.RecordHeaderError](err)
	if errors.Is(err, http.ErrSchemeMismatch) || isRecord && (bytes.HasPrefix(record.RecordHeader[:], []byte("HTTP/")) || record.RecordHeader[0] == '<') {
		return host + " answers in plain HTTP there; write http:// in place of https://, or the port of its secure pages", true
	}
	if alert || isRecord || strings.Contains(err.Error(), "tls: ") {
		return "no secure connection to " + host + " could be agreed on", true
	}
	return "", false
}

// retryAfter is outbound.RetryAfter in whole seconds, rounded up.
func retryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	wait, ok = outbound.RetryAfter(value, now)
	return (wait + time.Second - 1).Truncate(time.Second), ok
}
