package htmltree

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

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
