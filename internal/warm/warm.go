// Package warm runs functions on goroutines that ran others before: their stacks have
// grown already, which for short work costs more than the work.
package warm

import "sync/atomic"

// Pool is a set of goroutines that wait for work. It never refuses any: where none waits
// it starts one more. It is safe for concurrent use.
type Pool struct {
	tasks   chan func()
	done    chan struct{}
	waiting atomic.Int64
	keep    int64
}

// New returns a Pool of which at most keep goroutines wait.
func New(keep int) *Pool {
	return &Pool{tasks: make(chan func()), done: make(chan struct{}), keep: int64(keep)}
}

// Go runs f on another goroutine and returns at once. f must not panic.
func (p *Pool) Go(f func()) {
	select {
	case p.tasks <- f:
	default:
		go p.run(f)
	}
}

func (p *Pool) run(f func()) {
	for {
		f()
		if p.waiting.Add(1) > p.keep {
			p.waiting.Add(-1)
			return
		}
		select {
		case f = <-p.tasks:
			p.waiting.Add(-1)
		case <-p.done:
			return
		}
	}
}

// Close ends the goroutines that wait, and others when their work is done. It must be
// called once; Go still runs what it gets.
func (p *Pool) Close() { close(p.done) }
