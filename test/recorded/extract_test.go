package recorded

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// extraction is what a person sees of a page, found by a full parse and a walk over
// the tree: nothing of it is shared with the readers under test.
type extraction struct {
	page   []byte
	blocks []string // paragraphs, headings, cells, list items and lines
}

// visibleText is the text whose change makes a version.
func (e extraction) visibleText() string { return strings.Join(e.blocks, "\n") }

var (
	invisibleElements = wordSet("script style noscript template iframe svg math object canvas textarea head")
	blockElements     = wordSet("address article aside blockquote body br caption center dd details dialog dir div dl dt fieldset figcaption figure footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav ol optgroup option p plaintext pre search section select summary table tbody td tfoot th thead title tr ul xmp")
	// inlineBoxes are elements within a line that separate the words beside them.
	inlineBoxes = wordSet("button input img image embed iframe svg math object canvas textarea audio video meter progress applet")

	// apartTags are the tags between words that may be set apart, apartLinks those of two links; apartWords are the ends
	// of words that are.
	apartTags  = regexp.MustCompile(`</.*<[^/]`)
	apartLinks = regexp.MustCompile(`</a>.*<a>`)
	apartWords = regexp.MustCompile(`\d\|\p{Lu}\p{L}|\p{L}\p{L}\|\d|\p{L}\p{L}\|\p{Lu}\p{Ll}|\p{L}\p{Ll}\|\p{Lu}\p{L}`)

	hiddenStyle = regexp.MustCompile(`(?i)(^|;)\s*(display\s*:\s*none|visibility\s*:\s*hidden)\s*(!important\s*)?(;|$)`)
)

func wordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// declaration is the part of a page that its curators chose; both empty: the whole page.
type declaration struct {
	selectors, removed []string
	from, to           string
	until              time.Time // when they chose another one; zero: they still choose it
}

// extract reads page, whole or the declared part. ok is false where no selector matches.
func extract(page []byte, d declaration) (e extraction, ok bool) {
	root, err := html.Parse(strings.NewReader(strings.ToValidUTF8(string(page), "\uFFFD")))
	if err != nil {
		return e, false
	}
	var w walker
	whole := len(d.selectors) == 0 && d.from == ""
	if whole {
		if t := findElement(root, "title"); t != nil {
			w.walk(t, true)
			w.endBlock()
		}
	}
	w.removed = map[*html.Node]bool{}
	for _, s := range d.removed {
		for _, n := range cascadia.MustCompile(s).MatchAll(root) {
			w.removed[n] = true
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
		w.walkRange(root, from, cascadia.MustCompile(d.to).MatchAll(root))
		if !w.rangeStarted || d.to != "" && !w.rangeEnded {
			return e, false
		}
	default:
		w.selected = map[*html.Node]bool{}
		for _, s := range d.selectors {
			for _, n := range cascadia.MustCompile(s).MatchAll(root) {
				w.selected[n] = true
			}
		}
		if len(w.selected) == 0 {
			return e, false
		}
		w.walkSelected(root)
	}
	w.endBlock()
	return extraction{page, w.blocks}, true
}

func findElement(n *html.Node, tag string) *html.Node {
	if n.Type == html.ElementNode && n.Data == tag {
		return n
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if f := findElement(c, tag); f != nil {
			return f
		}
	}
	return nil
}

// walker collects blocks in document order.
type walker struct {
	blocks            []string
	line              strings.Builder
	selected, removed map[*html.Node]bool
	// A range is open from its first node to the first end behind it.
	rangeStarted, rangeEnded bool
	preDepth                 int    // how many pre elements are open
	tags                     string // of inline elements since the last text: "</a><a>"
}

// walkSelected walks the chosen parts, each once, whatever they stand in.
func (w *walker) walkSelected(n *html.Node) {
	if w.selected[n] {
		w.endBlock()
		w.walk(n, false)
		w.endBlock()
		return
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.walkSelected(c)
	}
}

// walkRange walks from the start of the node from to the start of the first node of ends
// behind it.
func (w *walker) walkRange(root, from *html.Node, ends []*html.Node) {
	stop := map[*html.Node]bool{}
	for _, e := range ends {
		stop[e] = true
	}
	w.walkBetween(root, from, stop)
}

func (w *walker) walkBetween(n, from *html.Node, stop map[*html.Node]bool) {
	if w.rangeEnded {
		return
	}
	if n == from {
		w.rangeStarted = true
	} else if w.rangeStarted && stop[n] {
		w.rangeEnded = true
		return
	}
	if w.skips(n) {
		return
	}
	if n.Type == html.TextNode {
		if w.rangeStarted {
			w.text(n.Data)
		}
		return
	}
	w.enter(n)
	for c := n.FirstChild; c != nil && !w.rangeEnded; c = c.NextSibling {
		w.walkBetween(c, from, stop)
	}
	w.leave(n)
}

func (w *walker) walk(n *html.Node, title bool) {
	if w.skips(n) {
		return
	}
	if n.Type == html.TextNode {
		w.text(n.Data)
		return
	}
	if n.Type == html.ElementNode && n.Data == "title" && !title {
		return
	}
	if mail, ok := decodeEmail(n); ok {
		w.text(mail)
		return
	}
	w.enter(n)
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.walk(c, title)
	}
	w.leave(n)
}

func (w *walker) skips(n *html.Node) bool {
	if w.removed[n] || n.Type == html.CommentNode || n.Type == html.DoctypeNode {
		return true
	}
	if n.Type != html.ElementNode {
		return false
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" || a.Key == "style" && hiddenStyle.MatchString(a.Val) {
			return true
		}
	}
	if invisibleElements[n.Data] && n.Data != "head" {
		if inlineBoxes[n.Data] {
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
	if inlineBoxes[n.Data] {
		w.line.WriteByte(' ')
	}
	if blockElements[n.Data] {
		w.endBlock()
	}
	if n.Data == "pre" {
		w.preDepth++
	}
	if isInline(n) && n.Data != "sub" && n.Data != "sup" {
		w.tags += "<" + n.Data + ">"
	}
	if n.Data == "input" {
		w.text(buttonLabel(n))
	}
}

func (w *walker) leave(n *html.Node) {
	if n.Type != html.ElementNode {
		return
	}
	if inlineBoxes[n.Data] {
		w.line.WriteByte(' ')
	}
	if blockElements[n.Data] {
		w.endBlock()
	}
	if n.Data == "pre" {
		w.preDepth--
	}
	if isInline(n) {
		w.tags += "</" + n.Data + ">"
	}
}

// isInline reports whether n is an element that stands in a line as a part of its text.
func isInline(n *html.Node) bool {
	return !blockElements[n.Data] && !inlineBoxes[n.Data] && n.Data != "wbr" && n.Data != "link" && n.Data != "meta"
}

// areApart reports whether what is written and s, in another element, are words of their own.
func (w *walker) areApart(s string) bool {
	before, behind := []rune(w.line.String()), []rune(s)
	if len(before) == 0 || !apartTags.MatchString(w.tags) {
		return false
	}
	if apartLinks.MatchString(w.tags) {
		return true
	}
	return apartWords.MatchString(string(before[max(0, len(before)-2):]) + "|" + string(behind[:min(2, len(behind))]))
}

func (w *walker) text(s string) {
	if w.areApart(s) {
		w.line.WriteByte(' ')
	}
	if s != "" {
		w.tags = ""
	}
	for _, r := range s {
		switch {
		case r == '\n' && w.preDepth > 0:
			w.endBlock()
		case r == 0xAD || r == 0x200B || r == 0xFEFF:
		case unicode.IsSpace(r):
			w.line.WriteByte(' ')
		case unicode.IsControl(r):
		default:
			w.line.WriteRune(r)
		}
	}
}

// buttonLabel returns what stands on an input that is a button.
func buttonLabel(n *html.Node) string {
	label, isButton := "", false
	for _, a := range n.Attr {
		switch a.Key {
		case "type":
			isButton = slices.Contains([]string{"submit", "button", "reset"}, strings.ToLower(a.Val))
		case "value":
			label = a.Val
		}
	}
	if !isButton {
		return ""
	}
	return label
}

// endBlock ends the present block.
func (w *walker) endBlock() {
	text := strings.Join(strings.FieldsFunc(w.line.String(), func(r rune) bool { return r == ' ' }), " ")
	w.line.Reset()
	w.tags = ""
	if text != "" {
		w.blocks = append(w.blocks, text)
	}
}

// decodeEmail decodes an address that Cloudflare hides: the first byte is the key that
// all others are XORed with; it changes at every fetch.
func decodeEmail(n *html.Node) (string, bool) {
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
		if a.Key == "href" && findElement(n, "span") != nil {
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
