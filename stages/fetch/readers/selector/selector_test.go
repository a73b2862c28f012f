package selector

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/vokter/vokter/pipeline"
)

func TestValidate(t *testing.T) {
	for _, good := range []string{
		"main", "a:hover > b", "//h1", "xpath:h1", "xpath: //a[contains(@href, 'x')]/@href", "//p/text()", "//li[position() < 3]", "/rss/channel/item[1]",
		"/items/0/name", "/", "/a b/c~1d", "/a~01~0", "/html//a[contains(@href, '/~user')]", "jq:.items[].title", `jq:.a | select(.b == "c") | {d, e: .f}`, `jq:.items[] | "\(.a): \(.b)"`,
		`jq:[.items[] | .name] | join(", ")`, "jq:.a, .b", `jq:.items | map(select(.x)) | sort_by(.y) | .[:3]`, "jq:(.a, .b) | .c", "jq:.a // .b?",
		`jq:if .a then .b else .c end`, `jq:.["a b"]`, "jq:..", "jq:.a # b", `jq:.a + " " + .b`, "lines:1", "lines: 3-9", "lines:3-", "lines:-9", "re:^a.*b$",
	} {
		s := pipeline.ParseSelector(good)
		if err := Validate(pipeline.View{Select: []pipeline.Selector{s}, Remove: []pipeline.Selector{s}}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for bad, want := range map[string]string{
		"p[":                                     `"p[" is not a CSS selector: column 3: it ends where identifier is expected`,
		"//h1[":                                  `"//h1[" is not an XPath: column 5: "[" cannot be read: something is missing in it`,
		"xpath:":                                 "either one expression or a range",
		"xpath:count(//p)":                       "it computes a value",
		"xpath:1 + 1":                            "it computes a value",
		"xpath://p[matches(., 'a')]":             "matches() is not supported",
		"xpath://p[foo(.)]":                      "column 5: the function foo() is not supported",
		"xpath://p[contains(1)]":                 "too few arguments",
		"xpath:$x":                               `column 1: "$x" cannot be read: undeclared variable`,
		"jq:.a[":                                 `".a[" is not a jq expression: column 4: it ends where`,
		"jq:#":                                   "there is no expression",
		"jq:env":                                 "env is not supported",
		"jq:$ENV.HOME":                           "$ENV is not supported",
		"jq:input":                               "input is not supported",
		"jq:debug":                               "debug is not supported",
		`jq:import "a" as b; .`:                  "not supported",
		"jq:def f: f; f":                         "definitions",
		"jq:. as $x | [$x, $x]":                  "variables",
		"jq:reduce .[] as $x (0; 1)":             "not supported",
		"jq:[range(1e9)]":                        "range is not supported",
		`jq:"x" * 1e9`:                           "the operator * is not supported",
		"jq:.a | . + . | . + .":                  "joined in the last step only",
		"jq:{a: .} | .a":                         "{...} can only be the last step",
		"jq:[.,.,.]|[.,.,.]|.[0]":                "more than 3 commas",
		"jq:.. | ..":                             "more than one ..",
		"jq:" + strings.Repeat(". + ", 20) + ".": "more than 16 joined",
		"jq:nothing(.a)":                         "nothing is not supported",
		"/a~2b":                                  `"/a~2b" is not a JSON pointer: column 3: a ~`,
		"/items/0~":                              `"/items/0~" is not a JSON pointer: column 9: a ~`,
		"/a~~1b":                                 "a ~ is written ~0",
		"lines:0":                                "there is no line 0",
		"lines:9-3":                              "line 3 comes before line 9",
		"lines:-":                                "write it as 10-20",
		"lines:a":                                `"a" is not the number of a line; write it as 10-20`,
		"lines:1-x":                              `"x" is not the number of a line`,
		"xpath://a/b]":                           `column 6: "]" cannot be read: it means nothing there`,
		"xpath://a b":                            `column 5: "b" cannot be read: it means nothing there`,
		"xpath://a[@x='y]":                       `column 4: "[@x='y]" cannot be read: scanString got unclosed string`,
		"xpath://é[@]":                           `column 4: "[@]" cannot be read: something is missing`,
		"xpath://a==b":                           `column 4: "==b" cannot be read: something is missing`,
		"xpath://":                               `column 2: "/" cannot be read: something is missing`,
		"xpath:(//a":                             `column 1: "(//a" cannot be read: an invalid token`,
		"xpath://a{b}":                           `column 4: "{b}" cannot be read: an invalid token`,
		"xpath:a::b":                             `column 2: "::b" cannot be read: unknown axe type: a`,
		"xpath://p[]":                            `column 4: "[]" cannot be read: something is missing`,
		"jq:.a b":                                "column 4: there is b where",
		"jq:.é":                                  "column 2: there is é where",
		"jq:.a | \"x":                            "column 6: the text that \" begins has no end",
		"jq:.a]":                                 "column 3: there is ] where",
		"re:(":                                   "is not a regular expression",
		"re:(a{1,30}){1,30}z":                    "at most 1000",
		strings.Repeat("a", 1001):                "a selector of 1001 characters is too long",
	} {
		for _, view := range []pipeline.View{
			{Select: []pipeline.Selector{pipeline.ParseSelector(bad)}}, {Remove: []pipeline.Selector{pipeline.ParseSelector(bad)}},
		} {
			err := Validate(view)
			if _, ok := errors.AsType[*pipeline.FieldError](err); !ok || !strings.Contains(err.Error(), want) {
				t.Errorf("%.50s: got %v, want %q", bad, err, want)
			}
		}
	}
	for _, tc := range []struct {
		selector pipeline.Selector
		want     string
	}{
		{pipeline.Selector{}, "either one expression or a range"},
		{pipeline.Selector{CSS: "a", JQ: ".b"}, "either one expression or a range"},
		{pipeline.Selector{To: "a"}, "either one expression or a range"},
		{pipeline.Selector{From: "jq:.a"}, "cannot be an end of a range"},
		{pipeline.Selector{From: "h1", To: "re:x"}, "one end of the range is for text"},
		{pipeline.Selector{From: "re:("}, "is not a regular expression"},
		{pipeline.Selector{From: "xpath://h1["}, "is not an XPath"},
	} {
		if err := Validate(pipeline.View{Select: []pipeline.Selector{tc.selector}}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: got %v, want %q", tc.selector, err, tc.want)
		}
	}
}

// TestSelectorsAreWritten: what ParseSelector reads, String writes.
func TestSelectorsAreWritten(t *testing.T) {
	for _, s := range []string{"main > p", "xpath://h1", "/a/b", "jq:.a", "lines:1-2", "re:^a"} {
		if got := pipeline.ParseSelector(s).String(); got != s {
			t.Errorf("got %s, want %s", got, s)
		}
	}
}

// findXPath returns the texts, or attributes, that an XPath names.
func findXPath(ctx context.Context, t *testing.T, root *html.Node, text string) ([]string, error) {
	t.Helper()
	m, err := NewMarkup(pipeline.View{Select: []pipeline.Selector{{XPath: text}}})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	scope, err := m.Find(ctx, root)
	if err != nil {
		return nil, err
	}
	var found []string
	for n := range root.Descendants() {
		chosen, attributes := scope.Enter(n)
		found = append(found, attributes...)
		if chosen {
			found = append(found, (&xpathNavigator{stepCounter: &stepCounter{ctx: ctx}, root: root, node: n, attr: -1}).Value())
		}
	}
	return found, nil
}

func TestXPath(t *testing.T) {
	root := parseHTML(t, `<div id=d><a href=/1>one</a> <a href=/2 class=x>two</a></div><ul><li>1<li>2 <b>b</b><li>3</ul>`)
	for text, want := range map[string]string{
		"//a":                             "one|two",
		"//a/@href":                       "/1|/2",
		"//a[@class='x']":                 "two",
		"//div/a[1]/text()":               "one",
		"//li[last()]":                    "3",
		"//li[position()>1]/b":            "b",
		"//li[contains(., 'b')]":          "2 b",
		"//*[@id='d']/a":                  "one|two",
		"//li/following-sibling::li/b/..": "2 b",
		"//a | //b":                       "one|two|b",
		"/html/body/div/a[2]/@class":      "x",
		"//b/ancestor::ul/li[1]":          "1",
	} {
		got, err := findXPath(t.Context(), t, root, text)
		if s := strings.Join(got, "|"); err != nil || s != want {
			t.Errorf("%s: got %s, %v, want %s", text, s, err, want)
		}
	}
}

// TestXPathIsLinearInLast has a list whose last element would take the square of its length to find.
func TestXPathIsLinearInLast(t *testing.T) {
	root := parseHTML(t, "<ul>"+strings.Repeat("<li>a<b>x</b>", 10_000)+"<li>z</ul>")
	for text, want := range map[string]string{
		"//li[last()]": "z", "//ul/li[ last() ]/text()": "z", "//*[li[last()]]/li[1]": "ax",
		"descendant::li[1]": "ax", "//ul/*[last()]": "z", "//li[last()][contains(., 'z')]": "z",
	} {
		got, err := findXPath(t.Context(), t, root, text)
		if s := strings.Join(got, "|"); err != nil || s != want {
			t.Errorf("%s: got %.50s, %v, want %s", text, s, err, want)
		}
	}
	for text, want := range map[string]string{
		"//li[last()]/a:b[last()]": "//li[not(following-sibling::li)]/a:b[not(following-sibling::a:b)]",
		"//@x[last()]":             "", "ancestor::li[last()]": "", "//li[1][last()]": "", "(//li)[last()]": "", "//text()[last()]": "",
		"//li[last() - 1]": "", "//li['last()']": "",
	} {
		if want == "" {
			want = text
		}
		if got := lastQuickly(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestXPathsShareTheirSteps has a view whose XPaths take many steps only together.
func TestXPathsShareTheirSteps(t *testing.T) {
	root := parseHTML(t, "<ul>"+strings.Repeat("<li>a", 3000)+"</ul>")
	view := pipeline.View{Select: []pipeline.Selector{{XPath: "//li[position() > 5]"}}}
	m, err := NewMarkup(view)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Find(t.Context(), root); err != nil {
		t.Errorf("one: %v", err)
	}
	for range 99 {
		view.Select = append(view.Select, view.Select[0])
	}
	if m, err = NewMarkup(view); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Find(t.Context(), root); err == nil || !strings.Contains(err.Error(), errTooManySteps.Error()) {
		t.Errorf("a hundred: %v", err)
	}
}

// TestXPathEnds: an expression ends after so many steps, or with its context.
func TestXPathEnds(t *testing.T) {
	root := parseHTML(t, strings.Repeat("<div>", 200)+strings.Repeat("<p>a", 5000))
	for _, text := range []string{"//*[//*[//*[. = 'b']]]", "//p[count(preceding::p) > count(following::p)]/..//p", "//*//*//*//*//*"} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := findXPath(ctx, t, root, text); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", text, err)
		}
		cancel()
	}
	e, err := newXPathExpression("//p")
	if err != nil {
		t.Fatal(err)
	}
	w := &stepCounter{ctx: t.Context(), steps: maxSteps}
	err = recoverPanic(func() error {
		e.expr.Select(&xpathNavigator{stepCounter: w, root: root, node: root, attr: -1}).MoveNext()
		return nil
	})
	if !errors.Is(err, errTooManySteps) {
		t.Errorf("got %v", err)
	}
}

// TestMistakesAreNamedOnce has an expression make one mistake many times, and another one.
func TestMistakesAreNamedOnce(t *testing.T) {
	err := Validate(pipeline.View{Select: []pipeline.Selector{{JQ: ".items|tostring" + strings.Repeat(`|"\(.)\(.)"`, 20) + "|env"}}})
	if err == nil || strings.Count(err.Error(), "texts are joined in the last step only") != 1 || strings.Count(err.Error(), "env is not supported") != 1 {
		t.Errorf("got %v", err)
	}
}

// TestJQEnds: an expression ends after so many instructions, or with its context.
func TestJQEnds(t *testing.T) {
	q, err := newJQQuery(".[] | select(. > 1)", false)
	if err != nil {
		t.Fatal(err)
	}
	doc := []any{1, 2, 3}
	if found, err := q.run(&jqBudget{Context: t.Context()}, doc); err != nil || len(found) != 2 {
		t.Errorf("got %v, %v", found, err)
	}
	budget := &jqBudget{Context: t.Context(), instructions: maxInstructions - 10}
	v, ok := q.code.RunWithContext(budget, doc, budget).Next()
	if err, failed := v.(error); !ok || !failed || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.run(&jqBudget{Context: ctx}, doc); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzXPath(f *testing.F) {
	for _, s := range []string{"//a[@href]/text()", "//li[position() mod 2 = 1]", "//p[contains(translate(., 'A', 'a'), 'b')] | //b", "//*[name()='p'][last()]", "id('x')", "reverse(//p)"} {
		f.Add(s)
	}
	root, err := html.Parse(strings.NewReader(sample))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		e, err := newXPathExpression(text)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := e.run(&stepCounter{ctx: ctx}, root); err != nil && ctx.Err() != nil {
			t.Errorf("%q takes long on a page of 200 bytes: %v", text, err)
		}
	})
}

func FuzzJQ(f *testing.F) {
	for _, s := range []string{".a[].b", `.a | "\(.b)" + .c`, "[.. | select(. == 1)]", "to_entries[] | {key}", "del(.a)", ".a[1:] | first", "map(.,.)|add", "limit(3; .[])"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		for _, remove := range []bool{false, true} {
			q, err := newJQQuery(text, remove)
			if err != nil {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err = q.run(&jqBudget{Context: ctx}, map[string]any{"a": []any{map[string]any{"b": "x", "c": nil}, 1, true}, "d": "y"})
			if ctx.Err() != nil {
				t.Errorf("%q takes long on a small document: %v", text, err)
			}
			cancel()
		}
	})
}
