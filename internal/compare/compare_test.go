package compare

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
)

// versions are two versions of a page: edited, merged, split, moved, removed and added blocks, cells,
// wide letters, a word that is longer than a line, and characters that steer terminals.
var versions = [2]string{
	`Shop of Hera
A lantern of bronze, made in the workshop by the harbour. Price: 10 drachmae per piece.
Opened daily from dawn to dusk.
Ring the bell at the gate of the garden.
Only for members.
灯籠は銅でできています。
` + "\x02Tue\nclosed\n\x03" + `Impressum
One
Two
Three
Four
Five
See https://example.com/a/very/long/address/that/no/line/of/this/width/can/hold today.
Last words of the page`,
	`Shop of Hera
A lantern of bronze, made in the workshop by the harbour. Price: 12.50 drachmae per dozen, not less.
Opened daily from dawn to dusk. Ring the bell at the gate of the garden.
灯籠は銀でできています。
` + "\x02Tue\nopen\n\x03" + `One
Two
Three
Four
Five
See https://example.com/a/very/long/address/that/no/line/of/this/width/can/hold tomorrow.
Last words of the page
Impressum
New: ` + "lamps\x1b[2J\u202Eof\tsilver" + `, sold by the dozen.`,
}

var update = flag.Bool("update", false, "write the golden files of TestGolden")

func TestGolden(t *testing.T) {
	all, _ := diff.Rows(text.Analyze(versions[0]), text.Analyze(versions[1]))
	rows := diff.Around(all, 1)
	for name, got := range map[string]string{
		"unified":            Unified(rows, Style{}),
		"unified-48":         Unified(rows, Style{Columns: 48}),
		"unified-color":      Unified(rows, Style{Color: true, Columns: 60}),
		"side-by-side":       SideBySide(rows, Style{}),
		"side-by-side-color": SideBySide(rows, Style{Color: true, Columns: 72}),
		"all":                Unified(all, Style{}),
	} {
		file := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestWidth checks that no line is wider than the terminal, that every style ends with its line, and
// that nothing of a page can steer the terminal.
func TestWidth(t *testing.T) {
	rows, _ := diff.Rows(text.Analyze(versions[0]), text.Analyze(versions[1]))
	for columns := 43; columns < 120; columns++ {
		for _, color := range []bool{false, true} {
			s := Style{Color: color, Columns: columns}
			for line := range strings.Lines(SideBySide(rows, s) + Unified(rows, s)) {
				line = strings.TrimSuffix(line, "\n")
				if n := printedWidth(line); n > columns {
					t.Errorf("%d columns: a line has %d: %q", columns, n, line)
				}
				if strings.Count(line, styleReset)*2 != strings.Count(line, escapePrefix) {
					t.Errorf("a style does not end: %q", line)
				}
				if strings.ContainsAny(line, "\x02\x03\t\u202E") || strings.Contains(line, "\x1b[2J") {
					t.Errorf("a control character is printed: %q", line)
				}
			}
		}
	}
}

func TestEmptyRows(t *testing.T) {
	if got := Unified(nil, Style{}) + SideBySide(nil, Style{}); got != "" {
		t.Errorf("got %q", got)
	}
	row := inspect.Row{Kind: inspect.RowAdded, New: []inspect.Line{{Segments: []inspect.Segment{{Text: "\x02", Event: pipeline.Added}}}}}
	if got := Unified([]inspect.Row{row}, Style{}); got != "+\n" {
		t.Errorf("a block without anything to print: %q", got)
	}
}
