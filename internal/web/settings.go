package web

import (
	"crypto/subtle"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/vokter/vokter/config"
)

// Settings are the settings of the web page. They can be replaced while it is served.
type Settings struct{ current atomic.Pointer[config.Web] }

// Configure replaces the settings.
func (s *Settings) Configure(w config.Web) { s.current.Store(&w) }

// load returns the current settings.
func (s *Settings) load() config.Web {
	if w := s.current.Load(); w != nil {
		return *w
	}
	return config.Web{}
}

// feedBySecret returns the feed with this secret.
func (s *Settings) feedBySecret(secret string) (found config.Feed, ok bool) {
	hash := []byte(config.HashToken(secret))
	for _, f := range s.load().Feeds {
		if subtle.ConstantTimeCompare(hash, []byte(f.Hash)) == 1 {
			found, ok = f, true
		}
	}
	return found, ok
}

// proxyUser returns the user whom the proxy in front of the listener has logged in, or "".
func (s *Settings) proxyUser(r *http.Request) string {
	p := s.load().Proxy
	if p == nil {
		return ""
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	given := r.Header[p.Header]
	if err != nil || len(given) != 1 || !slices.ContainsFunc(p.From, func(x netip.Prefix) bool { return x.Contains(from.Addr().Unmap()) }) {
		return ""
	}
	return given[0]
}

// isPublicHost reports whether r names the host of the public address.
func (s *Settings) isPublicHost(r *http.Request) bool {
	u, err := url.Parse(s.load().PublicURL)
	return err == nil && u.Host != "" && u.Host == r.Host
}

// baseURL returns the address of the web page, as the user who sends r reaches it.
func (s *Settings) baseURL(r *http.Request) string {
	if at := s.load().PublicURL; at != "" {
		return at
	}
	if isSecure(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// isSecure reports whether r came over TLS, to this process or to a proxy in front of it.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}
