package httpsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

const (
	// maxFormSearch is how much of a page is searched for a form, or for Login.Check, in bytes.
	maxFormSearch = 1 << 20
	// After a login that the website refused, the next one is tried after loginPause, which doubles
	// up to maxLoginPause: many websites lock an account after some wrong passwords. After one that
	// failed on the network it is tried after networkPause.
	loginPause    = time.Minute
	maxLoginPause = time.Hour
	networkPause  = 10 * time.Second
	// deniedTime is for how long a page that is refused also in a new session renews no session.
	deniedTime = time.Hour
	// maxDenied is how many such pages are remembered.
	maxDenied = 10_000
)

// session is an open session of a Login: its cookies. It is the jar of the access's client. It is safe
// for concurrent use.
type session struct {
	url    *url.URL
	fields url.Values
	check  cascadia.Matcher // nil if there is none
	now    func() time.Time

	loginLock chan struct{} // held during a login, so that there is one at a time

	mu            sync.Mutex
	cookies       *cookieStore
	sessionNumber int                  // of the session; 0 before the first login
	failures      int                  // logins in a row that failed
	noLoginUntil  time.Time            // before which there is no login
	loginError    error                // why the last login failed
	deniedUntil   map[string]time.Time // pages that may not renew the session, until then
}

// newSession returns a session that is not open.
func newSession(l *Login, now func() time.Time, bad *outbound.Mistakes) *session {
	s := &session{now: now, loginLock: make(chan struct{}, 1), cookies: newCookieStore(), fields: make(url.Values), deniedUntil: make(map[string]time.Time)}
	if err := pageurl.Check(l.URL, "http", "https"); err != nil {
		bad.Add("login.url", err)
	}
	s.url, _ = url.Parse(pageurl.Encode(l.URL))
	if len(l.Fields) == 0 {
		bad.Addf("login.fields", "no field of the form is given; write such as fields: {username: alice, password_file: /run/secrets/shop}")
	}
	for name, value := range l.Fields {
		s.fields.Set(name, value.Reveal())
	}
	if l.Check != "" {
		m, err := cascadia.ParseGroup(l.Check)
		if err != nil {
			bad.Addf("login.check", "this is not a CSS selector: %v", err)
		}
		s.check = m
	}
	return s
}

// Cookies returns the cookies of the session for u.
func (s *session) Cookies(u *url.URL) []*http.Cookie { return s.currentCookies().Cookies(u) }

// SetCookies stores cookies in the session.
func (s *session) SetCookies(u *url.URL, c []*http.Cookie) { s.currentCookies().SetCookies(u, c) }

func (s *session) currentCookies() *cookieStore {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cookies
}

// fetchInSession fetches r in the session of a. It logs in before the first page, and once more where
// the page says that the session has ended.
func (f *Fetcher) fetchInSession(ctx context.Context, a *access, r pipeline.FetchRequest) (pipeline.Response, error) {
	s := a.session
	fresh := s.currentNumber() == 0
	number, err := s.ensureOpen(ctx, f, a, 0)
	if err != nil {
		return pipeline.Response{}, err
	}
	resp, err := f.fetchWith(ctx, a.client, r)
	if !s.hasEnded(ctx, &resp, err) {
		s.forgetDenied(r.URL)
		return resp, err
	}
	if resp.Body != nil {
		resp.Body.Close()
	}
	if fresh {
		s.deny(r.URL)
	}
	if s.isDenied(r.URL) {
		return pipeline.Response{}, deniedError(err)
	}
	if _, err := s.ensureOpen(ctx, f, a, number); err != nil {
		return pipeline.Response{}, err
	}
	if resp, err = f.fetchWith(ctx, a.client, r); !s.hasEnded(ctx, &resp, err) {
		return resp, err
	}
	if resp.Body != nil {
		resp.Body.Close()
	}
	s.deny(r.URL)
	return pipeline.Response{}, deniedError(err)
}

// deniedError is the error for a page that is refused in an open session; err is nil or the refusal.
func deniedError(err error) error {
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		c := *e
		c.Reason += ", also right after a login"
		return &c
	}
	return &pipeline.FetchError{Class: pipeline.FailLogin, Reason: "the page asks for a login also right after one; is login.check, or the user's permission, right?"}
}

// hasEnded reports whether the answer to a fetch shows that the session has ended.
func (s *session) hasEnded(ctx context.Context, resp *pipeline.Response, err error) bool {
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || s.isLoginPage(resp.URL)
	}
	if err != nil {
		return false
	}
	if s.isLoginPage(resp.URL) {
		return true
	}
	if s.check == nil || resp.Status == http.StatusNotModified {
		return false
	}
	start, err := io.ReadAll(io.LimitReader(resp.Body, maxFormSearch))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failingReader{err}
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(start), rest), resp.Body}
	if err != nil {
		return false
	}
	doc, _, err := htmltree.Parse(ctx, start)
	return err == nil && cascadia.Query(doc, s.check) == nil
}

// failingReader fails with err.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// isLoginPage reports whether raw is the URL of the form.
func (s *session) isLoginPage(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && originOf(u) == originOf(s.url) && strings.TrimSuffix(u.Path, "/") == strings.TrimSuffix(s.url.Path, "/")
}

// ensureOpen returns the number of a session that is newer than number, and logs in if there is none.
func (s *session) ensureOpen(ctx context.Context, f *Fetcher, a *access, number int) (int, error) {
	if n := s.currentNumber(); n > number {
		return n, nil
	}
	select {
	case s.loginLock <- struct{}{}:
		defer func() { <-s.loginLock }()
	case <-ctx.Done():
		return 0, classify(ctx, ctx.Err(), s.url.Hostname())
	}
	if n := s.currentNumber(); n > number {
		return n, nil
	}
	s.mu.Lock()
	wait, last := s.noLoginUntil.Sub(s.now()), s.loginError
	s.mu.Unlock()
	if last != nil && wait > 0 && wait <= maxLoginPause {
		return 0, last
	}
	fresh := newCookieStore()
	err := s.logIn(ctx, f, a, fresh)
	if errors.Is(ctx.Err(), context.Canceled) {
		return 0, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loginError = err; err != nil {
		pause := networkPause
		if e, ok := errors.AsType[*pipeline.FetchError](err); ok && e.Class == pipeline.FailLogin {
			pause = min(loginPause<<min(s.failures, 10), maxLoginPause)
			s.failures++
		}
		s.noLoginUntil = s.now().Add(pause)
		return 0, err
	}
	s.cookies, s.failures = fresh, 0
	s.sessionNumber++
	return s.sessionNumber, nil
}

// currentNumber returns the number of the open session, 0 before the first login.
func (s *session) currentNumber() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessionNumber
}

func (s *session) isDenied(page string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.deniedUntil[page].Sub(s.now())
	return left > 0 && left <= deniedTime
}

// forgetDenied lets page renew the session again.
func (s *session) forgetDenied(page string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.deniedUntil, page)
}

// deny makes page one that may not renew the session for some time.
func (s *session) deny(page string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.deniedUntil) >= maxDenied {
		clear(s.deniedUntil)
	}
	s.deniedUntil[page] = s.now().Add(deniedTime)
}

// logIn gets the form, if there is one, and posts its fields. The cookies of the new session are put
// into jar.
func (s *session) logIn(ctx context.Context, f *Fetcher, a *access, jar http.CookieJar) error {
	client := *a.client
	client.Jar = jar
	client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.Method != http.MethodGet && originOf(req.URL) != originOf(via[0].URL) { // 307 or 308
			return &outbound.RedirectError{Reason: "the answer to the login leads to another host, which must not get the password"}
		}
		return a.client.CheckRedirect(req, via)
	}
	action, fields, err := s.findForm(ctx, f, &client)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, action.String(), strings.NewReader(fields.Encode()))
	if err != nil {
		return &pipeline.FetchError{Class: pipeline.FailLogin, Reason: "login.url is not a URL"}
	}
	f.setHeaders(req)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Referer", withoutUser(s.url))
	req.Header.Set("Origin", action.Scheme+"://"+action.Host)
	resp, err := client.Do(req)
	if err != nil {
		return s.classifyLogin(ctx, err)
	}
	defer resp.Body.Close()
	status, again := resp.StatusCode, resp.Request.Method == http.MethodPost
	if again && status >= 400 {
		e, _ := errors.AsType[*pipeline.FetchError](f.statusError(resp, false))
		if e.Class != pipeline.FailBusy && status < 500 {
			e.Class = pipeline.FailLogin
		}
		e.Reason = "the login was answered with " + e.Reason
		return e
	}
	page, err := f.parseStart(ctx, resp)
	if err != nil {
		return err
	}
	if formWith(page, s.fields) != nil {
		return &pipeline.FetchError{Class: pipeline.FailLogin, Status: status, Reason: "the website shows the login form again; are the user name and the password right?"}
	}
	return nil
}

// classifyLogin is classify for an error of a login.
func (s *session) classifyLogin(ctx context.Context, err error) error {
	err = classify(ctx, err, s.url.Hostname())
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		e.Reason = "the login failed: " + e.Reason
	}
	return err
}

// parseStart returns the beginning of a page, parsed, or nil if it is no HTML.
func (f *Fetcher) parseStart(ctx context.Context, resp *http.Response) (*html.Node, error) {
	if !strings.Contains(resp.Header.Get("Content-Type"), "html") {
		return nil, nil
	}
	body, err := newBody(ctx, resp, f.maxBody, resp.Request.URL.Hostname())
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxFormSearch))
	if err != nil {
		return nil, err
	}
	doc, _, err := htmltree.Parse(ctx, text)
	if err != nil {
		return nil, nil
	}
	return doc, nil
}

// findForm returns where the fields of the login are posted, and the fields with the hidden ones of the
// form. Where the URL shows no such form, it takes the fields itself.
func (s *session) findForm(ctx context.Context, f *Fetcher, client *http.Client) (*url.URL, url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url.String(), nil)
	if err != nil {
		return nil, nil, &pipeline.FetchError{Class: pipeline.FailLogin, Reason: "login.url is not a URL"}
	}
	f.setHeaders(req)
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, s.classifyLogin(ctx, err)
	}
	defer resp.Body.Close()
	fields := maps.Clone(s.fields)
	if !isPage(resp) {
		return s.url, fields, nil
	}
	page, err := f.parseStart(ctx, resp)
	if err != nil {
		return nil, nil, err
	}
	form := formWith(page, s.fields)
	if form == nil {
		return s.url, fields, nil
	}
	to, _ := htmltree.Attribute(form, "action")
	action, err := resp.Request.URL.Parse(pageurl.Encode(to))
	if err != nil || originOf(action) != originOf(s.url) {
		where := "another URL"
		if err == nil {
			where = fmt.Sprintf("%.100q", action.Scheme+"://"+action.Host)
		}
		return nil, nil, &pipeline.FetchError{Class: pipeline.FailLogin, Reason: "the login form sends its fields to " + where + ", which is not the host of login.url; if that is right, write its URL as login.url"}
	}
	for input := range form.Descendants() {
		name, _ := htmltree.Attribute(input, "name")
		kind, _ := htmltree.Attribute(input, "type")
		if input.Data == "input" && strings.EqualFold(kind, "hidden") && name != "" && !fields.Has(name) {
			value, _ := htmltree.Attribute(input, "value")
			fields.Set(name, value)
		}
	}
	return action, fields, nil
}

// formWith returns the form in page that has inputs for all of fields, or nil.
func formWith(page *html.Node, fields url.Values) *html.Node {
	if page == nil {
		return nil
	}
	for form := range page.Descendants() {
		if form.Type != html.ElementNode || form.Data != "form" {
			continue
		}
		missing := slices.Collect(maps.Keys(fields))
		for input := range form.Descendants() {
			name, _ := htmltree.Attribute(input, "name")
			missing = slices.DeleteFunc(missing, func(n string) bool { return n == name })
		}
		if len(missing) == 0 {
			return form
		}
	}
	return nil
}

var _ http.CookieJar = (*session)(nil)
