package main

import (
	"fmt"
	"time"
)

// chain holds the notifications of one client about one page, in order of first arrival.
type chain struct {
	v       *verdict
	client  string
	page    int
	history history
	periods []*period
	items   []item
	evidence
}

func (c *chain) lost(format string, args ...any) {
	c.v.isLost("client %s page %d: %s", c.client, c.page, fmt.Sprintf(format, args...))
}

func (c *chain) wrong(format string, args ...any) {
	c.v.isWrong("client %s page %d: %s", c.client, c.page, fmt.Sprintf(format, args...))
}

// judge judges each item by itself, their order, and whether any is missing.
func (c *chain) judge() {
	told := map[int]bool{}
	at, ends := 0, 0
	for _, it := range c.items {
		late := c.late[it.id]
		if it.timeout {
			ends++
			at = max(at, c.end(ends, it)) // what was before must not come later
			continue
		}
		told[it.to] = true
		c.step(it)
		switch {
		case late:
			continue
		case it.to <= at:
			c.wrong("step %d→%d came after %d", it.from, it.to, at)
		case ends < len(c.history.dooms) && it.to > c.history.dooms[ends].version && !c.anyLate():
			c.wrong("step %d→%d came before it was told that the page was given up at %d", it.from, it.to, c.history.dooms[ends].version)
		}
		at = max(at, it.to)
	}
	if want := len(c.history.dooms); len(c.periods) > 0 && ends < want {
		c.lost("it was told %d times that the page was given up, want %d", ends, want)
	}
	for i, p := range c.periods {
		c.complete(i, p, told)
	}
}

// anyLate reports whether something of the chain may come out of order.
func (c *chain) anyLate() bool {
	for _, it := range c.items {
		if c.late[it.id] {
			return true
		}
	}
	return false
}

// step judges one step by itself.
func (c *chain) step(it item) {
	h := c.history
	if !h.delivered[it.from] || !h.delivered[it.to] || it.to <= it.from {
		c.wrong("step %d→%d was never to be seen", it.from, it.to)
		return
	}
	var of *period
	for _, p := range c.periods {
		if p.hears(it.to, h.born[it.to]) {
			of = p
		}
	}
	switch {
	case of == nil:
		c.wrong("step %d→%d was told, but there was no subscription to it", it.from, it.to)
	case !of.ended.IsZero() && c.alive(of.ended, it.at) > c.afterwards:
		c.wrong("step %d→%d came %v after the subscription was cancelled", it.from, it.to, it.at.Sub(of.ended))
	}
}

// afterwards is how long a process may live after a cancel until the last attempt begins
// to deliver what was pending of it: one that was under way, and those that it makes before
// it comes to the withdrawal, which is the last of what it has to read by then.
const afterwards = 3 * time.Second

// end judges the nth timeout notification of the page, and returns the version before it.
func (c *chain) end(nth int, it item) int {
	if nth > len(c.history.dooms) {
		c.wrong("it was told %d times that the page was given up, want %d", nth, len(c.history.dooms))
		return 0
	}
	d := c.history.dooms[nth-1]
	if d.looked.Sub(it.at) > c.looks {
		c.wrong("it was told that the page was given up, which was looked at again %v later", d.looked.Sub(it.at))
	}
	if c.late[it.id] {
		return 0 // it came out of order
	}
	return d.version
}

// complete judges whether a notification of period i is missing.
func (c *chain) complete(i int, p *period, told map[int]bool) {
	h := c.history
	first, last, upTo := 0, 0, h.last
	if i+1 < len(c.periods) {
		upTo = c.periods[i+1].taken
	}
	for v := p.taken + 1; v <= upTo; v++ {
		if told[v] {
			if first == 0 {
				first = v
			}
			last = v
		}
	}
	must := upTo // what must have been told at last
	switch {
	case i < len(h.dooms):
		must = h.dooms[i].version
	case !p.open():
		must = last // what was on its way may be dropped
	}
	begin := max(p.taken, p.stood)
	switch {
	case first == 0 && p.stood == 0:
		return // it is not known that it stood
	case first > 0 && p.stood == 0:
		begin = first - 1
	case first > 0:
		begin = min(begin, first-1)
	}
	for v := begin + 1; v <= must; v++ {
		if !told[v] && (h.accepted[v] || v == h.last && h.delivered[v]) {
			c.lost("version %d was taken and never told (subscription %d of %d: %v; told %v)", v, i+1, len(c.periods), p, c.items)
		}
	}
}
