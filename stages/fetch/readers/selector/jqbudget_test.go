package selector

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"github.com/vokter/vokter/pipeline"
)

// decode returns the document text as the reader of JSON decodes it.
func decode(t testing.TB, text string) any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestJQBudgetChangesNoResult: what an expression yields is what gojq yields without the budget.
func TestJQBudgetChangesNoResult(t *testing.T) {
	const text = `{"a": [3, 1, 2, 1], "b": {"x": "1", "y": null, "z": [1, [2, [3]]]}, "s": "a,b,,c", "n": ["u", "v"]}`
	for _, expr := range []string{
		`(.a[], 7) + (1, 10)`, `"\(.a[] + 1)-\(.n[])"`, `[.a[] | {k: ., ("\(.)x"): (1, 2)}]`, `.b | to_entries`,
		`.b | with_entries(select(.value != null))`, `.a | map(., . + 1)`, `.a | sort, unique, reverse, add, min, max, length`,
		`.s | split(",") | join("-")`, `.b.z | flatten, flatten(1)`, `.. | tostring`, `.b | map_values(.)`, `del(.a[0], .b.x)`,
		`.a | group_by(. > 1)`, `.a | sort_by(-.), unique_by(. > 1), max_by(.), min_by(.)`, `.b.x | tonumber + 1`,
		`{a, "b": .s, (.n[]): .a[1:]}`, `.["s"], .a[-1], .a[1:3]`, `.s | contains("a,b"), startswith("a"), ascii_upcase, ltrimstr("a,")`,
		`[limit(2; .a[])], first(.a[]), nth(1; .a[]), last(.a[])`, `.a | any(. > 2), all(. > 0)`, `.a | has(0)`, `.b | has("x"), keys`,
		`[.n[] | {key: ., value: 1}] | from_entries`, `try ("x" | tonumber) catch "no"`, `if .a then "yes \(.s)" else .b end`, `"a" + "b" + .s`,
	} {
		plain, err := gojq.Parse(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		var want []any
		for it := plain.Run(decode(t, text)); ; {
			v, ok := it.Next()
			if !ok {
				break
			}
			if v != nil {
				want = append(want, v)
			}
		}
		q, err := newJQQuery(expr, false)
		if err != nil && strings.Contains(err.Error(), "last step") {
			continue // not supported, with or without the budget
		}
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		got, err := q.run(&jqBudget{Context: t.Context()}, decode(t, text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v; want %v", expr, got, err, want)
		}
	}
}

// TestJQRefusesByArity: what one function does at once must not grow faster than the page.
func TestJQRefusesByArity(t *testing.T) {
	for expr, want := range map[string]string{
		`select(contains(.))`:           "contains needs a text or a number in the expression itself",
		`.x | split("(a?){400}b"; "g")`: "split with 2 arguments is not supported",
		`.a | join(.s)`:                 "join needs a text",
		`.s | split(.t)`:                "split needs a text",
		`.a[.b]`:                        "an index is a number or a text",
		`.a["\(.b)"]`:                   "an index is a number or a text",
		`[.a | .[[1, 2]]]`:              "an index is a number or a text",
		`{$budget}`:                     "$budget is not supported",
		`$budget`:                       "$budget is not supported",
		`add(.a[])`:                     "add with 1 arguments is not supported",
	} {
		if _, err := newJQQuery(expr, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", expr, err)
		}
	}
}

// TestJQEndsOnHostilePages: every expression ends, with a value or a reason, and makes little more than maxMade, on
// pages on which it would take far more time or memory than the page has bytes.
func TestJQEndsOnHostilePages(t *testing.T) {
	ones := "[" + strings.TrimSuffix(strings.Repeat("1,", 300_000), ",") + "]"
	long := strings.Repeat("a", 1_000_000)
	pages := map[string]any{
		"numbers":     decode(t, ones),
		"nested text": decode(t, strings.Repeat("[", 500)+`"`+long+`"`+strings.Repeat("]", 500)),
		"nested rows": decode(t, strings.Repeat("["+strings.Repeat("1,", 2_000), 400)+"1"+strings.Repeat("]", 400)),
		"text":        decode(t, `{"x": "`+long+`", "k": `+ones+`}`),
		"digits":      decode(t, `{"x": `+strings.Repeat("9", 2_000_000)+`, "s": 1}`),
		"text digits": decode(t, `{"s": "`+strings.Repeat("9", 2_000_000)+`"}`),
		"300 levels":  decode(t, strings.Repeat("[", 300)+`"`+long[:500_000]+`"`+strings.Repeat("]", 300)),
	}
	for _, c := range []struct{ page, expression, want string }{
		{"nested text", `..|tostring`, "nested too deeply"},
		{"nested rows", `[..]|sort`, "nested too deeply"},
		{"300 levels", `[..|tostring]|length`, "too much time or memory"},
		{"300 levels", `[..|flatten]|length`, ""},
		{"300 levels", `..|"\(.)"`, "too much time or memory"},
		{"text", `.x|split("")|length`, ""},
		{"text", `.k|join("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")`, "too much time or memory"},
		{"text", `[.x + (.k[]|tostring)]`, "too much time or memory"},
		{"text", `["\(.x)\(.k[])"]`, "too much time or memory"},
		{"text", `[{(.k[]|tostring): (.x|ascii_upcase)}]`, "too much time or memory"},
		{"text", `[{"\(.x)": .k[]}]`, "too much time or memory"},
		{"numbers", `map({a: .})`, "too much time or memory"},
		{"numbers", `map([.])`, ""},
		{"numbers", `del(..)`, ""},
		{"digits", `.x`, "a number of 2000000 characters"},
		{"text digits", `.s|tonumber`, "the text is too long for a number"},
	} {
		j, err := NewJSON(pipeline.View{Select: []pipeline.Selector{{JQ: c.expression}}})
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = j.Find(t.Context(), pages[c.page])
		runtime.ReadMemStats(&after)
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s on %s: got %v", c.expression, c.page, err)
		}
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 512 {
			t.Errorf("%s on %s takes %d MB", c.expression, c.page, made)
		}
	}
}

// FuzzJQHostile demands an end of every expression that is let through, on pages made for it.
func FuzzJQHostile(f *testing.F) {
	for _, s := range []string{`[..|tostring]`, `.x|split("")`, `[.x + (.k[]|tostring)]`, `[..]|sort|unique`, `map([.])|flatten`, `del(..)`, `with_entries(.)`} {
		f.Add(s)
	}
	ones := "[" + strings.TrimSuffix(strings.Repeat("1,", 20_000), ",") + "]"
	docs := []string{
		ones, strings.Repeat("[", 300) + ones + strings.Repeat("]", 300),
		`{"x": "` + strings.Repeat("a", 200_000) + `", "k": ` + ones + `, "a": {"b": ` + ones + `}}`,
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		j, err := NewJSON(pipeline.View{Select: []pipeline.Selector{{JQ: text}}})
		if err != nil {
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, doc := range docs {
				_, _ = j.Find(context.Background(), decode(t, doc))
			}
		}()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Errorf("%q does not end", text)
		}
	})
}
