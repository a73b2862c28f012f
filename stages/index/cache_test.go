package index

import (
	"fmt"
	"reflect"
	"testing"
)

func TestCacheBelievesWhatIsStored(t *testing.T) {
	var c cache
	page := func(check uint64) (Page, []byte) {
		p := Page{URL: "http://a.example/", Incarnation: "i", Check: check}
		b, err := encode(p)
		if err != nil {
			t.Fatal(err)
		}
		return p, b
	}
	first, firstStored := page(1)
	second, secondStored := page(2)
	c.put(first.URL, firstStored, first)
	c.put(second.URL, secondStored, second) // by a transaction that was dropped
	for _, want := range []struct {
		page   Page
		stored []byte
	}{{first, firstStored}, {second, secondStored}, {first, append([]byte(nil), firstStored...)}} {
		if got, err := c.page(first.URL, want.stored); err != nil || !reflect.DeepEqual(got, want.page) {
			t.Errorf("got %+v, %v; want %+v", got, err, want.page)
		}
	}
	if _, err := c.page(first.URL, []byte{format, 0xff}); err == nil {
		t.Error("a damaged value is a page")
	}
	for i := range cached + 10 {
		c.put(fmt.Sprint(i), firstStored, first)
	}
	if len(c.pages) != cached {
		t.Errorf("%d pages are remembered, want %d", len(c.pages), cached)
	}
}
