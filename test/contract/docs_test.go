package contract

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

var (
	docLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	docHeading = regexp.MustCompile("(?m)^#+ +(.+)$")
	docCode    = regexp.MustCompile("`[^`\n]*\\]\\([^`\n]*`|`([^`\n]*)`") // the text of code, unless it looks like a link
	docFence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// readDoc returns a file without its examples of code.
func readDoc(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return docCode.ReplaceAllString(docFence.ReplaceAllString(string(b), ""), "$1")
}

// anchors returns the anchors of the headings of a file, as GitHub makes them.
func anchors(doc string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range docHeading.FindAllStringSubmatch(doc, -1) {
		title := strings.ToLower(regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1"))
		title = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(title, "")
		all[strings.ReplaceAll(strings.TrimSpace(title), " ", "-")] = true
	}
	return all
}

// TestDocumentationIsLinked: every file of the documentation can be reached from its table of
// contents, and no link is dead.
func TestDocumentationIsLinked(t *testing.T) {
	t.Chdir("../..")
	seen := map[string]bool{}
	todo := []string{"docs/README.md", "README.md"}
	for len(todo) > 0 {
		path := todo[0]
		if todo = todo[1:]; seen[path] {
			continue
		}
		seen[path] = true
		info, err := os.Stat(path)
		if err != nil {
			t.Errorf("%s is linked and missing", path)
			continue
		}
		if info.IsDir() {
			inside, err := filepath.Glob(filepath.Join(path, "*.md"))
			if err != nil {
				t.Fatal(err)
			}
			todo = append(todo, inside...)
			continue
		}
		if filepath.Ext(path) != ".md" {
			continue
		}
		doc := readDoc(t, path)
		for _, m := range docLink.FindAllStringSubmatch(doc, -1) {
			u, err := url.Parse(m[1])
			if err != nil || u.Scheme != "" || strings.HasPrefix(m[1], "//") {
				continue
			}
			target := path
			if u.Path != "" {
				target = filepath.Join(filepath.Dir(path), u.Path)
				todo = append(todo, target)
			}
			if u.Fragment == "" || filepath.Ext(target) != ".md" {
				continue
			}
			if _, err := os.Stat(target); err == nil && !anchors(readDoc(t, target))[u.Fragment] {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
	}
	for _, pattern := range []string{"docs/*.md", "docs/sinks/*.md", "docs/adr/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range files {
			if !seen[path] {
				t.Errorf("%s cannot be reached from docs/README.md", path)
			}
		}
	}
}

// TestReadmeProgram: the program of the README is the first example, which is compiled. Only
// the line breaks differ.
func TestReadmeProgram(t *testing.T) {
	t.Chdir("../..")
	words := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(b)), " ")
	}
	_, program, ok := strings.Cut(words("README.md"), "```go ")
	program, _, closed := strings.Cut(program, "```")
	if !ok || !closed {
		t.Fatal("README.md shows no program")
	}
	if !strings.Contains(words("example_test.go"), program) {
		t.Error("the program of README.md is not in example_test.go")
	}
}

// TestTheTutorialShowsRealBodies: the JSON in docs/consume.md is as the schemas say, and
// every type that it names is public.
func TestTheTutorialShowsRealBodies(t *testing.T) {
	text, err := os.ReadFile("../../docs/consume.md")
	if err != nil {
		t.Fatal(err)
	}
	all := schemas(t)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	want := []string{flow.TypeChange, flow.TypeCurrent, flow.TypeHealth}
	if len(blocks) != len(want) {
		t.Fatalf("%d blocks of JSON, want %d", len(blocks), len(want))
	}
	for i, typ := range want {
		if err := all[typ].Validate(instance(t, blocks[i][1])); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
	}
	for _, typ := range regexp.MustCompile(`vokter\.[a-z]+\.v1`).FindAllString(string(text), -1) {
		if bodies[typ] == nil && typ != flow.TypeCheckNow && typ != flow.TypePage && typ != flow.TypeNotification {
			t.Errorf("%s is not public", typ)
		}
	}
}
