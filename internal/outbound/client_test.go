package outbound

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// fakeDNS is a resolver that asks answer, which gets a name in lower case without its
// final dot. No answer means that the name does not exist.
func fakeDNS(answer func(name string) []string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go serveDNS(server, answer)
		return client, nil
	}}
}

func serveDNS(c net.Conn, answer func(string) []string) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		buf := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(buf); err != nil {
			return
		}
		q := m.Questions[0]
		reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
		addrs := answer(strings.ToLower(strings.TrimSuffix(q.Name.String(), ".")))
		if len(addrs) == 0 {
			reply.RCode = dnsmessage.RCodeNameError
		}
		for _, s := range addrs {
			a := netip.MustParseAddr(s)
			h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
			switch {
			case a.Is4() && q.Type == dnsmessage.TypeA:
				reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
			case a.Is6() && q.Type == dnsmessage.TypeAAAA:
				reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
		out, err := reply.Pack()
		if err != nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}

func get(t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return resp, err
}

// TestWaysAround lists every way around the guard that we know of. None may reach the
// server on loopback.
func TestWaysAround(t *testing.T) {
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dns := fakeDNS(func(name string) []string {
		switch name {
		case "private.example", "0x7f000001", "0x7f.1", "0177.0.0.0x1": // as lenient resolvers read them
			return []string{"127.0.0.1"}
		case "mixed.example":
			return []string{"10.0.0.1", "127.0.0.1", "::1"}
		case "mapped.example":
			return []string{"::ffff:127.0.0.1"}
		case "nat64.example":
			return []string{"64:ff9b::7f00:1"}
		}
		return nil
	})
	t.Setenv("HTTP_PROXY", srv.URL)
	t.Setenv("http_proxy", srv.URL)
	c := NewClient(Config{Resolver: dns, CheckRedirect: Redirects(10)})
	for _, host := range []string{
		"127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST", "0.0.0.0", "10.0.0.1", "169.254.169.254",
		"100.64.0.1", "192.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255",
		"[::]", "[::1]", "[::1%25lo]", "[fe80::1%25lo]", "[fd00::1]", "[ff02::1%25lo]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[2002:7f00:1::1]",
		"[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2001:0:808:808:0:0:80ff:fffe]",
		"2130706433", "0x7f000001", "017700000001", "0177.0.0.1", "127.1", "0x7f.1", "0177.0.0.0x1", "127.0.0.1.",
		"private.example", "private.example.", "PRIVATE.example", "mixed.example", "mapped.example", "nat64.example",
		"public.example@127.0.0.1", "１２７.０.０.１", "127。0。0。1",
	} {
		_, err := get(t, c, "http://"+host+":"+port+"/")
		var addr *AddressError
		var noName *net.DNSError
		switch {
		case errors.As(err, &addr), errors.As(err, &noName):
		case errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL): // a machine without IPv6
		default:
			t.Errorf("%s: got error %v, want an address refused or a name unknown", host, err)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("the server on loopback was reached %d times", n)
	}
}

func TestRebinding(t *testing.T) {
	var hits atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	var rebound atomic.Bool
	dns := fakeDNS(func(string) []string {
		if rebound.Load() {
			return []string{"127.0.0.2"}
		}
		return []string{"127.0.0.1"}
	})
	allow, _ := ParseAllow([]string{"127.0.0.1/32"})
	c := NewClient(Config{Resolver: dns, Allow: allow})
	if _, err := get(t, c, "http://rebind.example:"+port+"/"); err != nil {
		t.Fatalf("before: %v", err)
	}
	rebound.Store(true)
	c.CloseIdleConnections()
	_, err := get(t, c, "http://rebind.example:"+port+"/")
	var addr *AddressError
	if !errors.As(err, &addr) || addr.Addr != netip.MustParseAddr("127.0.0.2") {
		t.Errorf("after: got %v, want 127.0.0.2 refused", err)
	}
	if n := hits.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestRedirects(t *testing.T) {
	var hits atomic.Int32
	var to atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		if r.URL.Path != "/end" {
			w.Header().Set("Location", to.Load().(string))
			w.WriteHeader(http.StatusFound)
		}
	}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	allow, _ := ParseAllow([]string{"127.0.0.1/32"})
	c := NewClient(Config{Allow: allow, CheckRedirect: Redirects(10)})

	var addr *AddressError
	var redirect *RedirectError
	for _, location := range []string{"http://127.0.0.2:" + port + "/end", "http://169.254.169.254/latest/meta-data", "http://10.0.0.1/"} {
		to.Store(location)
		if _, err := get(t, c, srv.URL); !errors.As(err, &addr) {
			t.Errorf("to %s: got %v, want an address refused", location, err)
		}
	}
	for _, location := range []string{"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1:" + port + "/", "http:///end"} {
		to.Store(location)
		if _, err := get(t, c, srv.URL); !errors.As(err, &redirect) {
			t.Errorf("to %s: got %v, want a redirect refused", location, err)
		}
	}
	to.Store("/again")
	hits.Store(0)
	if _, err := get(t, c, srv.URL); !errors.As(err, &redirect) || hits.Load() != 11 {
		t.Errorf("a loop: got %v after %d requests, want a redirect refused after 11", err, hits.Load())
	}
	to.Store("/end")
	if _, err := get(t, c, srv.URL); err != nil {
		t.Errorf("to /end: %v", err)
	}
	none := NewClient(Config{Allow: allow})
	resp, err := get(t, none, srv.URL)
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Errorf("without redirects: got %v, %v, want the redirecting response", resp, err)
	}
}

func TestTLSIsVerified(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	allow, _ := ParseAllow([]string{"127.0.0.1/32"})
	if _, err := get(t, NewClient(Config{Allow: allow}), srv.URL); err == nil {
		t.Error("an unknown authority was trusted")
	}
}

func TestHeadersAreBounded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", maxResponseHeaderBytes+1))
	}))
	defer srv.Close()
	allow, _ := ParseAllow([]string{"127.0.0.1/32"})
	if _, err := get(t, NewClient(Config{Allow: allow}), srv.URL); err == nil {
		t.Error("a header over the bound was accepted")
	}
}

func TestConnectionsAreKept(t *testing.T) {
	const parallel = 5
	var opened atomic.Int32
	var all sync.WaitGroup
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all.Done()
		all.Wait() // so that every request needs a connection of its own
		w.WriteHeader(http.StatusNoContent)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	for _, idle := range []int{parallel, 0} {
		opened.Store(0)
		c := NewClient(Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, MaxIdleConnsPerHost: idle})
		for range 3 {
			all.Add(parallel)
			var done sync.WaitGroup
			for range parallel {
				done.Go(func() {
					resp, err := c.Get(srv.URL)
					if err != nil {
						t.Error(err)
						return
					}
					resp.Body.Close()
				})
			}
			done.Wait()
		}
		if got := opened.Load(); got != parallel {
			t.Errorf("with MaxIdleConnsPerHost %d, %d rounds of %d requests at once opened %d connections, want %d", idle, 3, parallel, got, parallel)
		}
		c.CloseIdleConnections()
	}
}

func TestRedirectsKeepHeadersFromOthers(t *testing.T) {
	var location string
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/start":
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		case "/next":
			http.Redirect(w, r, "/end", http.StatusFound)
		default:
			got = r.Header
		}
	}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	other := httptest.NewServer(srv.Config.Handler)
	defer other.Close()
	allow, _ := ParseAllow([]string{"127.0.0.0/8"})
	c := NewClient(Config{Allow: allow, CheckRedirect: Redirects(10)})
	start := "http://127.0.0.1:" + port + "/start?token=secret"
	follow := func() error {
		got = nil
		req, _ := http.NewRequest(http.MethodGet, start, nil)
		for _, name := range privateHeaders {
			req.Header.Set(name, "mine")
		}
		resp, err := c.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}

	for _, location = range []string{"http://localhost:" + port + "/end", other.URL + "/end", "http://localhost:" + port + "/next", other.URL + "/next"} {
		if err := follow(); err != nil {
			t.Fatalf("to %s: %v", location, err)
		}
		for _, name := range privateHeaders {
			if v := got.Get(name); v != "" {
				t.Errorf("to %s: %s: %s was sent", location, name, v)
			}
		}
		if v := got.Get("Referer"); v != "" && v != location { // the other server may know its own page
			t.Errorf("to %s: Referer: %s was sent", location, v)
		}
	}
	location = "/end"
	if err := follow(); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(privateHeaders, []string{"Referer"}) {
		if got.Get(name) == "" {
			t.Errorf("to the same server: %s is missing", name)
		}
	}
	for _, location = range []string{"http://u:hunter2@127.0.0.1:" + port + "/end", "http://u@localhost:" + port + "/end", "//:p@" + other.Listener.Addr().String() + "/end"} {
		var redirect *RedirectError
		if err := follow(); !errors.As(err, &redirect) || got != nil {
			t.Errorf("to %s: got %v and a request with %v, want the redirect refused", location, err, got)
		}
	}
}
