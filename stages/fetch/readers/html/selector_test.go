package html

import (
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// parseSelectors reads "a; b..c; d.." as two CSS selectors and two ranges.
func parseSelectors(s string) []pipeline.Selector {
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
		{"remove nothing", "", "#none", "T|menu|One|a b c|Two|d|<e f|><g|><h|>foot12|"},
		{"select", "main", "", "One|a b c|Two|d|<e f|><g|><h|>"},
		{"select several, nested", "p; main p; i, nav", "", "menu|a b c|d|"},
		{"select neighbours", "span", "", "1|2|"},
		{"select within items", ".x", "", "<f|><g|><h|>"},
		{"select an item", "ul ul li", "", "<h|>"},
		{"select all", "html", "", "menu|One|a b c|Two|d|<e f|><g|><h|>foot12|"},
		{"select the title", "title; h2", "", "T|One|Two|"},
		{"remove the title", "", "title", "menu|One|a b c|Two|d|<e f|><g|><h|>foot12|"},
		{"remove", "", "nav; footer", "T|One|a b c|Two|d|<e f|><g|><h|>"},
		{"remove inline", "p", "i", "a c|d|"},
		{"select and remove", "main", "ul; h2", "a b c|d|"},
		{"range", "#one..#two", "", "One|a b c|"},
		{"range to the end", "#two..", "", "Two|d|<e f|><g|><h|>foot12|"},
		{"range from within to within", "i..b", "", "b c|Two|d|<e|>"},
		{"range behind its start", "h2..h2", "", "One|a b c|"},
		{"range and selector", "#two..ul; nav", "", "menu|Two|d|"},
		{"two ranges that overlap", "#one..ul; #two..footer", "", "One|a b c|Two|d|<e f|><g|><h|>"},
		{"remove a range", "", "nav..#two", "T|Two|d|<e f|><g|><h|>foot12|"},
		{"remove a range without end", "", "nav..#none", "T|menu|One|a b c|Two|d|<e f|><g|><h|>foot12|"},
		{"some match", "#none; #two", "", "Two|"},
		{"nothing left", "#one", "h2", ""},
	} {
		got, err := readHTML(t, sample, pipeline.View{Select: parseSelectors(tc.sel), Remove: parseSelectors(tc.rem)})
		if s := showMarks.Replace(got.Content); err != nil || s != tc.want {
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
		_, err := readHTML(t, sample, pipeline.View{Select: parseSelectors(sel)})
		e, ok := errors.AsType[*pipeline.FetchError](err)
		if !ok || e.Class != pipeline.FailSelectorGone || e.Reason != want {
			t.Errorf("%s: got %v, want %s", sel, err, want)
		}
	}
}

func TestHiddenStaysHidden(t *testing.T) {
	got, err := readHTML(t, `<div id=a hidden>a<p>b</div><div id=c>c<script>d</script></div>`, pipeline.View{Select: parseSelectors("#a; #c; script")})
	if err != nil || got.Content != "c\n" {
		t.Errorf("got %q, %v", got.Content, err)
	}
}

func TestValidate(t *testing.T) {
	good := pipeline.View{Select: parseSelectors("main; h1..h2"), Remove: parseSelectors("nav, footer:not(.x)")}
	if err := selector.Validate(good); err != nil {
		t.Errorf("got %v", err)
	}
	for _, tc := range []struct {
		view pipeline.View
		want string
	}{
		{pipeline.View{Select: parseSelectors("p[")}, `select: "p[" is not a CSS selector`},
		{pipeline.View{Remove: parseSelectors("p; h1..h2::")}, `remove: "h2::" is not a CSS selector`},
		{pipeline.View{Remove: []pipeline.Selector{{}}}, "remove: a selector is either one expression or a range"},
		{pipeline.View{Select: []pipeline.Selector{{CSS: "p", From: "p"}}}, "select: a selector is either one expression or a range"},
		{pipeline.View{Select: []pipeline.Selector{{CSS: "p", To: "p"}}}, "select: a selector is either one expression or a range"},
		{pipeline.View{Select: make([]pipeline.Selector, 101)}, "select: 101 selectors are too many"},
		{pipeline.View{Select: parseSelectors(strings.Repeat("p ", 1000))}, "select: a selector of 1999 characters is too long"},
	} {
		err := selector.Validate(tc.view)
		if _, ok := errors.AsType[*pipeline.FieldError](err); !ok || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
		if _, err := readHTML(t, sample, tc.view); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("reading: got %v, want %s", err, tc.want)
		}
	}
}

// TestRaisedCents: cents that stand raised behind a price are no digits of it, but only where it is read as a number.
func TestRaisedCents(t *testing.T) {
	for in, want := range map[string]string{
		"119<sup>95</sup> €": "119.95 €", "119,<sup>95</sup> €": "119,95 €", "119<sup>1</sup>": "119 1", "1.79<small>9</small>": "1.79 9", "<sup>$</sup>119<sup>95</sup>": "$119.95",
	} {
		for _, view := range []pipeline.View{{Value: &pipeline.Value{}, Select: []pipeline.Selector{{CSS: "p"}}}, {Value: &pipeline.Value{Pattern: "(.*)"}}} {
			got, err := New().Read(t.Context(), pipeline.Raw{ContentType: "text/html", Body: []byte("<p>" + in)}, view)
			if strings.TrimSpace(got.Content) != want || err != nil {
				t.Errorf("%s: got %q, %v, want %q", in, got.Content, err, want)
			}
		}
	}
}
