// Package compare lays out two versions of a document for a terminal: below each other or side by
// side, with what was removed and added marked. The versions come as inspect.Row, which a web page
// can lay out in its own way.
package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Style says how rows are printed.
type Style struct {
	// Color marks words by colors. Otherwise brackets mark them: [-removed-] and {+added+}.
	Color bool
	// Columns is the width of the terminal. 0: lines are not wrapped.
	Columns int
}

// Signs in front of a line.
const (
	signKept    = "  "
	signRemoved = "- "
	signAdded   = "+ "
	signMoved   = "~ "
)

const signColumns = len(signKept)

// Unified prints rows below each other: the old blocks of a row with a minus, the new ones with a
// plus. Each line ends with a line break. Characters that could steer a terminal are left out.
func Unified(rows []inspect.Row, s Style) string {
	var b strings.Builder
	write := func(sign string, event pipeline.Event, lines []inspect.Line, mark bool) {
		for _, l := range lines {
			for i, text := range s.wrap(l.Segments, s.Columns-signColumns, mark) {
				lead := signKept
				if i == 0 {
					lead = s.paintSign(sign, event)
				}
				b.WriteString(strings.TrimRight(lead+text, " ") + "\n")
			}
		}
	}
	for _, r := range rows {
		switch r.Kind {
		case inspect.RowSkipped:
			b.WriteString(s.dim(skippedLine(r)) + "\n")
		case inspect.RowKept:
			write(signKept, "", r.New, false)
		case inspect.RowMoved:
			write(signMoved, "", r.New, false)
		default:
			mark := s.Color || r.Kind == inspect.RowChanged
			for _, p := range pairBlocks(r) {
				if hasSameWords(p) {
					write(signKept, "", p.New, false)
					continue
				}
				write(signRemoved, pipeline.Removed, p.Old, mark)
				write(signAdded, pipeline.Added, p.New, mark)
			}
		}
		if about := r.AboutLink(); about != "" {
			b.WriteString(signKept + s.dim(about) + "\n")
		}
	}
	return b.String()
}

// pairBlocks returns r as rows of one old and one new block each, such as the cells of a table row, or r
// itself if the versions have different numbers of blocks.
func pairBlocks(r inspect.Row) []inspect.Row {
	if len(r.Old) != len(r.New) {
		return []inspect.Row{r}
	}
	all := make([]inspect.Row, len(r.Old))
	for i := range r.Old {
		all[i] = inspect.Row{Kind: r.Kind, Old: r.Old[i : i+1], New: r.New[i : i+1]}
	}
	return all
}

// hasSameWords reports whether r is one block that has the same words in both versions.
func hasSameWords(r inspect.Row) bool {
	return len(r.Old) == 1 && len(r.New) == 1 && !isEdited(r.Old[0]) && !isEdited(r.New[0])
}

// isEdited reports whether a part of l was removed or added.
func isEdited(l inspect.Line) bool {
	return slices.ContainsFunc(l.Segments, func(s inspect.Segment) bool { return s.Event != "" })
}

// minHalfWidth is the least width of one half of SideBySide.
const minHalfWidth = 20

// SideBySide prints rows in two columns: the old version on the left, the new one on the right. The
// width is at least 43 columns, and 80 where s has none. Each line ends with a line break.
// Characters that could steer a terminal are left out.
func SideBySide(rows []inspect.Row, s Style) string {
	const between = " │ "
	if s.Columns <= 0 {
		s.Columns = 80
	}
	half := max((s.Columns-render.Columns(between))/2, minHalfWidth)
	var b strings.Builder
	for _, r := range rows {
		if r.Kind == inspect.RowSkipped {
			b.WriteString(s.dim(skippedLine(r)) + "\n")
			continue
		}
		mark := s.Color || r.Kind == inspect.RowChanged
		if about := r.AboutLink(); about != "" {
			b.WriteString(s.dim(about) + "\n")
		}
		for _, p := range pairBlocks(r) {
			left, right := signRemoved, signAdded
			switch {
			case r.Kind == inspect.RowMoved:
				left, right = signMoved, signMoved
			case r.Kind == inspect.RowKept || hasSameWords(p):
				left, right = signKept, signKept
			}
			for i := range max(len(p.Old), len(p.New)) {
				old, new := s.wrapBlock(p.Old, i, left, half, mark), s.wrapBlock(p.New, i, right, half, mark)
				for k := range max(len(old), len(new)) {
					b.WriteString(strings.TrimRight(paddedLine(old, k, half)+between+paddedLine(new, k, half), " ") + "\n")
				}
			}
		}
	}
	return b.String()
}

// wrapBlock returns block i of lines, wrapped to a width, with sign in front of its first line. It
// returns nil where there is no such line.
func (s Style) wrapBlock(lines []inspect.Line, i int, sign string, width int, mark bool) []string {
	if i >= len(lines) {
		return nil
	}
	event := map[string]pipeline.Event{signRemoved: pipeline.Removed, signAdded: pipeline.Added}[sign]
	wrapped := s.wrap(lines[i].Segments, width-signColumns, mark)
	for k := range wrapped {
		lead := signKept
		if k == 0 {
			lead = s.paintSign(sign, event)
		}
		wrapped[k] = lead + wrapped[k]
	}
	return wrapped
}

// paddedLine returns line k of a column, filled with blanks to its width.
func paddedLine(lines []string, k, width int) string {
	text := ""
	if k < len(lines) {
		text = lines[k]
	}
	return text + strings.Repeat(" ", max(width-printedWidth(text), 0))
}

// printedWidth returns how many columns s takes, without its styles.
func printedWidth(s string) int {
	n := 0
	for s != "" {
		before, after, ok := strings.Cut(s, escapePrefix)
		n += render.Columns(before)
		if !ok {
			break
		}
		_, s, _ = strings.Cut(after, "m")
	}
	return n
}

// skippedLine returns the line that stands for the unchanged blocks that are left out.
func skippedLine(r inspect.Row) string {
	if r.Skipped == 1 {
		return "  ··· 1 unchanged block"
	}
	return fmt.Sprintf("  ··· %d unchanged blocks", r.Skipped)
}
