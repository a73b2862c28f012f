package html

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// MaxSitemap is the size of the largest sitemap, in bytes, decompressed. The protocol of sitemaps.org
// permits no larger ones.
const MaxSitemap = 50 << 20

// Gzipped reports whether body is compressed with gzip.
func Gzipped(body []byte) bool { return bytes.HasPrefix(body, []byte{0x1f, 0x8b}) }

// Sitemap returns the URLs that the sitemap or sitemap index raw lists (https://www.sitemaps.org), with
// the times at which they were modified. Raw is XML, or text with one URL a line, and may be compressed
// with gzip. A sitemap that lists no page is an error: hardly any is meant to end all watches. The error
// is a *pipeline.FetchError, or that of ctx.
func Sitemap(ctx context.Context, raw pipeline.Raw) (flow.Links, error) {
	packed := bytes.NewReader(raw.Body)
	in := &io.LimitedReader{R: packed, N: MaxSitemap + 1}
	if Gzipped(raw.Body) {
		z, err := gzip.NewReader(packed)
		if err != nil {
			return flow.Links{}, notSitemapError("its gzip header is damaged")
		}
		in.R = z
	}
	l := sitemapFinder{linkFinder: newLinkFinder(raw.URL), in: in, modified: make(map[string]int64)}
	l.maxLinks, l.maxSize = flow.MaxSitemapLinks, flow.MaxSitemapLinksSize
	lines := bufio.NewReaderSize(in, 2*maxLink)
	read := l.readXML
	if beginsWithURL(lines) {
		read = l.readText
	}
	if err := read(ctx, lines); err != nil {
		return flow.Links{}, err
	}
	if len(l.links.URLs) == 0 {
		return flow.Links{}, &pipeline.FetchError{Class: pipeline.FailEmpty, Reason: "the sitemap lists no page"}
	}
	if len(l.modified) > 0 {
		for _, url := range l.links.URLs {
			l.links.Modified = append(l.links.Modified, l.modified[url])
		}
	}
	return l.links, nil
}

// sitemapFinder collects the URLs of a sitemap.
type sitemapFinder struct {
	*linkFinder
	in       *io.LimitedReader
	modified map[string]int64 // by URL, in seconds since 1970
}

// readXML reads the elements of a sitemap or sitemap index. Those of extensions, such as images, do not count: an
// element has the namespace of the root, whatever its prefix.
func (l *sitemapFinder) readXML(ctx context.Context, r *bufio.Reader) error {
	z := html.NewTokenizer(r)
	z.SetMaxBuf(maxToken)
	z.AllowCDATA(true)
	var ns namespaces
	var root, rootSpace, within string // root is its tag; within is the element of the next text, without a prefix
	closed := false                    // the root
	var page string                    // loc and lastmod of the present entry
	var modified int64
	for n := 1; !l.links.More; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		switch tt := z.Next(); tt {
		case html.ErrorToken:
			return l.checkEnd(z.Err(), root, closed)
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := string(name)
			var space string
			space, within = ns.begin(z, tag, more)
			if root == "" {
				if within != "urlset" && within != "sitemapindex" {
					return notSitemapError(noSitemapReason)
				}
				root, rootSpace, l.links.Index = tag, space, within == "sitemapindex"
				closed = tt == html.SelfClosingTagToken
			}
			if space != rootSpace {
				within = ""
			}
			if within == "url" || within == "sitemap" {
				page, modified = "", 0
			}
			if tt == html.SelfClosingTagToken {
				ns.end()
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			closed = closed || string(name) == root
			within = ""
			ns.end()
		case html.TextToken:
			switch {
			case within == "loc" && l.base != nil:
				page = l.add(string(z.Text()))
			case within == "lastmod":
				modified = parseLastModified(string(z.Text()))
			default:
				continue
			}
			if page != "" && modified > l.modified[page] {
				l.modified[page] = modified
			}
		}
	}
	return nil
}

// namespaces are the declarations of namespaces in the open elements of a page, of which there are depth.
type namespaces struct {
	declared []namespace
	depth    int
}

type namespace struct {
	prefix, name string
	depth        int // of the element that declares it
}

// maxNamespaces is how many declarations are kept at once. Pages have a handful.
const maxNamespaces = 64

// begin enters the element tag, of whose attributes z has some to read if more is set. It returns the
// namespace of the element and its name without the prefix. A prefix that is not declared is its own namespace.
func (ns *namespaces) begin(z *html.Tokenizer, tag string, more bool) (space, local string) {
	ns.depth++
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		rest, ok := strings.CutPrefix(string(key), "xmlns")
		if prefix, isPrefix := strings.CutPrefix(rest, ":"); ok && (isPrefix || rest == "") && len(value) > 0 && len(ns.declared) < maxNamespaces {
			ns.declared = append(ns.declared, namespace{prefix, string(value), ns.depth})
		}
	}
	prefix, local, ok := strings.Cut(tag, ":")
	if !ok {
		prefix, local = "", tag
	}
	for i := len(ns.declared) - 1; i >= 0; i-- {
		if d := ns.declared[i]; d.prefix == prefix {
			return d.name, local
		}
	}
	return prefix, local
}

// end leaves an element.
func (ns *namespaces) end() {
	for n := len(ns.declared); n > 0 && ns.declared[n-1].depth >= ns.depth; n = len(ns.declared) {
		ns.declared = ns.declared[:n-1]
	}
	ns.depth--
}

// checkEnd says whether the XML of a sitemap may end with err, the error of its tokenizer.
func (l *sitemapFinder) checkEnd(err error, root string, closed bool) error {
	if errors.Is(err, html.ErrBufferExceeded) { // the rest says whether it is larger as a whole
		if _, err := io.Copy(io.Discard, l.in); err != nil {
			return notSitemapError(breaksOffReason(len(l.links.URLs), err.Error()))
		}
	}
	switch {
	case l.in.N <= 0:
		return sitemapTooLargeError()
	case errors.Is(err, html.ErrBufferExceeded):
		return notSitemapError(fmt.Sprintf("a tag, text or comment in it is larger than %d MiB", maxToken>>20))
	case !errors.Is(err, io.EOF):
		return notSitemapError(breaksOffReason(len(l.links.URLs), err.Error()))
	case root == "":
		return notSitemapError(noSitemapReason)
	case !closed:
		return notSitemapError(breaksOffReason(len(l.links.URLs), "</"+root+"> is missing"))
	}
	return nil
}

// parseLastModified returns the time of a lastmod in seconds since 1970, or 0 if it is none
// (https://www.w3.org/TR/NOTE-datetime). A day is meant to its end: the page may have changed until
// then.
func parseLastModified(s string) int64 {
	s = strings.TrimSpace(s)
	at, err := time.Parse(time.DateOnly, s)
	if err == nil {
		at = at.AddDate(0, 0, 1)
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if err != nil {
			at, err = time.Parse(layout, s)
		}
	}
	if err != nil || flow.CheckTime(at) != nil { // the end of 9999, for example
		return 0
	}
	return max(at.Unix(), 0)
}

// beginsWithURL reports whether the first word of r is a URL. It consumes nothing.
func beginsWithURL(r *bufio.Reader) bool {
	b, _ := r.Peek(maxLink) // what there is
	return isURL(strings.TrimSpace(strings.TrimPrefix(string(b), byteOrderMark)))
}

const byteOrderMark = "\ufeff"

func isURL(s string) bool {
	scheme, _, ok := strings.Cut(s, "://")
	return ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "file"))
}

// readText reads a sitemap with one URL a line.
func (l *sitemapFinder) readText(ctx context.Context, r *bufio.Reader) error {
	for n := 1; !l.links.More; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, cut, err := r.ReadLine()
		url := strings.TrimSpace(strings.TrimPrefix(string(line), byteOrderMark))
		for cut && err == nil {
			_, cut, err = r.ReadLine()
		}
		switch {
		case l.in.N <= 0:
			return sitemapTooLargeError()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return notSitemapError(breaksOffReason(len(l.links.URLs), err.Error()))
		case url == "":
		case !isURL(url):
			return notSitemapError(fmt.Sprintf("line %d is no URL such as https://example.com/page", n))
		case l.base != nil:
			l.add(url) // no URL that is too long
		}
	}
	return nil
}

// breaksOffReason says that a sitemap ends within its elements, behind so many URLs.
func breaksOffReason(urls int, why string) string {
	if urls == 1 {
		return "it breaks off behind 1 URL: " + why
	}
	return fmt.Sprintf("it breaks off behind %d URLs: %s", urls, why)
}

const noSitemapReason = "it must be XML whose first element is urlset or sitemapindex, or text with one URL a line"

func sitemapTooLargeError() error {
	return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the sitemap is larger than %d MiB decompressed", MaxSitemap>>20)}
}

func notSitemapError(why string) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page is no sitemap: " + why}
}
