package values

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
)

// findOffer returns the first offer with a price that the page, whose language is tag, declares as JSON-LD, or else as
// microdata, and with those for visitors without scripts only if there is no other. Of the offers of one product, those
// count first that hold and can be bought. If none has a price, it returns the first one.
func findOffer(ctx context.Context, raw pipeline.Raw, tag string) (offer, error) {
	if !isHTML(raw) {
		return offer{}, noValueError("only HTML declares offers, and the page is " + raw.MediaType())
	}
	root, _, err := htmltree.Parse(ctx, raw.Body)
	if err != nil {
		return offer{}, unparsed(ctx, err)
	}
	page := shownPage{ctx: ctx, raw: raw, tag: tag}
	o, err := declaredOffer(root, page)
	if err == nil && o.price != "" {
		return o, nil
	}
	switch opened, failed := openNoscripts(ctx, root); {
	case failed != nil:
		return offer{}, unparsed(ctx, failed)
	case opened:
		return declaredOffer(root, page)
	}
	return o, err
}

// unparsed is the error of a page that could not be parsed.
func unparsed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, htmltree.ErrTooLarge):
		return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: err.Error() + " to look for an offer"}
	}
	return noValueError("the page is nested too deeply to look for an offer (more than 512 elements)")
}

// openNoscripts parses what noscript elements within root declare, which a parser takes for text as a browser does. It
// reports whether there is anything.
func openNoscripts(ctx context.Context, root *html.Node) (opened bool, err error) {
	nodes := 0
	for n := range root.Descendants() {
		text := n.FirstChild
		if n.Data != "noscript" || text == nil || text.Type != html.TextNode || !strings.Contains(text.Data, "itemprop") && !strings.Contains(text.Data, "ld+json") {
			continue
		}
		within, _, err := htmltree.Parse(ctx, []byte(text.Data))
		if err != nil {
			return false, err
		}
		opened = true
		for range within.Descendants() {
			nodes++
		}
		n.RemoveChild(text)
		for c := within.FirstChild; c != nil; c = within.FirstChild {
			within.RemoveChild(c)
			n.AppendChild(c)
		}
		if nodes > maxOfferNodes {
			break
		}
	}
	return opened, nil
}

// declaredOffer returns the offer that the tree of a page declares.
func declaredOffer(root *html.Node, page shownPage) (offer, error) {
	var values []any
	var broken error
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "script" && (pipeline.Raw{ContentType: attributeOf(n, "type")}).MediaType() == "application/ld+json" && n.FirstChild != nil {
			read, err := decodeJSONLD(n.FirstChild.Data)
			values = append(values, read...)
			if err != nil && broken == nil {
				broken = err
			}
		}
	}
	w := offerFinder{nodesLeft: maxOfferNodes, page: page, now: time.Now()}
	w.index(values, 0)
	w.nodesLeft = maxOfferNodes
	w.find(values, false, 0)
	if w.found == nil || w.found.price == "" && w.err == nil {
		m := microdata{root: root, nodesLeft: maxOfferNodes}
		for _, group := range m.offers(nil, root, nil, 0) {
			w.find(group.offers, true, 0)
		}
	}
	switch {
	case w.found != nil && w.found.price != "":
		return *w.found, nil
	case w.err != nil:
		return offer{}, w.err
	case w.found != nil:
		return *w.found, nil
	case broken != nil:
		return offer{}, noValueError("the page declares no offer (schema.org) that can be read: its JSON-LD is broken (" + broken.Error() + ")")
	}
	return offer{}, noValueError("the page declares no offer (schema.org, as JSON-LD or microdata)")
}
