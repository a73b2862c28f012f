package flow

import (
	"slices"
	"testing"
)

func TestShownEdits(t *testing.T) {
	edits := []Span{{0, 0}, {1, 2}, {4, 4}, {5, 6}, {9, 10}, {14, 15}, {15, 15}}
	if got, want := ShownEdits(edits), []Span{{1, 10}, {14, 15}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if edits[1] != (Span{1, 2}) {
		t.Errorf("the edits themselves became %v", edits)
	}
}
