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

// A record whose quotes are out of place costs no other, and is said.
func TestOddQuotes(t *testing.T) {
	for _, tc := range []struct{ body, want, passed string }{
		{"a,b\n1,\"2", "<a|b|><1|\"2|>", "a record with quotes out of place was read line by line, in line 2"},
		{"Disk 5\" wide,small,3\nx,y,z\n", "<Disk 5\" wide|small|3|><x|y|z|>", "a record with quotes out of place was read line by line, in line 1"},
		{"a\n\"Lamp\" of Hera,\"1,5\",2\nb", "<a|><Lamp of Hera|1,5|2|><b|>", "a record with quotes out of place was read line by line, in line 2"},
		{"a;b\r\n\r\n\"say \"\"hi\"\" \"you\" now\";2\r\n\"c\nd\";3\r\n", "<a|b|><say \"hi\" you\" now\"|2|><c d|3|>", "a record with quotes out of place was read line by line, in line 3"},
		{"\"never closed,1\nx,2\ny,\"3\"4\n", "<\"never closed|1|><x|2|><y|34|>", "2 records with quotes out of place were read line by line, the first in line 1"},
		{"a,b\r1,2\r3,4", "<a|b|><1|2|><3|4|>", ""},
		{"a,b\r\n1,2\r3,4\n5,6\n", "<a|b|><1|2|><3|4|><5|6|>", ""},
		{"\"a\"\"b\",\"c\nd\"\n", "<a\"b|c d|>", ""},
		{"a, \"b, c\"\n\"d\",  \"e\nf, \"\"g\"\"\"\n", "<a|b, c|><d|e f, \"g\"|>", ""},
		{"a; b\n 5\" ; \"c; d\" ;e\n", "<a|b|><5\"|c; d|e|>", "a record with quotes out of place was read line by line, in line 2"},
		{"a, 5\" pipe, \"b\n1,2\n", "<a|5\" pipe|\"b|><1|2|>", "a record with quotes out of place was read line by line, in line 1"},
		{"a\tb\tc\n\t\"d\te\"\tf\n", "<a|b|c|><d e|f|>", ""},
	} {
		got, err := New().Read(t.Context(), newRaw(tc.body), pipeline.View{})
		if text := readertest.Marked(got.Content); err != nil || text != tc.want {
			t.Errorf("%q: got %q, %v, want %q", tc.body, text, err, tc.want)
		}
		if passed := strings.Join(got.Passed, "; "); passed != tc.passed {
			t.Errorf("%q: passed over: %q, want %q", tc.body, passed, tc.passed)
		}
	}
	readertest.Views(t, New(), newRaw("a\n5\" pipe,1\nb,2\n\"c\nd\",3\ne,4\n"), map[[2]string]string{
		{"lines:2-3", ""}: "<5\" pipe|1|><b|2|>",
		{"lines:6", ""}:   "<e|4|>",
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
