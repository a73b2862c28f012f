package inspect

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
