package pipeline

import (
	"context"
	"errors"
	"time"
)

// Class says what happens after an error.
type Class int

// The classes of errors.
const (
	// ClassRetry is tried again with back-off, a bounded number of times.
	ClassRetry Class = iota
	// ClassPermanent goes to the dead letters at once.
	ClassPermanent
	// ClassGone says that the receiver does not exist any more.
	ClassGone
	// ClassNotYet waits for another message that is on its way; it is never given up.
	ClassNotYet
	// ClassCanceled says that the work was broken off; it is as if it had not begun.
	ClassCanceled
	// ClassRefused says that a receiver refused this very notification: it is tried
	// again a few times, and then it does not hold up the next one.
	ClassRefused
	// ClassBroken says that the store, or the program, cannot do this at all: a value that
	// is damaged, a message of a newer version. The Router stops and says so; the message
	// comes again.
	ClassBroken
	// ClassLimited says that a receiver takes no more at the moment, as with the HTTP status
	// 429. That is no failure: the attempt is made again when the receiver asked for it.
	ClassLimited
)

type classified struct {
	err   error
	class Class
	after time.Duration
}

func (e *classified) Error() string { return e.err.Error() }
func (e *classified) Unwrap() error { return e.err }

// Permanent marks err as one that trying again cannot mend. Permanent(nil) is nil.
func Permanent(err error) error { return classify(err, ClassPermanent, 0) }

// RetryAfter marks err as one after which at least d must pass before the next
// attempt. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error { return classify(err, ClassRetry, max(d, 0)) }

// Limited marks err as a receiver's wish to be asked again after d, because it was sent too
// much. That does not count as a failure. A d of 0 means that the receiver did not say when.
// Limited(nil, d) is nil.
func Limited(err error, d time.Duration) error { return classify(err, ClassLimited, max(d, 0)) }

// Gone marks err as the receiver's word that it does not exist any more. Gone(nil) is nil.
func Gone(err error) error { return classify(err, ClassGone, 0) }

// NotYet marks err as a wait for another message that is on its way.
func NotYet(err error) error { return classify(err, ClassNotYet, 0) }

// Refused marks err as a receiver's refusal of one notification, not of all. The delay of
// a RetryAfter in err stays. Refused(nil) is nil.
func Refused(err error) error {
	_, after := ClassOf(err)
	return classify(err, ClassRefused, after)
}

// Broken marks err as one that stops the Router, since going on would lose something.
// Broken(nil) is nil.
func Broken(err error) error { return classify(err, ClassBroken, 0) }

func classify(err error, c Class, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &classified{err, c, after}
}

// ClassOf returns the class of err and the least delay before the next attempt.
func ClassOf(err error) (Class, time.Duration) {
	if c, ok := errors.AsType[*classified](err); ok {
		return c.class, c.after
	}
	if errors.Is(err, context.Canceled) {
		return ClassCanceled, 0
	}
	return ClassRetry, 0
}

type ambiguous struct{ error }

func (e *ambiguous) Unwrap() error { return e.error }

// Ambiguous marks err as a failure after which the receiver may have the notification
// all the same, such as a connection that broke before the answer. The class of err
// stays. Ambiguous(nil) is nil.
func Ambiguous(err error) error {
	if err == nil {
		return nil
	}
	return &ambiguous{err}
}

// IsAmbiguous reports whether err is marked as Ambiguous.
func IsAmbiguous(err error) bool {
	_, ok := errors.AsType[*ambiguous](err)
	return ok
}

type tellAtOnce struct{ error }

func (e *tellAtOnce) Unwrap() error { return e.error }

// TellAtOnce marks err as a failure that somebody has to mend, such as a token that the
// receiver refuses or a certificate that does not hold: the health event follows the first
// attempt. The class of err stays. TellAtOnce(nil) is nil.
func TellAtOnce(err error) error {
	if err == nil {
		return nil
	}
	return &tellAtOnce{err}
}

// TellsAtOnce reports whether err is marked with TellAtOnce.
func TellsAtOnce(err error) bool {
	_, ok := errors.AsType[*tellAtOnce](err)
	return ok
}
