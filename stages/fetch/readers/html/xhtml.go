package html

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// expandSelfClosing writes <x/> as <x></x>, which in XHTML mean the same and in HTML do
// not. A body that cannot be read to its end is returned as it is.
func expandSelfClosing(body []byte) []byte {
	if !bytes.Contains(body, []byte("/>")) {
		return body
	}
	out := make([]byte, 0, len(body)+len(body)/8)
	z := html.NewTokenizer(bytes.NewReader(body))
	z.SetMaxBuf(maxToken)
	done := 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			return append(out, body[done:]...)
		case html.SelfClosingTagToken:
			raw := z.Raw()
			out = append(out, raw...)
			done += len(raw)
			if name, _ := z.TagName(); kinds[atom.Lookup(name)]&(void|foreign) == 0 {
				out = append(append(append(out[:len(out)-2], "></"...), name...), '>')
				z.NextIsNotRawText()
			}
		default:
			raw := z.Raw()
			out = append(out, raw...)
			done += len(raw)
		}
	}
}
