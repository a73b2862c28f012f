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

// blankPatterns is ignore with patterns that are not compiled.
func blankPatterns(ctx context.Context, content string, patterns []string) (string, error) {
	res, err := compileIgnore(patterns)
	if err != nil {
		return "", err
	}
	blanked, _, err := blankIgnored(ctx, content, nil, res)
	return blanked, err
}

// TestIgnoreEnds: patterns that look at all that follows for each character end with the context.
func TestIgnoreEnds(t *testing.T) {
	content := strings.Repeat("a", pipeline.MaxText)
	for _, pattern := range []string{`a*b|a`, `(?:a?){490}z`, `(a{1,30}){1,16}z`} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if _, err := blankPatterns(ctx, content, []string{pattern}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v", pattern, err)
		}
		cancel()
	}
}

// TestLongBlocks: a block is cut between words, and characters stay whole.
func TestLongBlocks(t *testing.T) {
	long := strings.Repeat("word 12 ", (32<<10)/4)
	got, err := blankPatterns(t.Context(), long+"\n", []string{`\b\d+\b`})
	if want := strings.TrimSpace(strings.Repeat("word ", (32<<10)/4)) + "\n"; err != nil || got != want {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
	}
	if got, err := blankPatterns(t.Context(), strings.Repeat("€", (32<<10)), []string{"x"}); err != nil || !utf8.ValidString(got) || got != strings.Repeat("€", (32<<10))+"\n" {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// A pattern that a command brought, and that no lint has seen, is refused when it is used.
func TestIgnoreRefuses(t *testing.T) {
	_, err := blankPatterns(t.Context(), "a", []string{`(a{1,30}){1,30}z`})
	e, ok := errors.AsType[*pipeline.FetchError](err)
	if !ok || e.Class != pipeline.FailUnreadable || !strings.Contains(e.Reason, "at most 1000") {
		t.Errorf("got %v", err)
	}
}
