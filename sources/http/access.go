package httpsource

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
)

// Access says how pages are fetched that a plain request does not get: with headers, cookies or a
// login, through a proxy, or with a client certificate. It applies to Pages and to all pages of
// Hosts. What identifies the client (headers, cookies, user, token, certificate) is sent to the
// servers of Hosts and Pages only, whatever a redirect says, and over http only where a URL of Hosts
// or Pages begins with http.
type Access struct {
	// Hosts are the hosts whose pages are fetched in this way: a name such as shop.example.com, or
	// shop.example.com:8443, for https, and http://intranet.example.com for http.
	Hosts []string `yaml:"hosts"`
	// Pages are the URLs of pages that are fetched in this way. They come before Hosts.
	Pages []string `yaml:"pages"`
	// Clients are the clients whose tokens may watch and try these pages. Whoever may act for all clients may do so
	// anyway.
	Clients []string `yaml:"clients"`
	// Headers are sent with each request, by their names. They replace those of the fetcher, such as
	// User-Agent.
	Headers map[string]registry.Secret `yaml:"headers"`
	// Cookies are sent with each request, by their names.
	Cookies map[string]registry.Secret `yaml:"cookies"`
	// Username and Password are sent in basic authentication.
	Username string `yaml:"username"`
	// Password is the password of Username.
	Password registry.Secret `yaml:"password"`
	// Bearer is a token that is sent as "Authorization: Bearer ...", without that word itself.
	Bearer registry.Secret `yaml:"bearer"`
	// Login is a form to fill in before the first page is fetched, and again when the session ends.
	Login *Login `yaml:"login"`
	// Connection has the proxy, the client certificate and the authorities. Allow, RootCAs and
	// Client are ignored: those of the fetcher hold.
	registry.Connection
}

// Login is the form of a website that opens a session. The cookies of the session are kept in memory.
type Login struct {
	// URL is the page with the form, or the URL that takes its fields.
	URL string `yaml:"url"`
	// Fields are what to fill in, by the names of the form's fields. Hidden fields of the form are
	// sent as they are.
	Fields map[string]registry.Secret `yaml:"fields"`
	// Check is a CSS selector that matches in each page of an open session, such as
	// a[href="/logout"]. A page without a match means that the session has ended. It is needed
	// only for a site that neither redirects to URL then nor answers 401 or 403.
	Check string `yaml:"check"`
}

// origin is a server: scheme, host and port.
type origin struct{ scheme, host, port string }

func originOf(u *url.URL) origin {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return origin{u.Scheme, strings.ToLower(u.Hostname()), port}
}

// access is an Access in use.
type access struct {
	origins map[origin]bool // that get its header and its certificate
	clients []string        // Access.Clients, not nil
	pages   []string
	hosts   []origin
	header  http.Header
	cookies []*http.Cookie
	// id identifies the settings: pages of the same id can be compared. It does not show secrets.
	id     func() string
	client *http.Client
	// session is nil without a login.
	session *session
}

// accessTable finds the access of a page.
type accessTable struct {
	byPage   map[string]*access
	byOrigin map[origin]*access
	settings map[string]Access
	byName   map[string]*access
}

// accessFor returns the access of page, or nil.
func (a *accessTable) accessFor(page string) *access {
	if a == nil || len(a.byName) == 0 {
		return nil
	}
	if found := a.byPage[page]; found != nil {
		return found
	}
	u, err := url.Parse(page)
	if err != nil {
		return nil
	}
	return a.byOrigin[originOf(u)]
}

// Clients returns the Access.Clients of page. It returns ok false where page is fetched without an Access.
func (f *Fetcher) Clients(page string) (clients []string, ok bool) {
	a := f.access.Load().accessFor(page)
	if a == nil {
		return nil, false
	}
	return a.clients, true
}

// MayLead reports whether a link on page may be followed to other. The pages of an Access are reached by links
// from its own pages only: otherwise any page could have them fetched with its credentials.
func (f *Fetcher) MayLead(page, other string) bool {
	all := f.access.Load()
	to := all.accessFor(other)
	return to == nil || to == all.accessFor(page)
}

// closeIdle closes the idle connections of a, which may be nil.
func (a *accessTable) closeIdle() {
	if a == nil {
		return
	}
	for _, one := range a.byName {
		one.client.CloseIdleConnections()
	}
}

// CheckAccess returns all that is wrong with settings, by their names, as joined
// *pipeline.FieldErrors, or nil. The name is the first part of a Field.
func CheckAccess(settings map[string]Access) error {
	_, err := New(Config{}).newAccessTable(settings, nil)
	return err
}

// newAccessTable builds settings. It keeps the sessions of old whose settings are the same.
func (f *Fetcher) newAccessTable(settings map[string]Access, old *accessTable) (*accessTable, error) {
	all := &accessTable{
		byPage: make(map[string]*access), byOrigin: make(map[origin]*access), settings: maps.Clone(settings),
		byName: make(map[string]*access, len(settings)),
	}
	var bad outbound.Mistakes
	pages, hosts := make(map[string]string), make(map[origin]string) // names
	clients := make(map[string]*http.Client)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s := settings[name]
		a, err := f.newAccess(s, clients)
		for _, e := range splitFieldErrors(err) {
			bad.Add(name+"."+e.Field, errors.New(e.Reason))
		}
		for i, page := range a.pages {
			if other, dup := pages[page]; dup {
				bad.Addf(fmt.Sprintf("%s.pages[%d]", name, i), "access %s has this page already; a page is fetched once for all, in one way: remove it from one of them", other)
			}
			pages[page], all.byPage[page] = name, a
		}
		for i, host := range a.hosts {
			if other, dup := hosts[host]; dup {
				bad.Addf(fmt.Sprintf("%s.hosts[%d]", name, i), "access %s has this host already; remove it from one of them, and list single pages in pages", other)
			}
			hosts[host], all.byOrigin[host] = name, a
		}
		if old != nil && old.byName[name] != nil && a.session != nil && old.byName[name].id() == a.id() {
			a.session = old.byName[name].session
			a.client.Jar = a.session
		}
		all.byName[name] = a
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return all, nil
}

// splitFieldErrors returns the field errors that are joined in err.
func splitFieldErrors(err error) []*pipeline.FieldError {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*pipeline.FieldError
		for _, e := range joined.Unwrap() {
			all = append(all, splitFieldErrors(e)...)
		}
		return all
	}
	if e, ok := errors.AsType[*pipeline.FieldError](err); ok {
		return []*pipeline.FieldError{e}
	}
	return []*pipeline.FieldError{{Field: "connection", Reason: err.Error()}}
}

// newAccess builds s. The access that it returns with an error has the valid part of s. Accesses with
// the same proxy and certificate share their connections, by clients.
func (f *Fetcher) newAccess(s Access, clients map[string]*http.Client) (*access, error) {
	var bad outbound.Mistakes
	a := &access{origins: make(map[origin]bool), header: make(http.Header)}
	a.readServers(s, &bad)
	a.readClients(s, &bad)
	a.readHeaders(s, &bad)
	with, without := f.newTransports(s, clients, &bad)
	client := *f.client
	client.Transport = &credentialTransport{a, with, without}
	a.client = &client
	if s.Login != nil {
		a.session = newSession(s.Login, f.now, &bad)
		a.client.Jar = a.session
	}
	a.id = sync.OnceValue(func() string { return settingsID(s) })
	return a, bad.Err()
}

// readServers reads Hosts and Pages.
func (a *access) readServers(s Access, bad *outbound.Mistakes) {
	if len(s.Hosts)+len(s.Pages) == 0 {
		bad.Addf("hosts", "neither hosts nor pages are given, so no page is fetched in this way; add one such as hosts: [shop.example.com]")
	}
	add := func(u *url.URL) {
		o := originOf(u)
		a.origins[o] = true
		if o.scheme == "http" && o.port == "80" { // websites lead from http to https
			a.origins[origin{"https", o.host, "443"}] = true
		}
	}
	for i, h := range s.Hosts {
		field, raw := fmt.Sprintf("hosts[%d]", i), h
		if !strings.Contains(raw, "://") {
			raw = "https://" + raw
		}
		page, err := pageurl.Canonical(raw)
		u, _ := url.Parse(page)
		if err != nil || pageurl.Check(raw, "http", "https") != nil || u.Path != "/" || u.RawQuery != "" {
			bad.Addf(field, "this is not a host; write a name such as shop.example.com or shop.example.com:8443 for https, or http://HOST for http")
			continue
		}
		a.hosts = append(a.hosts, originOf(u))
		add(u)
	}
	for i, raw := range s.Pages {
		if err := pageurl.Check(raw, "http", "https"); err != nil {
			bad.Add(fmt.Sprintf("pages[%d]", i), err)
			continue
		}
		page, _ := pageurl.Canonical(raw) // Check has checked it.
		u, _ := url.Parse(page)
		a.pages = append(a.pages, page)
		add(u)
	}
}

// readClients reads Clients.
func (a *access) readClients(s Access, bad *outbound.Mistakes) {
	for i, c := range s.Clients {
		if c == "" {
			bad.Addf(fmt.Sprintf("clients[%d]", i), "a client has a name")
		}
	}
	a.clients = append([]string{}, s.Clients...)
}

// reservedHeaders are headers that cannot be given, since they belong to the connection or to the fetcher.
var reservedHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "If-Modified-Since", "If-None-Match", "Keep-Alive",
	"Proxy-Authorization", "Proxy-Connection", "Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// checkHeader says why a header cannot be given.
func checkHeader(name string, secret registry.Secret) error {
	value := secret.Reveal()
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return errors.New(`this is not the name of a header; use letters, digits and "-"`)
	case slices.Contains(reservedHeaders, http.CanonicalHeaderKey(name)):
		return errors.New("this header cannot be given, since the fetcher sets it itself")
	case !httpguts.ValidHeaderFieldValue(value) || strings.TrimSpace(value) != value || value == "":
		return errors.New("its value is empty, or has a line break, a control character, or white space at an end; is the file or variable right?")
	}
	return nil
}

// readHeaders reads Headers, Cookies and the credentials.
func (a *access) readHeaders(s Access, bad *outbound.Mistakes) {
	outbound.Headers(bad, s.Headers, checkHeader, func(name string, value registry.Secret) { a.header.Set(name, value.Reveal()) })
	for _, name := range slices.Sorted(maps.Keys(s.Cookies)) {
		c := &http.Cookie{Name: name, Value: s.Cookies[name].Reveal()}
		if err := c.Valid(); err != nil {
			bad.Addf("cookies."+name, "this cannot be sent as a cookie; its name consists of letters, digits and marks, its value of visible ASCII characters without quotes, commas, semicolons and backslashes")
			continue
		}
		a.cookies = append(a.cookies, c)
	}
	ways := 0
	if a.header.Get("Authorization") != "" {
		ways++
	}
	if s.Username != "" || !s.Password.IsZero() {
		ways++
		switch {
		case s.Username == "":
			bad.Addf("username", "is required with password")
		case s.Password.IsZero():
			bad.Addf("password", "is required with username")
		case strings.Contains(s.Username, ":"):
			bad.Addf("username", "a user name has no colon: in basic authentication a colon ends it")
		}
		r := http.Request{Header: make(http.Header)}
		r.SetBasicAuth(s.Username, s.Password.Reveal())
		a.header.Set("Authorization", r.Header.Get("Authorization"))
	}
	if !s.Bearer.IsZero() {
		ways++
		bad.Token("bearer", s.Bearer)
		a.header.Set("Authorization", "Bearer "+s.Bearer.Reveal())
	}
	if ways > 1 {
		field := "bearer"
		if s.Bearer.IsZero() {
			field = "username"
		}
		bad.Addf(field, "the header Authorization would be set twice; give one of username, bearer and headers.Authorization")
	}
}

// newTransports returns what sends the requests to the servers of s, and those to other servers, which
// do not see the client certificate.
func (f *Fetcher) newTransports(s Access, clients map[string]*http.Client, bad *outbound.Mistakes) (with, without http.RoundTripper) {
	c := s.Connection
	if c.CA == "" && c.Cert == "" && c.Key == "" && c.Proxy.IsZero() {
		return f.client.Transport, f.client.Transport
	}
	build := func(c registry.Connection) http.RoundTripper {
		key := fmt.Sprintf("%q %q %q %q", c.CA, c.Cert, c.Key, c.Proxy.Reveal())
		if clients[key] == nil {
			oc, _, err := outbound.ConfigOf(c)
			if err != nil {
				bad.Join(err)
				return nil
			}
			clients[key] = f.newClient(oc)
		}
		return clients[key].Transport
	}
	if with = build(c); c.Cert == "" || with == nil {
		return with, with
	}
	c.Cert, c.Key = "", ""
	return with, build(c)
}

// credentialTransport is the http.RoundTripper of an access. http.Client copies the headers of a request to
// the requests that follow its redirects, so credentials are added behind it.
type credentialTransport struct {
	access                              *access
	withCertificate, withoutCertificate http.RoundTripper
}

// RoundTrip sends r, with the credentials if its server may have them.
func (c *credentialTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !c.access.origins[originOf(r.URL)] {
		return c.withoutCertificate.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	cookies, set := r.Header.Get("Cookie"), r.Cookies() // of the jar
	maps.Copy(r.Header, c.access.header)
	if given := c.access.header.Get("Cookie"); given != "" && cookies != "" {
		r.Header.Set("Cookie", cookies+"; "+given)
	}
	for _, cookie := range c.access.cookies {
		// As in a browser, a cookie that the website sets replaces the one of its name.
		if !slices.ContainsFunc(set, func(s *http.Cookie) bool { return s.Name == cookie.Name }) {
			r.AddCookie(cookie)
		}
	}
	return c.withCertificate.RoundTrip(r)
}

// CloseIdleConnections closes idle connections.
func (c *credentialTransport) CloseIdleConnections() {
	(&http.Client{Transport: c.withCertificate}).CloseIdleConnections()
	(&http.Client{Transport: c.withoutCertificate}).CloseIdleConnections()
}

// idHashRounds makes it slow to guess a secret from an ID, which is stored.
const idHashRounds = 20_000

// settingsID returns an ID of s that shows no secret; see access.
func settingsID(s Access) string {
	var b strings.Builder
	part := func(values ...string) {
		for _, v := range values {
			fmt.Fprintf(&b, "%q ", v)
		}
		b.WriteByte('\n')
	}
	secrets := func(m map[string]registry.Secret) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			part(name, m[name].Reveal())
		}
		b.WriteByte('\n')
	}
	secrets(s.Headers)
	secrets(s.Cookies)
	part(s.Username, s.Password.Reveal(), s.Bearer.Reveal(), s.Cert, s.Key, s.Proxy.Reveal())
	if s.Login != nil {
		part(s.Login.URL, s.Login.Check)
		secrets(s.Login.Fields)
	}
	key, err := pbkdf2.Key(sha256.New, b.String(), []byte("vokter access"), idHashRounds, 8)
	if err != nil {
		panic(fmt.Sprintf("httpsource: %v", err)) // cannot happen: the length is valid
	}
	return hex.EncodeToString(key)
}

var _ http.RoundTripper = (*credentialTransport)(nil)
