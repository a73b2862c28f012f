package inspector

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/htmltree"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/restless"
	"github.com/vokter/vokter/stages/fetch"
	"github.com/vokter/vokter/stages/fetch/readers"
	"github.com/vokter/vokter/stages/index"
)

const (
	maxProposals    = 5       // of a document
	maxProposalText = 1 << 20 // of a document, in bytes
	flipFlopValue   = 2
)

// Proposals returns the proposals for the documents of a page with a subscription that wants them. st is the state of
// the page in flow.GroupIndex.
func Proposals(ctx context.Context, st flow.State) ([]inspect.Proposal, error) {
	p, err := index.Load(st)
	if err != nil {
		return nil, err
	}
	subs, err := index.Subscriptions(st)
	if err != nil {
		return nil, err
	}
	var all []inspect.Proposal
	for _, d := range p.Documents {
		found, err := wantedProposals(ctx, st, p, d, subs)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// wantedProposals returns the proposals for d that help one of subs.
func wantedProposals(ctx context.Context, st flow.State, p index.Page, d index.Document, subs []flow.Stamped) ([]inspect.Proposal, error) {
	subs = slices.DeleteFunc(slices.Clone(subs), func(s flow.Stamped) bool { return s.Document != d.ID || !inspect.Proposal{}.Helps(s.Subscription) })
	if len(subs) == 0 {
		return nil, nil
	}
	all, err := proposalsFor(ctx, st, p, d)
	return slices.DeleteFunc(all, func(p inspect.Proposal) bool {
		return !slices.ContainsFunc(subs, func(s flow.Stamped) bool { return p.Helps(s.Subscription) })
	}), err
}

// proposalsFor returns the proposals for d, a document of the page p whose state st is.
func proposalsFor(ctx context.Context, st flow.State, p index.Page, d index.Document) ([]inspect.Proposal, error) {
	if d.View.Value != nil || d.View.Items || d.View.Sitemap || d.TextHash == "" {
		return nil, nil
	}
	table, ok, err := index.LoadTable(st, d.ID)
	if err != nil || !ok || len(table.Rotations) == 0 {
		return nil, err
	}
	last, before, err := index.LastTexts(st, d)
	if err != nil || len(last) > maxProposalText || len(before) > maxProposalText {
		return nil, err
	}
	t := tryout{last: last, before: before, view: d.View}
	var all []inspect.Proposal
	takesTurns := sync.OnceValues(func() (bool, error) { return alternates(st, d, table, p.Reads) })
	for _, place := range table.Turning(last, p.Reads) {
		if len(all) == maxProposals {
			break
		}
		proposal := inspect.Proposal{Document: d.ID, Place: place.Label, Changes: place.Changes, InARow: place.InARow}
		if v := t.ignore(ctx, place); v != "" {
			proposal.Option, proposal.Value = inspect.OptionIgnore, v
		} else if v, err := t.remove(ctx, st, p, d, place); err != nil {
			return nil, err
		} else if v != "" {
			proposal.Option, proposal.Value = inspect.OptionRemove, v
		} else if turns, err := takesTurns(); err != nil {
			return nil, err
		} else if turns {
			proposal.Option, proposal.Value = inspect.OptionFlipFlop, fmt.Sprint(flipFlopValue)
		} else {
			proposal.Option, proposal.Value = inspect.OptionRestless, pipeline.RestlessMute
		}
		all = append(all, proposal)
	}
	return all, ctx.Err()
}

// tryout tries options on the last two texts of a document.
type tryout struct {
	last, before string
	view         pipeline.View
}

// ignore returns a regular expression that blanks the words of place, a part of a block, with the words beside them.
// It is empty where that would blank more.
func (t *tryout) ignore(ctx context.Context, place restless.Turning) string {
	pattern := patternOf(place)
	if pattern == "" {
		return ""
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return ""
	}
	block := t.last[place.Start:place.End]
	at := re.FindAllStringIndex(block, 2)
	if len(at) != 1 || at[0][0] > len(place.Head) || at[0][1] < len(block)-len(place.Tail) {
		return ""
	}
	// The pattern must blank one block of each text, and leave the same rest of both.
	var left [2]string
	for i, content := range []string{t.last, t.before} {
		blanked, err := fetch.Ignored(ctx, content, pattern)
		if err != nil {
			return ""
		}
		had, has := blocksOf(content), blocksOf(blanked)
		k := 0
		for k < len(had) && k < len(has) && had[k] == has[k] {
			k++
		}
		if k == len(had) {
			return ""
		}
		switch rest := had[k+1:]; {
		case slices.Equal(rest, has[k:]):
		case k < len(has) && slices.Equal(rest, has[k+1:]):
			left[i] = has[k]
		default:
			return ""
		}
	}
	if left[0] != left[1] {
		return ""
	}
	return pattern
}

// blocksOf returns the blocks of content that are not blank.
func blocksOf(content string) []string {
	all := strings.Split(inspect.Plain(content), string(rune(pipeline.BlockEnd)))
	for i := range all {
		all[i] = strings.Join(strings.Fields(all[i]), " ")
	}
	return slices.DeleteFunc(all, func(b string) bool { return b == "" })
}

// contextWords is how many words on each side of a place are in its regular expression.
const contextWords = 3

// patternOf returns a regular expression for the words of place with the words beside them. It is empty where there
// is no word beside them.
func patternOf(place restless.Turning) string {
	head, whole := strings.Fields(place.Head), true
	if len(head) > contextWords {
		head, whole = head[len(head)-contextWords:], false
	}
	tail, toEnd := strings.Fields(place.Tail), true
	if len(tail) > contextWords {
		tail, toEnd = tail[:contextWords], false
	}
	if !slices.ContainsFunc(slices.Concat(head, tail), func(w string) bool { return strings.ContainsFunc(w, unicode.IsLetter) }) {
		return ""
	}
	var s strings.Builder
	if whole {
		s.WriteString("^")
	}
	for _, w := range head {
		s.WriteString(wordPattern(w) + " ")
	}
	s.WriteString(".+")
	if !toEnd || len(tail) > 0 {
		s.WriteString("?")
	}
	for _, w := range tail {
		s.WriteString(" " + wordPattern(w))
	}
	if toEnd {
		s.WriteString("$")
	}
	return s.String()
}

var digitsInWord = regexp.MustCompile(`\d[\d.,]*`)

// wordPattern returns a regular expression for a word, with any other number in place of one.
func wordPattern(w string) string {
	var s strings.Builder
	from := 0
	for _, at := range digitsInWord.FindAllStringIndex(w, -1) {
		s.WriteString(regexp.QuoteMeta(w[from:at[0]]) + `\d[\d.,]*`)
		from = at[1]
	}
	return s.String() + regexp.QuoteMeta(w[from:])
}

// builtinReaders read stored bodies. A page that another reader reads has another text, and no selector is proposed.
var builtinReaders = sync.OnceValue(func() *fetch.Readers { return fetch.NewReaders(readers.Builtin()...) })

// removableElements are the elements whose name alone may be proposed.
var removableElements = map[atom.Atom]bool{atom.Aside: true, atom.Blockquote: true, atom.Marquee: true, atom.Dialog: true}

// maxRemoveTrials is how many selectors are tried for a place.
const maxRemoveTrials = 4

// remove returns a selector of the element whose text is place, by its ID, its class or its name. It is empty where
// there is none, and where the body of the page is not stored.
func (t *tryout) remove(ctx context.Context, st flow.State, p index.Page, d index.Document, place restless.Turning) (string, error) {
	if withoutSpace(t.last[place.Start:place.End]) == "" {
		return "", nil
	}
	body, err := index.LoadBody(st, p, d)
	if err != nil || body == nil || !strings.Contains(body.ContentType, "html") {
		return "", err
	}
	raw, err := fetch.RawOf(body)
	if err != nil {
		return "", err
	}
	root, _, err := htmltree.Parse(ctx, raw.Body)
	if err != nil {
		return "", nil
	}
	// The body is that of the last version, of which the text of the last check may be none: then other words stand at
	// the place.
	has, err := fetch.ReadAgain(ctx, raw, t.view, builtinReaders())
	all, above, below := blocksOf(has), blocksOf(t.last[:place.Start]), blocksOf(t.last[place.End:])
	n := len(all) - len(below)
	if err != nil || n <= len(above) || !slices.Equal(all[:len(above)], above) || !slices.Equal(all[n:], below) {
		return "", ctx.Err()
	}
	want := withoutSpace(strings.Join(all[len(above):n], ""))
	count := make(map[string]int)
	var found []string
	for n := range root.Descendants() {
		names := removableNames(n)
		for _, name := range names {
			count[name]++
		}
		if len(names) > 0 && textIs(n, want) {
			found = append(found, names...)
		}
	}
	found = slices.DeleteFunc(found, func(name string) bool { return count[name] > 1 })
	rest := slices.Concat(above, below)
	for _, name := range found[:min(len(found), maxRemoveTrials)] {
		v := t.view
		v.Remove = append(slices.Clone(v.Remove), pipeline.Selector{CSS: name})
		if has, err := fetch.ReadAgain(ctx, raw, v, builtinReaders()); err == nil && slices.Equal(blocksOf(has), rest) {
			return name, nil
		}
	}
	return "", ctx.Err()
}

// removableNames returns the selectors by which n may be removed, the best first. A name with a digit may be another
// one with the next version of the page.
func removableNames(n *html.Node) []string {
	if n.Type != html.ElementNode {
		return nil
	}
	names := slices.DeleteFunc(htmltree.Names(n), func(name string) bool { return strings.ContainsAny(name, "0123456789") })
	if removableElements[n.DataAtom] {
		names = append(names, n.Data)
	}
	return names
}

// textIs reports whether the text of n is want, without white space.
func textIs(n *html.Node, want string) bool {
	for c := range n.Descendants() {
		if c.Type != html.TextNode || c.Parent.DataAtom == atom.Script || c.Parent.DataAtom == atom.Style {
			continue
		}
		has := withoutSpace(c.Data)
		if !strings.HasPrefix(want, has) {
			return false
		}
		want = want[len(has):]
	}
	return want == ""
}

func withoutSpace(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
}

// minTurnsTaken is how many of the last maxTurnsRead versions flip_flop must have kept silent to be proposed.
const (
	minTurnsTaken = 3
	maxTurnsRead  = 20
)

// alternates reports whether most of the last stored versions of d have a text of the versions before them, so that
// flip_flop would have kept them silent. What is restless in their numbers does not count.
func alternates(st flow.State, d index.Document, table restless.Table, check uint64) (bool, error) {
	if d.View.FlipFlop > 0 {
		return false, nil
	}
	kept, err := index.KeptVersions(st, d.ID)
	if err != nil {
		return false, err
	}
	places := table.Restless(check)
	var made []string
	silent, all := 0, 0
	for _, n := range slices.Backward(kept[:min(len(kept), maxTurnsRead)]) { // the oldest first
		v, ok, err := loadText(st, d.ID, n)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		hash := places.Hash(v.text)
		if all++; slices.Contains(made[max(0, len(made)-flipFlopValue):], hash) {
			silent++
			continue
		}
		made = append(made, hash)
	}
	return silent >= minTurnsTaken && 2*silent > all, nil
}
