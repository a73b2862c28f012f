package oracle

import "slices"

// intern gives equal strings equal numbers.
func intern(a, b []string) ([]int, []int) {
	ids := make(map[string]int)
	number := func(ss []string) []int {
		ns := make([]int, len(ss))
		for i, s := range ss {
			if !hasKey(ids, s) {
				ids[s] = len(ids)
			}
			ns[i] = ids[s]
		}
		return ns
	}
	return number(a), number(b)
}

// lcs knows the longest common subsequences of two sequences: the shortest diffs.
type lcs struct {
	a, b    []int
	lengths [][]int32 // rest[i][j]: length for a[i:], b[j:]
}

func newLCS(a, b []string) *lcs {
	l := &lcs{}
	l.a, l.b = intern(a, b)
	l.lengths = make([][]int32, len(a)+1)
	for i := range l.lengths {
		l.lengths[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			l.lengths[i][j] = max(l.lengths[i+1][j], l.lengths[i][j+1])
			if l.a[i] == l.b[j] {
				l.lengths[i][j] = max(l.lengths[i][j], l.lengths[i+1][j+1]+1)
			}
		}
	}
	return l
}

// mayKeep reports whether a shortest diff of a[i:] and b[j:] may keep a[i] as b[j].
func (l *lcs) mayKeep(i, j int) bool {
	return l.a[i] == l.b[j] && l.lengths[i][j] == l.lengths[i+1][j+1]+1
}

// alignment says which element of b each element of a is kept as, or -1.
type alignment []int

// extremes returns the two outermost shortest diffs: all others lie between them.
func (l *lcs) extremes() (alignment, alignment) {
	walk := func(removeFirst bool) alignment {
		m := make(alignment, len(l.a))
		for i := range m {
			m[i] = -1
		}
		for i, j := 0, 0; i < len(l.a) && j < len(l.b); {
			remove := l.lengths[i+1][j] == l.lengths[i][j]
			insert := l.lengths[i][j+1] == l.lengths[i][j]
			switch {
			case removeFirst && remove:
				i++
			case !removeFirst && insert:
				j++
			case l.mayKeep(i, j):
				m[i] = j
				i, j = i+1, j+1
			case remove:
				i++
			default:
				j++
			}
		}
		return m
	}
	return walk(true), walk(false)
}

// unique returns the only shortest diff; ok is false where there are several.
func (l *lcs) unique() (m alignment, ok bool) {
	m, n := l.extremes()
	return m, slices.Equal(m, n)
}

// maxPairs bounds the work of looking for all shortest diffs, in pairs looked at.
const maxPairs = 1 << 22

// all returns every shortest diff; ok is false where there are more than limit, or too
// many to look for.
func (l *lcs) all(limit int) (ms []alignment, ok bool) {
	if m, ok := l.unique(); ok {
		return []alignment{m}, true
	}
	m := make(alignment, len(l.a))
	for i := range m {
		m[i] = -1
	}
	steps, looks := 0, 0
	var from func(i, j int) bool
	from = func(i, j int) bool {
		if steps++; steps > 20*limit {
			return false
		}
		if l.lengths[i][j] == 0 {
			ms = append(ms, slices.Clone(m))
			return len(ms) <= limit
		}
		for x := i; x < len(l.a) && l.lengths[x][j] == l.lengths[i][j]; x++ {
			for y := j; y < len(l.b) && l.lengths[x][y] == l.lengths[i][j]; y++ {
				if looks++; looks > maxPairs {
					return false
				}
				if !l.mayKeep(x, y) {
					continue
				}
				m[x] = y
				ok := from(x+1, y+1)
				m[x] = -1
				if !ok {
					return false
				}
			}
		}
		return true
	}
	if !from(0, 0) {
		return nil, false
	}
	return ms, true
}

// maxKept returns, for each pair of a part of a and a part of b, how many elements of each other they can keep at
// most in a shortest diff. atA and atB name the part of each element. Pairs that keep none are missing.
func (l *lcs) maxKept(atA, atB []int) map[[2]int]int {
	as, bs := map[[2]int]map[int]bool{}, map[[2]int]map[int]bool{}
	before := make([]int32, len(l.b)+1) // length for a[:i], b[:j]
	for i := range l.a {
		row := make([]int32, len(l.b)+1)
		for j := range l.b {
			row[j+1] = max(row[j], before[j+1])
			if l.a[i] != l.b[j] {
				continue
			}
			row[j+1] = max(row[j+1], before[j]+1)
			if before[j]+1+l.lengths[i+1][j+1] != l.lengths[0][0] {
				continue
			}
			k := [2]int{atA[i], atB[j]}
			if as[k] == nil {
				as[k], bs[k] = map[int]bool{}, map[int]bool{}
			}
			as[k][i], bs[k][j] = true, true
		}
		before = row
	}
	most := make(map[[2]int]int, len(as))
	for k := range as {
		most[k] = min(len(as[k]), len(bs[k]))
	}
	return most
}

// keptRange returns what the pairs that a shortest diff keeps weigh, at least and at most.
func (l *lcs) keptRange(weight func(i, j int) int) (least, most int) {
	best := func(sign int) int {
		next := make([]int, len(l.b)+1)
		row := make([]int, len(l.b)+1)
		for i := len(l.a) - 1; i >= 0; i-- {
			row[len(l.b)] = 0
			for j := len(l.b) - 1; j >= 0; j-- {
				v, set := 0, false
				consider := func(w int) {
					if !set || w*sign > v*sign {
						v, set = w, true
					}
				}
				if l.lengths[i+1][j] == l.lengths[i][j] {
					consider(next[j])
				}
				if l.lengths[i][j+1] == l.lengths[i][j] {
					consider(row[j+1])
				}
				if l.mayKeep(i, j) {
					consider(next[j+1] + weight(i, j))
				}
				row[j] = v
			}
			next, row = row, next
		}
		return next[0]
	}
	return best(-1), best(1)
}
