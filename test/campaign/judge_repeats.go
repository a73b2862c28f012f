//go:build unix

package main

import (
	"maps"
	"slices"
)

// judgeRepeats counts what came more than once, and judges whether that had a reason. A
// delivery is repeated where a kill came between what the receiver took and the commit of
// that, or where the receiver took it and said that it did not. Each receiver is sent one
// thing at a time, and the commit is on disk before the next: so a kill repeats at most one
// delivery to each.
func (v *verdict) judgeRepeats(e evidence) {
	all := map[string][]mail{ownerClient: e.health}
	maps.Copy(all, e.mails)
	unexcused := 0
	by := map[string]int{}
	for _, client := range slices.Sorted(maps.Keys(all)) {
		times := map[string]int{}
		for _, m := range all[client] {
			times[m.id]++
		}
		for _, id := range slices.Sorted(maps.Keys(times)) {
			v.repeats += times[id] - 1
			again := max(times[id]-1-e.denied[client][id], 0)
			unexcused += again
			by[client] += again
			if again > e.kills {
				v.addWrong("client %s: ID %s came %d times; the process was killed %d times, and the receiver denied that it took it %d times",
					client, id, times[id], e.kills, e.denied[client][id])
			}
		}
	}
	if most := e.kills * len(all); unexcused > most {
		v.addWrong("%d repeats (%v), want %d at most: one for each of %d receivers and %d kills", unexcused, by, most, len(all), e.kills)
	}
}
