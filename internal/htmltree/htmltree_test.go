package htmltree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestParse: a page of 13 KB in which each paragraph would open 400 elements anew is refused, or one element with
// 2,000 attributes, as is one that would go on after its context has ended.
func TestParse(t *testing.T) {
	var fonts, attributes, many strings.Builder
	for i := range maxAttrs + 1 {
		if fmt.Fprintf(&many, " a%d", i); i >= 2000 {
			continue
		}
		if i < 400 {
			fmt.Fprintf(&fonts, "<font a=%d>", i)
		}
		fmt.Fprintf(&attributes, " a%d", i)
	}
	for _, bomb := range []string{
		"<p>" + fonts.String() + strings.Repeat("<p>x", 2000),
		"<p><font" + attributes.String() + ">" + strings.Repeat("<p>x", 2000),
		"<p" + many.String() + ">",
	} {
		if _, _, err := Parse(t.Context(), []byte(bomb)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%.30s: got %v, want %v", bomb, err, ErrTooLarge)
		}
	}
	if root, _, err := Parse(t.Context(), []byte("<p>x<p>y")); err != nil || root == nil {
		t.Errorf("a small page: got %v, %v", root, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Parse(ctx, []byte(strings.Repeat("<p>x", tokensPerCheck))); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: got %v", err)
	}
}

// TestParseCountsWhatStaysOpen: end tags that the parser passes over, and start tags that only the parser reads, do not
// let a page become larger than it may.
func TestParseCountsWhatStaysOpen(t *testing.T) {
	var begin strings.Builder
	for i := range 400 {
		fmt.Fprintf(&begin, "<font a=%d>", i)
	}
	end := strings.Repeat("</font>", 400)
	for name, fonts := range map[string]string{
		"cell":                begin.String() + "<table><tr><td>" + end + "</td></tr></table>",
		"table within":        begin.String() + "<table><tr><td><table></td>" + end + "</table></td></tr></table>",
		"caption":             begin.String() + "<table><caption>" + end + "</caption></table>",
		"object":              begin.String() + "<object>" + end + "</object>",
		"object, never ended": begin.String() + "<table><tr><td><object></table></object>" + end,
		"marquee":             begin.String() + "<marquee>" + end + "</marquee>",
		"template":            begin.String() + "<template>" + end + "</template>",
		"template in a table": begin.String() + "<table><template></table></template>" + end,
		"select":              begin.String() + "<select>" + end + "</select>",
		"select, hidden":      "<select><title></select>" + begin.String() + "</title>",
		"svg, hidden":         "<svg><title>" + begin.String() + "</title></svg>",
		"svg, desc":           begin.String() + "<svg><desc>" + end + "</desc></svg>",
		"svg, desc not ended": begin.String() + "<svg><desc><p></desc></svg>" + end,
		"svg, style":          begin.String() + "<svg><style><desc><p></style></svg>" + end,
		"svg, cdata":          begin.String() + "<svg><desc><svg><![CDATA[</svg></svg>]]>" + end,
		"math":                begin.String() + "<math><mi>" + end + "</mi></math>",
		"math, not ended":     begin.String() + "<math><mi><object></mi></math>" + end,
	} {
		if _, _, err := Parse(t.Context(), []byte("<p>"+fonts+strings.Repeat("<p>x", 3000))); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want %v", name, err, ErrTooLarge)
		}
	}
	for name, usual := range map[string]string{
		"links":    `<a href=x title=y>x</a> <b class=c>x</b>`,
		"icons":    `<a href=x><svg><title>T</title><desc>D</desc><style>.a{}</style><path d=x /></svg> x</a><a href=y><svg/></a>`,
		"formulas": `<a href=x><math><mi>x</mi><mo>=</mo></math></a>`,
		"tables":   `<a href=x><table><tr><td><b class=c>x</b><select><option>x</select></td></tr></table></a>`,
		"objects":  `<a href=x><object data=y><i class=c>x</i></object></a>`,
	} {
		if _, _, err := Parse(t.Context(), []byte(strings.Repeat("<p>"+usual, 5000))); err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

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
