// Package markdown reads Markdown.
package markdown

import (
	"bytes"
	"context"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/blocks"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

// Reader reads Markdown in UTF-8, with the extensions of GitHub. The text is that of the HTML that
// it stands for, and so are its elements to selectors. The first heading of the first level is the
// title.
type Reader struct{ markdown goldmark.Markdown }

var _ pipeline.Reader = Reader{}

// New returns a Reader.
func New() Reader {
	return Reader{goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(goldmarkhtml.WithUnsafe()))}
}

// ContentTypes returns the media types of Markdown.
func (Reader) ContentTypes() []string { return []string{"text/markdown", "text/x-markdown"} }

// Extractor names the rules by which the text is made; it changes with them.
func (Reader) Extractor() string { return "markdown/2" }

// Read returns the text of view, whose CSS selectors and XPath expressions count.
func (r Reader) Read(ctx context.Context, raw pipeline.Raw, view pipeline.View) (pipeline.Text, error) {
	body := bytes.TrimPrefix(raw.Body, []byte("\ufeff"))
	if len(body) > pipeline.MaxText {
		return pipeline.Text{}, blocks.TooLarge()
	}
	if err := checkCost(body); err != nil {
		return pipeline.Text{}, err
	}
	doc := r.markdown.Parser().Parse(text.NewReader(body))
	var page bytes.Buffer
	if err := r.markdown.Renderer().Render(&page, body, doc); err != nil {
		return pipeline.Text{}, blocks.Unreadable("the page cannot be read as Markdown: %v", err)
	}
	raw.Body, raw.ContentType = page.Bytes(), "text/html"
	t, err := html.New().Read(ctx, raw, view)
	if t.Title == "" && err == nil {
		t.Title = titleOf(doc, body)
	}
	return t, err
}

// titleOf returns the text of the first heading of the first level among the children of doc.
func titleOf(doc ast.Node, body []byte) string {
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 1 {
			return blocks.Line(string(h.Lines().Value(body)))
		}
	}
	return ""
}

// Bounds of what is parsed. The parser cannot be stopped, and its time grows faster than the page in
// pages that nobody writes by hand. At the bounds a page of 2 MiB takes about two seconds.
const (
	// maxContainers is how many quotes and list items a line may open or be indented to.
	maxContainers = 100
	// maxCells is how many cells all tables of a page may have. The parser fills short rows up to
	// the width of the table.
	maxCells = 250_000
	// maxBlanks bounds the blank lines in lists: the sum of how deep in lists each of them may be.
	maxBlanks = 10_000_000
	// maxInlineCost bounds the work on the links and emphasis of all blocks of a page. See inlineCost.
	maxInlineCost = 1_000_000_000
)

// blockParser parses the blocks of a page, but not the links and emphasis in them. Its time is linear
// on pages that checkLines accepts.
var blockParser = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
)

// checkCost returns the *pipeline.FetchError of a page that would take too long to parse.
func checkCost(body []byte) error {
	if err := checkLines(body); err != nil {
		return err
	}
	if inlineCost(body) <= maxInlineCost { // as it is for nearly all pages, and no block has more than the page
		return nil
	}
	sum := 0
	return ast.Walk(blockParser.Parse(text.NewReader(body)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || n.Type() != ast.TypeBlock || n.IsRaw() || n.Lines() == nil || n.Lines().Len() == 0 {
			return ast.WalkContinue, nil
		}
		block := n.Lines().Value(body)
		if sum += inlineCost(block); sum > maxInlineCost {
			line := 1 + bytes.Count(body[:n.Lines().At(0).Start], []byte("\n"))
			return ast.WalkStop, blocks.Unreadable("line %d: the paragraph that begins here has too many brackets and emphasis marks in %d bytes: "+
				"%d is the limit for brackets times bytes plus the square of the marks, of all paragraphs together", line, len(block), maxInlineCost)
		}
		return ast.WalkContinue, nil
	})
}

// inlineCost estimates the time to parse the links and emphasis in block, in nanoseconds. A bracket may be
// looked at together with all that follows it, and a mark with all other marks.
func inlineCost(block []byte) int {
	brackets, marks := 0, 0
	for i, c := range block {
		switch c {
		case '[':
			brackets++
		case '*', '_', '~':
			if i == 0 || block[i-1] != c {
				marks++
			}
		}
	}
	return brackets*len(block) + marks*marks
}

// checkLines refuses lines with too many containers, too many blank lines within lists, and tables with
// too many cells.
func checkLines(body []byte) error {
	cells, columns, number := 0, 0, 0
	depth, blanks, afterBlank := 0, 0, true // depth is how many containers are open at most
	for line := range bytes.Lines(body) {
		number++
		opened, indent := countContainers(line)
		if opened > maxContainers {
			return blocks.Unreadable("line %d: it opens more than %d quotes and lists within each other", number, maxContainers)
		}
		blank := len(bytes.Trim(line, "> \t\r\n")) == 0
		switch {
		case blank:
			blanks += depth
		case afterBlank:
			depth = opened + indent
		default: // it may continue the paragraph above
			depth = max(depth, opened+indent)
		}
		afterBlank = blank
		if blanks > maxBlanks {
			return blocks.Unreadable("line %d: too many blank lines up to here are within lists: the sum of their depths is more than %d", number, maxBlanks)
		}
		switch {
		case len(bytes.TrimSpace(line)) == 0:
			columns = 0
		case isDelimiterRow(line):
			columns = max(columns, 1+bytes.Count(line, []byte("|")))
		}
		if cells += columns; cells > maxCells {
			return blocks.Unreadable("line %d: the tables up to here have more than %d cells", number, maxCells)
		}
	}
	return nil
}

// isDelimiterRow reports whether line may be the row below the head of a table, perhaps in a quote.
func isDelimiterRow(line []byte) bool {
	return bytes.IndexByte(line, '|') >= 0 && bytes.IndexByte(line, '-') >= 0 && len(bytes.Trim(line, "|-: \t\v\f\r\n>")) == 0
}

// countContainers returns how many quotes and list items line may open or continue, or some number beyond
// maxContainers, and how many more it may continue by the indent of its text. A list item takes at
// least two columns.
func countContainers(line []byte) (opened, indent int) {
	line = bytes.TrimRight(line, " \t\r\n")
	n, blank := 0, 0
	for len(line) > 0 && n <= maxContainers {
		switch c := line[0]; {
		case c == ' ':
			blank++
			line = line[1:]
			continue
		case c == '\t':
			blank += 4
			line = line[1:]
			continue
		case c == '>':
			line = line[1:]
		case c == '-' || c == '*' || c == '+':
			if isRule(line) || len(line) > 1 && line[1] != ' ' && line[1] != '\t' {
				return n, blank / 2
			}
			line = line[1:]
		case c >= '0' && c <= '9':
			rest := bytes.TrimLeft(line, "0123456789")
			if len(line)-len(rest) > 9 || len(rest) == 0 || rest[0] != '.' && rest[0] != ')' || len(rest) > 1 && rest[1] != ' ' && rest[1] != '\t' {
				return n, blank / 2
			}
			line = rest[1:]
		default:
			return n, blank / 2
		}
		n += 1 + blank/2 // blanks before the marker may be those of outer items
		blank = 0
	}
	return n, blank / 2
}

// isRule reports whether line is a thematic break such as "- - -".
func isRule(line []byte) bool {
	return len(bytes.Trim(line, string(line[0])+" \t")) == 0
}
