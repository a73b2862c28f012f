package httpsource

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"
)

// Bounds of the cookies of a session or a fetch, as in browsers. Cookies that are larger, in bytes, or too
// many are not kept: a website may give one with a new name in every answer.
const (
	maxCookies         = 180
	maxCookie          = 4096
	maxCookieAttribute = 1024
)

// cookieStore holds the cookies of a session or a fetch. A cookie that came over https is sent over https only,
// and one of a port to that port only.
type cookieStore struct {
	mu     sync.Mutex
	jars   map[origin]http.CookieJar // by scheme and port
	stored map[cookieID]bool
}

// cookieID tells a cookie from others.
type cookieID struct {
	origin             origin
	domain, path, name string
}

func newCookieStore() *cookieStore {
	return &cookieStore{jars: make(map[origin]http.CookieJar), stored: make(map[cookieID]bool)}
}

// Cookies returns the cookies for u.
func (c *cookieStore) Cookies(u *url.URL) []*http.Cookie {
	c.mu.Lock()
	defer c.mu.Unlock()
	if jar := c.jars[originWithoutHost(u)]; jar != nil {
		return jar.Cookies(u)
	}
	return nil
}

// SetCookies stores the cookies that u set.
func (c *cookieStore) SetCookies(u *url.URL, list []*http.Cookie) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list = slices.DeleteFunc(slices.Clone(list), func(k *http.Cookie) bool { return !c.accepts(u, k) })
	if len(list) == 0 {
		return
	}
	key := originWithoutHost(u)
	if c.jars[key] == nil {
		c.jars[key], _ = cookiejar.New(&cookiejar.Options{PublicSuffixList: publicsuffix.List}) // never fails
	}
	c.jars[key].SetCookies(u, list)
}

// accepts reports whether the store takes k, which u set. c.mu is held.
func (c *cookieStore) accepts(u *url.URL, k *http.Cookie) bool {
	if len(k.Name)+len(decodeCookie(k.Value)) > maxCookie || len(k.Domain) > maxCookieAttribute || len(k.Path) > maxCookieAttribute {
		return false
	}
	id := cookieID{originOf(u), k.Domain, k.Path, k.Name}
	if !strings.HasPrefix(k.Path, "/") {
		id.path = u.Path[:strings.LastIndexByte(u.Path, '/')+1] // of the page, as the jar takes it
	}
	switch {
	case k.MaxAge < 0, k.MaxAge == 0 && !k.Expires.IsZero() && k.Expires.Before(time.Now()): // it is removed
		delete(c.stored, id)
	case c.stored[id]:
	case len(c.stored) >= maxCookies:
		return false
	default:
		c.stored[id] = true
	}
	return true
}

// originWithoutHost returns the origin of u without its host.
func originWithoutHost(u *url.URL) origin {
	o := originOf(u)
	o.host = ""
	return o
}

var _ http.CookieJar = (*cookieStore)(nil)
