package oracle

import "slices"

// longItem is an item of more than longestItem tokens: the blocks [first, last].
type longItem struct {
	first, last int
	words       int
	key         Key
}

// longItems returns those of p beside which another item of their list stands, and that hold no other.
func longItems(p Page, us []unit) (found []longItem) {
	tokens := tokensOf(p)
	all := itemsOf(p, tokens)
	in := make(map[int]*longItem)
	var order []int
	seen := []int{} // blocks that have tokens
	for i, b := range p {
		if len(tokens[i]) == 0 {
			continue
		}
		seen = append(seen, i)
		for _, item := range b.Items {
			if all.blocks[item] < 2 || all.words[item] <= longestItem || all.isRow(item) {
				continue
			}
			if in[item] == nil {
				in[item] = &longItem{i, i, all.words[item], all.keys[item]}
				order = append(order, item)
			}
			in[item].last = i
		}
	}
	order = slices.DeleteFunc(order, func(item int) bool {
		return slices.ContainsFunc(order, func(other int) bool {
			return other != item && in[other].first >= in[item].first && in[other].last <= in[item].last && slices.Contains(p[in[other].first].Items, item)
		})
	})
	isBeside := func(it *longItem, block int) bool {
		for _, other := range order {
			if in[other] != it && (in[other].first == block || in[other].last == block) {
				return true
			}
		}
		return slices.ContainsFunc(us, func(u unit) bool {
			return u.isItem && u.key.isComparable(it.key) && slices.Contains(blockIndexes(u.tokens), block)
		})
	}
	for _, item := range order {
		it := in[item]
		before, _ := slices.BinarySearch(seen, it.first)
		after, _ := slices.BinarySearch(seen, it.last)
		if before > 0 && isBeside(it, seen[before-1]) || after+1 < len(seen) && isBeside(it, seen[after+1]) {
			found = append(found, *it)
		}
	}
	return found
}

// partLongItems takes out of the pairs those between long items that only one version has. ok is false where it is open
// which these are.
func (c *Change) partLongItems(rest [2][]unit, es []unitPair) (left []unitPair, ok bool) {
	joined := [2][]bool{make([]bool, len(rest[oldSide])), make([]bool, len(rest[newSide]))}
	for _, e := range es {
		joined[oldSide][e.old], joined[newSide][e.new] = true, true
	}
	for s := range c.long {
		c.long[s] = append(c.long[s], longItems(c.pages[s], c.units[s])...)
	}
	all := c.long
	var whole [2][]bool // units in items that only one version has
	for s := range rest {
		whole[s] = make([]bool, len(rest[s]))
		for _, it := range all[s] {
			isIn := func(u unit) bool { return u.tokens[0].block >= it.first && u.tokens[0].block <= it.last }
			free := 0
			for i, u := range rest[s] {
				if isIn(u) && !joined[s][i] {
					free += u.length
				}
			}
			is := 4*free >= 3*it.words
			if !is && it.key != (Key{}) {
				hasKey := slices.ContainsFunc(c.units[1-s], func(u unit) bool { return u.key == it.key }) ||
					slices.ContainsFunc(all[1-s], func(o longItem) bool { return o.key == it.key })
				switch verdict := c.trust[it.key.List]; {
				case hasKey:
				case verdict == unsure:
					return nil, false
				default:
					is = verdict == trusted
				}
			}
			for i, u := range rest[s] {
				whole[s][i] = whole[s][i] || is && isIn(u)
			}
		}
	}
	// A pair of which a part is tied to anything else stays.
	stays := make([]bool, len(es))
	for changed := true; changed; {
		changed = false
		for i, e := range es {
			if stays[i] {
				continue
			}
			tied := !whole[oldSide][e.old] || !whole[newSide][e.new]
			for k, f := range es {
				tied = tied || stays[k] && (f.old == e.old || f.new == e.new)
			}
			stays[i] = tied
			changed = changed || tied
		}
	}
	for i, e := range es {
		if stays[i] {
			left = append(left, e)
		}
	}
	return left, true
}
