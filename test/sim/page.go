package sim

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/oracle"
)

// pageRevision is one revision of a page.
type pageRevision struct {
	title        string
	nodes        []node
	links        []string // URLs of other sites
	feed         []article
	goneArticles []article // that were in the feed
	challenge    bool      // a challenge in place of the page
	value        pageValue
}

// node is a paragraph, a list item or a table row.
type node struct {
	cells  []string
	item   bool // a list item, or a row where it has several cells
	nested bool // the item stands in an item that holds its neighbours too
	main   bool // what the selector of some documents selects
	ad     bool // what some documents remove
}

// Views that simulated documents have of a page.
var views = []pipeline.View{
	{},
	{Select: []pipeline.Selector{{CSS: ".main"}}},
	{Remove: []pipeline.Selector{{CSS: ".ad"}}, FlipFlop: 2},
	{Confirm: 2},
	{Replaced: true},
	{Select: []pipeline.Selector{{CSS: ".level"}}, Value: &pipeline.Value{}},
	{Select: []pipeline.Selector{{CSS: ".mood"}}, Value: &pipeline.Value{Word: true}},
	{Items: true},
}

// renderedText is the text of a document, as a reader extracts it and as the oracle sees it.
type renderedText struct {
	content   string
	title     string
	page      oracle.Page
	challenge bool
	value     pageValue // of a document that is a value
	feed      []article // of a document that has them alone
}

// visibleText is what makes two texts the same version.
func (d renderedText) visibleText() string {
	var b strings.Builder
	for _, block := range d.page {
		b.WriteString(block.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// render returns the text of view; ok is false where its selector matches nothing.
func (p pageRevision) render(view pipeline.View) (d renderedText, ok bool) {
	if view.Value != nil {
		return p.renderValue(*view.Value)
	}
	if view.Items {
		d, ok = renderFeed(p.feed)
		d.title, d.challenge = p.title, p.challenge
		return d, ok
	}
	var b strings.Builder
	var items []int
	next := 0
	text := func(s string) {
		d.page = append(d.page, oracle.Block{Text: s, Offset: b.Len(), Items: slices.Clone(items)})
		b.WriteString(s)
		b.WriteByte(pipeline.BlockEnd)
	}
	open := func() {
		next++
		items = append(items, next)
		b.WriteByte(pipeline.ItemStart)
	}
	shut := func() {
		items = items[:len(items)-1]
		b.WriteByte(pipeline.ItemEnd)
	}
	if len(view.Select) == 0 {
		text(p.title)
	}
	for _, n := range p.nodes {
		if len(view.Select) > 0 && !n.main || len(view.Remove) > 0 && n.ad {
			continue
		}
		ok = true
		if inList := len(items) > 0; n.nested && !inList {
			open()
		} else if !n.nested && inList {
			shut()
		}
		if n.item {
			open()
		}
		for _, c := range n.cells {
			text(c)
		}
		if n.item {
			shut()
		}
	}
	if len(items) > 0 {
		shut()
	}
	d.content, d.title, d.challenge = b.String(), p.title, p.challenge
	return d, ok || len(view.Select) == 0
}

// rayID stands before a number that is another whenever a challenge is shown.
const rayID = "ray id"

var rayIDs = regexp.MustCompile(rayID + ` \d+`)

// sameButForRayID reports whether two texts differ in the number after rayID alone.
func sameButForRayID(old, new string) bool {
	return rayIDs.ReplaceAllString(old, rayID) == rayIDs.ReplaceAllString(new, rayID)
}

// newChallenge returns what a server shows in place of a page that it protects.
func newChallenge(r *rand.Rand) pageRevision {
	text := fmt.Sprintf("Checking your browser, %s %d", rayID, 5000+r.IntN(3))
	return pageRevision{title: "Just a moment", nodes: []node{{cells: []string{text}}}, challenge: true}
}

func newNode(r *rand.Rand) node {
	n := node{main: r.IntN(2) == 0, ad: r.IntN(4) == 0}
	switch r.IntN(6) {
	case 0: // a row
		n.item = true
		for range 2 + r.IntN(3) {
			n.cells = append(n.cells, randomPhrase(r, 1+r.IntN(3)))
		}
	case 1, 2: // a list item
		n.item, n.nested = true, r.IntN(3) == 0
		n.cells = []string{randomPhrase(r, 2+r.IntN(7))}
	default:
		n.cells = []string{randomParagraph(r)}
	}
	return n
}

func newRevision(r *rand.Rand) pageRevision {
	p := pageRevision{title: randomPhrase(r, 3), value: newPageValue(r)}
	for range 3 + r.IntN(7) {
		p.nodes = append(p.nodes, newNode(r))
	}
	for range 1 + r.IntN(4) {
		p.putArticle(newArticle(r))
	}
	return p
}

func (p pageRevision) clone() pageRevision {
	p.nodes, p.links, p.feed, p.goneArticles = slices.Clone(p.nodes), slices.Clone(p.links), slices.Clone(p.feed), slices.Clone(p.goneArticles)
	for i := range p.nodes {
		p.nodes[i].cells = slices.Clone(p.nodes[i].cells)
	}
	return p
}

// edit returns the next revision of p.
func (p pageRevision) edit(r *rand.Rand) pageRevision {
	p = p.clone()
	for range 1 + r.IntN(3) {
		p.editOnce(r)
	}
	if r.IntN(2) == 0 {
		p.value = newPageValue(r)
	}
	for range r.IntN(3) {
		p.editFeed(r)
	}
	return p
}

func (p *pageRevision) editOnce(r *rand.Rand) {
	at := r.IntN(len(p.nodes))
	n := &p.nodes[at]
	switch r.IntN(100) {
	case 0: // all is new
		*p = newRevision(r)
	case 1: // a node that stands twice
		twin := *n
		twin.cells = slices.Clone(n.cells)
		p.nodes = slices.Insert(p.nodes, r.IntN(len(p.nodes)+1), twin)
	case 2, 3, 4: // a passage about one thing, again and again
		about := pick(r, keywords)
		text := about
		for range 2 + r.IntN(6) {
			text += " " + randomPhrase(r, 1+r.IntN(6)) + " " + about
		}
		p.nodes = slices.Insert(p.nodes, at, node{cells: []string{text + "."}, main: r.IntN(2) == 0})
	case 5, 6: // a list that is longer than one item may be
		for range 4 + r.IntN(4) {
			p.nodes = slices.Insert(p.nodes, at, node{cells: []string{randomPhrase(r, 6+r.IntN(6))}, item: true, nested: true, main: true})
		}
	default:
		p.editNode(r, at)
	}
}

// editNode changes the page at one node.
func (p *pageRevision) editNode(r *rand.Rand, at int) {
	n := &p.nodes[at]
	cell := &n.cells[r.IntN(len(n.cells))]
	switch r.IntN(16) {
	case 0, 1, 2: // a new node
		p.nodes = slices.Insert(p.nodes, at, newNode(r))
	case 3, 4: // one that goes
		if len(p.nodes) > 2 {
			p.nodes = slices.Delete(p.nodes, at, at+1)
		}
	case 5, 6: // one that moves
		moved := *n
		p.nodes = slices.Delete(p.nodes, at, at+1)
		to := r.IntN(len(p.nodes) + 1)
		p.nodes = slices.Insert(p.nodes, to, moved)
		if r.IntN(3) == 0 { // and is edited
			p.nodes[to].cells[0] = editWords(r, p.nodes[to].cells[0])
		}
	case 7: // a paragraph that is split
		ws := strings.Fields(n.cells[0])
		if !n.item && len(ws) > 5 {
			k := 2 + r.IntN(len(ws)-3)
			second := *n
			second.cells = []string{strings.Join(ws[k:], " ")}
			n.cells[0] = strings.Join(ws[:k], " ")
			p.nodes = slices.Insert(p.nodes, at+1, second)
		}
	case 8: // two that merge
		if at+1 < len(p.nodes) && !n.item && !p.nodes[at+1].item {
			n.cells[0] += " " + p.nodes[at+1].cells[0]
			p.nodes = slices.Delete(p.nodes, at+1, at+2)
		}
	case 9:
		p.title = editWords(r, p.title)
	case 10: // no token differs
		*cell = strings.ReplaceAll(*cell, ".", "!") + "!"
	case 11:
		*cell += " " + randomParagraph(r)
	default:
		*cell = editWords(r, *cell)
	}
}

// editWords changes up to three words of text.
func editWords(r *rand.Rand, text string) string {
	ws := strings.Fields(text)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(ws))
		switch r.IntN(6) {
		case 0, 1:
			ws[at] = randomWord(r)
		case 2:
			ws = slices.Insert(ws, at, strings.Fields(randomPhrase(r, 1+r.IntN(3)))...)
		case 3:
			ws = slices.Insert(ws, at, strings.Fields(pick(r, keywords))...)
		case 4:
			if len(ws) > 2 {
				ws = slices.Delete(ws, at, at+1)
			}
		case 5:
			if ws[at] == strings.ToUpper(ws[at]) {
				ws[at] = strings.ToLower(ws[at])
			} else {
				ws[at] = strings.ToUpper(ws[at])
			}
		}
	}
	return strings.Join(ws, " ")
}
