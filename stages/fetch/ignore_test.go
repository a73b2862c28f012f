package fetch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// TestIgnoreEnds: patterns that look at all that follows for each character end with the context.
func TestIgnoreEnds(t *testing.T) {
	content := strings.Repeat("a", pipeline.MaxText)
	for _, pattern := range []string{`a*b|a`, `(?:a?){490}z`, `(a{1,30}){1,16}z`} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := Ignored(ctx, content, pattern); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", pattern, err)
		}
		cancel()
	}
}

// TestLongBlocks: a block is cut between words, and characters stay whole.
func TestLongBlocks(t *testing.T) {
	long := strings.Repeat("word 12 ", (32<<10)/4)
	got, err := Ignored(t.Context(), long+"\n", `\b\d+\b`)
	if want := strings.TrimSpace(strings.Repeat("word ", (32<<10)/4)) + "\n"; err != nil || got != want {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
	}
	if got, err := Ignored(t.Context(), strings.Repeat("€", (32<<10)), "x"); err != nil || !utf8.ValidString(got) || got != strings.Repeat("€", (32<<10))+"\n" {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// A pattern that a command brought, and that no lint has seen, is refused when it is used.
func TestIgnoreRefuses(t *testing.T) {
	_, err := Ignored(t.Context(), "a", `(a{1,30}){1,30}z`)
	e, ok := errors.AsType[*pipeline.FetchError](err)
	if !ok || e.Class != pipeline.FailUnreadable || !strings.Contains(e.Reason, "at most 1000") {
		t.Errorf("got %v", err)
	}
}
