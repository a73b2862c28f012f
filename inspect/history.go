package inspect

import (
	"fmt"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// DocumentFilter chooses one document of a page. It may be empty for a page with one document.
type DocumentFilter struct {
	// Document is the ID of the document, or the beginning of it.
	Document string `json:"document,omitempty"`
	// Client is a client that watches the document.
	Client string `json:"client,omitempty"`
	// Select is one of the selectors of the document, as users write it; see pipeline.ParseSelector.
	Select string `json:"select,omitempty"`
	// Clients restricts the choice to documents that these clients watch, and the notifications of
	// versions to theirs. Nil means no restriction.
	Clients []string `json:"-"`
}

// History is what Versions returns.
type History struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// Document is the ID of the document.
	Document string `json:"document"`
	// View says which part of the page the document is.
	View pipeline.View `json:"view,omitzero"`
	// Versions are the stored versions, the newest first.
	Versions []Version `json:"versions"`
}

// Version is one stored version of a document.
type Version struct {
	N    uint64    `json:"version"` // its number
	Time time.Time `json:"time"`    // of the check
	// Check is the number of the check that found it, 0 for a pushed page.
	Check uint64 `json:"check"`
	// Baseline says that the version was compared with nothing, so that it notified nobody. It is
	// the first one of its document, or the first one after a pause or after the rules that extract texts
	// changed.
	Baseline bool `json:"baseline,omitempty"`
	// Title is that of the page.
	Title string `json:"title,omitempty"`
	// Language is a BCP 47 tag, and LanguageFrom says what decided it.
	Language     string              `json:"language,omitempty"`
	LanguageFrom text.LanguageSource `json:"language_from,omitempty"`
	// ContentType is the media type of the page.
	ContentType string `json:"content_type,omitempty"`
	// TextHash is a hash of the text, in hexadecimal digits.
	TextHash string `json:"text_hash"`
	// Value is the text if the document is a value: a number with its unit, such as "95.00 EUR", or a
	// word.
	Value string `json:"value,omitempty"`
	// Bytes is the size of the text.
	Bytes int64 `json:"bytes"`
	// Screenshot says that a picture of the page is stored with the version.
	Screenshot bool `json:"screenshot,omitempty"`
	// Size is how much changed since the version before, in tokens. It is nil for a baseline, and
	// where the change is forgotten and the texts are too large to compare them again.
	Size *flow.Size `json:"size,omitempty"`
	// Forgotten says that the change is so long ago that its notifications are not known any more.
	Forgotten bool `json:"forgotten,omitempty"`
	// Matches are the notifications of the change. Omitted is how many more there were.
	Matches []Match `json:"matches"`
	Omitted int     `json:"omitted,omitempty"`
}

// Text is what VersionText returns: one version with its text.
type Text struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// Document is the ID of the document.
	Document string `json:"document"`
	Version
	// Text is the text of the version. Blocks, such as paragraphs and cells, end with a line break.
	// The offsets in notifications and changes are bytes of this text.
	Text string `json:"text"`
}

// Screenshot is a picture of a page, as it was when a version of a document of it was found.
type Screenshot struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// Document is the ID of the document.
	Document string `json:"document"`
	// Version is the number of the version.
	Version uint64 `json:"version"`
	// ContentType is image/webp, image/jpeg or image/png.
	ContentType string `json:"content_type"`
	// Image is the picture itself.
	Image []byte `json:"image"`
}

// Plain returns the text of a version without the marks of list items and table rows. Each becomes
// a line break, so that all offsets stay the same.
func Plain(content string) string { return flow.PlainText(content) }

// String says which documents f selects.
func (f DocumentFilter) String() string {
	var parts []string
	for _, p := range [][2]string{{"with the ID", f.Document}, {"with the selector", f.Select}, {"that is watched by the client", f.Client}} {
		if p[1] != "" {
			parts = append(parts, fmt.Sprintf("%s %q", p[0], p[1]))
		}
	}
	return strings.Join(parts, " and ")
}

// ChangeHistory is what Changes returns.
type ChangeHistory struct {
	URL      string `json:"url"`
	Document string `json:"document"`
	// Versions is how many versions are stored.
	Versions int `json:"versions"`
	// Changes are the changes between them, the oldest first. A version without a changed word is no
	// change, and neither is a baseline.
	Changes []flow.Change `json:"changes"`
	// Proposals are the places whose words change often.
	Proposals []Proposal `json:"proposals,omitempty"`
}

// DiffFilter says which versions Diff compares, and how much of their texts it returns.
type DiffFilter struct {
	DocumentFilter
	// From is the number of the older version, 0 for the one before To. To is the number of the newer
	// version, 0 for the current one.
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to,omitempty"`
	// Context is how many unchanged blocks before and after each change are returned. Negative: all.
	Context int `json:"context,omitempty"`
}

// Difference is what Diff returns: two versions of a document side by side.
type Difference struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// Document is the ID of the document.
	Document string `json:"document"`
	// From is the older version, and To the newer one.
	From Version `json:"from"`
	To   Version `json:"to"`
	// Size is how much changed, in tokens.
	Size flow.Size `json:"size"`
	// Rows are the parts of both texts, in the order of the newer one.
	Rows []Row `json:"rows"`
	// Proposals are, where To is the current version, the places whose words change often.
	Proposals []Proposal `json:"proposals,omitempty"`
}

// Row is a part of two texts side by side: blocks of the old one, and the blocks of the new one that
// belong to them.
type Row = flow.Row

// Line is one block, such as a paragraph, a heading or a table cell, of one version.
type Line = flow.Line

// Segment is a piece of a block: kept, or removed from the old version, or added in the new one.
type Segment = flow.Segment

// The kinds of a Row.
const (
	RowKept    = flow.RowKept
	RowChanged = flow.RowChanged
	RowRemoved = flow.RowRemoved
	RowAdded   = flow.RowAdded
	RowMoved   = flow.RowMoved
	RowSkipped = flow.RowSkipped
)

// OccurrenceFilter says how a term is compared with texts, and with which versions.
type OccurrenceFilter struct {
	DocumentFilter
	// Version is the only version to search, 0 for all stored ones.
	Version uint64 `json:"version,omitempty"`
	// The fields of a subscription that say how words are compared.
	MatchCase        bool   `json:"match_case,omitempty"`
	IgnoreDiacritics bool   `json:"ignore_diacritics,omitempty"`
	Stem             bool   `json:"stem,omitempty"`
	FilterStopwords  bool   `json:"filter_stopwords,omitempty"`
	Match            string `json:"match,omitempty"`
	Language         string `json:"language,omitempty"`
	// SnippetOffset is how many characters of context each side of a snippet has. Nil means
	// pipeline.DefaultSnippetOffset.
	SnippetOffset *int `json:"snippet_offset,omitempty"`
	// Limit is how many occurrences are returned at most. 0 means MaxOccurrences.
	Limit int `json:"limit,omitempty"`
}

// MaxOccurrences is how many occurrences Occurrences returns at most.
const MaxOccurrences = 10_000

// Occurrences is what Router.Occurrences returns.
type Occurrences struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// Document is the ID of the document.
	Document string `json:"document"`
	// Term is what was searched.
	Term string `json:"term"`
	// Versions are the numbers of the versions that were searched, the newest first.
	Versions []uint64 `json:"versions"`
	// Occurrences are at most Limit, in the order of the newest text that has them.
	Occurrences []Occurrence `json:"occurrences"`
	// Omitted is how many more occurrences there were.
	Omitted int `json:"omitted,omitempty"`
}

// Occurrence is a place of a term: the same snippet in one or several versions.
type Occurrence struct {
	// Text is the exact text, and Snippet is it in its context.
	Text    string `json:"text"`
	Snippet string `json:"snippet"`
	// Places say where it is, the newest version first. A version in which the snippet occurs n times
	// has n Occurrences.
	Places []Place `json:"places"`
}

// Place is where an occurrence is in one version.
type Place struct {
	// Version is the number of the version.
	Version uint64 `json:"version"`
	// Position is the number of its first token in the text, from 1.
	Position int `json:"position"`
	// Start and End are the bytes [Start, End) of the text.
	Start int `json:"start"`
	End   int `json:"end"`
}

// Preview is a page as it is now, with the text that a subscription would watch.
type Preview struct {
	URL string `json:"url"` // where the page came from after redirects
	// Title is that of the page.
	Title    string `json:"title,omitempty"`
	Language string `json:"language,omitempty"` // a BCP 47 tag
	// ContentType is the media type of the page.
	ContentType string `json:"content_type,omitempty"`
	// Text is what the subscription would watch.
	Text string `json:"text"`
	// Passed says what of the page was passed over because it is not valid.
	Passed []string `json:"passed,omitempty"`
	// Places are where Text contains the keywords, at most MaxOccurrences, in the order of the keywords.
	// Field Version is 0.
	Places []Place `json:"places"`
	// Source is the body of the page, decoded, where it was asked for and is small enough to be stored.
	Source string `json:"source,omitempty"`
}

// RecentFilter selects changes of all pages. Empty fields select all.
type RecentFilter struct {
	// Client selects the changes that notified this client, and only its notifications.
	Client string `json:"client,omitempty"`
	// Sink and Delivery select the changes with a notification to this sink, whose delivery is in this
	// state (one of the Delivery constants), and only these notifications.
	Sink     string `json:"sink,omitempty"`
	Delivery string `json:"state,omitempty"`
	// Tag selects the changes of the documents that a subscription with this tag watches.
	Tag string `json:"tag,omitempty"`
	// Clients restricts the changes to documents that these clients watch, and the notifications to
	// theirs. Nil means no restriction.
	Clients []string `json:"-"`
	// After and Limit select a part of the changes: at most Limit of those behind After, the newest
	// first. A Limit of 0 means all.
	After string `json:"cursor,omitempty"`
	Limit int    `json:"limit,omitempty"`
	// Partial does without the changes that are not read yet, where that takes long: the first call after
	// a start reads the state of all pages.
	Partial bool `json:"partial,omitempty"`
}

// RecentChange is a change of a page.
type RecentChange struct {
	URL   string `json:"url"`
	Title string `json:"title,omitempty"` // of the current version
	// Size is how much changed. It is zero where that is not known yet.
	Size flow.Size `json:"size,omitzero"`
	Change
}

// RecentChanges is a part of the newest changes of all pages, the newest first.
type RecentChanges struct {
	Changes []RecentChange `json:"changes"`
	// Next is the value of RecentFilter.After with which the list goes on. It is empty at the end.
	Next string `json:"next,omitempty"`
	// Partial says that changes are missing, because the state is still being read. It is only set with
	// RecentFilter.Partial.
	Partial bool `json:"partial,omitempty"`
}
