package html

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
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
	var root string
	closed, loc := false, false // of the root and of the last element
	for n := 1; !l.links.More; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return flow.Links{}, ctx.Err()
		}
		switch tt := z.Next(); tt {
		case html.ErrorToken:
			if errors.Is(z.Err(), html.ErrBufferExceeded) { // the rest says whether it is larger as a whole
				if _, err := io.Copy(io.Discard, in); err != nil {
					return flow.Links{}, notSitemap(breaksOff(len(l.links.URLs), err.Error()))
				}
			}
			switch {
			case in.N <= 0:
				return flow.Links{}, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the sitemap is larger than %d MiB decompressed", MaxSitemap>>20)}
			case errors.Is(z.Err(), html.ErrBufferExceeded):
				return flow.Links{}, notSitemap(fmt.Sprintf("a tag, text or comment in it is larger than %d MiB", maxToken>>20))
			case !errors.Is(z.Err(), io.EOF):
				return flow.Links{}, notSitemap(breaksOff(len(l.links.URLs), z.Err().Error()))
			case root == "":
				return flow.Links{}, notSitemap(noSitemap)
			case !closed:
				return flow.Links{}, notSitemap(breaksOff(len(l.links.URLs), "</"+root+"> is missing"))
			}
			return l.links, nil
		case html.StartTagToken, html.SelfClosingTagToken:
			tag, _ := z.TagName()
			name := string(tag)
			if root == "" {
				if name != "urlset" && name != "sitemapindex" {
					return flow.Links{}, notSitemap(noSitemap)
				}
				root, l.links.Index = name, name == "sitemapindex"
				closed = tt == html.SelfClosingTagToken
			}
			loc = name == "loc"
		case html.EndTagToken:
			name, _ := z.TagName()
			closed = closed || string(name) == root
			loc = false
		case html.TextToken:
			if loc && l.base != nil {
				l.add(string(z.Text()))
			}
		}
	}
	return l.links, nil
}

// breaksOff says that a sitemap ends within its elements, behind so many URLs.
func breaksOff(urls int, why string) string {
	if urls == 1 {
		return "it breaks off behind 1 URL: " + why
	}
	return fmt.Sprintf("it breaks off behind %d URLs: %s", urls, why)
}

const noSitemap = "it must be XML whose first element is urlset or sitemapindex"

func notSitemap(why string) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page is no sitemap: " + why}
}
