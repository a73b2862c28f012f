package fetch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

// read returns the outcomes of a fetched page, still in its charset, on the base of that of the page.
func (s source) read(ctx context.Context, base flow.Outcome, req flow.Request) []flow.Outcome {
	s, err := s.decoded()
	if err != nil {
		return unreadable(base, err)
	}
	return s.documents(ctx, base, req)
}

// documents returns one outcome for each document of req, on the base of the outcome of its page. It never panics,
// whatever a reader does, and returns nil if ctx ends first.
func (s source) documents(ctx context.Context, base flow.Outcome, req flow.Request) []flow.Outcome {
	base.Parts = len(req.Documents)
	parts := make([]flow.Outcome, 0, len(req.Documents))
	failed, wanted := false, false // of a part, and the body
	whole := sync.OnceValue(func() pipeline.Text {
		t, _, _ := s.text(ctx, pipeline.View{})
		return t
	})
	sitemap := sync.OnceValues(func() (*flow.Links, error) { return s.links(ctx, html.Sitemap) })
	earlier := sync.OnceValues(func() (source, error) { return openStored(req.Rebase, s.readers) })
	for i, doc := range req.Documents {
		o := base
		o.Part, o.Document, o.ContentType = i, doc.ID, s.MediaType()
		var err error
		if doc.View.Sitemap {
			var l *flow.Links
			if l, err = sitemap(); err == nil {
				readSitemap(&o, doc, l)
			}
			o.Extractor = "sitemap/1"
		} else if err = s.document(ctx, &o, doc, whole); err == nil && o.Kind == flow.OutcomeRead {
			wanted = true
			if req.Rebase != nil {
				o.Rebased = rebase(ctx, earlier, doc.View)
			}
		} else if err == nil {
			wanted = wanted || req.KeepBody
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			failed = true
			o.ContentType = ""
			setFailed(&o, err)
		}
		if o.Kind != flow.OutcomeRead {
			o.Screenshot = nil
		}
		parts = append(parts, o)
	}
	last := &parts[len(parts)-1]
	if wanted {
		last.Body = storableBody(s.Raw, req.Packed)
	}
	if req.Links {
		if wantsSitemap(req) {
			last.Links, _ = sitemap() // if it cannot be read there are none, and index keeps those that it knows
		} else {
			last.Links = s.pageLinks(ctx)
		}
	}
	if failed {
		// Without the hash and validators of the body the next check reads the page again. Otherwise
		// it would find the page unchanged, and hide that a document still fails.
		for i := range parts {
			parts[i].BodyHash, parts[i].ETag, parts[i].LastModified = "", "", ""
		}
	}
	return parts
}

// document reads one document into o; whole returns the text of the whole page.
func (s source) document(ctx context.Context, o *flow.Outcome, doc flow.RequestDocument, whole func() pipeline.Text) error {
	t, by, err := s.text(ctx, doc.View)
	o.Extractor, o.Passed = by, t.Passed
	if err != nil {
		return err
	}
	if t.Content == "" && !t.Empty && doc.TextHash != "" && doc.TextHash != text.Hash("") {
		return noText // a page whose text is made by scripts, for example: the last version stays
	}
	o.Title, o.Language = t.Title, t.Language
	if doc.View.Items {
		for _, item := range t.Items {
			o.Items = append(o.Items, item.ID)
		}
	}
	if setText(o, doc, t); o.Kind == flow.OutcomeRead && o.Language == "" && len(doc.View.Select) > 0 && text.Detect(t.Content) == "" {
		// A line such as "Closed" is in the language of its page.
		page := whole()
		o.Language, o.PageLanguage = page.Language, text.Detect(page.Content)
	}
	return nil
}

// setText makes o the outcome of a document whose text is t, which may be the one that is known: in a feed another item
// may have the same text.
func setText(o *flow.Outcome, doc flow.RequestDocument, t pipeline.Text) {
	if o.TextHash = text.Hash(t.Content + strings.Join(o.Items, "")); o.TextHash == doc.TextHash {
		o.Kind, o.Against = flow.OutcomeUnchanged, doc.TextHash
		return
	}
	o.Kind, o.Text, o.Packed = flow.OutcomeRead, t.Content, flow.PackText(t.Content, t.Keys...)
}

// wantsSitemap reports whether a document of req is a sitemap.
func wantsSitemap(req flow.Request) bool {
	return slices.ContainsFunc(req.Documents, func(d flow.RequestDocument) bool { return d.View.Sitemap })
}

// readSitemap reads doc, a sitemap that lists l, into o. Its text is its URL. That never changes, so a sitemap has no
// changes of its own.
func readSitemap(o *flow.Outcome, doc flow.RequestDocument, l *flow.Links) {
	what := "page"
	if l.Index {
		what = "sitemap"
	}
	if len(l.URLs) != 1 {
		what += "s"
	}
	o.Title, o.Language = fmt.Sprintf("sitemap of %d %s", len(l.URLs), what), "en"
	setText(o, doc, pipeline.Text{Content: o.Page})
}

// links returns the links that find finds.
func (s source) links(ctx context.Context, find func(context.Context, pipeline.Raw) (flow.Links, error)) (*flow.Links, error) {
	var l flow.Links
	err := recoverPanic(func() (err error) {
		l, err = find(ctx, s.Raw)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.At = blocks.Truncate(l.At, maxStoredHeader)
	return &l, nil
}

// pageLinks returns the links of a page that was read. HTML pages and the listings of folders have links. A page whose
// links cannot be read is a page without links: its texts are what counts.
func (s source) pageLinks(ctx context.Context) *flow.Links {
	if mediaType := s.MediaType(); mediaType == "text/html" || strings.HasSuffix(mediaType, "xhtml+xml") {
		if l, err := s.links(ctx, html.Links); err == nil {
			return l
		}
	}
	return &flow.Links{At: blocks.Truncate(s.URL, maxStoredHeader)}
}
