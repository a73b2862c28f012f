package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/testcert"
)

// writeCertFiles writes the parts of cert as PEM files, and returns their names.
func writeCertFiles(t *testing.T, cert tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// TestCertificates: a receiver with an authority of its own, which asks who the client is, and
// a client certificate that is renewed in place.
func TestCertificates(t *testing.T) {
	year := 24 * time.Hour * 365
	cert := func(host string) (tls.Certificate, *x509.CertPool) {
		return testcert.New(t, host, time.Now().Add(-year), time.Now().Add(year))
	}
	served, _ := cert("127.0.0.1")
	first, clients := cert("127.0.0.2")
	second, _ := cert("127.0.0.3")
	if leaf, err := x509.ParseCertificate(second.Certificate[0]); err != nil {
		t.Fatal(err)
	} else {
		clients.AddCert(leaf)
	}
	var shown []byte
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown = r.TLS.PeerCertificates[0].Raw }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{served}, ClientAuth: tls.RequireAnyClientCert, ClientCAs: clients}
	server.StartTLS()
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ca, _ := writeCertFiles(t, served)
	certFile, keyFile := writeCertFiles(t, first)
	c := registry.Connection{CA: ca, Cert: certFile, Key: keyFile, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	s, err := newSender(c)
	if err != nil {
		t.Fatal(err)
	}
	post := func(s Sender) error {
		_, err := s.Do(t.Context(), http.MethodPost, u, nil, nil)
		s.Client.CloseIdleConnections()
		return err
	}
	if err := post(s); err != nil || !bytes.Equal(shown, first.Certificate[0]) {
		t.Errorf("%v, the client showed its certificate: %v", err, bytes.Equal(shown, first.Certificate[0]))
	}
	newCert, newKey := writeCertFiles(t, second)
	for from, to := range map[string]string{newCert: certFile, newKey: keyFile} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := post(s); err != nil || !bytes.Equal(shown, second.Certificate[0]) {
		t.Errorf("after it was renewed: %v, %v", err, bytes.Equal(shown, second.Certificate[0]))
	}
	for name, change := range map[string]func(*registry.Connection){
		"without the authority":   func(c *registry.Connection) { c.CA = "" },
		"without the certificate": func(c *registry.Connection) { c.Cert, c.Key = "", "" },
	} {
		other := c
		change(&other)
		s, err := newSender(other)
		if err != nil {
			t.Fatal(err)
		}
		if err := post(s); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestBadConnections: each mistake names its field, and quotes no password.
func TestBadConnections(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, _ := testcert.New(t, "127.0.0.1", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	other, _ := testcert.New(t, "127.0.0.1", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	certFile, keyFile := writeCertFiles(t, cert)
	_, otherKey := writeCertFiles(t, other)
	for _, tt := range []struct {
		c           registry.Connection
		field, says string
	}{
		{registry.Connection{CA: none}, "ca", "no such file"},
		{registry.Connection{CA: empty}, "ca", "no certificate in PEM"},
		{registry.Connection{Cert: certFile}, "cert", "add that"},
		{registry.Connection{Key: keyFile}, "key", "add that"},
		{registry.Connection{Cert: certFile, Key: otherKey}, "cert", "cannot be used"},
		{registry.Connection{Cert: none, Key: keyFile}, "cert", "no such file"},
		{registry.Connection{Proxy: registry.NewSecret("ftp://ann:hunter22@a")}, "proxy", "begins with http://"},
	} {
		_, err := newSender(tt.c)
		fe, ok := errors.AsType[*pipeline.FieldError](err)
		if !ok || fe.Field != tt.field || !strings.Contains(fe.Reason, tt.says) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%+v: got %v, want %s: %s", tt.c, err, tt.field, tt.says)
		}
	}
	if _, _, err := SocketConfigOf(registry.Connection{Proxy: registry.NewSecret("http://a:3128")}); err == nil || !strings.Contains(err.Error(), "socks5") {
		t.Errorf("got %v, want that another kind of proxy is needed", err)
	}
	if _, _, err := SocketConfigOf(registry.Connection{Proxy: registry.NewSecret("socks5://a:1080")}); err != nil {
		t.Error(err)
	}
}

// TestErrorsNameTheProxy: errors name the proxy, without its password; what is refused without one is
// refused with it.
func TestErrorsNameTheProxy(t *testing.T) {
	for proxy, want := range map[string]string{
		"http://ann:hunter22@127.0.0.1:1":    "no answer: the proxy: connecting to 127.0.0.1:1: connection refused",
		"socks5h://ann:hunter22@127.0.0.1:1": "no answer: the proxy: connecting to 127.0.0.1:1: connection refused",
	} {
		s, err := newSender(registry.Connection{Proxy: registry.NewSecret(proxy)})
		if err != nil {
			t.Fatal(err)
		}
		for raw, want := range map[string]string{
			"https://93.184.216.34/":            want,
			"https://169.254.169.254/meta-data": "refused to connect: 169.254.169.254 is not a public address; permit it with allow: {sinks: [169.254.169.254/32]}",
		} {
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Do(t.Context(), http.MethodPost, u, nil, nil)
			if err == nil || err.Error() != want {
				t.Errorf("%s through %s: got %v, want %s", raw, proxy, err, want)
			}
			if class, _ := failure.ClassOf(err); strings.Contains(want, "refused to connect") && class != failure.ClassPermanent {
				t.Errorf("%s through %s: class %d, want permanent", raw, proxy, class)
			}
		}
		if got := s.Secrets.Clean("hunter22"); got != "***" {
			t.Errorf("the password is %q in errors", got)
		}
	}
}

// TestOneClient: sinks that reach their receivers in one way share their connections, others do not.
func TestOneClient(t *testing.T) {
	type options struct{ registry.Connection }
	type sink struct {
		pipeline.SinkFunc
		c registry.Connection
	}
	var r registry.Registry
	Register(&r, "kind", func(o *options) *registry.Connection { return &o.Connection }, func(o options) (*sink, error) {
		if o.Cert == "bad" {
			return nil, &pipeline.FieldError{Field: "cert", Reason: "is bad"}
		}
		return &sink{c: o.Connection}, nil
	})
	build, _ := r.Sinks.Lookup("kind")
	allow := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	made := func(c registry.Connection, allow []netip.Prefix) *http.Client {
		s, err := build(func(v any) error { v.(*options).Connection = c; return nil }, registry.Env{AllowSinks: allow})
		if err != nil {
			t.Fatal(err)
		}
		return s.(*sink).c.Client
	}
	first := made(registry.Connection{}, allow)
	if first == nil || made(registry.Connection{}, allow) != first {
		t.Error("equal ones do not share a client")
	}
	proxy := registry.Connection{Proxy: registry.NewSecret("http://a.example:3128")}
	proxied := made(proxy, allow)
	if made(registry.Connection{}, nil) == first || proxied == first {
		t.Error("different ones share a client")
	}
	if made(proxy, allow) != proxied {
		t.Error("equal ones with a proxy do not share a client")
	}
	if s, err := build(func(v any) error { v.(*options).Cert = "bad"; return nil }, registry.Env{}); err == nil || s != nil {
		t.Errorf("got %v, %v", s, err)
	}
	failure := errors.New("line 3")
	if _, err := build(func(any) error { return failure }, registry.Env{}); !errors.Is(err, failure) {
		t.Errorf("got %v, want what decoding said", err)
	}
}

// TestCachingResolver: an answer is kept, and one that a name does not exist is not.
func TestCachingResolver(t *testing.T) {
	var asked atomic.Int64
	server := nameServer(t, func(q dnsmessage.Question) (ttl uint32, exists bool) {
		asked.Add(1)
		return 300, q.Name.String() == "known.example."
	})
	r := CachingResolver(&net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, server)
	}})
	for range 3 {
		ips, err := r.LookupIP(t.Context(), "ip4", "known.example.")
		if err != nil || len(ips) != 1 || !ips[0].Equal(net.IPv4(192, 0, 2, 1)) {
			t.Fatalf("got %v, %v", ips, err)
		}
	}
	if n := asked.Swap(0); n != 1 {
		t.Errorf("the name server was asked %d times for three lookups, want once", n)
	}
	for range 2 {
		if ips, err := r.LookupIP(t.Context(), "ip4", "unknown.example."); err == nil {
			t.Errorf("got %v of a name that does not exist", ips)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the name server was asked %d times about a name that does not exist, want twice", n)
	}
}

// nameServer starts a name server on loopback that answers questions for addresses with 192.0.2.1 or that
// the name does not exist, and returns its address.
func nameServer(t *testing.T, answer func(dnsmessage.Question) (ttl uint32, exists bool)) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return // closed
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if ttl, exists := answer(m.Questions[0]); exists {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: ttl},
					Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}},
				}}
			} else {
				m.RCode = dnsmessage.RCodeNameError
			}
			if out, err := m.Pack(); err == nil {
				_, _ = conn.WriteTo(out, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}
