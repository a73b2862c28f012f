package selector

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
)

const sample = `<html lang=en><title>T</title><nav>menu</nav><main><h2 id=one>One</h2><p>a <i>b</i> c</p>
<h2 id=two>Two</h2><p>d</p><ul><li>e <b class=x>f</b></li><li class=x>g<ul><li>h</ul></li></ul></main><footer>foot<span>1</span><span>2</span></footer>`

func nodesOf(hits []hit) []*html.Node {
	var list []*html.Node
	for _, h := range hits {
		list = append(list, h.node)
	}
	return list
}

// cssMatches returns what css matches below root, found by the matcher.
func cssMatches(t *testing.T, root *html.Node, css string) []*html.Node {
	t.Helper()
	list, err := compileMarkup("select", []pipeline.Selector{{CSS: css}})
	if err != nil {
		t.Fatalf("%s: %v", css, err)
	}
	if err := list.find(&stepCounter{ctx: t.Context()}, root); err != nil {
		t.Fatal(err)
	}
	return nodesOf(list.selectors[0].hits)
}

func sameNodes(a, b []*html.Node) bool {
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

// TestManySiblings has selectors count 100,000 siblings. It ends at once only if that takes no square
// of their number.
func TestManySiblings(t *testing.T) {
	const n = 100_000
	root, err := html.Parse(strings.NewReader("<p>" + strings.Repeat("<b></b><i></i>", n/2)))
	if err != nil {
		t.Fatal(err)
	}
	for css, want := range map[string]int{
		"b:nth-child(3n)": (n + 2) / 6, "b:nth-last-child(5n)": n / 10, "i:nth-of-type(2n+1)": n / 4, "i:nth-last-of-type(even)": n / 4,
		"b:nth-child(99999)": 1, "i:nth-last-of-type(50000)": 1, "b:only-of-type, i:only-child": 0,
	} {
		if got := cssMatches(t, root, css); len(got) != want {
			t.Errorf("%s: got %d matches, want %d", css, len(got), want)
		}
	}
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
				css.WriteString(one("div", "p", "b", "*", ".a", ".b", "li:first-child", "i#x", "[class~='a']", `[id="x > y, z"]`, ":not(p)", "div:has(p, b)", "div:not(p b, div > b)", ":has(div > b, .a ~ p)", "p:haschild(b)", ":not(:has(b i)).a", ":has(:not(p))", "*:not(:not(b))", `\64 iv`, `.\61 `,
					"b:nth-child(2n+1)", ":nth-last-child(-n+2)", "p:nth-of-type(odd)", ":Nth-Last-Of-Type( 3n - 1 )", ":nth-child(2)", ":nth-last-child(+1)", ":nth-child(-3)", ":nth-child(0n+1)",
					"div:only-child", ":only-of-type", "p:last-of-type", "b:first-of-type", ":last-child:not(:nth-child(EVEN))", "div:has(b:nth-child(n))"))
			}
			want := cascadia.QueryAll(root, must(cascadia.ParseGroup(css.String())))
			if got := cssMatches(t, root, css.String()); !sameNodes(got, want) {
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
	f.Add("\\0\r\n0")
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
		list, err := compileMarkup("select", []pipeline.Selector{{CSS: css}})
		if err != nil {
			if !strings.Contains(err.Error(), "not supported") && !strings.Contains(err.Error(), "write it plainly") {
				t.Fatalf("%q is valid but: %v", css, err)
			}
			return
		}
		if err := list.find(&stepCounter{ctx: t.Context()}, root); err != nil {
			t.Fatal(err)
		}
		if hits, want := nodesOf(list.selectors[0].hits), cascadia.QueryAll(root, g); !sameNodes(hits, want) {
			t.Errorf("%q: got %d matches, want %d", css, len(hits), len(want))
		}
	})
}

// TestSelectorsEnd: looking ahead and matching look at the context.
func TestSelectorsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := parseHTML(t, strings.Repeat("<div>", 500)+strings.Repeat("<p>a", 10))
	for _, css := range []string{"p", ":has(p)"} {
		list, err := compileMarkup("select", []pipeline.Selector{{CSS: css}})
		if err != nil {
			t.Fatal(err)
		}
		if err := list.find(&stepCounter{ctx: ctx}, root); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", css, err)
		}
	}
}

func TestRefusedSelectors(t *testing.T) {
	for css, want := range map[string]string{
		"html:has(div:has(div:has(b)))":            ":has within :has is not supported",
		"div:has(:not(:has(b)))":                   ":has within :has is not supported",
		"p:HasChild(b:has(i))":                     ":has within :has is not supported",
		`div:h\61s(b)`:                             "write it plainly",
		"p:matches((a{1,30}){1,30}z)":              ":matches is not CSS",
		"p:not(:matchesOwn(a))":                    ":matchesown is not CSS",
		"p[title#=(a{1,30}){1,30}z]":               "[name#=...] is not CSS",
		strings.Repeat(":has(b)", maxHas+1):        "at most 64",
		strings.Repeat("p:has(a),", maxHas) + "p":  "",
		"li:not(:has(.ad)), p:has(> b)":            "is not a CSS selector",
		"li:not(:has(.ad)), p:contains('#=:has(')": "",
		`[a\=#="x"], [title="#="]`:                 "[name#=...] is not CSS",
	} {
		err := Validate(pipeline.View{Remove: []pipeline.Selector{{CSS: css}}})
		switch {
		case want == "" && err != nil:
			t.Errorf("%.50s: got %v", css, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.50s: got %v, want %q", css, err, want)
		}
	}
}

func parseHTML(t *testing.T, page string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return root
}
