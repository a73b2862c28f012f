package fetch

import (
	"context"
	"fmt"
	"mime"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

// wantsSitemap reports whether a document of req is a sitemap.
func wantsSitemap(req flow.Request) bool {
	return slices.ContainsFunc(req.Documents, func(d flow.RequestDocument) bool { return d.View.Sitemap })
}

// sitemapOf returns what the sitemap raw lists.
func sitemapOf(ctx context.Context, raw pipeline.Raw) (*flow.Links, error) {
	var l flow.Links
	err := recoverPanic(func() (err error) {
		l, err = html.Sitemap(ctx, raw)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.At = truncate(l.At, maxStoredHeader)
	return &l, nil
}

// readSitemap reads doc, the sitemap raw that lists l or cannot be read because of err, into o. Its text is
// its URL. That never changes, so a sitemap has no changes of its own.
func readSitemap(o *flow.Outcome, doc flow.RequestDocument, raw pipeline.Raw, l *flow.Links, err error) {
	o.Extractor = "sitemap/1"
	if err != nil {
		setFailed(o, err)
		return
	}
	what := "page"
	if l.Index {
		what = "sitemap"
	}
	if len(l.URLs) != 1 {
		what += "s"
	}
	o.Title, o.Language, o.TextHash = fmt.Sprintf("sitemap of %d %s", len(l.URLs), what), "en", text.Hash(o.Page)
	o.ContentType, _, _ = mime.ParseMediaType(raw.ContentType)
	if o.TextHash == doc.TextHash {
		o.Kind, o.Against = flow.OutcomeUnchanged, doc.TextHash
		return
	}
	o.Kind, o.Text, o.Packed = flow.OutcomeRead, o.Page, flow.PackText(o.Page)
}

// sitemapOnlyEntry returns an entry for pages that only their sitemaps can be read from. All other
// documents of such a page fail with err.
func sitemapOnlyEntry(err error) *readerEntry { return newSeparateEntry(failingReader{err}) }

// failingReader is a reader that fails with err.
type failingReader struct{ err error }

func (failingReader) ContentTypes() []string { return nil }

func (u failingReader) Read(context.Context, pipeline.Raw, pipeline.View) (pipeline.Text, error) {
	return pipeline.Text{}, u.err
}
