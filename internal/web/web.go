// Package web is the web page of a running process: what is watched, what changed, and who was
// notified. It is rendered on the server and works without scripts. It knows nothing but the
// management API, which it asks in the name of the user who logged in: what a token may not see or
// do there, it may not see or do here.
package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Options are what a Site needs.
type Options struct {
	// API answers all questions and carries out all actions.
	API *manage.API
	// Settings are the settings, which may be replaced later. Default: there are none.
	Settings *Settings
	// Gauges returns the metrics of the process. Default: there are none.
	Gauges func() []flow.Gauge
	// Logger says which page could not be rendered. Default: nothing is logged.
	Logger *slog.Logger
}

// Site is the handler of the web page.
type Site struct {
	api      *manage.API
	log      *slog.Logger
	settings *Settings
	gauges   func() []flow.Gauge
	mux      *http.ServeMux
	// templates are parsed again when the path of the public address has changed.
	templates atomic.Pointer[pageTemplates]
	// crossOrigin refuses actions that another web site sent.
	crossOrigin *http.CrossOriginProtection
	// feedMu is held while a feed is made.
	feedMu     sync.Mutex
	sources    sourceCache
	parseSlots parseSlots
}

// New returns the web page of the process whose API is o.API.
func New(o Options) *Site {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Gauges == nil {
		o.Gauges = func() []flow.Gauge { return nil }
	}
	o.Settings = cmp.Or(o.Settings, new(Settings))
	s := &Site{api: o.API, settings: o.Settings, gauges: o.Gauges, log: o.Logger, mux: http.NewServeMux(), parseSlots: make(parseSlots, maxParsedAtOnce), crossOrigin: http.NewCrossOriginProtection()}
	s.templates.Store(atRoot)
	for _, r := range routes {
		s.mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, r) })
	}
	s.mux.Handle("GET /assets/", serveAssets())
	s.mux.HandleFunc("GET /login", s.showLogin)
	s.mux.HandleFunc("POST /login", s.login)
	s.mux.HandleFunc("POST /logout", s.logout)
	s.mux.HandleFunc("GET /events", s.streamEvents)
	s.mux.HandleFunc("GET /feeds/{secret}/{format}", s.serveFeed)
	return s
}

// route is a page that needs a user.
type route struct {
	pattern string
	// scope is what the token of the user must allow.
	scope config.Scope
	// template is the page, and show returns its data.
	template string
	show     func(*request) (any, error)
	// timeout is how long show may take; 0 means pageTimeout.
	timeout time.Duration
}

// routes are all pages that need a user, and all actions.
var routes = []route{
	{pattern: "GET /{$}", scope: config.ScopeRead, template: "pages", show: showPages},
	{pattern: "GET /changes", scope: config.ScopeRead, template: "changes", show: showChanges},
	{pattern: "GET /page", scope: config.ScopeRead, template: "page", show: showPage},
	{pattern: "GET /text", scope: config.ScopeRead, template: "text", show: showText},
	{pattern: "GET /diff", scope: config.ScopeRead, template: "diff", show: showDiff},
	{pattern: "GET /screenshot", scope: config.ScopeRead, show: showScreenshot},
	{pattern: "GET /why", scope: config.ScopeRead, template: "why", show: showWhy},
	{pattern: "GET /subscribe", scope: config.ScopeWrite, template: "subscribe", show: showSubscribe, timeout: fetchTimeout},
	{pattern: "GET /pick", scope: config.ScopeWrite, template: "pick", show: showPick, timeout: fetchTimeout},
	{pattern: "GET /pick/frame", scope: config.ScopeWrite, show: showFrame, timeout: fetchTimeout},
	{pattern: "GET /process", scope: config.ScopeRead, template: "process", show: showProcess},
	{pattern: "GET /receivers", scope: config.ScopeRead, template: "receivers", show: showReceivers},
	{pattern: "GET /receiver", scope: config.ScopeAdmin, template: "receiver", show: showReceiver},
	{pattern: "POST /receiver", scope: config.ScopeAdmin, template: "receiver", show: saveReceiver, timeout: fetchTimeout},
	{pattern: "GET /deliveries", scope: config.ScopeRead, template: "deliveries", show: showDeliveries},
	{pattern: "GET /dead-letters", scope: config.ScopeRead, template: "deadletters", show: showDeadLetters},
	{pattern: "POST /do/{action}", scope: config.ScopeRead, show: runAction, timeout: fetchTimeout},
}

// contentSecurityPolicy is the Content-Security-Policy of all pages.
const contentSecurityPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP answers a request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	switch {
	case manage.Rebound(r) && !s.settings.isPublicHost(r):
		s.renderError(w, r, http.StatusForbidden, "This address is not known here. Open the page at 127.0.0.1 or localhost, or set public_url in the configuration.")
	case s.isCrossSite(r):
		s.renderError(w, r, http.StatusForbidden, "The request comes from another web site. Open this page and try there.")
	default:
		if _, pattern := s.mux.Handler(r); pattern == "" && r.Method == http.MethodGet {
			s.renderError(w, r, http.StatusNotFound, "There is no such page.")
			return
		}
		s.mux.ServeHTTP(w, r)
	}
}

// isCrossSite reports whether another web site may have sent r to change something. A browser says
// where a form comes from; who says nothing is refused as well.
func (s *Site) isCrossSite(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	return s.crossOrigin.Check(r) != nil || r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == ""
}

// request is a request of a user.
type request struct {
	*http.Request
	site   *Site
	bearer *manage.Bearer
	api    *client.Client
	form   url.Values
}

// sender is the answer of a route without a template.
type sender interface{ send(w http.ResponseWriter) }

// redirect is an error that sends the browser to another page, with a note on top of it.
type redirect struct{ to, note string }

func (r *redirect) Error() string { return "see " + r.to }

// maxForm is the largest form, in bytes.
const maxForm = 1 << 20

const (
	// pageTimeout is how long a page may take.
	pageTimeout = 30 * time.Second
	// fetchTimeout is how long a page may take that fetches another: that waits for its turn at its host, and is then
	// fetched within the timeout of fetches. The API has the same.
	fetchTimeout = 5 * time.Minute
	// sendTimeout is how long a user may read nothing of a page.
	sendTimeout = 10 * time.Second
)

// serve answers a request to a page that needs a user.
func (s *Site) serve(w http.ResponseWriter, r *http.Request, to route) {
	bearer := s.requireUser(w, r, to.scope == config.ScopeWrite)
	if bearer == nil {
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.renderError(w, r, http.StatusBadRequest, "The form cannot be read: "+err.Error())
		return
	}
	if !bearer.May(to.scope) {
		s.renderError(w, r, http.StatusForbidden, fmt.Sprintf("The token %q lacks the scope %s.", bearer.Name(), to.scope))
		return
	}
	patient := manage.NewDeadlineWriter(w, sendTimeout)
	_ = patient.EndReadTimeout() // a connection that fails says so again
	w = patient
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(to.timeout, pageTimeout))
	defer cancel()
	req := &request{Request: r.WithContext(ctx), site: s, bearer: bearer, api: client.Over(bearer), form: r.Form}
	data, err := to.show(req)
	if moved, ok := errors.AsType[*redirect](err); ok {
		if moved.note != "" {
			s.setNote(w, moved.note)
		}
		http.Redirect(w, r, s.settings.at(moved.to), http.StatusSeeOther)
		return
	}
	if err != nil {
		s.renderError(w, r, statusOf(err), userMessage(err))
		return
	}
	if sent, ok := data.(sender); ok {
		sent.send(w)
		return
	}
	s.render(w, r, http.StatusOK, to.template, view{Bearer: bearer, Note: s.takeNote(w, r), Path: r.URL.Path, Data: data})
}

// statusOf returns the status of a page that shows err.
func statusOf(err error) int {
	refused, isRefusal := errors.AsType[*flow.Refusal](err)
	problem, isProblem := errors.AsType[*client.Problem](err)
	_, isField := errors.AsType[*pipeline.FieldError](err)
	switch {
	case isRefusal && refused.Code == flow.CodeNotFound:
		return http.StatusNotFound
	case isRefusal && refused.Code == flow.CodeConflict:
		return http.StatusConflict
	case errors.Is(err, inspect.ErrElsewhere):
		return http.StatusMisdirectedRequest
	case isField, errors.Is(err, errNoSource):
		return http.StatusUnprocessableEntity
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case isProblem && problem.Status >= 400:
		return problem.Status
	}
	return http.StatusInternalServerError
}

// userMessage returns what err says, in words for the user.
func userMessage(err error) string {
	problem, ok := errors.AsType[*client.Problem](err)
	if !ok || len(problem.Errors) == 0 {
		return sentence(err.Error())
	}
	var all []string
	for _, e := range problem.Errors {
		_, field, ok := strings.Cut(e.Location, ".")
		if !ok {
			field = e.Location
		}
		all = append(all, sentence(strings.TrimPrefix(field+": "+e.Message, ": ")))
	}
	return strings.Join(all, " ")
}

// sentence returns text with a capital and a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	if !strings.Contains(".!?", text[len(text)-1:]) {
		text += "."
	}
	if word, _, _ := strings.Cut(text, " "); strings.ContainsAny(word, ":/._") {
		return text // a URL or the name of a field
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// view is what the templates see.
type view struct {
	// Bearer is the user, or nil before the login.
	Bearer *manage.Bearer
	// Path is the path of the page, Note is what the last action did.
	Path, Note string
	Data       any
}

// Write and Admin report what the user may do.
func (v view) Write() bool { return v.Bearer != nil && v.Bearer.May(config.ScopeWrite) }

// Admin reports whether the user may do what concerns the whole process.
func (v view) Admin() bool {
	return v.All() && v.Bearer.May(config.ScopeAdmin)
}

// All reports whether the user sees all clients.
func (v view) All() bool { return v.Bearer != nil && v.Bearer.Clients() == nil }

// render sends a page.
func (s *Site) render(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	var b bytes.Buffer
	if err := s.template(name).ExecuteTemplate(&b, "layout", v); err != nil {
		s.log.Error("a web page cannot be rendered", "page", r.URL.Path, "error", err)
		http.Error(w, "This page cannot be rendered; the log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may have gone
}

// maxQuery is the longest query of a link, in bytes.
const maxQuery = 8 << 10

// renderError sends a page that says why there is no other. It links to the filled form if r sent that of
// a subscription.
func (s *Site) renderError(w http.ResponseWriter, r *http.Request, status int, why string) {
	form := ""
	if q := r.PostForm.Encode(); r.URL.Path == "/do/subscribe" && q != "" && len(q) <= maxQuery {
		form = "/subscribe?" + q
	}
	s.render(w, r, status, "error", view{Bearer: s.currentUser(r), Path: r.URL.Path, Data: struct{ Title, Why, Form string }{http.StatusText(status), why, form}})
}

// streamEvents streams changes and notifications of the API.
func (s *Site) streamEvents(w http.ResponseWriter, r *http.Request) {
	bearer := s.currentUser(r)
	if bearer == nil {
		http.Error(w, "Log in first.", http.StatusUnauthorized)
		return
	}
	to := r.Clone(r.Context())
	to.URL.Path = client.Prefix + "/events"
	bearer.ServeHTTP(w, to)
}
