package memory

import "sync/atomic"

// Pool is a set of goroutines that wait for functions to run. Their stacks have grown already; to grow the
// stack of a new goroutine costs more than a short function. If none is waiting, Go starts another one. A Pool
// is safe for concurrent use.
type Pool struct {
	tasks   chan func()
	done    chan struct{}
	idle    atomic.Int64
	maxIdle int64
}

// NewPool returns a Pool that keeps at most keep waiting goroutines.
func NewPool(keep int) *Pool {
	return &Pool{tasks: make(chan func()), done: make(chan struct{}), maxIdle: int64(keep)}
}

// Go runs f on a goroutine of the pool and returns at once. f must not panic.
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
		if p.idle.Add(1) > p.maxIdle {
			p.idle.Add(-1)
			return
		}
		select {
		case f = <-p.tasks:
			p.idle.Add(-1)
		case <-p.done:
			return
		}
	}
}

// Close ends the waiting goroutines, and the others when their functions return. It must be
// called only once. Go still works after it.
func (p *Pool) Close() { close(p.done) }
