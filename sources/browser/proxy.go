package browser

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Bounds of one page.
const (
	// maxConnections is how many connections and requests in clear a page may ask for.
	maxConnections = 500
	// maxBytes is how many bytes a page may receive and send, all connections together.
	maxBytes = 100 << 20
)

// proxyUser is the user that the password of a proxy belongs to.
const proxyUser = "vokter"

// proxy is what one page reaches the network through: a proxy on loopback that connects to public addresses, and to
// those of allow for a page within them. It bounds the connections and the bytes. It serves only who knows the
// password.
type proxy struct {
	server           *http.Server
	addr, password   string
	allow            []netip.Prefix
	public, internal route
	endPage          context.CancelCauseFunc // ends the page

	connections atomic.Int64
	bytes       atomic.Int64

	mu      sync.Mutex
	tunnels map[net.Conn]bool
	closed  bool
	errs    map[string]error // of connections, by host
	// pageHost is where the page itself is. It was at each of insideHosts, which lie in networks of allow, and outside
	// says that it was also at another one.
	pageHost    string
	insideHosts map[string]bool
	outside     bool
}

// errExceeded are the causes of a page that asked for too much.
var (
	errTooManyConnections = &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page made more than 500 connections", Err: LimitConnections}
	errTooMuchTraffic     = &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page moved more than 100 MiB", Err: LimitTraffic}
)

// newProxy starts a proxy. exceed is called with the reason when a page passes its bounds.
func newProxy(ctx context.Context, allow []netip.Prefix, exceed context.CancelCauseFunc) (*proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{
		addr: l.Addr().String(), password: rand.Text(), allow: allow, public: newRoute(nil), internal: newRoute(allow), endPage: exceed,
		tunnels: make(map[net.Conn]bool), errs: make(map[string]error), insideHosts: make(map[string]bool),
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = p.server.Serve(l) }() // until close
	return p, nil
}

// close ends the proxy with its connections.
func (p *proxy) close() {
	p.server.Close()
	p.public.client.CloseIdleConnections()
	p.internal.client.CloseIdleConnections()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.tunnels {
		c.Close()
	}
}

// connectionError returns why the connection of the page itself to its host failed, or nil.
func (p *proxy) connectionError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errs[p.pageHost]
}

// setConnectionError remembers why the connection to host failed.
func (p *proxy) setConnectionError(host string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errs) < maxConnections {
		p.errs[host] = err
	}
}

// ServeHTTP connects to the host of a CONNECT request, and forwards any other request.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(proxyUser+":"+p.password))
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(want)) == 0 {
		w.Header().Set("Proxy-Authenticate", `Basic realm="vokter"`)
		http.Error(w, "this proxy is for a browser of Vokter", http.StatusProxyAuthRequired)
		return
	}
	if p.connections.Add(1) > maxConnections {
		p.endPage(errTooManyConnections)
		panic(http.ErrAbortHandler)
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	if !r.URL.IsAbs() || r.URL.Scheme != "http" {
		http.Error(w, "this is a proxy for http and https", http.StatusBadRequest)
		return
	}
	out := r.Clone(r.Context())
	out.RequestURI = ""
	out.Header.Del("Proxy-Connection")
	out.Header.Del("Proxy-Authorization")
	out.Body = struct {
		io.Reader
		io.Closer
	}{p.countBytes(r.Body), r.Body}
	resp, err := p.do(out)
	if err != nil {
		p.setConnectionError(r.URL.Hostname(), err)
		panic(http.ErrAbortHandler) // the browser gets no answer, and so no page of ours
	}
	defer resp.Body.Close()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	// Parts of an answer that streams are passed on as they come.
	_, _ = io.Copy(flushingWriter{w, http.NewResponseController(w)}, p.countBytes(resp.Body))
}

// tunnel passes bytes between the browser and the host that it asks for.
func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	host, _, _ := net.SplitHostPort(r.Host)
	out, err := p.dial(ctx, r.Host)
	if err != nil {
		p.setConnectionError(host, err)
		http.Error(w, "no connection", http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	if !p.addTunnel(in, out) {
		return
	}
	defer p.removeTunnel(in, out)
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, p.countBytes(buffered))
		out.Close()
	}()
	_, _ = io.Copy(in, p.countBytes(out))
	in.Close()
	<-done
}

// addTunnel remembers the connections of a tunnel until removeTunnel. It returns false once the proxy is closed.
func (p *proxy) addTunnel(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.tunnels[c] = true
	}
	return !p.closed
}

func (p *proxy) removeTunnel(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.tunnels, c)
	}
}

// countBytes returns r, whose bytes count for the limit of traffic.
func (p *proxy) countBytes(r io.Reader) io.Reader { return countedReader{r, p} }

type countedReader struct {
	r io.Reader
	p *proxy
}

func (c countedReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	if c.p.bytes.Add(int64(n)) > maxBytes {
		c.p.endPage(errTooMuchTraffic)
		return 0, errTooMuchTraffic
	}
	return n, err
}

// flushingWriter flushes after each write.
type flushingWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
}

func (f flushingWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = f.controller.Flush()
	}
	return n, err
}
