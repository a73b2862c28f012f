// Package charset turns pages into UTF-8.
package charset

import (
	"bytes"
	"cmp"
	"mime"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

const (
	// declarationLength is how much of a page is searched for the declaration of XML, in bytes.
	declarationLength = 4096
	// headLength is how much of a page is searched for a meta element, in bytes. A head is hardly longer.
	headLength = 256 << 10
	// sampleLength is how much of a page is shown to the detector, in bytes.
	sampleLength = 4096
	// minConfidence is the least confidence, out of 100, of a guess that counts.
	minConfidence = 20
)

// Decode returns body in valid UTF-8, without a byte order mark. What decides is, in this
// order: a byte order mark; UTF-8 that is valid and not just ASCII; the charset that
// contentType or else the page itself declares, unless it is UTF-8 and most of the body's bytes
// beyond ASCII are not; the zeros of UTF-16 and the escapes of ISO-2022-JP; ASCII; UTF-8 where
// nothing is declared in JSON or XML, whose standards say so, and where there are at least ten
// characters of several bytes for each byte that is not UTF-8; what the bytes look like; and where
// all of these fail, windows-1252. What cannot be decoded becomes U+FFFD. The result may be body itself.
func Decode(body []byte, contentType string) []byte {
	switch {
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return toValidUTF8(body[3:])
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		return decode(body[2:], unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM))
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		return decode(body[2:], unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM))
	}
	isUTF8, ascii := utf8.Valid(body), isASCII(body)
	if !isUTF8 && strings.Contains(contentType, "calendar") {
		body = joinFoldedLetters(body)
		isUTF8 = utf8.Valid(body)
	}
	if isUTF8 && !ascii {
		return body
	}
	name, enc := declaredCharset(body, contentType)
	if ascii && name == "utf-8" {
		return body
	}
	good, bad := countUTF8(body)
	if name == "utf-8" && good < bad { // it is not: servers send one charset for all their files
		name, enc = pageCharset(body, contentType)
	}
	// A page in UTF-8 with some broken bytes is in UTF-8 still, one in Latin-1 is not.
	if enc != nil && (!ascii || !cannotBeUTF16(name, body)) && (name != "utf-8" || good >= bad) {
		return decode(body, enc)
	}
	switch by := encodingByEscapes(body); {
	case by != nil:
		return decode(body, by)
	case ascii:
		return body
	case enc == nil && isUTF8ByStandard(body, contentType), good >= 10*bad:
		return toValidUTF8(body)
	}
	return decode(body, detectCharset(body))
}

// joinFoldedLetters returns a calendar without the folds that stand within a letter: RFC 5545 counts bytes.
func joinFoldedLetters(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for i := 0; i < len(body); i++ {
		rest := bytes.TrimPrefix(body[i:], []byte{'\r'})
		if n := len(out); n > 0 && out[n-1] >= utf8.RuneSelf && len(rest) > 2 && rest[0] == '\n' && (rest[1] == ' ' || rest[1] == '\t') &&
			rest[2] >= utf8.RuneSelf && !utf8.RuneStart(rest[2]) {
			i = len(body) - len(rest) + 2
		}
		out = append(out, body[i])
	}
	return out
}

// encodingByEscapes returns the encoding of a body that declares none, where zeros or escape
// sequences in what would be ASCII show it: UTF-16 without a mark, or ISO-2022-JP. Otherwise it
// returns nil.
func encodingByEscapes(body []byte) encoding.Encoding {
	head := body[:min(len(body), sampleLength)]
	if bytes.Contains(head, []byte("\x1b$B")) || bytes.Contains(head, []byte("\x1b$@")) {
		return japanese.ISO2022JP
	}
	var zeros [2]int // at even and odd offsets
	for i, c := range head {
		if c != 0 {
			continue
		}
		zeros[i%2]++
		if i%2 == 1 && head[i-1] == 0 {
			return nil // U+0000 is no text
		}
	}
	const (
		fewest = 8 // a NUL or two is a mistake in another charset
		least  = 8 // of so many characters one is in ASCII: markup and spaces are
	)
	switch pairs := len(head) / 2; {
	case zeros[1] >= fewest && zeros[1]*least > pairs && zeros[0]*20 < zeros[1]:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case zeros[0] >= fewest && zeros[0]*least > pairs && zeros[1]*20 < zeros[0]:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// countUTF8 returns how many characters of several bytes body has, and how many bytes that are
// not UTF-8.
func countUTF8(body []byte) (good, bad int) {
	for i := 0; i < len(body); {
		r, n := utf8.DecodeRune(body[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		i += n
	}
	return good, bad
}

// isUTF8ByStandard reports whether body is JSON or XML, which are in UTF-8 unless something else is declared.
// Feeds are not always what the standard says: they are read by their bytes, as HTML is.
func isUTF8ByStandard(body []byte, contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	_, subtype, _ := strings.Cut(mediaType, "/")
	switch subtype {
	case "json", "x-ndjson", "ndjson", "jsonl":
		return true
	case "rss+xml", "atom+xml", "rdf+xml":
		return false
	}
	isXML := subtype == "xml" || strings.HasSuffix(subtype, "+xml")
	return strings.HasSuffix(subtype, "+json") || isXML && !xmlDeclaration.Match(body[:min(len(body), declarationLength)])
}

// cannotBeUTF16 reports whether body, which is ASCII, cannot be what the charset name says
// it is: text in UTF-16 is full of NUL. All others leave ASCII as it is, or escape from it.
func cannotBeUTF16(name string, body []byte) bool {
	return strings.HasPrefix(name, "utf-16") && !bytes.Contains(body, []byte{0})
}

// declaredCharset returns the charset that the header or the page names.
func declaredCharset(body []byte, contentType string) (string, encoding.Encoding) {
	label, _, _ := strings.Cut(In(contentType), ",") // a proxy joins several headers with commas
	if name, enc := lookupCharset(label); enc != nil {
		return name, enc
	}
	return pageCharset(body, contentType)
}

// pageCharset returns the charset that the page itself names.
func pageCharset(body []byte, contentType string) (string, encoding.Encoding) {
	head := body[:min(len(body), declarationLength)]
	if m := xmlDeclaration.FindSubmatch(head); m != nil {
		if name, enc := lookupCharset(string(m[1])); enc != nil {
			return correctUTF16(name, enc)
		}
	}
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil && !strings.Contains(mediaType, "html") && mediaType != "" {
		return "", nil
	}
	return metaCharset(body[:min(len(body), headLength)])
}

var xmlDeclaration = regexp.MustCompile(`^\s*<\?xml[^>]{0,100}\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']`)

// correctUTF16 corrects a declaration that was read as ASCII, so that it cannot be UTF-16.
func correctUTF16(name string, enc encoding.Encoding) (string, encoding.Encoding) {
	if strings.HasPrefix(name, "utf-16") {
		return "utf-8", unicode.UTF8
	}
	return name, enc
}

// lookupCharset returns the name and the encoding of a charset, or nil if they are unknown.
func lookupCharset(label string) (string, encoding.Encoding) {
	enc, name := charset.Lookup(label)
	if name == "replacement" || name == "x-user-defined" {
		return "", nil
	}
	if name == "gbk" { // browsers read all of GB 18030 by this name
		enc = simplifiedchinese.GB18030
	}
	return name, enc
}

// metaCharset returns the charset that a meta element in head declares, as HTML looks for it: the first one that is
// known counts. The search ends with the element head, but not within the first kilobyte.
func metaCharset(head []byte) (string, encoding.Encoding) {
	const least = 1024
	z := html.NewTokenizer(bytes.NewReader(head))
	ended := false
	for at := 0; !ended || at < least; at += len(z.Raw()) {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		if kind == html.TextToken || kind == html.CommentToken || kind == html.DoctypeToken {
			continue
		}
		tag, more := z.TagName()
		if string(tag) == "meta" && kind != html.EndTagToken {
			if name, enc := charsetOfMeta(z, more); enc != nil {
				return correctUTF16(name, enc)
			}
		}
		ended = ended || !isHeadElement(string(tag))
	}
	return "", nil
}

// isHeadElement reports whether an element of this name does not end the head that it stands in.
func isHeadElement(name string) bool {
	switch name {
	case "html", "head", "title", "meta", "base", "link", "script", "noscript", "style", "template", "object":
		return true
	}
	return false
}

// charsetOfMeta returns the charset of the meta element whose tag z has read, nil if there is none that is known.
func charsetOfMeta(z *html.Tokenizer, more bool) (string, encoding.Encoding) {
	var declared, equiv, content string
	seen := make(map[string]bool)
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if seen[string(key)] {
			continue // the first of a name counts
		}
		seen[string(key)] = true
		switch string(key) {
		case "charset":
			declared = string(value)
		case "http-equiv":
			equiv = string(value)
		case "content":
			content = string(value)
		}
	}
	if declared == "" && strings.EqualFold(equiv, "content-type") {
		declared = In(content)
	}
	return lookupCharset(declared)
}

// charsetWord finds the word in any case. To lower the case of what strangers wrote may change its length.
var charsetWord = regexp.MustCompile(`(?i)charset`)

// In returns the charset that s, a media type, names as HTML finds it in the content of a meta element: with or without
// a semicolon before "charset=" and quotes behind it. It is empty if there is none.
func In(s string) string {
	const space = " \t\n\f\r"
	for {
		word := charsetWord.FindStringIndex(s)
		if word == nil {
			return ""
		}
		s = s[word[1]:]
		value, ok := strings.CutPrefix(strings.TrimLeft(s, space), "=")
		if !ok {
			continue
		}
		value = strings.TrimLeft(value, space)
		if value == "" {
			return ""
		}
		if quote := value[:1]; quote == `"` || quote == "'" {
			name, _, ended := strings.Cut(value[1:], quote)
			if !ended {
				return ""
			}
			return strings.Trim(name, space)
		}
		if end := strings.IndexAny(value, space+";"); end >= 0 {
			value = value[:end]
		}
		return value
	}
}

// detectCharset guesses from the texts that are not ASCII. Equally good guesses are settled by name, so that a page is
// always read in the same way.
func detectCharset(body []byte) encoding.Encoding {
	sample := sampleOf(body)
	guesses, err := chardet.NewTextDetector().DetectAll(sample)
	if err != nil {
		return charmap.Windows1252
	}
	slices.SortFunc(guesses, func(a, b chardet.Result) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), strings.Compare(a.Charset, b.Charset))
	})
	for _, g := range guesses {
		_, enc := lookupCharset(strings.Replace(g.Charset, "GB-18030", "gb18030", 1))
		if enc == nil || isUndefined(sample, enc) {
			continue
		}
		if g.Confidence < minConfidence {
			break
		}
		return enc
	}
	return charmap.Windows1252
}

// isUndefined reports whether sample has bytes that enc, if that has one byte for each character, does not define.
func isUndefined(sample []byte, enc encoding.Encoding) bool {
	text := decode(sample, enc)
	return utf8.RuneCount(text) == len(sample) && bytes.Contains(text, []byte("\ufffd"))
}

// sampleOf returns the first texts of body that are not ASCII. Markup, scripts and styles would be taken for
// words of a language; a body without other texts is shown from its first byte that is not ASCII on.
func sampleOf(body []byte) []byte {
	var sample []byte
	z := html.NewTokenizer(bytes.NewReader(body))
	skip := false
	for len(sample) < sampleLength {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		if raw := z.Raw(); kind == html.TextToken && !skip && !isASCII(raw) {
			sample = append(append(sample, raw...), '\n')
		}
		name, _ := z.TagName()
		skip = kind == html.StartTagToken && (string(name) == "script" || string(name) == "style")
	}
	if len(sample) == 0 {
		sample = body[slices.IndexFunc(body, func(c byte) bool { return c >= utf8.RuneSelf }):]
	}
	return sample[:min(len(sample), sampleLength)]
}

func decode(body []byte, enc encoding.Encoding) []byte {
	out, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return toValidUTF8(body)
	}
	return toValidUTF8(bytes.TrimPrefix(out, []byte("\ufeff")))
}

func toValidUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\ufffd"))
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
