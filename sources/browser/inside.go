package browser

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"time"

	"github.com/chromedp/cdproto/dom"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
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

// typeIn types value into the field this, in one turn of the page, and returns "". Where the page is not of the origin
// of one of the URLs pages, it types nothing and returns the origin. It works in a world of its own, whose objects
// the page cannot replace. The keyboard would type into whatever has the focus, which may be a frame of another
// website by then.
const typeIn = `function(value, pages) {
	if (this.ownerDocument !== document || location.origin === "null" || !pages.some(p => new URL(p).origin === location.origin)) {
		return location.origin === "null" ? location.href : location.origin
	}
	this.focus()
	if (this.matches(":focus") && document.execCommand("insertText", false, value)) {
		this.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}))
		this.dispatchEvent(new Event("change", {bubbles: true}))
		return ""
	}
	if ("value" in this) { this.value = value } else { this.textContent = value }
	this.dispatchEvent(new Event("input", {bubbles: true}))
	this.dispatchEvent(new Event("change", {bubbles: true}))
	return ""
}`

// fill types the value of f into its field, if the page is still one of the origin that the subscription names: the
// value may be a secret, and a page can lead anywhere.
func (t *tab) fill(f *Fill) error {
	nodes, err := chromedp.Run(t.ctx, chromedp.QueryNodeIDs(chromedp.CSS(f.Select), chromedp.NodeVisible))
	if err != nil {
		return err
	}
	world, err := chromedp.Call(t.ctx, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: t.frame, WorldName: "vokter"})
	if err != nil {
		return err
	}
	field, err := chromedp.Call(t.ctx, dom.ResolveNode, dom.ResolveNodeParams{NodeID: nodes[0], ExecutionContextID: world.ExecutionContextID})
	if err != nil {
		return err
	}
	on := func(p *runtime.CallFunctionOnParams) { p.ObjectID = field.Object.ObjectID }
	at, err := chromedp.Run(t.ctx, chromedp.CallFunctionOn[string](typeIn, on, f.Value.Reveal(), t.ownOrigins()))
	if err != nil {
		return err
	}
	if at != "" {
		return &pipeline.FetchError{Class: pipeline.FailLogin, Reason: fmt.Sprintf(
			"%s types nothing, since the page has led to %.200s; it types only into pages of the scheme, host and port of its subscription: watch a page of that host if it is right", t.waitingFor, at)}
	}
	return nil
}

// ownOrigins are URLs of the origins that secrets are for: that of the page, and where this is http on port 80, the
// one that websites lead to over https.
func (t *tab) ownOrigins() []string {
	own := []string{t.request.URL}
	if u, err := url.Parse(t.request.URL); err == nil && u.Scheme == "http" && (u.Port() == "" || u.Port() == "80") {
		own = append(own, "https://"+u.Hostname()+"/")
	}
	return own
}

const (
	// maxScreenshotHeight is how many pixels of the height of a page a screenshot shows.
	maxScreenshotHeight = 4096
	// screenshotTimeout is how long a screenshot may take.
	screenshotTimeout = 15 * time.Second
)

// screenshot returns a picture of the page from its top, in the best of three qualities with which it is
// small enough. It returns nil where there is none: the text of the page is worth more than its picture.
func (t *tab) screenshot() []byte {
	ctx, cancel := context.WithTimeout(t.ctx, screenshotTimeout)
	defer cancel()
	layout, err := chromedp.Call(ctx, cdppage.GetLayoutMetrics, struct{}{})
	if err != nil {
		return nil
	}
	clip := cdppage.Viewport{Width: windowWidth, Height: windowHeight}
	if size := layout.CSSContentSize; size != nil {
		clip.Height = min(max(size.Height, 1), maxScreenshotHeight)
	}
	beyond := true
	for _, how := range []struct {
		quality int64
		scale   float64
	}{{70, 1}, {40, 1}, {40, 0.5}} {
		clip.Scale = how.scale
		shot, err := chromedp.Call(ctx, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{
			Format: cdppage.CaptureScreenshotFormatWebp, Quality: &how.quality, Clip: &clip, CaptureBeyondViewport: &beyond,
		})
		if err != nil {
			return nil
		}
		if len(shot.Data) <= pipeline.MaxScreenshot {
			return shot.Data
		}
	}
	return nil
}
