package html

import (
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

// TestBombs reads pages that are made to be slow or large. A test that does not end in a
// few seconds has found one that is.
func TestBombs(t *testing.T) {
	n := 100_000
	var attributes strings.Builder
	for i := range n {
		attributes.WriteString(" a")
		attributes.WriteString(strings.Repeat("x", i%50))
		attributes.WriteString("=1")
	}
	var fonts strings.Builder
	for i := range 400 {
		fonts.WriteString("<font id=")
		fonts.WriteString(strings.Repeat("f", i))
		fonts.WriteString(">")
	}
	for _, tc := range []struct {
		name, page string
		end        string // what the text ends with
		parsed     string // the class of failure with selectors, if any
	}{
		{"nested div", strings.Repeat("<div>", n) + "end", "end\n", pipeline.FailUnreadable},
		{"nested b", strings.Repeat("<b>", n) + "end", "end\n", pipeline.FailUnreadable},
		{"nested and ended", strings.Repeat("<div>", n) + strings.Repeat("</div>", n) + "end", "end\n", pipeline.FailUnreadable},
		{"nested lists", strings.Repeat("<ul><li>", n) + "end", "end\n\x03", pipeline.FailUnreadable},
		{"nested tables", strings.Repeat("<table><tr><td>", 5000) + "end", "end\n" + strings.Repeat("\x03", 5000), pipeline.FailUnreadable},
		{"nested pictures", strings.Repeat("<svg>", n) + "<p>end", "end\n", pipeline.FailUnreadable},
		{"nested and hidden", "<div hidden>" + strings.Repeat("<b>", n) + "</div>end", "end\n", pipeline.FailUnreadable},
		{"items beneath a deep nesting", "<li><ul>" + strings.Repeat("<div>", n) + strings.Repeat("<li>x</li>", n) + "end", "end\n", pipeline.FailUnreadable},
		{"ends behind a border", "<div><table><tr><td>" + strings.Repeat("<ul>", n) + strings.Repeat("</div>", n) + "end", "end\n", pipeline.FailUnreadable},
		{"attributes", "<p" + attributes.String() + ">end", "end\n", ""},
		{"equal attributes", "<p" + strings.Repeat(" hidden=x", n) + ">a<p>end", "end\n", ""},
		{"less than", strings.Repeat("<", n) + "<p>end", "end\n", ""},
		{"entities", strings.Repeat("&amp", n) + "<p>end", "end\n", ""},
		{"stray ends", strings.Repeat("</p></div></b>", n) + "end", "end\n", ""},
		{"comment", "end<!--" + strings.Repeat("x", 10*n), "end\n", ""},
		{"comments", strings.Repeat("<!-- -- -->", n) + "end", "end\n", ""},
		{"script", "end<script>" + strings.Repeat("<!--<script>", n), "end\n", ""},
		{"title", "<title>" + strings.Repeat("x ", n) + "</title>end", "end\n", ""},
		{"formatting", fonts.String() + strings.Repeat("<p>x</p>", n) + "end", "end\n", pipeline.FailTooLarge},
		{"many elements", strings.Repeat("<p>", 11*n) + "end", "end\n", pipeline.FailTooLarge},
		{"forms", strings.Repeat("<form><div></form>", n) + "end", "end\n", pipeline.FailUnreadable},
		{"much text", strings.Repeat("word ", 5*n), "", pipeline.FailTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readHTML(t, tc.page, pipeline.View{})
			if tc.end == "" {
				if e, _ := errors.AsType[*pipeline.FetchError](err); e == nil || e.Class != pipeline.FailTooLarge {
					t.Errorf("got %v, want too_large", err)
				}
			} else if err != nil || !strings.HasSuffix(got.Content, tc.end) {
				t.Errorf("got %.100q, %v", got.Content, err)
			}
			if err := pipelinetest.CheckContent(got.Content); err != nil {
				t.Error(err)
			}
			got, err = readHTML(t, tc.page, parsingView)
			if e, _ := errors.AsType[*pipeline.FetchError](err); tc.parsed != "" && (e == nil || e.Class != tc.parsed) {
				t.Errorf("parsed: got %v, want %s", err, tc.parsed)
			}
			if tc.parsed == "" && (err != nil || !strings.HasSuffix(got.Content, tc.end)) {
				t.Errorf("parsed: got %.100q, %v", got.Content, err)
			}
		})
	}
}

// The time that selectors take does not grow with the combinations of elements that they
// could stand for.
func TestSelectorBomb(t *testing.T) {
	page := strings.Repeat("<div>", 400) + strings.Repeat("<p></p>", 5_000)
	for _, sel := range []string{"a div div div p", "a div div div div div div div p", "a ~ p ~ p ~ p", "a p + p ~ p + p"} {
		if _, err := readHTML(t, page, pipeline.View{Select: parseSelectors(sel)}); err == nil {
			t.Errorf("%s matched", sel)
		}
	}
}

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
