package outbound

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	"github.com/ncruces/go-dns"
	"golang.org/x/net/proxy"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// newSender returns a Sender that connects as c says, or all mistakes in c as joined
// *pipeline.FieldErrors.
func newSender(c registry.Connection) (Sender, error) {
	g, s, err := ConfigOf(c)
	if err != nil {
		return Sender{}, err
	}
	sender := Sender{Secrets: s, Now: time.Now}
	if c.Client == nil {
		sender.Client = NewClient(g)
		return sender, nil
	}
	client := *c.Client
	client.CheckRedirect = noRedirects
	sender.Client = &client
	return sender, nil
}

// SocketConfigOf is ConfigOf for connections other than HTTP.
func SocketConfigOf(c registry.Connection) (Config, Scrubber, error) {
	g, s, err := ConfigOf(c)
	if err == nil && g.Proxy != nil && !isSocks(g.Proxy) {
		err = &pipeline.FieldError{Field: "proxy", Reason: "this sink can use a socks5:// or socks5h:// proxy only"}
	}
	return g, s, err
}

// ConfigOf returns the Config for connections as c says, and the secrets of c. Its error joins all
// mistakes in c as *pipeline.FieldErrors.
func ConfigOf(c registry.Connection) (Config, Scrubber, error) {
	// The context of the attempt limits how long a receiver may take to answer.
	g := Config{Allow: c.Allow, RootCAs: c.RootCAs, ResponseHeaderTimeout: -1}
	var secrets Scrubber
	var errs []error
	bad := func(field string, err error) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: err.Error()})
	}
	if c.CA != "" && g.RootCAs == nil {
		pool, err := readCA(c.CA)
		if err != nil {
			bad("ca", err)
		}
		g.RootCAs = pool
	}
	switch {
	case c.Cert == "" && c.Key == "":
	case c.Cert == "":
		bad("key", errors.New("it goes with cert, the file of its certificate; add that"))
	case c.Key == "":
		bad("cert", errors.New("it goes with key, the file of its private key; add that"))
	default:
		g.Certificate = func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			return &cert, err
		}
		if _, err := g.Certificate(); err != nil {
			bad("cert", fmt.Errorf("it and key cannot be used: %w", err))
		}
	}
	if raw := c.Proxy.Reveal(); raw != "" {
		u, err := parseProxy(raw)
		if err != nil {
			bad("proxy", err)
		} else if g.Proxy = u; u.User != nil {
			password, _ := u.User.Password()
			secrets.Add(u.User.String())
			secrets.addLogin(u.User.Username(), password)
		}
	}
	return g, secrets, errors.Join(errs...)
}

// maxAuthorities is the largest size of a file of authorities, in bytes.
const maxAuthorities = 4 << 20

// readCA reads the authorities in a file.
func readCA(path string) (*x509.CertPool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAuthorities))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}

// Register registers the kind of sink kind in r: build makes a sink of type S from a C.
// connection returns the Connection in a C. Sinks with equal ones share their connections.
func Register[C any, S pipeline.Sink](r *registry.Registry, kind string, connection func(*C) *registry.Connection, build func(C) (S, error)) {
	clients := make(map[string]*http.Client)
	registry.AddSink(r, kind, func(c C, env registry.Env) (S, error) {
		how := connection(&c)
		how.Allow = env.AllowSinks
		key := connectionKey(*how)
		if client, ok := clients[key]; ok {
			how.Client = client
		} else if sender, err := newSender(*how); err == nil { // build reports the error
			clients[key] = sender.Client
			how.Client = sender.Client
		}
		return build(c)
	})
}

// connectionKey returns a key that is equal for connections that can be shared.
func connectionKey(c registry.Connection) string {
	var authorities [sha256.Size]byte
	if text, err := os.ReadFile(c.CA); err == nil {
		authorities = sha256.Sum256(text)
	}
	return fmt.Sprintf("%q %x %q %q %q", c.Allow, authorities, c.Cert, c.Key, c.Proxy.Reveal())
}

// Schemes of proxies.
const (
	httpProxy  = "http"
	httpsProxy = "https"
	// With socksLocal names are looked up here, with socksRemote by the proxy, as in curl.
	socksLocal  = "socks5"
	socksRemote = "socks5h"
)

// parseProxy reads the URL of a proxy. Its errors do not quote raw, which may hold a password.
func parseProxy(raw string) (*url.URL, error) {
	const example = "such as http://proxy.example.com:3128"
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("this is not a URL; write the proxy's, " + example)
	case u.Scheme != httpProxy && u.Scheme != httpsProxy && u.Scheme != socksLocal && u.Scheme != socksRemote:
		return nil, errors.New("the URL of a proxy begins with http://, https://, socks5:// or socks5h://, " + example)
	case u.Hostname() == "":
		return nil, errors.New("the URL of the proxy has no host; write one " + example)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "":
		return nil, errors.New("the URL of a proxy has neither a path nor a query; write one " + example)
	}
	return u, nil
}

// isSocks reports whether p is a SOCKS proxy, which carries any protocol.
func isSocks(p *url.URL) bool { return p.Scheme == socksLocal || p.Scheme == socksRemote }

// useProxy makes t connect through the proxy of c. The proxy itself may have any address,
// because the operator chose it.
func (c Config) useProxy(t *http.Transport) {
	if isSocks(c.Proxy) {
		t.DialContext = c.newSocksDialer().DialContext
		return
	}
	t.DialContext = c.proxyDialer().DialContext
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if _, err := c.resolveTarget(r.Context(), r.URL.Hostname()); err != nil {
			return nil, err
		}
		return c.Proxy, nil
	}
	t.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
		if answer.StatusCode != http.StatusOK {
			return &ProxyError{answer.StatusCode}
		}
		return nil
	}
}

// ProxyError says that an HTTP proxy refused to connect.
type ProxyError struct{ Status int }

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy answered %d %s", e.Status, http.StatusText(e.Status))
}

// proxyDialer returns the dialer for the proxy itself.
func (c Config) proxyDialer() *net.Dialer {
	return &net.Dialer{Timeout: cmp.Or(c.DialTimeout, defaultDialTimeout), Resolver: c.Resolver}
}

// socksDialer connects through a SOCKS5 proxy.
type socksDialer struct {
	c     Config
	proxy proxy.ContextDialer
}

// newSocksDialer returns the dialer through the proxy of c, which is a SOCKS proxy.
func (c Config) newSocksDialer() Dialer {
	u := c.Proxy
	var auth *proxy.Auth
	if u.User != nil {
		password, _ := u.User.Password()
		auth = &proxy.Auth{User: u.User.Username(), Password: password}
	}
	d, err := proxy.SOCKS5("tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "1080")), auth, c.proxyDialer())
	if err != nil {
		panic(fmt.Sprintf("outbound: %v", err)) // cannot happen
	}
	return &socksDialer{c, d.(proxy.ContextDialer)} // documented to be one
}

// DialContext connects to address if it is permitted. With socksLocal the proxy gets the
// checked address and not the name.
func (d *socksDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.c.resolveTarget(ctx, host)
	switch {
	case err != nil:
		return nil, err
	case d.c.Proxy.Scheme == socksLocal && len(addrs) == 0:
		return nil, fmt.Errorf("looking up %s failed; with a socks5h:// proxy the proxy looks names up", host)
	case d.c.Proxy.Scheme == socksLocal:
		address = net.JoinHostPort(addrs[0].String(), port)
	}
	return d.proxy.DialContext(ctx, network, address)
}

// resolveTarget returns the addresses of host, to which a proxy will connect, or an error if one of
// them is not permitted. It returns none if host cannot be looked up here, because the proxy
// may know it.
func (c Config) resolveTarget(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.DialTimeout, defaultDialTimeout))
	defer cancel()
	addrs, err := cmp.Or(c.Resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, nil
	}
	for i, a := range addrs {
		addrs[i] = a.Unmap()
		if err := c.permit(addrs[i]); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// Bounds of the cache of a resolver. Most answers have fewer than 500 bytes, none more than 64 KiB. Their age
// is bounded because the cache also keeps an answer that a name exists and has no address, such as that of
// a forwarder that is not ready.
const (
	maxAnswers   = 2000
	maxAnswerAge = 5 * time.Minute
)

// CachingResolver returns a resolver that asks the name servers of parent, nil for those of the system,
// and keeps each answer for its time to live, at most five minutes. An answer that a name does not exist is not
// kept, so that the next check finds a name that was just made. It uses Go's resolver, also where the
// system has one of its own.
func CachingResolver(parent *net.Resolver) *net.Resolver {
	return dns.NewCachingResolver(parent, dns.MaxCacheEntries(maxAnswers), dns.MaxCacheTTL(maxAnswerAge), dns.NegativeCache(false))
}
