package outbound

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// socksServer is a SOCKS5 proxy that asks for a password, and connects to one address whatever
// it is asked for.
type socksServer struct {
	l      net.Listener
	target string

	mu    sync.Mutex
	asked []string // HOST:PORT
}

func newSocks(t *testing.T, target string) *socksServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &socksServer{l: l, target: target}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer c.Close()
				if err := s.serve(c); err != nil {
					t.Logf("the proxy: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		served.Wait()
	})
	return s
}

// serve follows RFC 1928 and RFC 1929.
func (s *socksServer) serve(c net.Conn) error {
	read := func(n int) []byte {
		b := make([]byte, n)
		if _, err := io.ReadFull(c, b); err != nil {
			panic(http.ErrAbortHandler)
		}
		return b
	}
	defer func() { _ = recover() }()
	read(int(read(2)[1])) // the methods that the client knows
	fmt.Fprint(c, "\x05\x02")
	user := read(int(read(2)[1]))
	password := read(int(read(1)[0]))
	if string(user) != "ann" || string(password) != "hunter22" {
		_, err := fmt.Fprint(c, "\x01\x01")
		return err
	}
	fmt.Fprint(c, "\x01\x00")
	var host string
	switch read(4)[3] {
	case 1:
		host = netip.AddrFrom4([4]byte(read(4))).String()
	case 3:
		host = string(read(int(read(1)[0])))
	case 4:
		host = netip.AddrFrom16([16]byte(read(16))).String()
	}
	port := binary.BigEndian.Uint16(read(2))
	s.mu.Lock()
	s.asked = append(s.asked, net.JoinHostPort(host, fmt.Sprint(port)))
	s.mu.Unlock()
	up, err := net.Dial("tcp", s.target)
	if err != nil {
		return err
	}
	defer up.Close()
	fmt.Fprint(c, "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
	go func() {
		_, _ = io.Copy(up, c)
		up.Close()
	}()
	_, err = io.Copy(c, up)
	return err
}

// resolveTestName returns the addresses of name that the resolver of these tests knows.
func resolveTestName(name string) []string {
	return map[string][]string{
		"public.example": {"93.184.216.34"}, "private.example": {"10.0.0.1"}, "mixed.example": {"93.184.216.34", "10.0.0.1"},
	}[name]
}

// TestProxies: what is refused without a proxy is refused with one, as far as it can be known.
func TestProxies(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello from ", r.Host) }))
	defer target.Close()
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Host)
		if user, password, _ := parseProxyAuth(r); user != "ann" || password != "hunter22" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		fmt.Fprint(w, "hello from ", r.Host)
	}))
	defer web.Close()
	socks := newSocks(t, target.Listener.Addr().String())

	proxies := map[string]string{
		"http":    "http://ann:hunter22@" + web.Listener.Addr().String(),
		"socks5":  "socks5://ann:hunter22@" + socks.l.Addr().String(),
		"socks5h": "socks5h://ann:hunter22@" + socks.l.Addr().String(),
	}
	for _, tt := range []struct {
		host  string
		allow string
		// refused is the address that is not permitted; unknown says that only the proxy knows
		// the name.
		refused string
		unknown bool
	}{
		{host: "public.example"},
		{host: "93.184.216.34"},
		{host: "private.example", refused: "10.0.0.1"},
		{host: "private.example", allow: "10.0.0.0/8"},
		{host: "mixed.example", refused: "10.0.0.1"},
		{host: "10.0.0.1", refused: "10.0.0.1"},
		{host: "127.0.0.1", refused: "127.0.0.1"},
		{host: "[::ffff:127.0.0.1]", refused: "127.0.0.1"},
		{host: "known-there.example", unknown: true},
	} {
		for name, raw := range proxies {
			u, err := parseProxy(raw)
			if err != nil {
				t.Fatal(err)
			}
			c := Config{Proxy: u, Resolver: fakeDNS(resolveTestName)}
			if tt.allow != "" {
				c.Allow = []netip.Prefix{netip.MustParsePrefix(tt.allow)}
			}
			asked, socks.asked = nil, nil
			client := NewClient(c)
			resp, err := client.Get("http://" + tt.host + "/")
			client.CloseIdleConnections()
			through := append(asked, socks.asked...)
			switch {
			case tt.refused != "":
				e, ok := errors.AsType[*AddressError](err)
				if !ok || e.Addr.String() != tt.refused || len(through) > 0 {
					t.Errorf("%s through %s: got %v and %q, want that %s is refused", tt.host, name, err, through, tt.refused)
				}
				continue
			case tt.unknown && name == "socks5":
				if err == nil || !strings.Contains(err.Error(), "socks5h://") || len(through) > 0 {
					t.Errorf("%s through %s: got %v, want a hint at socks5h", tt.host, name, err)
				}
				continue
			case err != nil:
				t.Errorf("%s through %s: %v", tt.host, name, err)
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != "hello from "+tt.host {
				t.Errorf("%s through %s: got %s %q", tt.host, name, resp.Status, body)
			}
			want := map[string]string{"http": tt.host, "socks5h": tt.host + ":80", "socks5": strings.Join(append(resolveTestName(tt.host), tt.host)[:1], "") + ":80"}[name]
			if len(through) != 1 || through[0] != want {
				t.Errorf("%s through %s: the proxy was asked for %q, want %q", tt.host, name, through, want)
			}
		}
	}
}

// parseProxyAuth is Request.BasicAuth for a proxy.
func parseProxyAuth(r *http.Request) (user, password string, ok bool) {
	return (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
}

// TestTunnels: HTTPS goes through CONNECT, and a proxy that refuses that is named.
func TestTunnels(t *testing.T) {
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer target.Close()
	status := http.StatusOK
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		if status != http.StatusOK {
			return
		}
		up, err := net.Dial("tcp", target.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		defer up.Close()
		c, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		go func() { _, _ = io.Copy(up, buffered) }()
		_, _ = io.Copy(c, up)
	}))
	defer web.Close()
	u, err := url.Parse(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	roots := target.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	client := NewClient(Config{Proxy: u, RootCAs: roots, Resolver: fakeDNS(resolveTestName)})
	resp, err := client.Get("https://example.com/") // the name in the certificate of httptest
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	client.CloseIdleConnections()
	status = http.StatusForbidden
	if _, err := client.Get("https://example.com/"); err == nil || !strings.Contains(err.Error(), "the proxy answered 403 Forbidden") {
		t.Errorf("got %v", err)
	}
	if _, err := client.Get("https://10.0.0.1/"); err == nil || !strings.Contains(err.Error(), "10.0.0.1 is not a public address") {
		t.Errorf("got %v", err)
	}
}

func TestParseProxy(t *testing.T) {
	for raw, want := range map[string]string{
		"http://proxy.example.com:3128": "", "https://proxy.example.com": "", "socks5://a:b@10.0.0.1:1080": "", "socks5h://[::1]/": "",
		"proxy.example.com:3128": "begins with", "ftp://SECRET@proxy.example.com": "begins with", "socks4://a": "begins with",
		"http://": "no host", "http://a/SECRET": "neither a path", "http://a?SECRET": "neither a path", "http://%zz:SECRET@a": "not a URL", "": "begins with",
	} {
		_, err := parseProxy(raw)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET")) {
			t.Errorf("%q: got %v, want %q", raw, err, want)
		}
	}
}

// TestProxyThatIsAway: no connection is made past it.
func TestProxyThatIsAway(t *testing.T) {
	for _, scheme := range []string{"http", "socks5", "socks5h"} {
		u, err := parseProxy(scheme + "://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://public.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewClient(Config{Proxy: u, Resolver: fakeDNS(resolveTestName)}).Do(r); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("%s: got %v", scheme, err)
		}
		cancel()
	}
}
