package render

import "github.com/vokter/vokter/pipeline"

// rows are the rows that diffs of a notification name, except those that a diff shows anyway.
type rows map[string]bool

func rowsOf(diffs []pipeline.Diff) rows {
	r := make(rows)
	for _, d := range diffs {
		if row := rowOf(d); row != "" {
			r[row] = true
		}
	}
	if len(r) > 0 {
		for _, d := range diffs {
			delete(r, Short(Clean(d.Text), maxKeyword))
		}
	}
	return r
}

// before returns what stands before the snippet of d: its row, or nothing.
func (r rows) before(d pipeline.Diff) string {
	row := rowOf(d)
	if !r[row] {
		return ""
	}
	return row + " · "
}

func rowOf(d pipeline.Diff) string { return Short(Clean(d.Row), maxKeyword) }
