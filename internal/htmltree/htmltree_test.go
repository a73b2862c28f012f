package htmltree

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestParse: a page of 13 KB in which each paragraph would open 400 elements anew is refused, as is
// one that would go on after its context has ended.
func TestParse(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("<p>")
	for i := range 400 {
		fmt.Fprintf(&bomb, "<font a=%d>", i)
	}
	bomb.WriteString(strings.Repeat("<p>x", 2000))
	if _, _, err := Parse(t.Context(), []byte(bomb.String())); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want %v", err, ErrTooLarge)
	}
	if root, _, err := Parse(t.Context(), []byte("<p>x<p>y")); err != nil || root == nil {
		t.Errorf("a small page: got %v, %v", root, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Parse(ctx, []byte(strings.Repeat("<p>x", tokensPerCheck))); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: got %v", err)
	}
}
