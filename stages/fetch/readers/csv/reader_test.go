package csv

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/test/readertest"
)

func newRaw(body string) pipeline.Raw {
	return pipeline.Raw{ContentType: "text/csv", Body: []byte(body)}
}

func TestContract(t *testing.T) {
	pipelinetest.TestReader(t, New(), pipelinetest.ReaderPages{
		Golden: "testdata", Types: map[string]string{".csv": "text/csv", ".tsv": tsvType},
		Samples: []pipeline.Raw{newRaw("\ufeffa,b"), newRaw("a;b,c\n1,2"), newRaw("a\r\nb,c,d\r\n")},
		Broken:  []pipeline.Raw{newRaw("a,b\n1,\"2"), newRaw("a\n5\" pipe,1"), newRaw("a\n\"b\"c")},
		Large:   func(n int) pipeline.Raw { return newRaw(strings.Repeat(",\n", n/2)) },
	})
}

func TestViews(t *testing.T) {
	const prices = "name,price\nLamp,12.50\nChair,80\nTable,\"1\n2\"\nBed,9\n"
	readertest.Views(t, New(), newRaw(prices), map[[2]string]string{
		{"lines:2-3", ""}:        "<Lamp|12.50|><Chair|80|>",
		{"lines:6", ""}:          "<Bed|9|>",
		{`re:^\d+(\.\d+)?$`, ""}: "<12.50|><80|><9|>",
		{"", "lines:1"}:          "<Lamp|12.50|><Chair|80|><Table|1 2|><Bed|9|>",
	})
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("a,b\n\"c\"\"d\",e\n"), false, "")
	f.Add([]byte("a\tb\r\n\tc"), true, "lines:1")
	f.Fuzz(func(t *testing.T, body []byte, tab bool, sel string) {
		raw := pipeline.Raw{ContentType: "text/csv", Body: body}
		if tab {
			raw.ContentType = tsvType
		}
		pipelinetest.CheckReader(t, New(), raw, pipeline.View{})
		pipelinetest.CheckReader(t, New(), raw, readertest.View(sel, ""))
	})
}

// BenchmarkRead stands beside BenchmarkBare, a pass over the records.
func BenchmarkRead(b *testing.B) {
	body := []byte(strings.Repeat("Lamp number 12,12.50,\"in blue, or green\",true\n", 1000))
	readertest.Bench(b, New(), pipeline.Raw{Body: body}, pipeline.View{})
}

func BenchmarkBare(b *testing.B) {
	body := []byte(strings.Repeat("Lamp number 12,12.50,\"in blue, or green\",true\n", 1000))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := csv.NewReader(bytes.NewReader(body))
		r.ReuseRecord = true
		for _, err := r.Read(); err == nil; {
			_, err = r.Read()
		}
	}
}
