package json

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/readertest"
)

func newRaw(body string) pipeline.Raw {
	return pipeline.Raw{ContentType: "application/json", Body: []byte(body)}
}

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, New(), pipelinetest.ReaderPages{
		Samples: []pipeline.Raw{newRaw(`"alone"`), newRaw("\ufeff[1,2]"), {ContentType: "application/json-seq", Body: []byte("\x1e1\n\x1e{\"a\":2}\n")}},
		Golden:  "testdata", Types: map[string]string{".json": "application/json", ".ndjson": "application/x-ndjson"},
		Broken: []pipeline.Raw{
			newRaw(""), newRaw(`[1,2`), newRaw("{\"a\": 1,\n \"b\" 2}"), newRaw("{\"a\": 1}\nx"), newRaw("{}{}"), newRaw(`{"a": tru}`), newRaw(`{"a": 01}`),
			newRaw(`{"a",}`), newRaw(`{a: 1}`), newRaw("<html>"), newRaw(`{"a": 1,50}`), newRaw("{\"a\": 1}\n{\"b\""), newRaw(`[NaNs, 1]`), newRaw(`[1NaN]`), newRaw(`[1..]`),
			{ContentType: "application/x-ndjson", Body: []byte("no\nline is one\n")},
		},
		Large: func(n int) pipeline.Raw { return newRaw("[" + strings.Repeat("{},", n/3) + "0]") },
		Deep:  func(n int) pipeline.Raw { return newRaw(strings.Repeat("[", n) + strings.Repeat("]", n)) },
	})
}

// TestOdd: what is no JSON costs nothing else, and is said.
func TestOdd(t *testing.T) {
	const odd = "what is no JSON, such as a comment or a comma too many, was passed over, in line "
	const number = "a number that JSON does not have, such as NaN, was read as text, in line "
	for _, tc := range []struct{ contentType, body, want, passed string }{
		{"application/json", "{\n// of lamps\n\"a\": \"b\", /* c */ \"d\": [1, 2,],}", "a: b|d|1|2|", odd + "2"},
		{"application/json", "{\"a\": \"b\tc\nd\", \"e\": \"\\'f\"}", "a: b c|d|e: 'f|", odd + "1"},
		{"application/json", ")]}',\n{\"a\": 1}", "a: 1|", odd + "1"},
		{"text/json; charset=utf-8", "{\"a\": 1}\n\n{\"a\": 2}\n", "<a: 1|><a: 2|>", "more documents follow the first, and were read, in line 3"},
		{"application/x-ndjson", "{\"a\": 1}\nno\n{\"a\": 2}\n{\"a\": 3", "<a: 1|><a: 2|>", "2 lines that are no JSON were passed over, the first in line 2"},
		{"application/json", "{\"a\": NaN,\n\"b\": [-Infinity, Infinity, 1], \"NaN\": \"NaN\"}", "a: NaN|b|-Infinity|Infinity|1|NaN: NaN|", number + "1"},
		{"application/json", "[1,\n-Infinity]", "1|-Infinity|", number + "2"},
		{"application/json", "NaN", "NaN|", number + "1"},
		{"application/json", "{\"a\": 20., \"b\": [3.]}", "a: 20|b|3|", odd + "1"},
		{"application/json", "var page = {\"a\": 1};", "a: 1|", odd + "1"},
		{"application/x-ndjson", "{\"a\": 1}\n{\"a\": NaN}\nno\n", "<a: 1|><a: NaN|>", number + "2; a line that is no JSON was passed over, in line 3"},
		{"application/x-ndjson", "{\"a\":\n1}\n{\"a\": 2}\n", "<a: 1|><a: 2|>", ""},
	} {
		text, err := New().Read(t.Context(), pipeline.Raw{ContentType: tc.contentType, Body: []byte(tc.body)}, pipeline.View{})
		if got, passed := readertest.Marked(text.Content), strings.Join(text.Passed, "; "); err != nil || got != tc.want || passed != tc.passed {
			t.Errorf("%q: got %q, passed over %q, %v, want %q, %q", tc.body, got, passed, err, tc.want, tc.passed)
		}
	}
	readertest.Views(t, New(), newRaw("{\"a\": [1, 2,]}"), map[[2]string]string{{"/a/1", ""}: "2|"})
}

const offers = `{"title": "Offers", "items": [{"name": "Lamp", "price": 12.50, "tags": ["new", "blue"]},
	{"name": "Chair", "price": 80, "a/b": {"m~n": 1}}], "void": null, "at": "10:00"}`

func TestViews(t *testing.T) {
	readertest.Views(t, New(), newRaw(offers), map[[2]string]string{
		{"jq:.items[].name", ""}:            "Lamp|Chair|",
		{"jq:.items[0]", ""}:                "name: Lamp|price: 12.50|tags|new|blue|",
		{"jq:.items[] | {name, price}", ""}: "<name: Lamp|price: 12.50|><name: Chair|price: 80|>",
		{`jq:.items[] | select(.price < 50) | "\(.name) costs \(.price)"`, ""}: "Lamp costs 12.50|",
		{`jq:[.items[].name] | join(", ")`, ""}:                                "Lamp, Chair|",
		{"jq:.items | map(.price) | add", ""}:                                  "92.5|",
		{"/items/1/name", ""}:                                                  "Chair|",
		{"/items/1/a~1b/m~0n", ""}:                                             "1|",
		{"/items/0/tags", ""}:                                                  "new|blue|",
		{"jq:.title; /at", ""}:                                                 "Offers|10:00|",
		{"", "/items; jq:.at, .void"}:                                          "title: Offers|",
		{"", "jq:.items[].tags, .items[].price; /items/1; /void; /at"}:         "items|<name: Lamp|>title: Offers|",
		{"/items", "/items/0"}:                                                 "<a/b|m~n: 1|name: Chair|price: 80|>",
		{"", "jq:.nothing[].here; /no/where"}:                                  "at: 10:00|items|<name: Lamp|price: 12.50|tags|new|blue|><a/b|m~n: 1|name: Chair|price: 80|>title: Offers|void: null|",
	})
}

func TestSelectorGone(t *testing.T) {
	readertest.Gone(t, New(), newRaw(offers), map[string]string{
		"jq:.nothing":     `nothing on the page matches "jq:.nothing"`,
		"jq:.nothing[].a": `nothing on the page matches "jq:.nothing[].a" (cannot iterate over: null)`,
		"jq:.void":        `nothing on the page matches "jq:.void"`,
		"/items/2":        `nothing on the page matches "/items/2"`,
		"/items/00":       `nothing on the page matches "/items/00"`,
		"main":            `nothing on the page matches "main": it is JSON, which such a selector is not for`,
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(offers), false, "jq:.items[].name", "/items/0/tags/0")
	f.Add([]byte(`[[1,"a"],{"b":[null]}]`), false, "/0/1", "jq:.. | select(. == 1)")
	f.Add([]byte("1\n{\"a\":[]}\n"), true, "jq:.[1] | keys", "")
	f.Fuzz(func(t *testing.T, body []byte, sequence bool, sel, rem string) {
		raw := pipeline.Raw{ContentType: "application/json", Body: body}
		if sequence {
			raw.ContentType = sequenceTypes[0]
		}
		first := pipelinetest.CheckReader(t, New(), raw, pipeline.View{})
		if got, err := New().Read(t.Context(), raw, pipeline.View{}); err == nil && !sequence && len(got.Passed) == 0 && !json.Valid(bytes.TrimPrefix(body, []byte("\ufeff"))) {
			t.Errorf("%q is no JSON, but gave %q and does not say so", body, first.Content)
		}
		pipelinetest.CheckReader(t, New(), raw, readertest.View(sel, rem))
	})
}

func benchPage() []byte {
	var b bytes.Buffer
	b.WriteString(`{"items": [`)
	for i := range 500 {
		fmt.Fprintf(&b, `{"id": %d, "name": "Lamp number %d, with a shade", "price": %d.50, "in_stock": true, "tags": ["new", "blue"]},`, i, i, i)
	}
	b.WriteString(`{}]}`)
	return b.Bytes()
}

// BenchmarkRead stands beside BenchmarkBare, a pass over the tokens.
func BenchmarkRead(b *testing.B) {
	body := string(benchPage())
	for name, v := range map[string]pipeline.View{"all": {}, "jq": readertest.View("jq:.items[].name", "")} {
		b.Run(name, func(b *testing.B) { readertest.Bench(b, New(), newRaw(body), v) })
	}
}

func TestItems(t *testing.T) {
	const offers = `{"page": 1, "offers": [{"name": "Lamp", "id": 7}, {"name": "Chair", "url": "/chair"}, {"name": "Shelf", "id": null}]}`
	all := []string{"7 \x02id: 7\nname: Lamp\n\x03", "/chair \x02name: Chair\nurl: /chair\n\x03", " \x02id: null\nname: Shelf\n\x03"}
	for _, c := range []struct {
		body, sel string
		want      []string
	}{
		{offers, "/offers", all},
		{offers, "jq:.offers", all},
		{offers, "jq:.offers[]", all},
		{offers, "jq:.offers[0]", all[:1]},
		{offers, "jq:.offers[].name", []string{" \x02Lamp\n\x03", " \x02Chair\n\x03", " \x02Shelf\n\x03"}},
		{`{"offers": []}`, "/offers", []string{}},
		{` [{"id": "a"}, 5]`, "", []string{"a \x02id: a\n\x03", " \x025\n\x03"}},
		{offers, "", nil},
		{`{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "a", "tags": ["b"], "title": "T"}]}`, "", []string{"a \x02title: T\n\x03"}},
	} {
		v := readertest.View(c.sel, "")
		v.Items = true
		text, err := New().Read(t.Context(), newRaw(c.body), v)
		var got []string
		if text.Items != nil {
			got = []string{}
		}
		for _, i := range text.Items {
			got = append(got, i.ID+" "+text.Content[i.Start:i.End])
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q of %s: got %q, %v, want %q", c.sel, c.body, got, err, c.want)
		}
	}
}
