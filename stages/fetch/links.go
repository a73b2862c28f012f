package fetch

import (
	"context"
	"mime"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

// linksOf returns the links of a page that was read. HTML pages and the listings of folders have
// links.
func linksOf(ctx context.Context, raw pipeline.Raw) *flow.Links {
	l := flow.Links{At: raw.URL}
	mediaType, _, _ := mime.ParseMediaType(raw.ContentType)
	if mediaType == "text/html" || strings.HasSuffix(mediaType, "xhtml+xml") {
		// A page whose links cannot be read is a page without links: its texts are what counts.
		_ = recoverPanic(func() error {
			found, err := html.Links(ctx, raw)
			if err == nil {
				l = found
			}
			return err
		})
	}
	l.At = truncate(l.At, maxStoredHeader)
	return &l
}
