package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/manage"
)

const (
	// sessionCookie has the ID of a session, noteCookie what the last action did.
	sessionCookie = "vokter_session"
	noteCookie    = "vokter_note"
	// sessionLifetime is how long a session lasts.
	sessionLifetime = 30 * 24 * time.Hour
	// maxSessions is how many sessions one token has at once. Its oldest one ends if there are more, so
	// that nobody logs out others.
	maxSessions = 50
	// maxLogin is the largest form of a login, in bytes. Whoever sends it is not known yet.
	maxLogin = 4 << 10
)

// sessions are the users who logged in. They are lost with the process.
type sessions struct {
	mu sync.Mutex
	// byID has the sessions by the hash of their ID, so that no memory dump shows an ID.
	byID map[[sha256.Size]byte]session
}

// session is one login. It holds the hash of the token, so that it ends with the token.
type session struct {
	token   string
	started time.Time
}

func newSessions() *sessions { return &sessions{byID: make(map[[sha256.Size]byte]session)} }

// begin returns the ID of a new session.
func (s *sessions) begin(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest [sha256.Size]byte
	count := 0
	for key, one := range s.byID {
		switch {
		case time.Since(one.started) > sessionLifetime:
			delete(s.byID, key)
		case one.token == token:
			if count++; count == 1 || one.started.Before(s.byID[oldest].started) {
				oldest = key
			}
		}
	}
	if count >= maxSessions {
		delete(s.byID, oldest)
	}
	id := rand.Text()
	s.byID[sha256.Sum256([]byte(id))] = session{token, time.Now()}
	return id
}

// token returns the hash of the token of a session, or "" if there is no such session.
func (s *sessions) token(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.byID[sha256.Sum256([]byte(id))]
	if !ok || time.Since(one.started) > sessionLifetime {
		return ""
	}
	return one.token
}

// end ends a session.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, sha256.Sum256([]byte(id)))
}

// currentUser returns who sends r, or nil.
func (s *Site) currentUser(r *http.Request) *manage.Bearer {
	if user := s.settings.proxyUser(r); user != "" {
		return s.api.Named(user)
	}
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil
	}
	hash := s.sessions.token(c.Value)
	if hash == "" {
		return nil
	}
	return s.api.Bearer(hash)
}

// againPage is the page that leads on to To, by itself unless that page does something, such as fetching a page.
type againPage struct {
	To  string
	Ask bool
}

// requireUser returns who sends r, or sends the login page and returns nil. With effect, the page of r does something
// in the name of the user, so that a link on another site must not lead there by itself.
func (s *Site) requireUser(w http.ResponseWriter, r *http.Request, effect bool) *manage.Bearer {
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || effect && site == "same-site") && r.Method == http.MethodGet {
		// The browser keeps the cookie from a request that follows a link in a mail or a chat. It
		// sends the cookie once this page asks for itself. It sends the cookie to a sibling of a site in any case.
		s.render(w, r, http.StatusOK, "again", view{Path: r.URL.Path, Data: againPage{r.URL.RequestURI(), effect}})
		return nil
	}
	if b := s.currentUser(r); b != nil {
		return b
	}
	switch user := s.settings.proxyUser(r); {
	case user != "":
		s.renderError(w, r, http.StatusForbidden, fmt.Sprintf("The configuration has no token with the name %q, by which the proxy calls you; add it under api: tokens:.", user))
	case r.Method != http.MethodGet:
		s.renderError(w, r, http.StatusUnauthorized, "The session has ended. Log in and try again.")
	default:
		s.render(w, r, http.StatusUnauthorized, "login", view{Path: r.URL.Path, Data: loginForm{Back: r.URL.RequestURI()}})
	}
	return nil
}

// loginForm is the form that asks for a token.
type loginForm struct{ Back, Problem string }

func (s *Site) showLogin(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, http.StatusOK, "login", view{Path: r.URL.Path, Data: loginForm{Back: "/"}})
}

// login begins a session.
func (s *Site) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	back := localPath(r.PostFormValue("back"))
	hash := config.HashToken(strings.TrimSpace(r.PostFormValue("token")))
	if s.api.Bearer(hash) == nil {
		s.render(w, r, http.StatusUnauthorized, "login", view{Path: r.URL.Path, Data: loginForm{back, "This token is not valid. A token of the data directory is replaced at each start."}})
		return
	}
	http.SetCookie(w, newCookie(r, sessionCookie, s.sessions.begin(hash), sessionLifetime))
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// logout ends a session.
func (s *Site) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(sessionCookie); err == nil {
		s.sessions.end(c.Value)
	}
	http.SetCookie(w, newCookie(r, sessionCookie, "", -time.Second))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// newCookie returns a cookie that no script and no other web site can use.
func newCookie(r *http.Request, name, value string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: isSecure(r),
	}
}

// localPath returns to if it is a page of this site, and otherwise the first page.
func localPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

// maxNote is the longest note, in bytes: a cookie has at most 4 KiB.
const maxNote = 2000

// setNote keeps a note for the next page.
func setNote(w http.ResponseWriter, note string) {
	note = note[:min(len(note), maxNote)]
	http.SetCookie(w, &http.Cookie{
		Name: noteCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(note)), Path: "/", MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// takeNote returns the note for this page and removes it.
func takeNote(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(noteCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: noteCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b), "")
}
