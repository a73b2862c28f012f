package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFaultsAreTested: every row of the tables of faults names tests, and those exist.
func TestFaultsAreTested(t *testing.T) {
	root := filepath.Join("..", "..")
	table, err := os.ReadFile(filepath.Join(root, "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		tests.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	suite, err := os.ReadFile(filepath.Join(root, "pipeline", "pipelinetest", "transport.go"))
	if err != nil {
		t.Fatal(err)
	}
	rows, name := 0, regexp.MustCompile(`\w+`)
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "---") || cells[1] == " fault " {
			continue
		}
		rows++
		names := name.FindAllString(cells[4], -1)
		if len(names) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, n := range names {
			if !strings.Contains(tests.String(), "func "+n+"(t ") && !strings.Contains(string(suite), `"`+n) {
				t.Errorf("there is no test %s", n)
			}
		}
	}
	if rows < 25 {
		t.Errorf("%d rows were found", rows)
	}
}
