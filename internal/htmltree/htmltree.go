// Package htmltree parses HTML that strangers wrote.
package htmltree

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxNodes is how large a parsed page may become, in nodes of some 170 bytes.
	maxNodes = 1 << 20
	// attrsPerNode is how many attributes take as much as a node.
	attrsPerNode = 4
	// maxAttrs is how many attributes an element may have.
	maxAttrs = 10_000
	// maxToken is the largest single tag, text or script, in bytes.
	maxToken = 16 << 20
	// tokensPerCheck is how many tokens are read between two looks at the context.
	tokensPerCheck = 4096
)

// ErrTooLarge says that the tree of a page would be out of all proportion to its size.
var ErrTooLarge = errors.New("the page has too many elements")

// Parse returns the tree of an HTML page, and how the page ends. Its errors are ErrTooLarge, that of ctx, and that
// of html.Parse, which refuses more than 512 elements within each other.
func Parse(ctx context.Context, body []byte) (*html.Node, Ending, error) {
	ending, err := checkNodeCount(ctx, body)
	if err != nil {
		return nil, ending, err
	}
	root, err := html.Parse(bytes.NewReader(body))
	return root, ending, err
}

// Attribute returns the value of an attribute of n, and whether n has it.
func Attribute(n *html.Node, name string) (value string, ok bool) {
	for _, a := range n.Attr {
		if a.Namespace == "" && a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// formattingElements are the elements that the parser opens anew in every paragraph until they
// are closed.
var formattingElements = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true,
	atom.S: true, atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true,
}

// Ending is what a page ends within, if that hides text: "a comment", "a tag" or "<script>". It is empty elsewhere.
type Ending string

// Note sees the next token of the page, whose source is raw. Open is the innermost element that is open before it.
func (e *Ending) Note(token html.TokenType, raw []byte, open atom.Atom) {
	switch token {
	case html.ErrorToken:
		if len(raw) > 0 {
			*e = "a tag"
		}
	case html.CommentToken:
		if bytes.HasPrefix(raw, []byte("<!--")) && !bytes.HasSuffix(raw, []byte(">")) {
			*e = "a comment"
		}
	case html.TextToken:
		switch open {
		case atom.Script, atom.Style, atom.Noscript, atom.Iframe, atom.Noembed, atom.Noframes, atom.Textarea:
			if len(bytes.TrimSpace(raw)) > 0 {
				*e = Ending("<" + open.String() + ">")
			}
		}
	case html.EndTagToken:
		*e = ""
	}
}

// plainIdentifier matches a name that a selector can use without an escape.
var plainIdentifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,60}$`)

// maxClasses is how many classes of an element a selector may use.
const maxClasses = 20

// Names returns the CSS selectors that name n by its ID or by a class, the best first. Other elements may have the
// same.
func Names(n *html.Node) []string {
	if n.Type != html.ElementNode {
		return nil
	}
	var all, classes []string
	for _, a := range n.Attr {
		switch a.Key {
		case "id":
			if plainIdentifier.MatchString(a.Val) {
				all = append(all, "#"+a.Val)
			}
		case "class":
			for _, c := range strings.Fields(a.Val) {
				if name := n.Data + "." + c; plainIdentifier.MatchString(c) && !slices.Contains(classes, name) && len(classes) < maxClasses {
					classes = append(classes, name)
				}
			}
		}
	}
	return append(all, classes...)
}

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
