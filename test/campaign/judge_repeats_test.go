//go:build unix

package main

import (
	"fmt"
	"testing"
)

// copies are n mails with the same content.
func copies(n int, id string) (ms []mail) {
	for range n {
		ms = append(ms, mail{id: id})
	}
	return ms
}

func TestRepeatsAreBounded(t *testing.T) {
	many := map[string][]mail{}
	for n := range 11 {
		many["ann"] = append(many["ann"], copies(2, fmt.Sprint("id", n))...)
	}
	denied := func(n int) map[string]map[string]int { return map[string]map[string]int{"ann": {"a": n}} }
	for name, c := range map[string]struct {
		e              evidence
		repeats, wrong int
	}{
		"none":                         {evidence{mails: map[string][]mail{"ann": {{id: "a"}, {id: "b"}}}}, 0, 0},
		"one without a kill":           {evidence{mails: map[string][]mail{"ann": copies(2, "a")}}, 1, 2}, // of its ID, and in all
		"one with a kill":              {evidence{kills: 1, mails: map[string][]mail{"ann": copies(2, "a")}}, 1, 0},
		"more than kills":              {evidence{kills: 2, mails: map[string][]mail{"ann": copies(4, "a")}}, 3, 1},
		"denied by the receiver":       {evidence{denied: denied(3), mails: map[string][]mail{"ann": copies(4, "a")}}, 3, 0},
		"denied less often":            {evidence{denied: denied(2), mails: map[string][]mail{"ann": copies(4, "a")}}, 3, 2},
		"the same ID elsewhere":        {evidence{mails: map[string][]mail{"ann": copies(1, "a"), "bob": copies(1, "a")}}, 0, 0},
		"as many as receivers allow":   {evidence{kills: 6, mails: many}, 11, 0},
		"more than one for each":       {evidence{kills: 5, mails: many}, 11, 1},
		"the owner's without a reason": {evidence{health: copies(2, "a")}, 1, 2},
	} {
		var v verdict
		if v.judgeRepeats(c.e); v.repeats != c.repeats || v.wrong != c.wrong {
			t.Errorf("%s: got repeats=%d wrong=%d, want %d and %d: %q", name, v.repeats, v.wrong, c.repeats, c.wrong, v.details)
		}
	}
}
