package html

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// matches returns what css matches below root, found by the matcher.
func matches(t *testing.T, root *html.Node, css string) []*html.Node {
	t.Helper()
	m, err := newMatcher(css)
	if err != nil {
		t.Fatalf("%s: %v", css, err)
	}
	s := &selector{css: m}
	if err := mark(t.Context(), root, []*selector{s}); err != nil {
		t.Fatal(err)
	}
	return s.hits
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
				css.WriteString(one("div", "p", "b", "*", ".a", ".b", "li:first-child", "i#x", "[class~='a']", `[id="x > y, z"]`, ":not(p)", "div:has(p, b)", `\64 iv`, `.\61 `))
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
		m, err := newMatcher(css)
		if err != nil {
			t.Fatalf("%q is valid but: %v", css, err)
		}
		s := &selector{css: m}
		if err := mark(t.Context(), root, []*selector{s}); err != nil {
			t.Fatal(err)
		}
		if want := cascadia.QueryAll(root, g); !same(s.hits, want) {
			t.Errorf("%q: got %d matches, want %d", css, len(s.hits), len(want))
		}
	})
}
