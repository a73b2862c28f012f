package recorded

import (
	"encoding/hex"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// block is a paragraph, heading, cell, list item or line of a page. Item names the
// list items and table rows around it, the outermost first.
type block struct {
	text  string
	items []int
	marks int // how many items began and ended before it
}

// extraction is what a person sees of a page, found by a full parse and a walk over
// the tree: nothing of it is shared with the readers under test.
type extraction struct {
	blocks []block
}

// visible is the text whose change makes a version.
func (e extraction) visible() string {
	var lines []string
	for _, b := range e.blocks {
		lines = append(lines, b.text)
	}
	return strings.Join(lines, "\n")
}

var (
	unseen = words("script style noscript template iframe svg math object canvas textarea head")
	broken = words("address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol optgroup option p plaintext pre search section select summary table tbody td tfoot th thead title tr ul xmp")
	item   = words("li dt dd tr")
	// apart are boxes in a line: words beside them are words of their own.
	apart = words("button input img image embed iframe svg math object canvas textarea audio video meter progress applet")

	hiding = regexp.MustCompile(`(?i)(^|;)\s*(display\s*:\s*none|visibility\s*:\s*hidden)\s*(!important\s*)?(;|$)`)
)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// declared is the part of a page that its curators chose; both empty: the whole page.
type declared struct {
	selectors, removed []string
	from, to           string
	until              time.Time // when they chose another one; zero: they still choose it
}

// extract reads page, whole or the declared part. ok is false where no selector matches.
func extract(page []byte, d declared) (e extraction, ok bool) {
	root, err := html.Parse(strings.NewReader(strings.ToValidUTF8(string(page), "\uFFFD")))
	if err != nil {
		return e, false
	}
	var w walker
	whole := len(d.selectors) == 0 && d.from == ""
	if whole {
		if t := find(root, "title"); t != nil {
			w.walk(t, true)
			w.end()
		}
	}
	w.drop = map[*html.Node]bool{}
	for _, s := range d.removed {
		for _, n := range cascadia.MustCompile(s).MatchAll(root) {
			w.drop[n] = true
		}
	}
	switch {
	case whole:
		w.walk(root, false)
	case d.from != "":
		from := cascadia.MustCompile(d.from).MatchFirst(root)
		if from == nil {
			return e, false
		}
		w.rangeOf(root, from, cascadia.MustCompile(d.to).MatchAll(root))
		if !w.reached || d.to != "" && !w.closed {
			return e, false
		}
	default:
		w.keep = map[*html.Node]bool{}
		for _, s := range d.selectors {
			for _, n := range cascadia.MustCompile(s).MatchAll(root) {
				w.keep[n] = true
			}
		}
		if len(w.keep) == 0 {
			return e, false
		}
		w.scoped(root)
	}
	w.end()
	return extraction{w.blocks}, true
}

func find(n *html.Node, tag string) *html.Node {
	if n.Type == html.ElementNode && n.Data == tag {
		return n
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if f := find(c, tag); f != nil {
			return f
		}
	}
	return nil
}

// walker collects blocks in document order.
type walker struct {
	blocks     []block
	line       strings.Builder
	items      []int
	lastItem   int
	marks      int
	keep, drop map[*html.Node]bool
	// A range is open from its first node to the first end behind it.
	reached, closed bool
	pre             int // how many pre elements are open
}

// scoped walks the chosen parts, each once, whatever they stand in.
func (w *walker) scoped(n *html.Node) {
	if w.keep[n] {
		w.end()
		w.walk(n, false)
		w.end()
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.scoped(c)
	}
}

// rangeOf walks what stands from the start of from to the start of the first of ends
// behind it.
func (w *walker) rangeOf(root, from *html.Node, ends []*html.Node) {
	stop := map[*html.Node]bool{}
	for _, e := range ends {
		stop[e] = true
	}
	w.between(root, from, stop)
}

func (w *walker) between(n, from *html.Node, stop map[*html.Node]bool) {
	if w.closed {
		return
	}
	if n == from {
		w.reached = true
	} else if w.reached && stop[n] {
		w.closed = true
		return
	}
	if w.unseen(n) {
		return
	}
	if n.Type == html.TextNode {
		if w.reached {
			w.text(n.Data)
		}
		return
	}
	w.enter(n)
	for c := n.FirstChild; c != nil && !w.closed; c = c.NextSibling {
		w.between(c, from, stop)
	}
	w.leave(n)
}

func (w *walker) walk(n *html.Node, title bool) {
	if w.unseen(n) {
		return
	}
	if n.Type == html.TextNode {
		w.text(n.Data)
		return
	}
	if n.Type == html.ElementNode && n.Data == "title" && !title {
		return
	}
	if mail, ok := scrambled(n); ok {
		w.text(mail)
		return
	}
	w.enter(n)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.walk(c, title)
	}
	w.leave(n)
}

func (w *walker) unseen(n *html.Node) bool {
	if w.drop[n] || n.Type == html.CommentNode || n.Type == html.DoctypeNode {
		return true
	}
	if n.Type != html.ElementNode {
		return false
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" || a.Key == "style" && hiding.MatchString(a.Val) {
			return true
		}
	}
	if unseen[n.Data] && n.Data != "head" {
		if apart[n.Data] {
			w.line.WriteByte(' ')
		}
		return true
	}
	return false
}

func (w *walker) enter(n *html.Node) {
	if n.Type != html.ElementNode {
		return
	}
	if apart[n.Data] {
		w.line.WriteByte(' ')
	}
	if broken[n.Data] {
		w.end()
	}
	if n.Data == "pre" {
		w.pre++
	}
	if item[n.Data] {
		w.lastItem++
		w.marks++
		w.items = append(w.items, w.lastItem)
	}
}

func (w *walker) leave(n *html.Node) {
	if n.Type != html.ElementNode {
		return
	}
	if apart[n.Data] {
		w.line.WriteByte(' ')
	}
	if broken[n.Data] {
		w.end()
	}
	if n.Data == "pre" {
		w.pre--
	}
	if item[n.Data] {
		w.items = w.items[:len(w.items)-1]
		w.marks++
	}
}

func (w *walker) text(s string) {
	for _, r := range s {
		switch {
		case r == '\n' && w.pre > 0:
			w.end()
		case r == 0xAD || r == 0x200B || r == 0xFEFF:
		case unicode.IsSpace(r):
			w.line.WriteByte(' ')
		case unicode.IsControl(r):
		default:
			w.line.WriteRune(r)
		}
	}
}

// end closes the present block.
func (w *walker) end() {
	text := strings.Join(strings.FieldsFunc(w.line.String(), func(r rune) bool { return r == ' ' }), " ")
	w.line.Reset()
	if text != "" {
		w.blocks = append(w.blocks, block{text, append([]int(nil), w.items...), w.marks})
	}
}

// scrambled decodes an address that Cloudflare hides: the first byte is the key that
// all others are XORed with; it changes at every fetch.
func scrambled(n *html.Node) (string, bool) {
	if n.Type != html.ElementNode {
		return "", false
	}
	for _, a := range n.Attr {
		code, ok := a.Val, a.Key == "data-cfemail"
		if a.Key == "href" {
			code, ok = strings.CutPrefix(a.Val, "/cdn-cgi/l/email-protection#")
		}
		if !ok {
			continue
		}
		if a.Key == "href" && find(n, "span") != nil {
			continue // The span inside has the address.
		}
		b, err := hex.DecodeString(code)
		if err != nil || len(b) < 2 {
			continue
		}
		for i := range b[1:] {
			b[i+1] ^= b[0]
		}
		if utf8.Valid(b[1:]) {
			return html.UnescapeString(string(b[1:])), true // what was scrambled is markup
		}
	}
	return "", false
}
