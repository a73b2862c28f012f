package local

import "sync"

// maxPendingCommits is how many commits of a lane wait for the disk before it handles further messages.
const maxPendingCommits = 128

// pendingCommit is a commit that is visible and not durable yet, or that follows such a commit.
type pendingCommit struct {
	key      string
	wait     func()   // nil if the handler did not ask for a durable commit
	onCommit []func() // the OnCommit functions
	// done is closed when the commit is durable and its functions have run.
	done chan struct{}
}

// runOnCommit runs the functions of a commit that is durable, or need not be.
func (l *pendingCommit) runOnCommit() {
	for _, f := range l.onCommit {
		f()
	}
}

// commitQueue are the commits of a group in a lane that wait for the disk, in order. The lane handles
// messages of other keys meanwhile, so that one write to the disk serves many of its commits.
type commitQueue struct {
	mu      sync.Mutex
	pending []*pendingCommit
	// lastByKey is the last one of each key.
	lastByKey map[string]*pendingCommit
}

// oldestDone returns a channel that is closed when the oldest commit is durable, or nil if none waits.
func (ls *commitQueue) oldestDone() <-chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.pending) == 0 {
		return nil
	}
	return ls.pending[0].done
}

// admit returns nil if a message of key may be handled, and otherwise a channel that is closed when
// to ask again.
func (ls *commitQueue) admit(key string) <-chan struct{} {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.lastByKey[key]; l != nil {
		return l.done
	}
	if len(ls.pending) >= maxPendingCommits {
		return ls.pending[0].done
	}
	return nil
}

// add appends l, and calls onDone when it is done. The first one is waited for by a goroutine, which goes on to the
// ones behind it and ends with the last.
func (ls *commitQueue) add(l *pendingCommit, onDone func()) {
	l.done = make(chan struct{})
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.pending = append(ls.pending, l)
	if ls.lastByKey == nil {
		ls.lastByKey = make(map[string]*pendingCommit)
	}
	ls.lastByKey[l.key] = l
	if len(ls.pending) == 1 {
		go ls.awaitCommits(l, onDone)
	}
}

// awaitCommits waits for l and the ones behind it, and calls onDone after each.
func (ls *commitQueue) awaitCommits(l *pendingCommit, onDone func()) {
	for l != nil {
		if l.wait != nil {
			l.wait()
		}
		l.runOnCommit()
		onDone()
		l = ls.remove(l)
	}
}

// remove removes l, the oldest, and returns the next one.
func (ls *commitQueue) remove(l *pendingCommit) (next *pendingCommit) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.pending[0] = nil
	if ls.pending = ls.pending[1:]; len(ls.pending) > 0 {
		next = ls.pending[0]
	}
	if ls.lastByKey[l.key] == l {
		delete(ls.lastByKey, l.key)
	}
	close(l.done)
	return next
}

// awaitEmpty waits until no commit waits. Nothing is added meanwhile.
func (ls *commitQueue) awaitEmpty() {
	for wait := ls.oldestDone(); wait != nil; wait = ls.oldestDone() {
		<-wait
	}
}
