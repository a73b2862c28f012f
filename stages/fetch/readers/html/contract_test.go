package html

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, New(),
		pipeline.Raw{ContentType: "text/html", Body: []byte(sample), ContentLanguage: "en"},
		pipeline.Raw{ContentType: "application/xhtml+xml", Body: []byte(`<html xml:lang="nl"><script/><p>a<br/>b</p></html>`)},
	)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample), false, "main; h1..h2", ".x")
	f.Add([]byte("<table><tr><td hidden>a<td>b<form><svg><title>x</svg><p>y"), true, "td", "p")
	f.Add([]byte(`<pre>a
b<li><a href="/cdn-cgi/l/email-protection#5c35323a331c39243d312c3039723f3331">[email&#160;protected]`), false, "", "")
	f.Fuzz(func(t *testing.T, body []byte, xml bool, sel, rem string) {
		raw := pipeline.Raw{ContentType: "text/html", Body: body}
		if xml {
			raw.ContentType = "application/xhtml+xml"
		}
		pipelinetest.CheckReader(t, New(), raw, pipeline.View{})
		pipelinetest.CheckReader(t, New(), raw, everything)
		pipelinetest.CheckReader(t, New(), raw, pipeline.View{Select: selectors(sel), Remove: selectors(rem)})
	})
}

// benchPage is a page of some 80 KB with a fifth of it text.
func benchPage() []byte {
	r := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	b.WriteString("<!doctype html><html lang=en><head><title>A page</title><script>" + strings.Repeat("var x = {};", 1000) + "</script></head><body>")
	for b.Len() < 80<<10 {
		fmt.Fprintf(&b, `<div class="card card--wide js-track" id="c%d" data-track="click" style="color:red"><h3 class="card__title">`, r.IntN(1e6))
		for range 3 + r.IntN(5) {
			fmt.Fprintf(&b, "word%d ", r.IntN(5000))
		}
		b.WriteString(`</h3><ul class="list">`)
		for range 3 {
			fmt.Fprintf(&b, `<li class="list__item"><a href="/path/to/%d?ref=list" class="link">item %d</a></li>`, r.IntN(1e6), r.IntN(5000))
		}
		b.WriteString("</ul><p>")
		for range 20 {
			fmt.Fprintf(&b, "<b>text</b> and more%d ", r.IntN(5000))
		}
		b.WriteString("</p></div>\n")
	}
	return []byte(b.String())
}

func BenchmarkRead(b *testing.B) {
	raw := pipeline.Raw{ContentType: "text/html", Body: benchPage()}
	for name, view := range map[string]pipeline.View{"scanned": {}, "parsed": {Select: selectors("body"), Remove: selectors(".list")}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := New().Read(b.Context(), raw, view); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
