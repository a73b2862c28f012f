// Package html reads HTML pages.
package html

import (
	"bytes"
	"context"
	"mime"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
)

// Reader reads HTML and XHTML in UTF-8. The text is what a visitor sees without running
// scripts. A page without selectors is read token by token, whatever its nesting; one with
// selectors is parsed, which fails at a nesting of more than 512.
type Reader struct{}

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader { return Reader{} }

// ContentTypes returns the media types of HTML and XHTML.
func (Reader) ContentTypes() []string {
	return []string{"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"}
}

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "html/1" }

// Read returns the text of view. It returns ctx's error if that is done first.
func (Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	body := raw.Body
	if mediaType, _, _ := mime.ParseMediaType(raw.ContentType); strings.HasSuffix(mediaType, "xhtml+xml") {
		body = expandSelfClosing(body)
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	var t pipeline.Text
	var err error
	if len(view.Select)+len(view.Remove) == 0 {
		t, err = scan(ctx, body)
	} else {
		t, err = walk(ctx, body, view)
	}
	if err != nil {
		return pipeline.Text{}, err
	}
	if t.Language = blocks.LanguageTag(t.Language); t.Language == "" {
		t.Language = blocks.LanguageTag(raw.ContentLanguage)
	}
	return t, nil
}

func tooLarge(reason string) error {
	return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: reason}
}

func unreadable(reason string) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: reason}
}
