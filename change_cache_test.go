package vokter

import (
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

func TestMadeChanges(t *testing.T) {
	c := &flow.Change{ID: "c"}
	m, err := c.Message()
	if err != nil {
		t.Fatal(err)
	}
	h := newChangeCache()
	if got := h.take(m); got != nil {
		t.Errorf("got %v before it was made", got)
	}
	h.add(c, m, 1000)
	if got := h.take(m); got != c {
		t.Errorf("got %p, want the change as it was made, %p", got, c)
	}
	if got := h.take(m); got != nil {
		t.Errorf("got %v, want each change once", got)
	}
	other := m
	other.Body = append([]byte(" "), m.Body...)
	h.add(c, m, 1000)
	if got := h.take(other); got != nil {
		t.Errorf("got %v for a message with another body", got)
	}
	h.add(c, m, changeCacheBytes)
	if got := h.take(m); got != nil {
		t.Errorf("got %v, want that a large change is not kept", got)
	}
}
