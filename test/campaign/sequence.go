//go:build unix

package main

import (
	"fmt"
	"time"
)

// sequence is the notifications of one client about one page, in order of first arrival.
type sequence struct {
	verdict *verdict
	client  string
	page    int
	history pageHistory
	periods []*subscriptionPeriod
	items   []item
	evidence
}

func (c *sequence) addLost(format string, args ...any) {
	c.verdict.addLost("client %s page %d: %s", c.client, c.page, fmt.Sprintf(format, args...))
}

func (c *sequence) addWrong(format string, args ...any) {
	c.verdict.addWrong("client %s page %d: %s", c.client, c.page, fmt.Sprintf(format, args...))
}

// judge judges each item by itself, their order, and whether any is missing.
func (c *sequence) judge() {
	told := map[int]bool{}
	at, ends := 0, 0
	for _, it := range c.items {
		late := c.mayBeLate[it.id]
		if it.timeout {
			ends++
			at = max(at, c.judgeTimeout(ends, it)) // what was before must not come later
			continue
		}
		told[it.to] = true
		c.judgeStep(it)
		switch {
		case late:
			continue
		case it.to <= at:
			c.addWrong("step %d→%d came after %d", it.from, it.to, at)
		case ends < len(c.history.expiries) && it.to > c.history.expiries[ends].version && !c.hasLate():
			c.addWrong("step %d→%d came before it was told that the page was given up at %d", it.from, it.to, c.history.expiries[ends].version)
		}
		at = max(at, it.to)
	}
	if want := len(c.history.expiries); len(c.periods) > 0 && ends < want {
		c.addLost("it was told %d times that the page was given up, want %d", ends, want)
	}
	for i, p := range c.periods {
		c.judgeMissing(i, p, told)
	}
}

// hasLate reports whether something of the sequence may come out of order.
func (c *sequence) hasLate() bool {
	for _, it := range c.items {
		if c.mayBeLate[it.id] {
			return true
		}
	}
	return false
}

// judgeStep judges one step by itself.
func (c *sequence) judgeStep(it item) {
	h := c.history
	if !h.delivered[it.from] || !h.delivered[it.to] || it.to <= it.from {
		c.addWrong("step %d→%d was never to be seen", it.from, it.to)
		return
	}
	var of *subscriptionPeriod
	for _, p := range c.periods {
		if p.covers(it.to, h.createdAt[it.to]) {
			of = p
		}
	}
	switch {
	case of == nil:
		c.addWrong("step %d→%d was told, but there was no subscription to it", it.from, it.to)
	case !of.endedAt.IsZero() && c.uptime(of.endedAt, it.at) > c.cancelGrace:
		c.addWrong("step %d→%d came %v after the subscription was cancelled", it.from, it.to, it.at.Sub(of.endedAt))
	}
}

// cancelGrace is how long a process may run after a cancel until the last attempt begins
// to deliver what was pending of the subscription. Some attempts are under way then, and others
// begin before the process reads the withdrawal.
const cancelGrace = 3 * time.Second

// judgeTimeout judges the nth timeout notification of the page, and returns the version before it.
func (c *sequence) judgeTimeout(nth int, it item) int {
	if nth > len(c.history.expiries) {
		c.addWrong("it was told %d times that the page was given up, want %d", nth, len(c.history.expiries))
		return 0
	}
	d := c.history.expiries[nth-1]
	if d.lastLook.Sub(it.at) > c.lookGrace {
		c.addWrong("it was told that the page was given up, which was looked at again %v later", d.lastLook.Sub(it.at))
	}
	if c.mayBeLate[it.id] {
		return 0 // it came out of order
	}
	return d.version
}

// judgeMissing judges whether notifications of period i are missing.
func (c *sequence) judgeMissing(i int, p *subscriptionPeriod, told map[int]bool) {
	h := c.history
	first, last, upTo := 0, 0, h.last
	if i+1 < len(c.periods) {
		upTo = c.periods[i+1].afterVersion
	}
	for v := p.afterVersion + 1; v <= upTo; v++ {
		if told[v] {
			if first == 0 {
				first = v
			}
			last = v
		}
	}
	must := upTo // what must have been told at last
	switch {
	case i < len(h.expiries):
		must = h.expiries[i].version
	case !p.isOpen():
		must = last // what was on its way may be dropped
	}
	begin := max(p.afterVersion, p.knownAtVersion)
	switch {
	case first == 0 && p.knownAtVersion == 0:
		return // it is not known that it stood
	case first > 0 && p.knownAtVersion == 0:
		begin = first - 1
	case first > 0:
		begin = min(begin, first-1)
	}
	for v := begin + 1; v <= must; v++ {
		if !told[v] && (h.accepted[v] || v == h.last && h.delivered[v]) {
			c.addLost("version %d was taken and never told (subscription %d of %d: %v; told %v)", v, i+1, len(c.periods), p, c.items)
		}
	}
}
