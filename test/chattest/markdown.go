package chattest

import (
	"html"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/vokter/vokter/internal/render"
)

// Read parses Markdown, with more extensions where a chat program has them, with an
// independent parser. It returns what is shown: all of it, its quotes without blanks that
// nobody sees, and the targets of its links. It fails the test where there is anything but
// paragraphs, quotes, links, bold and struck text.
func Read(t *testing.T, markdown string, more ...goldmark.Extender) (all string, quotes, links []string) {
	t.Helper()
	source := []byte(markdown)
	parser := goldmark.New(goldmark.WithExtensions(append(more, extension.Strikethrough, extension.Table, extension.TaskList)...)).Parser()
	var shown strings.Builder
	err := ast.Walk(parser.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Document, *extast.Strikethrough:
		case *ast.Emphasis:
			if n.Level != 2 {
				t.Errorf("there is emphasis of level %d in %q", n.Level, markdown)
			}
		case *ast.Paragraph:
			if !entering {
				shown.WriteString("\n")
			}
		case *ast.Blockquote:
			if entering {
				shown.WriteString("\x02")
			} else {
				shown.WriteString("\x03")
			}
		case *ast.Link:
			if entering {
				links = append(links, html.UnescapeString(string(n.Destination)))
			}
		case *ast.Text:
			if entering {
				shown.WriteString(html.UnescapeString(string(util.UnescapePunctuations(n.Segment.Value(source)))))
				if n.SoftLineBreak() || n.HardLineBreak() {
					shown.WriteString("\n")
				}
			}
		default:
			t.Errorf("there is a %s in %q", n.Kind(), markdown)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all = shown.String()
	for rest := all; ; {
		_, after, ok := strings.Cut(rest, "\x02")
		if !ok {
			break
		}
		quote, next, _ := strings.Cut(after, "\x03")
		quote = strings.ReplaceAll(strings.TrimSuffix(quote, "\n"), render.Blank, "")
		quotes, rest = append(quotes, quote), next
	}
	return strings.NewReplacer("\x02", "", "\x03", "").Replace(all), quotes, links
}
