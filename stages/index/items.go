package index

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// rememberedItems is how many items of a feed are remembered, unless the feed itself has more.
const rememberedItems = 5000

// Sizes of a remembered item in bytes: its key, and the start of the hash of its text.
const (
	keySize  = 8
	itemSize = keySize + 8
)

// feed is what is remembered of the items of a document with View.Items.
type feed struct {
	// Seen has itemSize bytes for each item: those of the current version in the order of its
	// text, then those that left the feed, the last to leave first.
	Seen []byte
	// Text is the text of the current version, empty if there is none, and Keys are the keys of its items.
	Text string
	Keys []pipeline.Key
}

// loadFeed loads the feed of document d.
func loadFeed(st flow.State, d Document) (feed, error) {
	var f feed
	var err error
	if f.Seen, _, err = st.Get(itemsName + d.ID); err != nil || d.TextHash == "" {
		return f, err
	}
	v, ok, err := LoadVersion(st, d.ID, d.N)
	if err != nil || !ok {
		return f, err
	}
	if f.Text, err = flow.UnpackText(v.Packed); err != nil {
		err = failure.Broken(err)
	}
	f.Keys = flow.UnpackKeys(v.Packed)
	return f, err
}

// loadFeeds loads the feeds that the outcomes os are compared with, by document.
func loadFeeds(st flow.State, p *Page, os ...flow.Outcome) (map[string]feed, error) {
	var feeds map[string]feed
	for _, o := range os {
		d := p.Document(o.Document)
		if d == nil || !d.View.Items || o.Kind != flow.OutcomeRead {
			continue
		}
		f, err := loadFeed(st, *d)
		if err != nil {
			return nil, err
		}
		if feeds == nil {
			feeds = make(map[string]feed)
		}
		feeds[d.ID] = f
	}
	return feeds, nil
}

// feedUpdate is a new text of a feed.
type feedUpdate struct {
	// base is the text that the new one is compared with: the new text without its new items, and
	// with the earlier texts of those that changed. So nothing is reported of items that left or
	// moved, nor of those that came back as they were.
	base string
	keys []pipeline.Key // of the items in base
	// isNews says that the text is a new version: an item is new, changed or came back. One that came
	// back is in base as it is, and from now on compared with this text.
	isNews bool
	// seen is the next feed.Seen.
	seen []byte
}

// compare compares content, whose items have these identities, with f. keys are those of all items, see
// pipeline.Text. Where other rules extracted the text, items are not compared with their earlier texts: only unknown
// items are news. It returns false if ids are not those of content.
func (f feed) compare(content string, keys []pipeline.Key, ids []string, otherRules bool) (feedUpdate, bool) {
	items := splitItems(content, keys)
	if len(items) != len(ids) {
		return feedUpdate{}, false
	}
	known := make(map[string][]byte, len(f.Seen)/itemSize)
	for b := f.Seen; len(b) >= itemSize; b = b[itemSize:] {
		known[string(b[:keySize])] = b[keySize:itemSize]
	}
	before := make(map[string]feedItem) // in the current version
	for i, item := range splitItems(f.Text, f.Keys) {
		if len(f.Seen) >= (i+1)*itemSize {
			before[string(f.Seen[i*itemSize:i*itemSize+keySize])] = item
		}
	}
	var r feedUpdate
	var base strings.Builder
	keep := func(item feedItem) {
		base.WriteString(item.text)
		r.keys = append(r.keys, item.keys...)
	}
	present := make(map[string]bool, len(items))
	unknown := 0
	for i, item := range items {
		key, err := base64.RawURLEncoding.DecodeString(ids[i])
		if err != nil || len(key) != keySize || present[string(key)] {
			return feedUpdate{}, false
		}
		present[string(key)] = true
		sum := itemHash(item.text)
		r.seen = append(append(r.seen, key...), sum...)
		switch earlier, ok := known[string(key)]; {
		case !ok:
			r.isNews = true
			unknown++
		case otherRules || bytes.Equal(earlier, sum):
			keep(item)
			_, there := before[string(key)]
			r.isNews = r.isNews || !there
		default: // without its earlier text it is reported as a whole
			keep(before[string(key)])
			r.isNews = true
		}
	}
	for b := f.Seen; len(b) >= itemSize && len(r.seen) < rememberedItems*itemSize; b = b[itemSize:] {
		if !present[string(b[:keySize])] {
			r.seen = append(r.seen, b[:itemSize]...)
		}
	}
	r.base = base.String()
	if unknown > 1 && unknown == len(items) && content == f.Text {
		r.isNews = false // the feed gives all of its items another id at each fetch
	}
	return r, true
}

// ItemsBase returns the text with which the text of new, an outcome of a feed, is compared after that of old, and
// the keys of its items: see pipeline.View.Items. ok is false if the items came without their identities, or if
// nothing in new is news.
func ItemsBase(old, new flow.Outcome) (base string, keys []pipeline.Key, ok bool) {
	was, err := old.Content()
	is, err2 := new.Content()
	f := feed{Text: was, Keys: flow.UnpackKeys(old.Packed)}
	before, ok := feed{}.compare(was, f.Keys, old.Items, false)
	if err != nil || err2 != nil || !ok {
		return "", nil, false
	}
	f.Seen = before.seen
	r, ok := f.compare(is, flow.UnpackKeys(new.Packed), new.Items, false)
	return r.base, r.keys, ok && r.isNews
}

// itemHash returns the start of the hash of an item's text.
func itemHash(item string) []byte { return []byte(text.Hash(item))[:itemSize-keySize] }

// feedItem is an outermost item of a text. keys has one for it and for each item in it.
type feedItem struct {
	text string
	keys []pipeline.Key
}

// splitItems returns the outermost items of content, all of whose items have the given keys.
func splitItems(content string, keys []pipeline.Key) []feedItem {
	keys = slices.Concat(keys, make([]pipeline.Key, max(strings.Count(content, string(pipeline.ItemStart))-len(keys), 0)))
	var items []feedItem
	depth, start, count, first := 0, 0, 0, 0
	for i := range len(content) {
		switch content[i] {
		case pipeline.ItemStart:
			if depth == 0 {
				start, first = i, count
			}
			count++
			depth++
		case pipeline.ItemEnd:
			if depth--; depth == 0 {
				items = append(items, feedItem{content[start : i+1], keys[first:count:count]})
			}
		}
	}
	return items
}

// compareFeed compares a new text of the feed d with what is remembered of it. It returns false if
// the text is no news.
func (a *applier) compareFeed(d *Document, o flow.Outcome) bool {
	content, err := o.Content()
	r, ok := a.feeds[d.ID].compare(content, flow.UnpackKeys(o.Packed), o.Items, d.hasOtherExtractor(o))
	if err != nil || !ok {
		a.p.Open.noteFailure(pipeline.FailUnreadable, "the items of the feed came without their identities")
		return false
	}
	a.feedUpdate = r
	switch {
	case d.TextHash == "" || r.isNews:
		return true
	case d.hasOtherExtractor(o) && o.TextHash != d.TextHash:
		a.makeVersion(d, o, 0) // from now on items are compared with their texts by these rules
	default:
		a.textStands(d, o)
	}
	return false
}
