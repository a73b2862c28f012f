package inspect_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestTallyOfManyPages bounds the memory of a page that is checked: there may be a million.
func TestTallyOfManyPages(t *testing.T) {
	const pages, limit = 1 << 14, 300
	tally, names := inspect.NewTally(), make([]string, pages)
	for i := range names {
		names[i] = fmt.Sprint("https://example.com/", i)
	}
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	for _, name := range names {
		for _, kind := range []string{flow.KindCheck, flow.KindVersion, flow.KindUnchanged} {
			tally.Note(flow.Observation{Kind: kind, Page: name, Document: "0123456789ABCDEFGHIJKLMNOP"})
		}
	}
	if each := (int64(live()) - int64(before)) / pages; each > limit {
		t.Errorf("a page takes %d bytes, want at most %d", each, limit)
	}
	if got := len(tally.Summary().Documents); got != pages {
		t.Errorf("%d documents, want %d", got, pages)
	}
	runtime.KeepAlive(names)
}
