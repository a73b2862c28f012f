package web

import (
	"crypto/subtle"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
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

// ownFeed is the name of the feed of all changes that each data directory has.
const ownFeed = "all"

// feedBySecret returns the feed with this secret.
func (s *Site) feedBySecret(secret string) (found config.Feed, ok bool) {
	feeds := s.settings.load().Feeds
	if own := s.api.Logins().Feed(); own != "" {
		feeds = append(slices.Clip(feeds), config.Feed{Name: ownFeed, Hash: config.HashToken(own)})
	}
	hash := []byte(config.HashToken(secret))
	for _, f := range feeds {
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

// base returns the path below which people reach the web page, such as /vokter, or "".
func (s *Settings) base() string {
	u, err := url.Parse(s.load().PublicURL)
	if err != nil {
		return ""
	}
	return u.Path
}

// at returns path as people reach it. Path begins with a slash and is below the web page.
func (s *Settings) at(path string) string { return s.base() + path }

// Within returns h for requests whose path may begin with that of the public address: the proxy in front of the
// listener may pass it on or leave it out.
func (s *Settings) Within(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base := s.base()
		if rest, ok := strings.CutPrefix(r.URL.Path, base+"/"); ok && base != "" {
			to := *r
			u := *r.URL
			u.Path, u.RawPath = "/"+rest, strings.TrimPrefix(u.RawPath, base)
			to.URL, r = &u, &to
		} else if base != "" && r.URL.Path == base {
			http.Redirect(w, r, base+"/", http.StatusSeeOther)
			return
		}
		h.ServeHTTP(w, r)
	})
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
