package html

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
)

// hostilePage has elements as deep as they can be, with others beside them.
func hostilePage(flat int) []byte {
	return []byte("<html><body>" + strings.Repeat("<div>", 500) + strings.Repeat("<p>a", flat) + strings.Repeat("</div>", 500))
}

// TestHostileSelectors: what a selector asks for takes time in proportion to the page. Each of
// these took cascadia longer than anybody waits.
func TestHostileSelectors(t *testing.T) {
	page := hostilePage(20_000)
	for _, css := range []string{
		"html:has(div div b)", "div:has(p ~ b)", "div:has(div div div div b)", "p:not(div div div div div b)", ":not(b ~ p ~ p ~ p)",
		":not(:has(div div div b))", "p:haschild(b)", ":has(b):has(i):has(u):has(s)",
	} {
		view := pipeline.View{Select: []pipeline.Selector{{CSS: css}}}
		_, err := New().Read(t.Context(), pipeline.Raw{ContentType: "text/html", Body: page}, view)
		if e, ok := errors.AsType[*pipeline.FetchError](err); err != nil && (!ok || e.Class != pipeline.FailSelectorGone) {
			t.Errorf("%s: got %v", css, err)
		}
	}
}

// TestSelectorsEnd: looking ahead and matching look at the context.
func TestSelectorsEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root := parsed(t, string(hostilePage(10)))
	for _, css := range []string{"p", ":has(p)"} {
		list, err := compile("select", []pipeline.Selector{{CSS: css}})
		if err != nil {
			t.Fatal(err)
		}
		if err := mark(ctx, root, list); !errors.Is(err, context.Canceled) {
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

func parsed(t *testing.T, page string) *html.Node {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return root
}
