package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestPieces reads each file twice: whole, and in the smallest pieces. Both must give the same configuration
// and the same mistakes at the same positions.
func TestPieces(t *testing.T) {
	const head = "retention: {versions: 3} # of each\nsubscriptions: # all of them\n"
	item := func(n int) string {
		return fmt.Sprintf("  - url: https://example.com/%d\n    client: c\n    keywords: [a, b]\n    sinks: [out]\n", n)
	}
	const tail = "# at last\nsinks:\n  out: {fake: {url: x}}\ndocuments:\n  - {url: https://example.com/0, keep: true, tags: [x]}\n"
	items := item(0) + "\n# a comment\n" + item(1) + item(2) + item(3)
	for name, c := range map[string]struct {
		text string
		want int // pieces besides the head and the tail
	}{
		"all":               {head + items + tail, 3},
		"the list is last":  {tail + head + items, 3},
		"no end of a line":  {tail + head + strings.TrimSuffix(items, "\n"), 3},
		"Windows":           {strings.ReplaceAll(head+items+tail, "\n", "\r\n"), 3},
		"not indented":      {head + strings.ReplaceAll(items, "\n  ", "\n")[2:] + tail, 3},
		"a mistake":         {head + item(0) + item(1) + strings.Replace(item(2), "client", "clint", 1) + item(3) + tail, 3},
		"twice":             {head + item(0) + item(1) + item(0) + tail, 2},
		"a key twice":       {head + items + tail + "retention: {versions: 4}\n", 3},
		"two lists":         {head + items + tail + head + items, 3},
		"not YAML":          {head + item(0) + item(1) + "  - {url: [\n" + item(3) + tail, 3},
		"in a text":         {head + item(0) + item(1) + strings.Replace(item(2), "[a, b]", "[\"a\n  - b\"]", 1) + item(3) + tail, 4},
		"in another text":   {head + item(0) + item(1) + strings.Replace(item(2), "[a, b]", "\n      - |\n        a\n        - b", 1) + item(3) + tail, 3},
		"an anchor":         {head + strings.Replace(item(0), "[a, b]", "&words [a, b]", 1) + item(1) + strings.Replace(item(2), "[a, b]", "*words", 1) + tail, 2},
		"an anchor ahead":   {head + item(0) + strings.Replace(item(1), "[a, b]", "*words", 1) + strings.Replace(item(2), "[a, b]", "&words [a, b]", 1) + tail, 2},
		"an anchor, again":  {head + strings.Replace(item(0), "[a, b]", "&words [a, b]", 1) + strings.Replace(item(1), "[a, b]", "*words", 1) + strings.Replace(item(2), "[a, b]", "&words [c]", 1) + tail, 2},
		"two documents":     {head + items + "---\n" + tail, 0},
		"two, later":        {head + items + tail + "---\nretention: {versions: 4}\n", 3},
		"the end":           {tail + head + items + "...\n", 0},
		"in one line":       {strings.TrimSuffix(head, " # all of them\n") + " [{url: https://example.com/1, sinks: [out]}]\n" + tail, 0},
		"one":               {head + item(0) + tail, 0},
		"none":              {head + tail, 0},
		"no list":           {head + "  url: https://example.com/\n" + tail, 0},
		"a warning":         {head + strings.Replace(items, "client: c", "interval: 1s", 1) + tail, 3},
		"of another list":   {"sources:\n  x:\n    subscriptions:\n      - a\n      - b\n" + head + items + tail, 3},
		"a tab":             {head + item(0) + item(1) + "\t- x\n" + item(3) + tail, 1},
		"a word in a list":  {head + item(0) + item(1) + "  - word # more\n" + item(3) + tail, 3},
		"no mapping behind": {head + items + "word\n", 3},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got, _ := splitPieces([]byte(c.text), 1); len(got) != c.want {
				t.Errorf("%d pieces, want %d", len(got), c.want)
			}
			o := fakeOptions(testEnv)
			whole, wantErr := parseInPieces(len(c.text), "f", []byte(c.text), o)
			pieces, err := parseInPieces(1, "f", []byte(c.text), o)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("in pieces: %v\nas a whole: %v", err, wantErr)
			}
			if err != nil {
				return
			}
			if !reflect.DeepEqual(pieces.Router.Subscriptions, whole.Router.Subscriptions) || !reflect.DeepEqual(pieces.Router.Documents, whole.Router.Documents) {
				t.Errorf("in pieces: %+v\nas a whole: %+v", pieces.Router, whole.Router)
			}
			if fmt.Sprint(pieces.Warnings) != fmt.Sprint(whole.Warnings) || pieces.Router.Retention.Versions != 3 || len(pieces.Router.Sinks) != 1 {
				t.Errorf("in pieces: %+v\nas a whole: %+v", pieces, whole)
			}
		})
	}
}
