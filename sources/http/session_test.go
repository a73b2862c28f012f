package httpsource

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// loginSite is a website behind a login form with a hidden field.
type loginSite struct {
	mu       sync.Mutex
	password string
	logins   int // forms that were posted
	valid    string
	soft     bool // shows the end of a session in the page, and not by a redirect
	status   int  // of pages, if it is not 0
	*httptest.Server
}

func newLoginSite(t *testing.T) *loginSite {
	s := &loginSite{password: "hunter22"}
	s.Server = serve(t, s.handle)
	return s
}

func (s *loginSite) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	if r.URL.Path != "/login" {
		c, err := r.Cookie("session")
		switch open := err == nil && c.Value == s.valid; {
		case open && s.status != 0:
			w.WriteHeader(s.status)
		case open:
			fmt.Fprint(w, `<a href="/logout">Log out</a> secret page`)
		case s.soft:
			fmt.Fprint(w, "please log in")
		default:
			http.Redirect(w, r, "/login?next="+r.URL.Path, http.StatusFound)
		}
		return
	}
	const form = `<form action="/login" method="post"><input type="hidden" name="csrf" value="tok-1"><input name="user"><input name="password" type="password"></form>`
	if r.Method == http.MethodGet {
		http.SetCookie(w, &http.Cookie{Name: "csrf", Value: "tok-1"})
		fmt.Fprint(w, form)
		return
	}
	s.logins++
	csrf, err := r.Cookie("csrf")
	if r.FormValue("user") != "ann" || r.FormValue("password") != s.password || err != nil || r.FormValue("csrf") != csrf.Value {
		fmt.Fprint(w, "wrong", form)
		return
	}
	s.valid = fmt.Sprint("session-", s.logins)
	http.SetCookie(w, &http.Cookie{Name: "session", Value: s.valid})
	http.Redirect(w, r, "/home", http.StatusFound)
}

func (s *loginSite) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *loginSite) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

func (s *loginSite) access(check string) map[string]Access {
	return map[string]Access{"shop": {Hosts: []string{s.URL}, Login: &Login{
		URL: s.URL + "/login", Fields: newSecrets("user", "ann", "password", "hunter22"), Check: check,
	}}}
}

// fetchMany fetches n pages at the same time.
func (s *loginSite) fetchMany(t *testing.T, f *Fetcher, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: fmt.Sprintf("%s/page/%d", s.URL, i)})
			if err != nil || !strings.Contains(string(body), "secret page") {
				t.Errorf("page %d: %q, %v", i, body, err)
			}
		})
	}
	all.Wait()
}

// Many pages share a session: one login opens it, and one opens it again when it has ended.
func TestSession(t *testing.T) {
	for _, soft := range []bool{false, true} {
		s := newLoginSite(t)
		s.soft = soft
		check := ""
		if soft {
			check = `a[href="/logout"]`
		}
		f := fetcherWithAccess(t, Config{}, s.access(check))
		s.fetchMany(t, f, 20)
		if n := s.count(); n != 1 {
			t.Errorf("soft %t: %d logins for the first pages", soft, n)
		}
		s.change(func() { s.valid = "" }) // the session ends
		s.fetchMany(t, f, 20)
		if n := s.count(); n != 2 {
			t.Errorf("soft %t: %d logins after the session ended", soft, n)
		}
		if err := f.SetAccess(map[string]Access{"shop": s.access(check)["shop"], "new": {Hosts: []string{"a.example"}, Bearer: registry.NewSecret("x")}}); err != nil {
			t.Fatal(err)
		}
		if s.fetchMany(t, f, 1); s.count() != 2 {
			t.Errorf("soft %t: a reload lost the session", soft)
		}
	}
}

// A wrong password is not tried again at once, since websites lock accounts.
func TestWrongPassword(t *testing.T) {
	s := newLoginSite(t)
	s.password = "changed"
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := fetcherWithAccess(t, Config{Now: func() time.Time { return now }}, s.access(""))
	try := func(logins int) {
		t.Helper()
		_, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: s.URL + "/page"})
		e, ok := errors.AsType[*pipeline.FetchError](err)
		if !ok || e.Class != pipeline.FailLogin || !strings.Contains(e.Reason, "password right?") || strings.Contains(e.Reason, "hunter") {
			t.Fatalf("got %v", err)
		}
		if n := s.count(); n != logins {
			t.Fatalf("%d logins, want %d", n, logins)
		}
	}
	try(1)
	try(1)
	now = now.Add(loginPause)
	try(2)
	now = now.Add(loginPause)
	try(2) // the pause has doubled
	now = now.Add(loginPause)
	try(3)
	s.change(func() { s.password = "hunter22" })
	now = now.Add(maxLoginPause)
	s.fetchMany(t, f, 3)
}

// A page that is forbidden also after a login does not end the sessions of others again and again.
func TestForbiddenPage(t *testing.T) {
	s := newLoginSite(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := fetcherWithAccess(t, Config{Now: func() time.Time { return now }}, s.access(""))
	s.fetchMany(t, f, 1)
	s.change(func() { s.status = http.StatusForbidden })
	for range 3 {
		_, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: s.URL + "/admin"})
		if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Status != http.StatusForbidden || !strings.Contains(e.Reason, "also right after a login") {
			t.Fatalf("got %v", err)
		}
	}
	if n := s.count(); n != 2 {
		t.Errorf("%d logins, want one more than the first", n)
	}
}

// The password goes to the host of the login only.
func TestPasswordStaysWithItsHost(t *testing.T) {
	got := make(chan string, 10)
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.FormValue("password") })
	for name, h := range map[string]http.HandlerFunc{
		"form": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<form action="%s/in"><input name="user"><input name="password"></form>`, other.URL)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				http.Redirect(w, r, other.URL+"/in", http.StatusTemporaryRedirect)
			}
		},
	} {
		s := &loginSite{Server: serve(t, h)}
		f := fetcherWithAccess(t, Config{}, s.access(""))
		_, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: s.URL + "/page"})
		if err == nil || !strings.Contains(err.Error(), "host") || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", name, err)
		}
	}
	select {
	case password := <-got:
		t.Errorf("another host got the password %q", password)
	default:
	}
}
