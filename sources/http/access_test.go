package httpsource

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/testcert"
)

func newSecrets(pairs ...string) map[string]registry.Secret {
	m := make(map[string]registry.Secret)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = registry.NewSecret(pairs[i+1])
	}
	return m
}

// fetcherWithAccess returns a Fetcher with these settings.
func fetcherWithAccess(t *testing.T, c Config, settings map[string]Access) *Fetcher {
	t.Helper()
	c.Allow = loopback
	f := New(c)
	t.Cleanup(func() { f.Close() })
	if err := f.SetAccess(settings); err != nil {
		t.Fatal(err)
	}
	return f
}

// Credentials go to the hosts of the access only, also where redirects lead away and back.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	seen := make(map[string]http.Header)
	var other *httptest.Server
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen["shop"+r.URL.Path] = r.Header
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL+"/there", http.StatusFound)
		}
	})
	other = serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen["other"+r.URL.Path] = r.Header
		if r.URL.Path == "/there" {
			http.Redirect(w, r, srv.URL+"/back", http.StatusTemporaryRedirect)
		}
	})
	settings := map[string]Access{"shop": {
		Hosts: []string{srv.URL}, Username: "ann", Password: registry.NewSecret("hunter22"),
		Headers: newSecrets("X-Key", "k-123456", "User-Agent", "mine/1"), Cookies: newSecrets("sid", "c-123456"),
	}}
	f := fetcherWithAccess(t, Config{}, settings)
	if _, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/away"}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"shop/away", "shop/back"} {
		h := seen[at]
		if user, password, _ := (&http.Request{Header: h}).BasicAuth(); user != "ann" || password != "hunter22" {
			t.Errorf("%s: basic authentication is %q", at, h.Get("Authorization"))
		}
		if h.Get("X-Key") != "k-123456" || h.Get("Cookie") != "sid=c-123456" || h.Get("User-Agent") != "mine/1" {
			t.Errorf("%s got %v", at, h)
		}
	}
	if h := seen["other/there"]; h == nil || h.Get("Authorization")+h.Get("X-Key")+h.Get("Cookie") != "" || h.Get("User-Agent") == "mine/1" {
		t.Errorf("another host got %v", h)
	}
	if _, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: other.URL + "/page"}); err != nil || seen["other/page"].Get("X-Key") != "" {
		t.Errorf("a page of another host: %v, %v", seen["other/page"], err)
	}

	// A page comes before its host.
	settings["news"] = Access{Pages: []string{srv.URL + "/news"}, Bearer: registry.NewSecret("t-123456")}
	if err := f.SetAccess(settings); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/news"}); err != nil {
		t.Fatal(err)
	}
	if h := seen["shop/news"]; h.Get("Authorization") != "Bearer t-123456" || h.Get("X-Key") != "" {
		t.Errorf("the page got %v", h)
	}
}

// A name without a scheme means https: what is sent to it never goes over http.
func TestHostsMeanHTTPS(t *testing.T) {
	settings := map[string]Access{
		"a": {Hosts: []string{"Shop.example.com"}, Bearer: registry.NewSecret("x")},
		"b": {Hosts: []string{"http://old.example.com"}, Bearer: registry.NewSecret("x")},
	}
	all, err := New(Config{}).newAccessTable(settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{
		"https://shop.example.com/x": "a", "http://shop.example.com/x": "", "https://shop.example.com:8443/": "",
		"http://old.example.com/": "b", "https://old.example.com/": "",
	} {
		if got := all.accessFor(page); got != all.byName[want] {
			t.Errorf("%s is fetched with %v, not %q", page, got, want)
		}
	}
	// Websites lead from http to https.
	if u, _ := url.Parse("https://old.example.com/"); !all.byName["b"].origins[originOf(u)] {
		t.Error("a page over http that leads to https would lose its access")
	}
}

// Other settings make the next request unconditional, whichever process makes it.
func TestChangedAccessIsUnconditional(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
		}
		w.Header().Set("ETag", `"1"`)
	})
	with := func(token string) map[string]Access {
		return map[string]Access{"shop": {Hosts: []string{srv.URL}, Bearer: registry.NewSecret(token)}}
	}
	f := fetcherWithAccess(t, Config{}, with("one"))
	resp, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/"})
	if err != nil || resp.Access == "" || strings.Contains(resp.Access, "one") {
		t.Fatalf("access %q, %v", resp.Access, err)
	}
	again := pipeline.FetchRequest{URL: srv.URL + "/", ETag: `"1"`, Access: resp.Access}
	for _, c := range []struct {
		settings map[string]Access
		status   int
	}{{with("one"), 304}, {with("two"), 200}, {nil, 200}} {
		if resp, _, err := fetch(t.Context(), fetcherWithAccess(t, Config{}, c.settings), again); err != nil || resp.Status != c.status {
			t.Errorf("%v: status %d, %v; want %d", c.settings, resp.Status, err, c.status)
		}
	}
	if resp, _, err := fetch(t.Context(), fetcherWithAccess(t, Config{}, nil), pipeline.FetchRequest{URL: srv.URL + "/", ETag: `"1"`}); err != nil || resp.Status != 304 {
		t.Errorf("without any access: %d, %v", resp.Status, err)
	}
}

// pemFiles writes a certificate and its key.
func pemFiles(t *testing.T, c tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// A client certificate identifies the user, so only servers of the access see it.
func TestClientCertificate(t *testing.T) {
	cert, roots := testcert.New(t, "127.0.0.1", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	secure := func(auth tls.ClientAuthType, h http.HandlerFunc) *httptest.Server {
		srv := httptest.NewUnstartedServer(h)
		srv.Config.ErrorLog = nil
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: auth}
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv
	}
	shown := -1
	other := secure(tls.RequestClientCert, func(_ http.ResponseWriter, r *http.Request) { shown = len(r.TLS.PeerCertificates) })
	srv := secure(tls.RequireAnyClientCert, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, other.URL, http.StatusFound)
			return
		}
		fmt.Fprintf(w, "%d", len(r.TLS.PeerCertificates))
	})
	certFile, keyFile := pemFiles(t, cert)
	f := fetcherWithAccess(t, Config{RootCAs: roots}, map[string]Access{"bank": {
		Hosts: []string{srv.Listener.Addr().String()}, Connection: registry.Connection{Cert: certFile, Key: keyFile},
	}})
	if _, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/"}); err != nil || string(body) != "1" {
		t.Errorf("the server got %q certificates, %v", body, err)
	}
	if _, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL + "/away"}); err != nil || shown != 0 {
		t.Errorf("another server got %d certificates, %v", shown, err)
	}
	_, _, err := fetch(t.Context(), fetcherWithAccess(t, Config{RootCAs: roots}, nil), pipeline.FetchRequest{URL: srv.URL + "/"})
	if err == nil || !strings.Contains(err.Error(), "asks for a client certificate") {
		t.Errorf("without a certificate: %v", err)
	}
}

// startSOCKS is a SOCKS5 proxy (RFC 1928) without a password that connects to target whatever it is asked for.
func startSOCKS(t *testing.T, target string) (address string, asked chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	asked = make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 300)
				if _, err := io.ReadFull(c, b[:2]); err != nil {
					return
				}
				io.ReadFull(c, b[:b[1]])
				io.WriteString(c, "\x05\x00")
				if _, err := io.ReadFull(c, b[:5]); err != nil || b[3] != 3 {
					return // only names are asked for in this test
				}
				n := int(b[4])
				io.ReadFull(c, b[:n+2])
				asked <- string(b[:n])
				up, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer up.Close()
				io.WriteString(c, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
				go io.Copy(up, c)
				io.Copy(c, up)
			}()
		}
	}()
	return l.Addr().String(), asked
}

// Through a proxy, names that this machine does not know reach the proxy, and addresses that it knows
// are still checked.
func TestProxyOfAccess(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "page of "+r.Host) })
	forward := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "proxied "+r.RequestURI) })
	address, asked := startSOCKS(t, srv.Listener.Addr().String())
	through := func(proxy string) *Fetcher {
		f := New(Config{Resolver: failingResolver()}) // nothing on this machine is allowed but the proxy
		t.Cleanup(func() { f.Close() })
		if err := f.SetAccess(map[string]Access{"inside": {
			Hosts: []string{"http://wiki.intern.example", "http://127.0.0.1:1"}, Connection: registry.Connection{Proxy: registry.NewSecret(proxy)},
		}}); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for proxy, want := range map[string]string{
		"socks5h://" + address: "page of wiki.intern.example",
		forward.URL:            "proxied http://wiki.intern.example/x",
	} {
		f := through(proxy)
		if _, body, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: "http://wiki.intern.example/x"}); err != nil || string(body) != want {
			t.Errorf("%s: %q, %v", proxy, body, err)
		}
		_, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: "http://127.0.0.1:1/x"})
		if err == nil || !strings.Contains(err.Error(), "not a public address") {
			t.Errorf("%s: the guard let an address of this machine pass: %v", proxy, err)
		}
	}
	if got := <-asked; got != "wiki.intern.example" {
		t.Errorf("the proxy was asked for %q", got)
	}
	forward.Close()
	_, _, err := fetch(t.Context(), through("http://user:pass-1234@"+forward.Listener.Addr().String()), pipeline.FetchRequest{URL: "http://wiki.intern.example/x"})
	if err == nil || !strings.Contains(err.Error(), "the proxy refused the connection") || strings.Contains(err.Error(), "pass") {
		t.Errorf("a proxy that is away: %v", err)
	}
}

func TestMistakesInAccess(t *testing.T) {
	hosts := []string{"shop.example.com"}
	token := registry.NewSecret("t0ken")
	for want, a := range map[string]Access{
		"x.hosts: neither hosts nor pages":   {Bearer: token},
		"x.hosts[0]: this is not a host":     {Hosts: []string{"https://a.example/path"}},
		"x.pages[0]: ":                       {Pages: []string{"ftp://a.example/"}},
		"x.headers.If-None-Match: ":          {Hosts: hosts, Headers: newSecrets("If-None-Match", "x")},
		"x.headers.A b: this is not":         {Hosts: hosts, Headers: newSecrets("A b", "x")},
		"x.headers.X-Key: its value":         {Hosts: hosts, Headers: newSecrets("X-Key", "k\nX: y")},
		"x.cookies.sid: ":                    {Hosts: hosts, Cookies: newSecrets("sid", "a;b")},
		"x.password: is required":            {Hosts: hosts, Username: "ann"},
		"x.username: is required":            {Hosts: hosts, Password: token},
		"x.username: a user name has no":     {Hosts: hosts, Username: "a:b", Password: token},
		"x.bearer: the header Authorization": {Hosts: hosts, Bearer: token, Headers: newSecrets("authorization", "t0ken")},
		"x.login.url: ":                      {Hosts: hosts, Login: &Login{Fields: newSecrets("u", "ann")}},
		"x.login.fields: no field":           {Hosts: hosts, Login: &Login{URL: "https://shop.example.com/login"}},
		"x.login.check: this is not":         {Hosts: hosts, Login: &Login{URL: "https://shop.example.com/login", Fields: newSecrets("u", "ann"), Check: "a["}},
		"x.key: it goes with":                {Hosts: hosts, Connection: registry.Connection{Cert: "a.pem"}},
		"x.proxy: the URL of a proxy":        {Hosts: hosts, Connection: registry.Connection{Proxy: registry.NewSecret("ftp://t0ken@a")}},
	} {
		err := CheckAccess(map[string]Access{"x": a})
		switch {
		case strings.HasPrefix(want, "x.key") && err != nil && strings.HasPrefix(err.Error(), "x.cert: it goes with"):
		case err == nil || !strings.HasPrefix(err.Error(), want):
			t.Errorf("want %s..., got %v", want, err)
		case strings.Contains(err.Error(), "t0ken"):
			t.Errorf("a secret is shown: %v", err)
		}
	}
	err := CheckAccess(map[string]Access{
		"a": {Hosts: hosts, Pages: []string{"https://a.example"}, Bearer: token},
		"b": {Hosts: []string{"https://SHOP.example.com:443"}, Pages: []string{"https://A.example/"}, Bearer: token},
	})
	if err == nil || !strings.Contains(err.Error(), "b.pages[0]: access a has this page already") || !strings.Contains(err.Error(), "b.hosts[0]: access a has this host already") {
		t.Errorf("a page and a host with two accesses: %v", err)
	}
}

// TestCloseClosesConnectionsOfAccess: an access with authorities or a proxy of its own has connections of
// its own.
func TestCloseClosesConnectionsOfAccess(t *testing.T) {
	closed := make(chan struct{}, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	f := fetcherWithAccess(t, Config{}, map[string]Access{"shop": {Hosts: []string{srv.URL}, Connection: registry.Connection{CA: ca}}})
	if _, _, err := fetch(t.Context(), f, pipeline.FetchRequest{URL: srv.URL}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(20 * time.Second): // less than an idle connection is kept
		t.Error("a connection is still open")
	}
}

// TestClientsOfAccess: an access names who may use it, and its pages are reached by links of its own pages only.
func TestClientsOfAccess(t *testing.T) {
	f := fetcherWithAccess(t, Config{}, map[string]Access{
		"shop":  {Hosts: []string{"shop.example.com"}, Clients: []string{"acme"}},
		"pages": {Pages: []string{"https://other.example.com/private"}},
	})
	for page, want := range map[string]string{
		"https://shop.example.com/x": "[acme] true", "https://other.example.com/private": "[] true", "https://other.example.com/": "[] false", "http://shop.example.com/": "[] false",
	} {
		clients, ok := f.Clients(page)
		if got := fmt.Sprint(clients, ok); got != want {
			t.Errorf("%s: got %s, want %s", page, got, want)
		}
	}
	for _, c := range []struct {
		page, other string
		want        bool
	}{
		{"https://evil.example.com/", "https://shop.example.com/x", false}, {"https://shop.example.com/", "https://shop.example.com/x", true},
		{"https://other.example.com/private", "https://shop.example.com/x", false}, {"https://other.example.com/", "https://other.example.com/private", false},
		{"https://shop.example.com/", "https://other.example.com/", true},
	} {
		if got := f.MayLead(c.page, c.other); got != c.want {
			t.Errorf("from %s to %s: got %v", c.page, c.other, got)
		}
	}
}
