// Package json reads JSON, JSON feeds and sequences of JSON documents.
package json

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// Bounds of reading.
const (
	// maxDepth is how deep arrays and objects may be nested.
	maxDepth = 512
	// maxValues is how many values a document may have that selectors are for.
	maxValues = 1 << 20
	// tokensPerCheck is how many tokens are read between two looks at the context.
	tokensPerCheck = 4096
)

// Reader reads JSON in UTF-8. Each value is a block, with its name before it where it has one
// ("price: 12.50"); the elements of an array that are objects or arrays are items. The name of an
// object or array is a block of its own. An item is known by its id, key, guid or address. Of a JSON Feed
// the titles, summaries and contents count; content_html is read as HTML.
type Reader struct{}

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader { return Reader{} }

// sequenceTypes are the types whose pages are any number of documents, one after the other.
var sequenceTypes = []string{"application/ndjson", "application/x-ndjson", "application/jsonl", "application/x-jsonlines", "application/json-seq"}

// ContentTypes returns the media types of JSON. It reads all others that end in +json as well.
func (Reader) ContentTypes() []string {
	return append([]string{"application/json", "text/json", "application/feed+json", "application/ld+json"}, sequenceTypes...)
}

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "json/4" }

// Read returns the text of view, whose jq expressions and JSON pointers count. To them a page
// that is a sequence of documents is an array. What is no JSON in a page that is JSON otherwise is passed over and
// noted. Read returns ctx's error if that is done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	t, err := read(ctx, raw, view)
	if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailUnreadable {
		return t, err
	}
	var passed blocks.Passed
	mended, ok := mend(raw, &passed)
	if !ok {
		return t, err
	}
	t, err = read(ctx, mended, view)
	t.Passed = passed.Sentences()
	return t, err
}

// read reads raw, which is valid.
func read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	query, err := selector.NewJSON(view)
	if err != nil {
		return pipeline.Text{}, selector.Unreadable(err)
	}
	w := writer{feed: feed{expected: bytes.Contains(raw.Body, []byte("jsonfeed.org"))}}
	var elements []pipeline.FeedItem
	switch {
	case view.Items && (len(view.Select) > 0 || isArray(raw)):
		elements, err = writeSelectedItems(ctx, raw, query, &w)
	case query.All():
		err = scanValues(ctx, raw, &w)
	default:
		err = writeSelected(ctx, raw, query, &w)
	}
	if err != nil {
		return pipeline.Text{}, err
	}
	if w.Len() > pipeline.MaxText {
		return pipeline.Text{}, blocks.TooLarge()
	}
	t := pipeline.Text{Content: w.Content(), Keys: w.Keys(), Title: blocks.Line(w.title), Language: blocks.LanguageTag(raw.ContentLanguage)}
	t.Empty = blocks.Blank(t.Content)
	switch {
	case elements != nil:
		t.Items = elements
	case w.feed.isFeed():
		t.Items = append([]pipeline.FeedItem{}, w.feed.items...)
	}
	return t, nil
}

// writeSelected writes what query names in raw.
func writeSelected(ctx context.Context, raw pipeline.Raw, query *selector.JSON, w *writer) error {
	found, err := findValues(ctx, raw, query)
	if err != nil {
		return err
	}
	for _, v := range found {
		if len(found) > 1 {
			w.beginValue("", isNested(v))
		}
		if err := w.writeValue(ctx, v); err != nil {
			return err
		}
		if len(found) > 1 {
			w.endValue(isNested(v))
		}
	}
	return nil
}

// writeSelectedItems writes what query names in raw as items: the elements of an array if it names only
// that, otherwise each value. The items it returns are not nil.
func writeSelectedItems(ctx context.Context, raw pipeline.Raw, query *selector.JSON, w *writer) ([]pipeline.FeedItem, error) {
	found, err := findValues(ctx, raw, query)
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		if elements, ok := found[0].([]any); ok {
			found = elements
		}
	}
	items := make([]pipeline.FeedItem, 0, len(found))
	for _, v := range found {
		w.Break()
		start := w.Len()
		w.beginValue("", true)
		w.SetKey(pipeline.NewKey("", identityOf(v)))
		if err := w.writeValue(ctx, v); err != nil {
			return nil, err
		}
		w.endValue(true)
		if w.Len() > start {
			items = append(items, pipeline.FeedItem{ID: identityOf(v), Start: start, End: w.Len()})
		}
	}
	return items, nil
}

// findValues returns the values that query names in raw.
func findValues(ctx context.Context, raw pipeline.Raw, query *selector.JSON) ([]any, error) {
	var t treeBuilder
	if err := scanValues(ctx, raw, &t); err != nil {
		return nil, err
	}
	doc := any(t.documents)
	if !isSequence(raw) {
		doc = t.documents[0]
	}
	return query.Find(ctx, doc)
}

// isArray reports whether raw is an array, or a sequence of documents.
func isArray(raw pipeline.Raw) bool {
	body := bytes.TrimLeft(bytes.TrimPrefix(raw.Body, []byte("\ufeff")), " \t\r\n")
	return isSequence(raw) || bytes.HasPrefix(body, []byte("["))
}

// identityMembers are the members that an element of an array is known by. The first one counts that it has.
var identityMembers = []string{"id", "guid", "uuid", "key", "url", "link"}

// identityOf returns what v, an element of an array, is known by, or nothing.
func identityOf(v any) string {
	object, _ := v.(map[string]any)
	for _, name := range identityMembers {
		if id := identityText(object[name]); id != "" {
			return id
		}
	}
	return ""
}

// identityText returns an identity as text; it is empty if v cannot be one.
func identityText(v any) string {
	switch id := v.(type) {
	case string:
		return id
	case nil, bool, map[string]any, []any:
		return ""
	}
	return string(marshalLiteral(v))
}

func isSequence(raw pipeline.Raw) bool { return slices.Contains(sequenceTypes, raw.MediaType()) }

// visitor gets the values of a document in order: scalars, and where objects and arrays begin
// and end. name is the value's name where it is in an object.
type visitor interface {
	beginContainer(name string, inArray, object bool)
	endContainer()
	addScalar(name string, inArray bool, value any)
	checkSize() error
}

// openLevel is an object or array that is open.
type openLevel struct {
	object  bool
	name    string // of the value that comes, in an object
	hasName bool
}

// scanValues reads raw and gives its values to v.
func scanValues(ctx context.Context, raw pipeline.Raw, v visitor) error {
	body := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	sequence := isSequence(raw)
	if sequence {
		body = bytes.ReplaceAll(body, []byte{0x1e}, []byte{' '}) // the mark of RFC 7464
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var stack []openLevel
	documents := 0
	for n := 1; ; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		token, err := d.Token()
		switch {
		case errors.Is(err, io.EOF) && len(stack) == 0 && (documents > 0 || sequence):
			return v.checkSize()
		case err != nil:
			return syntaxError(body, d, err)
		case len(stack) == 0 && documents > 0 && !sequence:
			return blocks.Unreadable("the page is not valid JSON: a second document begins at %s", blocks.Position(body, int(d.InputOffset())))
		}
		top := len(stack) - 1
		if top >= 0 && stack[top].object && !stack[top].hasName {
			if name, ok := token.(string); ok {
				stack[top].name, stack[top].hasName = name, true
				continue
			}
		}
		name, inArray := "", sequence
		if top >= 0 {
			name, inArray = stack[top].name, !stack[top].object
			stack[top].hasName = false
		}
		switch delim, _ := token.(json.Delim); delim {
		case '{', '[':
			if len(stack) == maxDepth {
				return blocks.Unreadable("the page is nested more than %d deep, at %s", maxDepth, blocks.Position(body, int(d.InputOffset())))
			}
			stack = append(stack, openLevel{object: delim == '{'})
			v.beginContainer(name, inArray, delim == '{')
		case '}', ']':
			stack = stack[:top]
			v.endContainer()
		default:
			v.addScalar(name, inArray, token)
		}
		if len(stack) == 0 {
			documents++
		}
		if err := v.checkSize(); err != nil {
			return err
		}
	}
}

// syntaxError says where body is no JSON: at the value or mark that is wrong.
func syntaxError(body []byte, d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return blocks.Unreadable("the page is not valid JSON: it ends too early, at %s", blocks.Position(body, len(body)))
	}
	at := int(d.InputOffset())
	for at < len(body) && strings.IndexByte(" \t\r\n,:", body[at]) >= 0 {
		at++
	}
	return blocks.Unreadable("the page is not valid JSON: %s, at %s", strings.TrimPrefix(err.Error(), "json: "), blocks.Position(body, at))
}
