package json

import (
	"cmp"
	"context"
	"encoding/json"
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
	items []bool // of the open objects and arrays: it is an item
	title string
	feed  feed
}

// feed collects what makes a document a JSON Feed.
type feed struct {
	version string
	inItems bool // the array that is open has the items
	start   int  // of the item that is open
	id, url string
	items   []pipeline.FeedItem
}

// isFeed reports whether the document is a JSON Feed (https://jsonfeed.org/version/1.1).
func (f *feed) isFeed() bool { return strings.HasPrefix(f.version, "https://jsonfeed.org/version/") }

// depths in a JSON Feed, as open objects and arrays.
const (
	ofFeed  = 1
	ofItems = 2
	ofItem  = 3
)

// begin begins a value that is an item, or has a name.
func (w *writer) begin(name string, item bool) {
	w.Break()
	if item {
		w.ItemStart()
	}
	if name != "" {
		w.Text([]byte(name))
		w.Break()
	}
}

func (w *writer) end(item bool) {
	w.Break()
	if item {
		w.ItemEnd()
	}
}

func (w *writer) open(name string, inArray, _ bool) {
	switch w.Break(); len(w.items) {
	case ofFeed:
		w.feed.inItems = name == "items"
	case ofItems:
		w.feed.start, w.feed.id, w.feed.url = w.Len(), "", ""
	}
	w.begin(name, inArray)
	w.items = append(w.items, inArray)
}

func (w *writer) close() {
	last := len(w.items) - 1
	w.end(w.items[last])
	w.items = w.items[:last]
	if f := &w.feed; last == ofItems && f.inItems && w.Len() > f.start {
		f.items = append(f.items, pipeline.FeedItem{ID: cmp.Or(f.id, f.url), Start: f.start, End: w.Len()})
	}
}

func (w *writer) scalar(name string, _ bool, value any) {
	if text, ok := value.(string); ok && name == "title" && len(w.items) == 1 && w.title == "" {
		w.title = text
	}
	w.Break()
	if w.ofFeed(name, value) {
		return
	}
	if name != "" {
		w.Text([]byte(name))
		w.Text([]byte(": "))
	}
	if text, ok := value.(string); ok {
		w.Lines([]byte(text))
	} else {
		w.Text(literal(value))
	}
	w.Break()
}

// ofFeed notes what a value says of a JSON Feed. It writes content_html of an item, and reports
// whether it did.
func (w *writer) ofFeed(name string, value any) bool {
	f := &w.feed
	text, ok := value.(string)
	if !ok {
		text = string(literal(value))
	}
	switch {
	case name == "version" && len(w.items) == ofFeed:
		f.version = text
	case !f.inItems || len(w.items) != ofItem:
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
	return false
}

func (w *writer) err() error {
	if w.Len() > pipeline.MaxText {
		return blocks.TooLarge()
	}
	return nil
}

// literal returns how a number, a truth value or null is written.
func literal(value any) []byte {
	if n, ok := value.(json.Number); ok {
		return []byte(n)
	}
	b, err := gojq.Marshal(value)
	if err != nil {
		return nil
	}
	return b
}

// nested reports whether v is an object or array.
func nested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// value writes v, as package json or jq makes it. The members of objects come in the order of
// their names.
func (w *writer) value(ctx context.Context, v any) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := w.member(ctx, name, false, v[name]); err != nil {
				return err
			}
		}
	case []any:
		for _, e := range v {
			if err := w.member(ctx, "", true, e); err != nil {
				return err
			}
		}
	default:
		w.scalar("", false, v)
	}
	return w.err()
}

func (w *writer) member(ctx context.Context, name string, inArray bool, v any) error {
	if !nested(v) {
		w.scalar(name, inArray, v)
		return w.err()
	}
	w.open(name, inArray, false)
	defer w.close()
	return w.value(ctx, v)
}

// tree builds the values that selectors are for.
type tree struct {
	found []any // the documents
	stack []node
	count int
}

// node is an object or array that is open.
type node struct {
	name   string // under which its parent holds it
	object map[string]any
	array  []any
}

func (t *tree) open(name string, _, object bool) {
	n := node{name: name}
	if object {
		n.object = map[string]any{}
	} else {
		n.array = []any{}
	}
	t.stack = append(t.stack, n)
}

func (t *tree) close() {
	last := len(t.stack) - 1
	n := t.stack[last]
	t.stack = t.stack[:last]
	if n.object != nil {
		t.add(n.name, n.object)
	} else {
		t.add(n.name, n.array)
	}
}

func (t *tree) scalar(name string, _ bool, value any) { t.add(name, value) }

func (t *tree) add(name string, value any) {
	t.count++
	if len(t.stack) == 0 {
		t.found = append(t.found, value)
		return
	}
	parent := &t.stack[len(t.stack)-1]
	if parent.object != nil {
		parent.object[name] = value
	} else {
		parent.array = append(parent.array, value)
	}
}

func (t *tree) err() error {
	if t.count > maxValues {
		return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page has too many values for selectors"}
	}
	return nil
}
