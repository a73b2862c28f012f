package local

import "sync"

// maxLanding is how many commits of a lane wait for the disk before it handles further messages.
const maxLanding = 128

// landing is a commit that is visible and not durable yet, or that follows such a commit.
type landing struct {
	key   string
	wait  func()   // nil if the handler did not ask for a durable commit
	after []func() // the OnCommit functions
	// done is closed when the commit is durable and its functions have run.
	done chan struct{}
}

// finish runs the functions of a commit that is durable, or need not be.
func (l *landing) finish() {
	for _, f := range l.after {
		f()
	}
}

// landings are the commits of a group in a lane that wait for the disk, in order. The lane handles
// messages of other keys meanwhile, so that one write to the disk serves many of its commits.
type landings struct {
	mu   sync.Mutex
	open []*landing
	// last is the last one of each key.
	last map[string]*landing
}

// oldest returns a channel that is closed when the oldest commit is durable, or nil if none waits.
func (ls *landings) oldest() <-chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.open) == 0 {
		return nil
	}
	return ls.open[0].done
}

// admit returns nil if a message of key may be handled, and otherwise a channel that is closed when
// to ask again.
func (ls *landings) admit(key string) <-chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.last[key]; l != nil {
		return l.done
	}
	if len(ls.open) >= maxLanding {
		return ls.open[0].done
	}
	return nil
}

// add appends l. The first one is waited for by a goroutine, which goes on to the ones behind it
// and ends with the last.
func (ls *landings) add(l *landing, landed func()) {
	l.done = make(chan struct{})
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.open = append(ls.open, l)
	if ls.last == nil {
		ls.last = make(map[string]*landing)
	}
	ls.last[l.key] = l
	if len(ls.open) == 1 {
		go ls.land(l, landed)
	}
}

// land waits for l and the ones behind it, and calls landed after each.
func (ls *landings) land(l *landing, landed func()) {
	for l != nil {
		if l.wait != nil {
			l.wait()
		}
		l.finish()
		landed()
		l = ls.remove(l)
	}
}

// remove removes l, the oldest, and returns the next one.
func (ls *landings) remove(l *landing) (next *landing) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.open[0] = nil
	if ls.open = ls.open[1:]; len(ls.open) > 0 {
		next = ls.open[0]
	}
	if ls.last[l.key] == l {
		delete(ls.last, l.key)
	}
	close(l.done)
	return next
}

// settle waits until no commit waits. Nothing is added meanwhile.
func (ls *landings) settle() {
	for wait := ls.oldest(); wait != nil; wait = ls.oldest() {
		<-wait
	}
}
