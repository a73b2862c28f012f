package oracle

// sideChanges marks what an alignment changed on one side of a group.
type sideChanges struct {
	tokens  []token
	changed []bool // token i is only on this side
	// gapBefore[i]: the other side has tokens of its own between i-1 and i that are not here.
	gapBefore []bool
}

// changes returns what alignment m of g changed on side s.
func (g *group) changes(m alignment, s side) sideChanges {
	n := len(g.tokens[s])
	ch := sideChanges{tokens: g.tokens[s], changed: make([]bool, n), gapBefore: make([]bool, n+1)}
	here, there := 0, 0
	upTo := func(i, j int) { // tokens before i of the old and j of the new side are done
		if s == newSide {
			i, j = j, i
		}
		for ; here < i; here++ {
			ch.changed[here] = true
		}
		if there < j {
			ch.gapBefore[here] = true // behind what is new here
		}
		here, there = i+1, j+1
	}
	for i, j := range m {
		if j >= 0 {
			upTo(i, j)
		}
	}
	upTo(len(g.tokens[oldSide]), len(g.tokens[newSide]))
	return ch
}

// touches reports whether an occurrence holds a changed token, or spans a place where
// the other side has tokens of its own.
func (c sideChanges) touches(o occurrence) bool {
	for i := o.first; i <= o.last; i++ {
		if c.changed[i] || i > o.first && c.gapBefore[i] {
			return true
		}
	}
	return false
}

// mergeGap is the most equal tokens between two edits that are shown as one.
const mergeGap = 3

// differences returns the differences as people read them. Strict ones stay in one block and
// are bridged by changed tokens only; loose ones may run on over borders and over places
// where something went.
func (c sideChanges) differences(strict bool) []occurrence {
	var ds []occurrence
	equal := mergeGap + 1 // equal tokens since the last edit
	for i, t := range c.tokens {
		if !strict && c.gapBefore[i] && equal <= mergeGap {
			equal = 0
		}
		switch {
		case t.isBorder() && strict:
			equal = mergeGap + 1
		case t.isBorder():
		case c.changed[i] && equal <= mergeGap && len(ds) > 0:
			ds[len(ds)-1].last = i
			equal = 0
		case c.changed[i]:
			ds = append(ds, occurrence{i, i})
			equal = 0
		default:
			equal++
		}
	}
	return ds
}
