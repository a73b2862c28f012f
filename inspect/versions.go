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
