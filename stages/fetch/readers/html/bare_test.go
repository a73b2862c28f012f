package html

import (
	"bytes"
	"testing"

	"golang.org/x/net/html"
)

// BenchmarkBare is what the reader's primitives cost: a pass of the tokenizer over every
// name, attribute and text, and a parse.
func BenchmarkBare(b *testing.B) {
	page := benchPage()
	b.Run("tokenizer", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		for b.Loop() {
			z := html.NewTokenizer(bytes.NewReader(page))
			for tt := z.Next(); tt != html.ErrorToken; tt = z.Next() {
				switch tt {
				case html.TextToken:
					z.Text()
				case html.StartTagToken, html.SelfClosingTagToken:
					for _, more := z.TagName(); more; {
						_, _, more = z.TagAttr()
					}
				}
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := html.Parse(bytes.NewReader(page)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
