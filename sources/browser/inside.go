package browser

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"time"

	"github.com/vokter/vokter/internal/outbound"
)

// A page of the internet must not reach the networks of Config.Allow: its scripts would act within them. So a page
// reaches them only while it lies in one itself. The browser asks before the page itself goes to another address
// (enter); once that is outside, the page stays outside.

// errOutside says why a page was not connected to an address.
var errOutside = errors.New("the address is in a network of allow.fetch, which only pages in such a network reach, and the page is none")

// errMoved says that a name led to the internet that led into a network of Config.Allow before.
var errMoved = errors.New("the name leads to a public address now, and led into a network of allow.fetch before")

// route is one way to the network.
type route struct {
	dialer outbound.Dialer
	client *http.Client
}

func newRoute(allow []netip.Prefix) route {
	c := outbound.Config{Allow: allow, ResponseHeaderTimeout: -1, KeepCompressed: true, MaxIdleConnsPerHost: 6, DialTimeout: 10 * time.Second}
	return route{outbound.NewDialer(c), outbound.NewClient(c)}
}

// isInside reports whether only allow permits addr.
func isInside(addr netip.Addr, allow []netip.Prefix) bool {
	return outbound.Check(addr, nil) != nil && outbound.Check(addr, allow) == nil
}

// enter notes that the page itself goes to host.
func (p *proxy) enter(ctx context.Context, host string) {
	p.mu.Lock()
	p.pageHost = host
	left := p.outside || len(p.allow) == 0
	p.mu.Unlock()
	if left {
		return
	}
	inside := p.leadsInside(ctx, host)
	p.mu.Lock()
	defer p.mu.Unlock()
	if inside {
		p.insideHosts[host] = true
		return
	}
	p.outside = true
	for c := range p.tunnels {
		c.Close()
	}
}

// leadsInside reports whether all addresses of host that may be connected to are permitted by p.allow only.
func (p *proxy) leadsInside(ctx context.Context, host string) bool {
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, a)
	} else if addrs, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
		return false
	}
	inside := false
	for _, a := range addrs {
		if outbound.Check(a, nil) == nil {
			return false
		}
		inside = inside || isInside(a, p.allow)
	}
	return inside
}

// routeTo returns the way to host, and check, which the address of a connection must pass. It may lead to the
// internet only where no page was at host that lies inside.
func (p *proxy) routeTo(host string) (r route, check func(net.Conn) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.outside || len(p.insideHosts) == 0 {
		return p.public, func(net.Conn) error { return nil }
	}
	if !p.insideHosts[host] {
		return p.internal, func(net.Conn) error { return nil }
	}
	return p.internal, func(c net.Conn) error {
		if at, ok := c.RemoteAddr().(*net.TCPAddr); ok && isInside(at.AddrPort().Addr(), p.allow) {
			return nil
		}
		return errMoved
	}
}

// do sends r on the way to its host.
func (p *proxy) do(r *http.Request) (*http.Response, error) {
	way, check := p.routeTo(r.URL.Hostname())
	ctx, cancel := context.WithCancelCause(r.Context())
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if err := check(i.Conn); err != nil {
			cancel(err)
		}
	}})
	resp, err := way.client.Do(r.WithContext(ctx))
	if cause := context.Cause(ctx); cause != nil && r.Context().Err() == nil {
		if err == nil {
			resp.Body.Close()
		}
		return nil, cause
	}
	if err != nil {
		cancel(nil)
		return nil, p.explain(err)
	}
	context.AfterFunc(r.Context(), func() { cancel(nil) })
	return resp, nil
}

// dial connects to addr on the way to its host.
func (p *proxy) dial(ctx context.Context, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	way, check := p.routeTo(host)
	c, err := way.dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, p.explain(err)
	}
	if err := check(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// explain returns errOutside where err says that an address is refused which a page inside may reach, and otherwise
// err.
func (p *proxy) explain(err error) error {
	if refused, ok := errors.AsType[*outbound.AddressError](err); ok && outbound.Check(refused.Addr, p.allow) == nil {
		return errOutside
	}
	return err
}
