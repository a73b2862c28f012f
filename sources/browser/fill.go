package browser

import (
	"fmt"
	"net/url"

	"github.com/chromedp/cdproto/dom"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/vokter/vokter/pipeline"
)

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
