package web

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/manage"
)

const (
	// sessionCookie has the ID of a session, noteCookie what the last action did.
	sessionCookie = "vokter_session"
	noteCookie    = "vokter_note"
	// maxLogin is the largest form of a login, in bytes. Whoever sends it is not known yet.
	maxLogin = 4 << 10
)

// currentUser returns who sends r, or nil.
func (s *Site) currentUser(r *http.Request) *manage.Bearer {
	if user := s.settings.proxyUser(r); user != "" {
		return s.api.Named(user)
	}
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return nil
	}
	hash := s.api.Logins().Session(c.Value)
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

// loginForm is the form that asks for a token or the password.
type loginForm struct{ Back, Problem string }

// showLogin shows the form, or logs in who comes by a link that works once.
func (s *Site) showLogin(w http.ResponseWriter, r *http.Request) {
	form := loginForm{Back: "/"}
	code := r.URL.Query().Get("once")
	if code != "" && r.Method == http.MethodGet && r.Header.Get("Sec-Purpose") == "" { // a browser that looks ahead logs nobody in
		if hash := s.api.Logins().Redeem(code); hash != "" {
			s.begin(w, r, hash, "/")
			return
		}
		if s.currentUser(r) != nil {
			http.Redirect(w, r, s.settings.at("/"), http.StatusSeeOther)
			return
		}
		form.Problem = "This link was used already, or it is too old. Write vokter-stream token on the machine that runs Vokter, and log in with what it prints."
	}
	s.render(w, r, http.StatusOK, "login", view{Path: r.URL.Path, Data: form})
}

// login begins a session.
func (s *Site) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLogin)
	form := loginForm{Back: localPath(r.PostFormValue("back"))}
	given := r.PostFormValue("token")
	hash := config.HashToken(strings.TrimSpace(given))
	if s.api.Bearer(hash) == nil {
		var err error
		if hash, err = s.api.Logins().Try(given); err != nil {
			form.Problem = sentence(err.Error())
			s.render(w, r, http.StatusTooManyRequests, "login", view{Path: r.URL.Path, Data: form})
			return
		}
	}
	if hash == "" {
		form.Problem = "This is neither a valid token nor the password."
		s.render(w, r, http.StatusUnauthorized, "login", view{Path: r.URL.Path, Data: form})
		return
	}
	s.begin(w, r, hash, form.Back)
}

// begin begins a session with the token of this hash and leads to the page back.
func (s *Site) begin(w http.ResponseWriter, r *http.Request, hash, back string) {
	id, err := s.api.Logins().Begin(hash)
	if err != nil {
		s.log.Warn("a session is not kept: it ends with this process", "error", err)
	}
	http.SetCookie(w, s.newCookie(r, sessionCookie, id, manage.SessionLifetime))
	http.Redirect(w, r, s.settings.at(back), http.StatusSeeOther)
}

// logout ends a session.
func (s *Site) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(sessionCookie); err == nil {
		if err := s.api.Logins().End(c.Value); err != nil {
			s.log.Warn("the end of a session is not kept", "error", err)
		}
	}
	http.SetCookie(w, s.newCookie(r, sessionCookie, "", -time.Second))
	http.Redirect(w, r, s.settings.at("/login"), http.StatusSeeOther)
}

// newCookie returns a cookie that no script and no other web site can use.
func (s *Site) newCookie(r *http.Request, name, value string, age time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: s.settings.at("/"), MaxAge: int(age / time.Second), HttpOnly: true, SameSite: http.SameSiteStrictMode,
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
func (s *Site) setNote(w http.ResponseWriter, note string) {
	note = note[:min(len(note), maxNote)]
	http.SetCookie(w, &http.Cookie{
		Name: noteCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(note)), Path: s.settings.at("/"), MaxAge: 60, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// takeNote returns the note for this page and removes it.
func (s *Site) takeNote(w http.ResponseWriter, r *http.Request) string {
	c, err := r.Cookie(noteCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: noteCookie, Path: s.settings.at("/"), MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(b), "")
}
