package inspect

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
