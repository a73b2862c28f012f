package htmltree

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// FuzzTags: the name and the attributes of a tag are those of the tokenizer.
func FuzzTags(f *testing.F) {
	for _, seed := range []string{
		`<a href=x class="a b" ID='c' hidden>`, `<a/b=c/ d = 'e'f="g"/>`, "<p\n=x ==y a= >", `<p a="b'c>d" a=2 A=3 / = />`, `<p data-cfemail-and-more=x lang=de/>`,
		`<br/>`, `<p a=b"c'd=e>`, `<p "quoted" A-NAME-OF-MORE-THAN-THIRTY-TWO-LETTERS=x 'name'=1>`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		z := html.NewTokenizer(bytes.NewReader(page))
		var names TagNames
		for token := z.Next(); token != html.ErrorToken; token = z.Next() {
			if token != html.StartTagToken && token != html.SelfClosingTagToken {
				continue
			}
			var got, want []string
			attributes, tag := AttributesOf(z), string(names.Of(z))
			if attributes.z != nil {
				continue
			}
			for more := true; more; {
				var name, value []byte
				if name, value, more = attributes.Next(); len(name) > 0 && !slices.ContainsFunc(got, hasName(string(name))) {
					got = append(got, string(name)+"="+string(value))
				}
			}
			name, more := z.TagName()
			if tag != string(name) {
				t.Errorf("%q: got the name %q, want %q", z.Raw(), tag, name)
			}
			for more {
				var name, value []byte
				name, value, more = z.TagAttr()
				want = append(want, string(name)+"="+string(value))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", z.Raw(), got, want)
			}
		}
	})
}

func hasName(name string) func(pair string) bool {
	return func(pair string) bool { return strings.HasPrefix(pair, name+"=") }
}
