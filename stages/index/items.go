package index

import (
	"bytes"
	"encoding/base64"
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
	// Text is the text of the current version, empty if there is none.
	Text string
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
	// isNews says that the text is a new version: an item is new, changed or came back. One that came
	// back is in base as it is, and from now on compared with this text.
	isNews bool
	// seen is the next feed.Seen.
	seen []byte
}

// compare compares content, whose items have these keys, with f. Where other rules extracted the
// text, items are not compared with their earlier texts: only unknown items are news. It returns
// false if keys are not those of content.
func (f feed) compare(content string, keys []string, otherRules bool) (feedUpdate, bool) {
	items := splitItems(content)
	if len(items) != len(keys) {
		return feedUpdate{}, false
	}
	known := make(map[string][]byte, len(f.Seen)/itemSize)
	for b := f.Seen; len(b) >= itemSize; b = b[itemSize:] {
		known[string(b[:keySize])] = b[keySize:itemSize]
	}
	before := make(map[string]string) // texts of the current version
	for i, item := range splitItems(f.Text) {
		if len(f.Seen) >= (i+1)*itemSize {
			before[string(f.Seen[i*itemSize:i*itemSize+keySize])] = item
		}
	}
	var r feedUpdate
	var base strings.Builder
	present := make(map[string]bool, len(items))
	for i, item := range items {
		key, err := base64.RawURLEncoding.DecodeString(keys[i])
		if err != nil || len(key) != keySize || present[string(key)] {
			return feedUpdate{}, false
		}
		present[string(key)] = true
		sum := itemHash(item)
		r.seen = append(append(r.seen, key...), sum...)
		switch earlier, ok := known[string(key)]; {
		case !ok:
			r.isNews = true
		case otherRules || bytes.Equal(earlier, sum):
			base.WriteString(item)
			_, there := before[string(key)]
			r.isNews = r.isNews || !there
		default: // without its earlier text it is reported as a whole
			base.WriteString(before[string(key)])
			r.isNews = true
		}
	}
	for b := f.Seen; len(b) >= itemSize && len(r.seen) < rememberedItems*itemSize; b = b[itemSize:] {
		if !present[string(b[:keySize])] {
			r.seen = append(r.seen, b[:itemSize]...)
		}
	}
	r.base = base.String()
	return r, true
}

// ItemsBase returns the text with which the text new of a feed is compared after old: see
// pipeline.View.Items. The keys are those of the items of both texts. ok is false if they are not,
// or if nothing in new is news.
func ItemsBase(old string, oldKeys []string, new string, newKeys []string) (base string, ok bool) {
	before, ok := feed{}.compare(old, oldKeys, false)
	if !ok {
		return "", false
	}
	r, ok := feed{Seen: before.seen, Text: old}.compare(new, newKeys, false)
	return r.base, ok && r.isNews
}

// itemHash returns the start of the hash of an item's text.
func itemHash(item string) []byte { return []byte(text.Hash(item))[:itemSize-keySize] }

// splitItems returns the outermost items of content.
func splitItems(content string) []string {
	var items []string
	depth, start := 0, 0
	for i := range len(content) {
		switch content[i] {
		case pipeline.ItemStart:
			if depth == 0 {
				start = i
			}
			depth++
		case pipeline.ItemEnd:
			if depth--; depth == 0 {
				items = append(items, content[start:i+1])
			}
		}
	}
	return items
}

// compareFeed compares a new text of the feed d with what is remembered of it. It returns false if
// the text is no news.
func (a *applier) compareFeed(d *Document, o flow.Outcome) bool {
	content, err := o.Content()
	r, ok := a.feeds[d.ID].compare(content, o.Items, d.hasOtherExtractor(o))
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
