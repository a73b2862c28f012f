package htmltree

import (
	"bytes"

	"golang.org/x/net/html"
)

// TagNames reads names of tags. The zero value is ready for use.
type TagNames struct{ buf []byte }

// Of returns the name of the tag that z has read, in small letters, as its TagName does, which allocates each. It is
// valid until the next call.
func (t *TagNames) Of(z *html.Tokenizer) []byte {
	t.buf = t.buf[:0]
	for _, c := range bytes.TrimPrefix(z.Raw()[1:], []byte("/")) {
		switch {
		case endsName(c):
			return t.buf
		case c == 0:
			name, _ := z.TagName()
			return name
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		t.buf = append(t.buf, c)
	}
	return t.buf
}

// Attributes reads the attributes of the tag that a tokenizer has read, as its TagAttr does, but without a copy of each
// name and value: those are a tenth of the time of a reading.
type Attributes struct {
	z    *html.Tokenizer // reads them where the bytes of the tag do not say what they are, else nil
	tag  []byte
	at   int // 0 before the name of the tag
	name [32]byte
}

// longTag is the size of a tag from which on z reads the attributes: there may be many equal ones.
const longTag = 4 << 10

// AttributesOf returns the attributes of the tag that z has read. They are valid until z reads on.
func AttributesOf(z *html.Tokenizer) Attributes {
	tag := z.Raw()
	if len(tag) > longTag || bytes.IndexByte(tag, '&') >= 0 || bytes.IndexByte(tag, '\r') >= 0 || bytes.IndexByte(tag, 0) >= 0 {
		return Attributes{z: z}
	}
	return Attributes{tag: tag}
}

// Next returns the next attribute, its name in small letters, and whether there may be more. The name is empty where
// there is none, and valid until the next call. Unlike TagAttr it returns each attribute that a tag has twice.
func (a *Attributes) Next() (name, value []byte, more bool) {
	if a.z != nil {
		return a.z.TagAttr()
	}
	tag, i := a.tag, a.at
	if i == 0 {
		for i++; i < len(tag) && !endsName(tag[i]); i++ {
		}
	}
	if i = skipSpace(tag, i); i >= len(tag) || tag[i] == '>' {
		return nil, nil, false
	}
	start := i
	for i < len(tag) && !endsName(tag[i]) && (tag[i] != '=' || i == start) {
		i++
	}
	value, a.at = attributeValue(tag, i)
	return a.lower(tag[start:i]), value, true
}

// lower returns a name in small letters.
func (a *Attributes) lower(name []byte) []byte {
	for i, c := range name {
		if c < 'A' || c > 'Z' {
			continue
		}
		small := append(a.name[:0], name...)
		for ; i < len(small); i++ {
			if c := small[i]; 'A' <= c && c <= 'Z' {
				small[i] = c + 'a' - 'A'
			}
		}
		return small
	}
	return name
}

// attributeValue returns the value of the attribute whose name ends at tag[i], and where to go on.
func attributeValue(tag []byte, i int) (value []byte, end int) {
	if i = skipSpace(tag, i); i >= len(tag) || tag[i] != '=' {
		if i < len(tag) && tag[i] == '/' {
			i++
		}
		return nil, i
	}
	if i = skipSpace(tag, i+1); i >= len(tag) {
		return nil, i
	}
	if q := tag[i]; q == '"' || q == '\'' {
		i++
		n := bytes.IndexByte(tag[i:], q)
		if n < 0 {
			return tag[i:], len(tag)
		}
		return tag[i : i+n], i + n + 1
	}
	start := i
	for i < len(tag) && !isSpace(tag[i]) && tag[i] != '>' {
		i++
	}
	return tag[start:i], i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\f' || c == '\r' }

func endsName(c byte) bool { return isSpace(c) || c == '/' || c == '>' }

func skipSpace(tag []byte, i int) int {
	for i < len(tag) && isSpace(tag[i]) {
		i++
	}
	return i
}
