package html

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
)

// selectors reads "a; b..c; d.." as two CSS selectors and two ranges.
func selectors(s string) []pipeline.Selector {
	var list []pipeline.Selector
	for _, one := range strings.Split(s, ";") {
		one = strings.TrimSpace(one)
		if from, to, ok := strings.Cut(one, ".."); ok {
			list = append(list, pipeline.Selector{From: from, To: to})
		} else if one != "" {
			list = append(list, pipeline.Selector{CSS: one})
		}
	}
	return list
}

const sample = `<html lang=en><title>T</title><nav>menu</nav><main><h2 id=one>One</h2><p>a <i>b</i> c</p>
<h2 id=two>Two</h2><p>d</p><ul><li>e <b class=x>f</b></li><li class=x>g<ul><li>h</ul></li></ul></main><footer>foot<span>1</span><span>2</span></footer>`

func TestViews(t *testing.T) {
	for _, tc := range []struct{ name, sel, rem, want string }{
		{"remove nothing", "", "#none", "T|menu|One|a b c|Two|d|<e f|><g|<h|>>foot12|"},
		{"select", "main", "", "One|a b c|Two|d|<e f|><g|<h|>>"},
		{"select several, nested", "p; main p; i, nav", "", "menu|a b c|d|"},
		{"select neighbours", "span", "", "1|2|"},
		{"select within items", ".x", "", "<f|><g|<h|>>"},
		{"select an item", "ul ul li", "", "<<h|>>"},
		{"select all", "html", "", "menu|One|a b c|Two|d|<e f|><g|<h|>>foot12|"},
		{"select the title", "title; h2", "", "T|One|Two|"},
		{"remove the title", "", "title", "menu|One|a b c|Two|d|<e f|><g|<h|>>foot12|"},
		{"remove", "", "nav; footer", "T|One|a b c|Two|d|<e f|><g|<h|>>"},
		{"remove inline", "p", "i", "a c|d|"},
		{"select and remove", "main", "ul; h2", "a b c|d|"},
		{"range", "#one..#two", "", "One|a b c|"},
		{"range to the end", "#two..", "", "Two|d|<e f|><g|<h|>>foot12|"},
		{"range from within to within", "i..b", "", "b c|Two|d|<e|>"},
		{"range behind its start", "h2..h2", "", "One|a b c|"},
		{"range and selector", "#two..ul; nav", "", "menu|Two|d|"},
		{"two ranges that overlap", "#one..ul; #two..footer", "", "One|a b c|Two|d|<e f|><g|<h|>>"},
		{"remove a range", "", "nav..#two", "T|Two|d|<e f|><g|<h|>>foot12|"},
		{"remove a range without end", "", "nav..#none", "T|menu|One|a b c|Two|d|<e f|><g|<h|>>foot12|"},
		{"some match", "#none; #two", "", "Two|"},
		{"nothing left", "#one", "h2", ""},
	} {
		got, err := read(t, sample, pipeline.View{Select: selectors(tc.sel), Remove: selectors(tc.rem)})
		if s := show.Replace(got.Content); err != nil || s != tc.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", tc.name, s, err, tc.want)
		}
		wantTitle := "T"
		if tc.rem == "title" {
			wantTitle = ""
		}
		if got.Title != wantTitle || got.Language != "en" {
			t.Errorf("%s: title %q, language %q", tc.name, got.Title, got.Language)
		}
	}
}

func TestSelectorGone(t *testing.T) {
	for sel, want := range map[string]string{
		"#none":            `nothing on the page matches "#none"`,
		"#none; #no..":     `nothing on the page matches "#none", from "#no"`,
		"#one..#none":      `nothing on the page matches from "#one" to "#none"`,
		"footer..#one":     `nothing on the page matches from "footer" to "#one"`,
		"noscript p":       `nothing on the page matches "noscript p"`,
		"b..nav;title > b": `nothing on the page matches from "b" to "nav", "title > b"`,
	} {
		_, err := read(t, sample, pipeline.View{Select: selectors(sel)})
		e, ok := errors.AsType[*pipeline.FetchError](err)
		if !ok || e.Class != pipeline.FailSelectorGone || e.Reason != want {
			t.Errorf("%s: got %v, want %s", sel, err, want)
		}
	}
}

func TestHiddenStaysHidden(t *testing.T) {
	got, err := read(t, `<div id=a hidden>a<p>b</div><div id=c>c<script>d</script></div>`, pipeline.View{Select: selectors("#a; #c; script")})
	if err != nil || got.Content != "c\n" {
		t.Errorf("got %q, %v", got.Content, err)
	}
}

func TestValidate(t *testing.T) {
	good := pipeline.View{Select: selectors("main; h1..h2"), Remove: selectors("nav, footer:not(.x)")}
	if err := Validate(good); err != nil {
		t.Errorf("got %v", err)
	}
	for _, tc := range []struct {
		view pipeline.View
		want string
	}{
		{pipeline.View{Select: selectors("p[")}, `select: "p[" is not a CSS selector`},
		{pipeline.View{Remove: selectors("p; h1..h2::")}, `remove: "h2::" is not a CSS selector`},
		{pipeline.View{Remove: []pipeline.Selector{{}}}, "remove: a selector is either CSS or a range"},
		{pipeline.View{Select: []pipeline.Selector{{CSS: "p", From: "p"}}}, "select: a selector is either CSS or a range"},
		{pipeline.View{Select: []pipeline.Selector{{CSS: "p", To: "p"}}}, "select: a selector is either CSS or a range"},
		{pipeline.View{Select: make([]pipeline.Selector, maxSelectors+1)}, "select: 101 selectors are too many"},
		{pipeline.View{Select: selectors(strings.Repeat("p ", maxSelectorLen))}, "select: a selector of 1999 characters is too long"},
	} {
		err := Validate(tc.view)
		if _, ok := errors.AsType[*pipeline.FieldError](err); !ok || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
		if _, err := read(t, sample, tc.view); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("reading: got %v, want %s", err, tc.want)
		}
	}
}

// matches returns what css matches below root, found by the matcher.
func matches(t *testing.T, root *html.Node, css string) []*html.Node {
	t.Helper()
	list, err := compile("select", []pipeline.Selector{{CSS: css}})
	if err != nil {
		t.Fatalf("%s: %v", css, err)
	}
	if err := mark(t.Context(), root, list); err != nil {
		t.Fatal(err)
	}
	return list.selectors[0].hits
}

func same(a, b []*html.Node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// The matcher finds what cascadia finds.
func TestMatcher(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	for range 300 {
		var page strings.Builder
		for range 40 {
			page.WriteString(one("<div>", "<div class=a>", "<p>", "<b class='a b'>", "<i id=x>", "<ul><li>", "</div>", "</p>", "</b>", "</ul>", "x", "<!-- -->"))
		}
		root, err := html.Parse(bytes.NewReader([]byte(page.String())))
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			var css strings.Builder
			for i := range 1 + r.IntN(5) {
				if i > 0 {
					css.WriteString(one(" ", " ", " > ", ">", "+", " ~ ", ", ", "  ", " /* > */ "))
				}
				css.WriteString(one("div", "p", "b", "*", ".a", ".b", "li:first-child", "i#x", "[class~='a']", `[id="x > y, z"]`, ":not(p)", "div:has(p, b)", "div:not(p b, div > b)", ":has(div > b, .a ~ p)", "p:haschild(b)", ":not(:has(b i)).a", ":has(:not(p))", "*:not(:not(b))", `\64 iv`, `.\61 `))
			}
			want := cascadia.QueryAll(root, must(cascadia.ParseGroup(css.String())))
			if got := matches(t, root, css.String()); !same(got, want) {
				t.Fatalf("%s on %s: got %d matches, want %d", css.String(), page.String(), len(got), len(want))
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func FuzzMatcher(f *testing.F) {
	f.Add("div > p + .x ~ [a='b c'], i#y /* x */ b")
	f.Add(`\31 a :not(p , q) :has(> b)`)
	f.Add("div:not(p > b, :has(i)):not(.x)::has(b:not(i ~ p)) :haschild(a)")
	f.Add("div:has(p:has(b)), [a#=x], :matches(x), [a\\=#=x], :H\\61s(b)")
	f.Add("/*/*/p") // a comment that holds a slash
	f.Add("*|* > p, *|*.x ")
	root := must(html.Parse(strings.NewReader(sample)))
	f.Fuzz(func(t *testing.T, css string) {
		if len(css) > 100 {
			return
		}
		g, err := cascadia.ParseGroup(css)
		if err != nil {
			return
		}
		if strings.Contains(strings.ToLower(css), "contains") {
			return // to cascadia, text is something that an element has
		}
		list, err := compile("select", []pipeline.Selector{{CSS: css}})
		if err != nil {
			if !strings.Contains(err.Error(), "not supported") && !strings.Contains(err.Error(), "write it plainly") {
				t.Fatalf("%q is valid but: %v", css, err)
			}
			return
		}
		if err := mark(t.Context(), root, list); err != nil {
			t.Fatal(err)
		}
		if hits, want := list.selectors[0].hits, cascadia.QueryAll(root, g); !same(hits, want) {
			t.Errorf("%q: got %d matches, want %d", css, len(hits), len(want))
		}
	})
}
