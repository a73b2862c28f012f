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
type Settings struct{ now atomic.Pointer[config.Web] }

// Configure replaces the settings.
func (s *Settings) Configure(w config.Web) { s.now.Store(&w) }

// get returns the current settings.
func (s *Settings) get() config.Web {
	if w := s.now.Load(); w != nil {
		return *w
	}
	return config.Web{}
}

// feed returns the feed with this secret.
func (s *Settings) feed(secret string) (found config.Feed, ok bool) {
	hash := []byte(config.HashToken(secret))
	for _, f := range s.get().Feeds {
		if subtle.ConstantTimeCompare(hash, []byte(f.Hash)) == 1 {
			found, ok = f, true
		}
	}
	return found, ok
}

// proxied returns the user whom the proxy in front of the listener has logged in, or "".
func (s *Settings) proxied(r *http.Request) string {
	p := s.get().Proxy
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

// public reports whether r names the host of the public address.
func (s *Settings) public(r *http.Request) bool {
	u, err := url.Parse(s.get().PublicURL)
	return err == nil && u.Host != "" && u.Host == r.Host
}

// base returns the address of the web page, as the user who sends r reaches it.
func (s *Settings) base(r *http.Request) string {
	if at := s.get().PublicURL; at != "" {
		return at
	}
	if secure(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// secure reports whether r came over TLS, to this process or to a proxy in front of it.
func secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}
