package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// maxItems is how many items a feed may have.
const maxItems = 5000

// onlyItems returns of t, a feed, the items alone, without what matches one of the regular
// expressions in ignored. The IDs of its items are their keys: see flow.Outcome. A feed without items
// has its title as text.
func onlyItems(ctx context.Context, t pipeline.Text, ignored []*regexp.Regexp) (pipeline.Text, error) {
	switch {
	case t.Items == nil:
		return t, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page is no RSS, Atom or JSON feed and no array in JSON, so it has no items; name the address of the feed, select the array of a JSON document, or watch the page without items"}
	case len(t.Items) > maxItems:
		return t, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page has more than 5,000 items"}
	}
	var content strings.Builder
	var keys []pipeline.Key
	before, at := 0, 0 // the items before t.Content[at], which may be nested
	out := make([]pipeline.FeedItem, 0, len(t.Items))
	taken := make(map[string]bool, len(t.Items))
	for _, item := range t.Items {
		before += countItems(t.Content[at:item.Start])
		at = item.Start
		body, bodyKeys, err := blankIgnored(ctx, strings.ToValidUTF8(t.Content[item.Start:item.End], "\ufffd"), t.Keys[min(before, len(t.Keys)):], ignored)
		if err != nil {
			return t, err
		}
		id := "id " + item.ID
		if item.ID == "" {
			id = "text " + body
		}
		key := itemKey(id)
		if taken[key] { // feeds with mistakes give several items one identity
			key = itemKey(id + "\n" + body)
		}
		if taken[key] || blocks.Blank(body) {
			continue
		}
		taken[key] = true
		start := content.Len()
		content.WriteString(body)
		bodyKeys = append(bodyKeys, make([]pipeline.Key, max(countItems(body)-len(bodyKeys), 0))...)
		keys = append(keys, bodyKeys[:countItems(body)]...)
		out = append(out, pipeline.FeedItem{ID: key, Start: start, End: content.Len()})
	}
	t.Content, t.Keys, t.Items = content.String(), keys, out
	if len(out) == 0 && t.Title != "" {
		t.Content = blocks.Line(t.Title) + string(pipeline.BlockEnd)
	}
	return t, nil
}

// countItems returns how many items begin in content.
func countItems(content string) int { return strings.Count(content, string(pipeline.ItemStart)) }

// itemKey returns the key of an identity.
func itemKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}
