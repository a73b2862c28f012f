package html

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// MaxSitemap is the size of the largest sitemap, in bytes, decompressed. The protocol of sitemaps.org
// permits no larger ones.
const MaxSitemap = 50 << 20

// Gzipped reports whether body is compressed with gzip.
func Gzipped(body []byte) bool { return bytes.HasPrefix(body, []byte{0x1f, 0x8b}) }

// Sitemap returns the URLs that the sitemap or sitemap index raw lists (https://www.sitemaps.org). Raw
// may be compressed with gzip. Its error is a *pipeline.FetchError, or that of ctx.
func Sitemap(ctx context.Context, raw pipeline.Raw) (flow.Links, error) {
	packed := bytes.NewReader(raw.Body)
	in := &io.LimitedReader{R: packed, N: MaxSitemap + 1}
	if Gzipped(raw.Body) {
		z, err := gzip.NewReader(packed)
		if err != nil {
			return flow.Links{}, notSitemap("its gzip header is damaged")
		}
		in.R = z
	}
	l := newLinkFinder(raw.URL)
	l.most, l.mostSize = flow.MaxSitemapLinks, flow.MaxSitemapLinksSize
	z := html.NewTokenizer(in)
	z.SetMaxBuf(maxToken)
	z.AllowCDATA(true)
	known, loc := false, false
	for n := 1; !l.links.More; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return flow.Links{}, ctx.Err()
		}
		switch z.Next() {
		case html.ErrorToken:
			switch {
			case in.N <= 0:
				return flow.Links{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the sitemap is larger than %d MiB decompressed", MaxSitemap>>20)}
			case z.Err() != io.EOF:
				return flow.Links{}, notSitemap(fmt.Sprintf("it breaks off behind %d URLs: %v", len(l.links.URLs), z.Err()))
			case !known:
				return flow.Links{}, notSitemap(noSitemap)
			}
			return l.links, nil
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			if !known && string(name) != "urlset" && string(name) != "sitemapindex" {
				return flow.Links{}, notSitemap(noSitemap)
			}
			l.links.Index = l.links.Index || !known && string(name) == "sitemapindex"
			known, loc = true, string(name) == "loc"
		case html.EndTagToken:
			loc = false
		case html.TextToken:
			if loc && l.base != nil {
				l.add(string(z.Text()))
			}
		}
	}
	return l.links, nil
}

const noSitemap = "it must be XML whose first element is urlset or sitemapindex"

func notSitemap(why string) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page is no sitemap: " + why}
}
