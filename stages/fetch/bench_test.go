package fetch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// benchBody is an HTML page of about 80 KB, a fifth of which is text.
func benchBody() string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("<!doctype html><html lang=en><head><title>A page</title></head><body>")
	for b.Len() < 80<<10 {
		fmt.Fprintf(&b, `<div class="card card--wide" id="c%d" data-track="click"><h3 class="card__title">item %d</h3><ul class="list">`, r.IntN(1e6), r.IntN(5000))
		for range 3 {
			fmt.Fprintf(&b, `<li class="list__item"><a href="/path/to/%d?ref=list" class="link">item %d</a></li>`, r.IntN(1e6), r.IntN(5000))
		}
		b.WriteString("</ul><p>")
		for range 20 {
			fmt.Fprintf(&b, "word%d and ", r.IntN(5000))
		}
		b.WriteString("</p></div>\n")
	}
	return b.String()
}

// BenchmarkRead is what a page with a new text costs, from its bytes to the messages.
func BenchmarkRead(b *testing.B) {
	p, req := newPage(benchBody()), newRequest("http://a.example/", 1)
	b.SetBytes(int64(len(p.Body)))
	b.ReportAllocs()
	for b.Loop() {
		for _, o := range Read(b.Context(), req, p, readers) {
			if m := o.Message(); o.Kind != flow.OutcomeRead || len(m.Body) == 0 {
				b.Fatalf("got %+v", o)
			}
		}
	}
}

// BenchmarkReadUnchanged is what a page costs whose bytes changed but whose text did not.
func BenchmarkReadUnchanged(b *testing.B) {
	p, req := newPage(benchBody()), newRequest("http://a.example/", 1)
	req.Documents[0].TextHash = Read(b.Context(), req, p, readers)[0].TextHash
	b.SetBytes(int64(len(p.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if o := Read(b.Context(), req, p, readers)[0]; o.Kind != flow.OutcomeUnchanged {
			b.Fatalf("got %+v", o)
		}
	}
}
