package httpsource

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// cookieLog is a website whose pages are given only to who sends back the cookie of a redirect. It notes the
// cookies of each request.
type cookieLog struct {
	mu   sync.Mutex
	seen []string // "PATH COOKIES"
	*httptest.Server
}

// newCookieLog returns a website that answers with h after it noted a request.
func newCookieLog(t *testing.T, h http.HandlerFunc) *cookieLog {
	l := &cookieLog{}
	l.Server = serve(t, func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.seen = append(l.seen, r.URL.Path+" "+r.Header.Get("Cookie"))
		l.mu.Unlock()
		h(w, r)
	})
	return l
}

// take returns the requests since the last call.
func (l *cookieLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.seen
	l.seen = nil
	return seen
}

// wall leads who has no cookie "seen" to a path with one, and shows the page to others.
func wall(via string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := r.Cookie("seen")
		switch {
		case err == nil:
			io.WriteString(w, "the page")
		case r.URL.Path == via:
			http.SetCookie(w, &http.Cookie{Name: "seen", Value: "1", Path: "/"})
			http.Redirect(w, r, "/page", http.StatusFound)
		default:
			http.Redirect(w, r, via, http.StatusFound)
		}
	}
}

// TestCookieWall fetches pages behind walls: each fetch needs as many requests as a browser's first visit,
// and the next one knows nothing of it.
func TestCookieWall(t *testing.T) {
	for via, want := range map[string][]string{
		"/page":    {"/page ", "/page seen=1"},
		"/consent": {"/page ", "/consent ", "/page seen=1"},
	} {
		site := newCookieLog(t, wall(via))
		f := New(Config{Allow: loopback})
		for range 2 {
			_, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: site.URL + "/page"})
			if got := site.take(); err != nil || string(body) != "the page" || !slices.Equal(got, want) {
				t.Errorf("%s: got %q, %v after %q, want %q", via, body, err, got, want)
			}
		}
	}
}

// TestCookieValues sends cookies back with the value that the website wrote, whatever is in it, as browsers do.
func TestCookieValues(t *testing.T) {
	for value, want := range map[string]string{
		`{"a":1,"b":"x y"}`: `{"a":1,"b":"x y"}`, `say"so`: `say"so`, `"`: `"`, `"quoted"`: `"quoted"`, `"a b"`: `"a b"`, `a\b`: `a\b`, "a, b c": "a, b c",
		"żółw=1": "żółw=1", "plain": "plain", " spaced\t": "spaced", storedAsHex + "00": storedAsHex + "00", "": "",
		strings.Repeat(`"x`, 2000): strings.Repeat(`"x`, 2000),
	} {
		site := newCookieLog(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/page" {
				w.Header().Add("Set-Cookie", "a="+value+"; Path=/; HttpOnly")
				w.Header().Add("Set-Cookie", "b="+value)
				http.Redirect(w, r, "/next", http.StatusFound)
			}
		})
		if _, _, err := fetch(t.Context(), New(Config{Allow: loopback}), pipeline.FetchRequest{URL: site.URL + "/page"}); err != nil {
			t.Errorf("%q: %v", value, err)
		}
		if got := site.take(); !slices.Equal(got, []string{"/page ", "/next a=" + want + "; b=" + want}) {
			t.Errorf("%q: got %q", value, got)
		}
	}
}

// TestCookiesStayWithTheirHost leads to another host and back: neither gets the cookies of the other, and the
// cookies of the access go to its host only.
func TestCookiesStayWithTheirHost(t *testing.T) {
	var site, other *cookieLog
	site = newCookieLog(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.SetCookie(w, &http.Cookie{Name: "mine", Value: "1", Path: "/"})
			http.SetCookie(w, &http.Cookie{Name: "theme", Value: "light", Path: "/"})
			http.Redirect(w, r, other.URL+"/there", http.StatusFound)
		}
	})
	other = newCookieLog(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "theirs", Value: "2", Path: "/"})
		if r.URL.Path == "/there" {
			http.Redirect(w, r, "/again", http.StatusFound)
		} else {
			http.Redirect(w, r, site.URL+"/back", http.StatusFound)
		}
	})
	settings := map[string]Access{"site": {Hosts: []string{site.URL}, Cookies: newSecrets("sid", "c-123456", "theme", "dark")}}
	for name, f := range map[string]*Fetcher{"plain": New(Config{Allow: loopback}), "access": fetcherWithAccess(t, Config{}, settings)} {
		if _, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: site.URL + "/away"}); err != nil {
			t.Fatal(err)
		}
		want := []string{"/away ", "/back mine=1; theme=light"}
		if name == "access" { // the website's theme replaces the given one
			want = []string{"/away sid=c-123456; theme=dark", "/back mine=1; theme=light; sid=c-123456"}
		}
		if got := site.take(); !slices.Equal(got, want) {
			t.Errorf("%s: the site got %q, want %q", name, got, want)
		}
		if got := other.take(); !slices.Equal(got, []string{"/there ", "/again theirs=2"}) {
			t.Errorf("%s: the other host got %q", name, got)
		}
	}
}

// TestCookieWallInSession fetches a page behind a wall in a session: its cookie comes along with that of the
// wall, which the session keeps.
func TestCookieWallInSession(t *testing.T) {
	s := newLoginSite(t)
	pages := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("seen"); err != nil && r.URL.Path == "/page" {
			wall("/page")(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
	f := fetcherWithAccess(t, Config{}, s.access(""))
	if _, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: s.URL + "/page"}); err != nil || !strings.Contains(string(body), "secret page") {
		t.Errorf("got %q, %v", body, err)
	}
}

// TestCookiesOfNames holds which other names get a cookie.
func TestCookiesOfNames(t *testing.T) {
	c := newCookieStore()
	from := &url.URL{Scheme: "https", Host: "www.shop.co.uk", Path: "/"}
	c.SetCookies(from, []*http.Cookie{
		{Name: "own", Value: "1"}, {Name: "all", Value: "1", Domain: "shop.co.uk"},
		{Name: "suffix", Value: "1", Domain: "co.uk"}, {Name: "foreign", Value: "1", Domain: "bank.co.uk"},
	})
	for host, want := range map[string]string{"www.shop.co.uk": "own all", "pay.shop.co.uk": "all", "shop.co.uk": "all", "bank.co.uk": "", "shop.co.uk.example": ""} {
		var got []string
		for _, k := range c.Cookies(&url.URL{Scheme: "https", Host: host, Path: "/"}) {
			got = append(got, k.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s gets %q, want %q", host, got, want)
		}
	}
}

// A cookie that came over https is never sent over http, and one of a port to that port only.
func TestCookiesOfSession(t *testing.T) {
	c := newCookieStore()
	at := func(raw string) *http.Request { return httptest.NewRequest(http.MethodGet, raw, nil) }
	c.SetCookies(at("https://shop.example/").URL, []*http.Cookie{{Name: "a", Value: "1"}})
	for raw, want := range map[string]int{"https://shop.example/x": 1, "http://shop.example/x": 0, "https://shop.example:8443/x": 0, "https://other.example/x": 0} {
		if got := c.Cookies(at(raw).URL); len(got) != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}

// A website may give a cookie with a new name in each answer, and very large ones.
func TestCookiesAreBounded(t *testing.T) {
	c := newCookieStore()
	u := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
	set := func(k http.Cookie) { c.SetCookies(u, []*http.Cookie{&k}) }
	set(http.Cookie{Name: "session", Value: "1"})
	set(http.Cookie{Name: "large", Value: strings.Repeat("x", maxCookie)})
	for i := range 10 * maxCookies {
		set(http.Cookie{Name: fmt.Sprint("n", i), Value: "x"})
	}
	set(http.Cookie{Name: "session", Value: "2"})
	got := c.Cookies(u)
	if len(got) != maxCookies {
		t.Errorf("%d cookies are kept", len(got))
	}
	if !slices.ContainsFunc(got, func(k *http.Cookie) bool { return k.Name == "session" && k.Value == "2" }) {
		t.Error("a known cookie has not got its new value")
	}
	for name, removed := range map[string]http.Cookie{"a": {Name: "n1", MaxAge: -1}, "b": {Name: "n2", Expires: time.Unix(1, 0)}} {
		set(removed)
		set(http.Cookie{Name: name, Value: "x"})
		if got := c.Cookies(u); !slices.ContainsFunc(got, func(k *http.Cookie) bool { return k.Name == name }) {
			t.Errorf("there is no room for another cookie after %s was removed", removed.Name)
		}
	}
}
