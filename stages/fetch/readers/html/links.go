package html

import (
	"bytes"
	"context"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// maxLink is the largest length of a link that is followed, in bytes.
const maxLink = 2048

// Links returns the links of the HTML page raw that may be followed: the href of a and area elements,
// resolved by the first base element, or by the page's URL. It leaves out links with rel=nofollow,
// links to files that are no text by their names, parameters that are known to hold session IDs, and
// all links of a page whose robots meta element says nofollow.
func Links(ctx context.Context, raw pipeline.Raw) (flow.Links, error) {
	l := newLinkFinder(raw.URL)
	z := html.NewTokenizer(bytes.NewReader(raw.Body))
	z.SetMaxBuf(maxToken)
	for n := 1; !l.links.More; n++ {
		if n%tokensPerCheck == 0 && ctx.Err() != nil {
			return flow.Links{}, ctx.Err()
		}
		switch z.Next() {
		case html.ErrorToken:
			return l.links, nil
		case html.StartTagToken, html.SelfClosingTagToken:
			if name, more := z.TagName(); more {
				l.handleTag(atom.Lookup(name), z)
			}
			if l.noFollow {
				return flow.Links{At: raw.URL}, nil
			}
		}
	}
	return l.links, nil
}

// linkFinder collects the links of a page.
type linkFinder struct {
	base     *url.URL
	hasBase  bool // a base element was found
	isFile   bool // the page is a file or a folder
	noFollow bool // the page asks that none of its links be followed
	seen     map[string]bool
	size     int
	links    flow.Links
	// maxLinks and maxSize bound the links: flow.MaxLinks and flow.MaxLinksSize.
	maxLinks, maxSize int
}

func newLinkFinder(page string) *linkFinder {
	l := &linkFinder{links: flow.Links{At: page}, seen: make(map[string]bool), maxLinks: flow.MaxLinks, maxSize: flow.MaxLinksSize}
	l.base, _ = url.Parse(page)
	l.isFile = l.base != nil && l.base.Scheme == "file"
	return l
}

// handleTag handles a start tag with attributes.
func (l *linkFinder) handleTag(a atom.Atom, z *html.Tokenizer) {
	if a != atom.A && a != atom.Area && a != atom.Base && a != atom.Meta {
		return
	}
	values := make(map[string]string, 4)
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		if _, ok := values[string(key)]; !ok {
			values[string(key)] = string(value)
		}
	}
	href, linked := values["href"]
	switch {
	case a == atom.Meta:
		l.noFollow = strings.EqualFold(values["name"], "robots") && hasWord(values["content"], "nofollow", "none")
	case !linked || l.base == nil:
	case a == atom.Base:
		if u, err := l.base.Parse(pageurl.Encode(href)); err == nil && !l.hasBase {
			l.base, l.hasBase = u, true
		}
	case !hasWord(values["rel"], "nofollow"):
		l.add(href)
	}
}

// hasWord reports whether list, words separated by blanks or commas, has one of words.
func hasWord(list string, words ...string) bool {
	for w := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r <= ' ' }) {
		for _, word := range words {
			if strings.EqualFold(w, word) {
				return true
			}
		}
	}
	return false
}

// add adds the page that href links to, and returns its canonical URL, or "" if it is not followed.
func (l *linkFinder) add(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || href[0] == '#' || len(href) > maxLink {
		return ""
	}
	u, err := l.base.Parse(pageurl.Encode(href))
	if err != nil || !l.follows(u.Scheme) || u.User != nil || hasBinaryExtension(u.Path) && !l.links.Index {
		return ""
	}
	dropSessionID(u)
	page, err := pageurl.Canonical(u.String())
	if err != nil || len(page) > maxLink {
		return ""
	}
	if l.seen[page] {
		return page
	}
	size := len(page) + 5*strings.Count(page, "&") // JSON writes \u0026
	if len(l.links.URLs) == l.maxLinks || l.size+size > l.maxSize {
		l.links.More = true
		return ""
	}
	l.seen[page] = true
	l.size += size
	l.links.URLs = append(l.links.URLs, page)
	return page
}

// follows reports whether links to URLs of scheme are followed. Only files and folders can link to
// files.
func (l *linkFinder) follows(scheme string) bool {
	if scheme == "file" {
		return l.isFile
	}
	return scheme == "http" || scheme == "https"
}

// hasBinaryExtension reports whether a path ends like the name of a file that no reader reads: a picture, sound,
// film, font, archive or program.
func hasBinaryExtension(path string) bool {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 || len(path)-dot > 6 {
		return false
	}
	return binaryExtensions[strings.ToLower(path[dot+1:])]
}

var binaryExtensions = func() map[string]bool {
	m := make(map[string]bool)
	for ext := range strings.FieldsSeq(`
		png jpg jpeg gif webp avif bmp ico tif tiff psd heic
		mp3 m4a ogg oga opus flac wav aac mp4 m4v mov avi mkv webm ogv wmv mpg mpeg
		woff woff2 ttf otf eot css js mjs map wasm
		zip gz tgz bz2 xz zst 7z rar tar jar war iso dmg pkg deb rpm apk msi exe bin dll so
		doc docx xls xlsx ppt pptx odt ods odp epub mobi`) {
		m[ext] = true
	}
	return m
}()

// sessionInPath finds a session ID in any case. To lower the case of what strangers wrote may change its length.
var sessionInPath = regexp.MustCompile(`(?i);jsessionid=`)

// dropSessionID removes what is known to hold a session ID from u: such a URL changes with every
// visit, though the page is the same.
func dropSessionID(u *url.URL) {
	if at := sessionInPath.FindStringIndex(u.Path); at != nil {
		u.Path, u.RawPath = u.Path[:at[0]], ""
	}
	if u.RawQuery == "" {
		return
	}
	var kept []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		if !sessionParameters[strings.ToLower(name)] {
			kept = append(kept, part)
		}
	}
	u.RawQuery = strings.Join(kept, "&")
}

// sessionParameters are the usual names of parameters with a session ID, in lower case.
var sessionParameters = map[string]bool{
	"phpsessid": true, "jsessionid": true, "aspsessionid": true, "asp.net_sessionid": true, "sid": true,
	"sessid": true, "session_id": true, "sessionid": true, "cfid": true, "cftoken": true,
}
