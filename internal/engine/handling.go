package engine

import "errors"

// handling says how far the handler of a transaction has come.
type handling int

const (
	notHandled handling = iota
	beingHandled
	handlingFailed
	handled
)

var errHandledTwice = errors.New("the message is being handled already")

// Handle calls f, the handler of the message. What an earlier call collected is dropped: a Watermill middleware
// may call its handler again, after a failure or on purpose.
func (x *Tx[O]) Handle(f func() error) error {
	if err := x.beginHandling(); err != nil {
		return err
	}
	result := handlingFailed
	defer func() { x.endHandling(result) }()
	err := f()
	if err == nil {
		result = handled
	}
	return err
}

func (x *Tx[O]) beginHandling() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.ended:
		return ErrOver
	case x.handling == beingHandled:
		return errHandledTwice
	case x.handling != notHandled:
		x.discard()
	}
	x.handling = beingHandled
	return nil
}

func (x *Tx[O]) endHandling(result handling) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.handling = result
	if x.handlingEnds != nil {
		close(x.handlingEnds)
		x.handlingEnds = nil
	}
}

// failed reports whether the last call of the handler failed.
func (x *Tx[O]) failed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.handling == handlingFailed
}

// settle returns how the handling of an acknowledged message ended. If its handler runs, wait is closed when to ask
// again. If it did not run, the transaction is over, so that it cannot begin later.
func (x *Tx[O]) settle() (result handling, wait <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch x.handling {
	case notHandled:
		x.ended = true
		x.discard()
	case beingHandled:
		if x.handlingEnds == nil {
			x.handlingEnds = make(chan struct{})
		}
	}
	return x.handling, x.handlingEnds
}
