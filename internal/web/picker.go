package web

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// pickView is the selector picker: a watched page in a frame, and what the chosen selector matches.
type pickView struct {
	URL, Select string
	// Frame is the address of the page in the frame, and Use that of the form of a subscription. Both have
	// the fields of the form that the picker was opened from.
	Frame, Use string
	// Problem says why there is no page, or what is wrong with the selector.
	Problem string
	Shown   bool
	Chosen  *inspect.Preview
	Text    string
}

func showPick(r *request) (any, error) {
	v := pickView{URL: strings.TrimSpace(r.form.Get("url")), Select: strings.TrimSpace(r.form.Get("select"))}
	r.form.Set("url", v.URL)
	v.Frame, v.Use = "/pick/frame?"+r.form.Encode(), "/subscribe?"+r.form.Encode()
	if v.URL == "" {
		return v, nil
	}
	if _, err := r.pageSource(v.URL); err != nil {
		v.Problem = userMessage(err)
		return v, nil
	}
	v.Shown = true
	if v.Select == "" {
		return v, nil
	}
	p, err := r.api.Preview(r.Context(), pipeline.Subscription{URL: v.URL, View: pipeline.View{Select: parseSelectors(formLines(r.form, "select"))}}, false)
	if err != nil {
		v.Problem = userMessage(err)
		return v, nil
	}
	v.Chosen = &p
	v.Text = inspect.Plain(firstBytes(p.Text, maxPreview))
	return v, nil
}

// framePolicy is the Content-Security-Policy of a watched page in its frame: nothing runs, nothing is
// loaded but our style sheet, and a link can lead the whole window to the picker, if the user follows it.
const framePolicy = "default-src 'none'; style-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'; " +
	"sandbox allow-same-origin allow-top-navigation-by-user-activation"

// frame is the watched page of the picker, as text in harmless elements.
type frame struct{ page string }

func showFrame(r *request) (any, error) {
	source, err := r.pageSource(r.form.Get("url"))
	if err != nil {
		return nil, err
	}
	done, err := r.site.parseSlots.acquire(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	page, err := renderHarmless(r.Context(), source, r.form)
	return frame{page}, err
}

// parseSlots is a semaphore. It has one element for each page that is parsed now for a picker.
type parseSlots chan struct{}

// maxParsedAtOnce is how many pages are parsed at once.
const maxParsedAtOnce = 2

var errBusy = errors.New("other pages are being prepared; try again in a moment")

// acquire waits until a page may be parsed. The caller calls done afterwards. It returns errBusy if ctx
// ends before.
func (f parseSlots) acquire(ctx context.Context) (done func(), err error) {
	if ctx.Err() != nil {
		return nil, errBusy
	}
	select {
	case f <- struct{}{}:
		return func() { <-f }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// send writes f as a page of its own.
func (f frame) send(w http.ResponseWriter) {
	w.Header().Set("Content-Security-Policy", framePolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(f.page)) // the client may have gone
}

// sourceCache holds the pages that pickers show now, so that each is fetched once.
type sourceCache struct {
	mu      sync.Mutex
	entries []cachedSource // the newest last
}

// cachedSource is the HTML of a page that was fetched for a user.
type cachedSource struct {
	user, url, body string
	at              time.Time
}

const (
	maxSources = 16
	sourceAge  = 5 * time.Minute
)

// errNoSource is the error of a page that the picker does not show.
var errNoSource = errors.New("this page cannot be shown here; write a selector by hand")

// pageSource returns the HTML of a page.
func (r *request) pageSource(url string) (string, error) {
	s, user := &r.site.sources, r.bearer.Name()
	s.mu.Lock()
	for _, x := range s.entries {
		if x.user == user && x.url == url && time.Since(x.at) < sourceAge {
			s.mu.Unlock()
			return x.body, nil
		}
	}
	s.mu.Unlock()
	p, err := r.api.Preview(r.Context(), pipeline.Subscription{URL: url}, true)
	if err != nil {
		return "", err
	}
	media, _, err := mime.ParseMediaType(p.ContentType)
	if err != nil || media != "text/html" && media != "application/xhtml+xml" || p.Source == "" {
		return "", fmt.Errorf("%w: it is not HTML, or it is too large", errNoSource)
	}
	done, err := r.site.parseSlots.acquire(r.Context())
	if err != nil {
		return "", err
	}
	_, err = parsePage(r.Context(), p.Source)
	done()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = slices.DeleteFunc(s.entries, func(x cachedSource) bool { return time.Since(x.at) >= sourceAge || x.user == user && x.url == url })
	s.entries = append(s.entries, cachedSource{user, url, p.Source, time.Now()})
	s.entries = s.entries[max(0, len(s.entries)-maxSources):]
	return p.Source, nil
}

// shownElements are the elements that are shown, and as which. All others are left out; only their content is
// shown. No attribute of the page is kept.
var shownElements = map[atom.Atom]string{
	atom.H1: "h1", atom.H2: "h2", atom.H3: "h3", atom.H4: "h4", atom.H5: "h5", atom.H6: "h6",
	atom.Main: "div", atom.Article: "div", atom.Section: "div", atom.Header: "div", atom.Footer: "div", atom.Nav: "div", atom.Aside: "div", atom.Div: "div",
	atom.Form: "div", atom.Fieldset: "div", atom.Figure: "div", atom.Figcaption: "div", atom.Address: "div", atom.Details: "div", atom.Summary: "div", atom.Dialog: "div",
	atom.P: "p", atom.Blockquote: "blockquote", atom.Pre: "pre", atom.Ul: "ul", atom.Ol: "ol", atom.Li: "li", atom.Dl: "dl", atom.Dt: "dt", atom.Dd: "dd",
	atom.Table: "table", atom.Thead: "thead", atom.Tbody: "tbody", atom.Tfoot: "tfoot", atom.Tr: "tr", atom.Td: "td", atom.Th: "th", atom.Caption: "caption",
	atom.Span: "span", atom.Strong: "strong", atom.B: "b", atom.Em: "em", atom.I: "i", atom.Code: "code", atom.A: "span", atom.Button: "span", atom.Label: "span",
	atom.Small: "small", atom.Time: "span", atom.Data: "span", atom.Br: "br", atom.Hr: "hr",
}

// hiddenElements are the elements whose content is not text of the page.
var hiddenElements = map[atom.Atom]bool{
	atom.Script: true, atom.Style: true, atom.Noscript: true, atom.Template: true, atom.Head: true, atom.Iframe: true, atom.Object: true, atom.Svg: true, atom.Math: true,
	atom.Select: true, atom.Textarea: true, atom.Audio: true, atom.Video: true, atom.Canvas: true, atom.Noembed: true, atom.Noframes: true,
}

// inlineElements are the elements that can be chosen only if they have a class or an ID.
var inlineElements = map[atom.Atom]bool{
	atom.Span: true, atom.Strong: true, atom.B: true, atom.Em: true, atom.I: true, atom.Code: true, atom.A: true, atom.Button: true, atom.Label: true, atom.Small: true,
	atom.Time: true, atom.Data: true,
}

// commonElements are the elements that a page has many of sooner or later, so that their name alone is no selector.
var commonElements = map[atom.Atom]bool{
	atom.Div: true, atom.P: true, atom.Span: true, atom.A: true, atom.Li: true, atom.Ul: true, atom.Td: true, atom.Tr: true, atom.B: true, atom.Strong: true, atom.I: true, atom.Em: true,
}

// structureElements are the elements of tables and breaks, where no link can stand.
var structureElements = map[atom.Atom]bool{
	atom.Table: true, atom.Thead: true, atom.Tbody: true, atom.Tfoot: true, atom.Tr: true, atom.Ul: true, atom.Ol: true, atom.Dl: true, atom.Br: true, atom.Hr: true,
}

const (
	// maxFrameBytes is how long the page in the frame gets, in bytes, and maxDepth is how many elements are in
	// each other.
	maxFrameBytes = 2 << 20
	maxDepth      = 200
	// maxElements is how many elements a page in the frame may have. A selector such as :nth-of-type(2)
	// takes quadratic time where all are siblings.
	maxElements = 20_000
)

// frameWriter writes a watched page for the frame of the picker.
type frameWriter struct {
	ctx        context.Context // of the request
	out        strings.Builder
	form       url.Values
	names      map[*html.Node][]string // what a selector can call an element
	nameCounts map[string]int          // how many elements have a name
	typeIndex  map[*html.Node]int      // the number of an element among its siblings of the same type, from 1
	chosen     map[*html.Node]bool
}

// parsePage returns the tree of an HTML page, or an error that says why the picker does not show the page.
func parsePage(ctx context.Context, source string) (*html.Node, error) {
	root, _, err := htmltree.Parse(ctx, []byte(source))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSource, err)
	}
	count := 0
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			count++
		}
	}
	if count > maxElements {
		return nil, fmt.Errorf("%w: it has %d elements; at most %d can be shown", errNoSource, count, maxElements)
	}
	return root, nil
}

// renderHarmless returns the page of source as text in harmless elements. Each part has a link that chooses it,
// to the picker with the fields in form. It returns an error if ctx ends before.
func renderHarmless(ctx context.Context, source string, form url.Values) (string, error) {
	root, err := parsePage(ctx, source)
	if err != nil {
		return "", err
	}
	p := &frameWriter{
		ctx: ctx, form: url.Values{}, names: make(map[*html.Node][]string), nameCounts: make(map[string]int),
		typeIndex: make(map[*html.Node]int), chosen: make(map[*html.Node]bool),
	}
	for name, values := range form {
		p.form[name] = values
	}
	chosen, err := findChosen(ctx, root, formLines(form, "select"))
	if err != nil {
		return "", err
	}
	p.numberChildren(root)
	for n := range root.Descendants() {
		if ctx.Err() != nil {
			return "", errBusy
		}
		p.numberChildren(n)
		p.names[n] = selectorNames(n)
		for _, name := range p.names[n] {
			p.nameCounts[name]++
		}
		if chosen != nil && n.Type == html.ElementNode {
			p.chosen[n], _ = chosen.Enter(n)
		}
	}
	p.out.WriteString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>The watched page</title><link rel="stylesheet" href="/assets/frame.css?` +
		assetHashes["frame.css"] + `"></head><body>`)
	p.writeNode(root, 0)
	if ctx.Err() != nil {
		return "", errBusy
	}
	if p.out.Len() > maxFrameBytes {
		p.out.WriteString("<p>The page is longer than can be shown here. Write a selector by hand for what is missing.</p>")
	}
	p.out.WriteString("</body></html>")
	return p.out.String(), nil
}

// findChosen returns what lines, selectors of the form, name on the page, or nil where they name nothing or one
// cannot be used, which the form says. The limits are those of subscriptions.
func findChosen(ctx context.Context, root *html.Node, lines []string) (*selector.Scope, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	m, err := selector.NewMarkup(pipeline.View{Select: parseSelectors(lines)})
	if err != nil {
		return nil, nil
	}
	chosen, err := m.Find(ctx, root)
	if ctx.Err() != nil {
		return nil, errBusy
	}
	if err != nil {
		return nil, nil
	}
	return chosen, nil
}

// numberChildren numbers the children of n, each among its siblings of the same type. To count them for each
// element that can be chosen would take quadratic time.
func (p *frameWriter) numberChildren(n *html.Node) {
	of := make(map[string]int)
	for c := range n.ChildNodes() {
		if c.Type == html.ElementNode {
			of[c.Data]++
			p.typeIndex[c] = of[c.Data]
		}
	}
}

// writeNode writes n with its content.
func (p *frameWriter) writeNode(n *html.Node, deep int) {
	if p.out.Len() > maxFrameBytes || deep > maxDepth || p.ctx.Err() != nil {
		return
	}
	if n.Type == html.TextNode {
		p.out.WriteString(html.EscapeString(n.Data))
		return
	}
	if n.Type == html.ElementNode && (hiddenElements[n.DataAtom] || n.Namespace != "") {
		return
	}
	as := ""
	if n.Type == html.ElementNode {
		as = shownElements[n.DataAtom]
	}
	if as != "" {
		p.out.WriteString("<" + as)
		if p.chosen[n] {
			p.out.WriteString(` class="chosen"`)
		}
		p.out.WriteString(">")
		if to := p.selectorFor(n); to != "" {
			p.form.Set("select", to)
			fmt.Fprintf(&p.out, `<a class="pick" target="_top" href="../pick?%s" title="%s" aria-label="Choose %s">+</a>`,
				html.EscapeString(p.form.Encode()), html.EscapeString(to), html.EscapeString(to))
		}
	}
	for c := range n.ChildNodes() {
		p.writeNode(c, deep+1)
	}
	if as != "" && as != "br" && as != "hr" {
		p.out.WriteString("</" + as + ">")
	}
}

// selectorNames returns the names by which a selector can choose n, the best first.
func selectorNames(n *html.Node) []string {
	all := htmltree.Names(n)
	if n.Type == html.ElementNode && !commonElements[n.DataAtom] {
		all = append(all, n.Data)
	}
	return all
}

// selectorFor returns a CSS selector that matches n alone, or "" if n cannot be chosen.
func (p *frameWriter) selectorFor(n *html.Node) string {
	own := p.names[n]
	if structureElements[n.DataAtom] || inlineElements[n.DataAtom] && !slices.ContainsFunc(own, func(name string) bool { return name != n.Data }) || !hasText(n, 0) {
		return ""
	}
	var path []string
	for at := n; at != nil && at.Type == html.ElementNode; at = at.Parent {
		for _, name := range p.names[at] {
			if p.nameCounts[name] == 1 {
				return strings.Join(append([]string{name}, path...), " > ")
			}
		}
		path = append([]string{fmt.Sprintf("%s:nth-of-type(%d)", at.Data, p.typeIndex[at])}, path...)
	}
	return strings.Join(path, " > ")
}

// hasText reports whether a text in n is not blank.
func hasText(n *html.Node, deep int) bool {
	if n.Type == html.TextNode {
		return strings.TrimSpace(n.Data) != ""
	}
	if deep > maxDepth || hiddenElements[n.DataAtom] {
		return false
	}
	for c := range n.ChildNodes() {
		if hasText(c, deep+1) {
			return true
		}
	}
	return false
}

// parseSelectors returns the selectors in lines. One that is not valid is found out where it is used.
func parseSelectors(lines []string) []pipeline.Selector {
	var all []pipeline.Selector
	for _, l := range lines {
		s, _ := config.ParseSelector(l)
		all = append(all, s)
	}
	return all
}
