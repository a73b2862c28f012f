package json

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	htmlreader "github.com/vokter/vokter/stages/fetch/readers/html"
)

// writer lays values out as text.
type writer struct {
	blocks.Builder
	levels []level // the open objects and arrays
	title  string
	feed   feed
}

// level is an object or array that is open.
type level struct {
	item     bool
	name     string
	identity int // how many of identityMembers would say better what it is known by
}

// feed collects what makes a document a JSON Feed.
type feed struct {
	expected bool // the page names the format, perhaps behind the items
	version  string
	skipped  int  // > 0 within members that are no news
	inItems  bool // the array that is open has the items
	start    int  // of the item that is open
	id, url  string
	items    []pipeline.FeedItem
}

// isFeed reports whether the document is a JSON Feed (https://jsonfeed.org/version/1.1).
func (f *feed) isFeed() bool { return strings.HasPrefix(f.version, "https://jsonfeed.org/version/") }

// isNews reports whether a member of the given name counts, where depth objects and arrays are open. Ids, dates,
// addresses and tags do not.
func (f *feed) isNews(name string, depth int) bool {
	switch {
	case f.version == "" && !f.expected || f.version != "" && !f.isFeed():
		return true
	case depth == depthInFeed:
		return name == "title" || name == "description" || name == "items"
	case depth == depthInItem && f.inItems:
		return name == "title" || name == "summary" || name == "content_text" || name == "content_html"
	}
	return true
}

// depths in a JSON Feed, as open objects and arrays.
const (
	depthInFeed  = 1
	depthInItems = 2
	depthInItem  = 3
)

// beginValue begins a value that is an item, or has a name.
func (w *writer) beginValue(name string, item bool) {
	w.Break()
	if item {
		w.ItemStart()
	}
	if name != "" {
		w.Block(name)
	}
}

func (w *writer) endValue(item bool) {
	w.Break()
	if item {
		w.ItemEnd()
	}
}

func (w *writer) beginContainer(name string, inArray, _ bool) {
	depth := len(w.levels)
	w.levels = append(w.levels, level{inArray, name, len(identityMembers)})
	if w.feed.skipped > 0 || !w.feed.isNews(name, depth) {
		w.feed.skipped++
		return
	}
	switch w.Break(); depth {
	case depthInFeed:
		w.feed.inItems = name == "items"
	case depthInItems:
		w.feed.start, w.feed.id, w.feed.url = w.Len(), "", ""
	}
	w.beginValue(name, inArray)
}

func (w *writer) endContainer() {
	last := len(w.levels) - 1
	item := w.levels[last].item
	w.levels = w.levels[:last]
	if w.feed.skipped > 0 {
		w.feed.skipped--
		return
	}
	w.endValue(item)
	if f := &w.feed; last == depthInItems && f.inItems && w.Len() > f.start {
		f.items = append(f.items, pipeline.FeedItem{ID: cmp.Or(f.id, f.url), Start: f.start, End: w.Len()})
	}
}

func (w *writer) addScalar(name string, _ bool, value any) {
	if w.feed.skipped > 0 {
		return
	}
	if text, ok := value.(string); ok && name == "title" && len(w.levels) == 1 && w.title == "" {
		w.title = text
	}
	w.Break()
	w.noteIdentity(name, value)
	if w.writeFeedMember(name, value) {
		return
	}
	if name != "" {
		w.Text([]byte(name))
		w.Text([]byte(": "))
	}
	if text, ok := value.(string); ok {
		w.Lines([]byte(text))
	} else {
		w.Text(marshalLiteral(value))
	}
	w.Break()
}

// noteIdentity gives the item that is open its key, if the value is what it is known by.
func (w *writer) noteIdentity(name string, value any) {
	last := len(w.levels) - 1
	if last < 0 || !w.levels[last].item {
		return
	}
	rank := slices.Index(identityMembers[:w.levels[last].identity], name)
	if rank < 0 {
		return
	}
	if id := identityText(value); id != "" {
		list := ""
		if last > 0 {
			list = w.levels[last-1].name
		}
		w.levels[last].identity = rank
		w.SetKey(pipeline.NewKey(list, id))
	}
}

// writeFeedMember notes what a value says of a JSON Feed. It writes content_html of an item, and
// reports whether nothing is left to write.
func (w *writer) writeFeedMember(name string, value any) bool {
	f := &w.feed
	text, ok := value.(string)
	if !ok {
		text = string(marshalLiteral(value))
	}
	switch {
	case name == "version" && len(w.levels) == depthInFeed:
		f.version = text
	case !f.inItems || len(w.levels) != depthInItem:
	case name == "id":
		f.id = text
	case name == "url":
		f.url = text
	case name == "content_html" && ok:
		t, err := htmlreader.New().Read(context.Background(), pipeline.Raw{Body: []byte(text)}, pipeline.View{})
		if err == nil {
			w.Append(t.Content)
		}
		return err == nil
	}
	return !f.isNews(name, len(w.levels))
}

func (w *writer) checkSize() error {
	if w.Len() > pipeline.MaxText {
		return blocks.TooLarge()
	}
	return nil
}

// marshalLiteral returns how a number, a truth value or null is written.
func marshalLiteral(value any) []byte {
	if n, ok := value.(json.Number); ok {
		return []byte(n)
	}
	b, err := gojq.Marshal(value)
	if err != nil {
		return nil
	}
	return b
}

// isNested reports whether v is an object or array.
func isNested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// writeValue writes v, as package json or jq makes it. The members of objects come in the order of
// their names.
func (w *writer) writeValue(ctx context.Context, v any) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := w.writeMember(ctx, name, false, v[name]); err != nil {
				return err
			}
		}
	case []any:
		for _, e := range v {
			if err := w.writeMember(ctx, "", true, e); err != nil {
				return err
			}
		}
	default:
		w.addScalar("", false, v)
	}
	return w.checkSize()
}

// writeMember writes v, which is a member of an object or an element of an array.
func (w *writer) writeMember(ctx context.Context, name string, inArray bool, v any) error {
	if !isNested(v) {
		w.addScalar(name, inArray, v)
		return w.checkSize()
	}
	w.beginContainer(name, inArray, false)
	defer w.endContainer()
	return w.writeValue(ctx, v)
}

// treeBuilder builds the values that selectors are for.
type treeBuilder struct {
	documents []any // the documents
	stack     []openNode
	count     int
}

// openNode is an object or array that is open.
type openNode struct {
	name   string // under which its parent holds it
	object map[string]any
	array  []any
}

func (t *treeBuilder) beginContainer(name string, _, object bool) {
	n := openNode{name: name}
	if object {
		n.object = map[string]any{}
	} else {
		n.array = []any{}
	}
	t.stack = append(t.stack, n)
}

func (t *treeBuilder) endContainer() {
	last := len(t.stack) - 1
	n := t.stack[last]
	t.stack = t.stack[:last]
	if n.object != nil {
		t.add(n.name, n.object)
	} else {
		t.add(n.name, n.array)
	}
}

func (t *treeBuilder) addScalar(name string, _ bool, value any) { t.add(name, value) }

func (t *treeBuilder) add(name string, value any) {
	t.count++
	if len(t.stack) == 0 {
		t.documents = append(t.documents, value)
		return
	}
	parent := &t.stack[len(t.stack)-1]
	if parent.object != nil {
		parent.object[name] = value
	} else {
		parent.array = append(parent.array, value)
	}
}

func (t *treeBuilder) checkSize() error {
	if t.count > maxValues {
		return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the page has too many values for selectors (more than %d)", maxValues)}
	}
	return nil
}
