package vokter

import (
	"fmt"
	"slices"
	"testing"
)

// TestChangeSinks: a page gets its own sinks and those of all pages, each once, by the present
// configuration.
func TestChangeSinks(t *testing.T) {
	var r Router
	r.liveConfig.Store(&Config{Changes: []string{"b", "a"}, Documents: []Document{
		{URL: "https://example.com/none", Keep: true},
		{URL: "https://EXAMPLE.com:443/own", Keep: true, Changes: []string{"c", "b"}},
		{URL: "https://example.com/own", Keep: true, Changes: []string{"d"}},
	}})
	want := func(page string, sinks ...string) {
		t.Helper()
		if got := r.changeSinks(page); !slices.Equal(got, sinks) {
			t.Errorf("%s: got %q, want %q", page, got, sinks)
		}
	}
	want("https://example.com/own", "a", "b", "c")
	want("https://example.com/none", "b", "a")
	want("https://example.com/other", "b", "a")
	r.liveConfig.Store(&Config{Documents: []Document{{URL: "https://example.com/none", Keep: true, Changes: []string{"e"}}}})
	want("https://example.com/own")
	want("https://example.com/none", "e")
}

// TestChangeSinksOfManyDocuments: what a change costs does not grow with the documents of the
// configuration.
func TestChangeSinksOfManyDocuments(t *testing.T) {
	c := new(Config)
	for i := range 1000 {
		c.Documents = append(c.Documents, Document{URL: fmt.Sprintf("https://example.com/%d", i), Keep: true, Changes: []string{"s"}})
	}
	var r Router
	r.liveConfig.Store(c)
	if n := testing.AllocsPerRun(10, func() { r.changeSinks("https://example.com/999") }); n > 0 {
		t.Errorf("looking up the sinks of a page makes %v allocations", n)
	}
}
