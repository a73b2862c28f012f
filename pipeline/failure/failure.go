// Package failure marks errors with what happens next. A sink returns failure.Gone(err) where
// its receiver does not exist any more; the pipeline reads the mark with ClassOf. An error
// without a mark is retried. Marks survive fmt.Errorf with %w and errors.Join.
package failure

import (
	"context"
	"errors"
	"time"
)

// Class says what happens after an error.
type Class int

// The classes of errors.
const (
	// ClassRetry is retried with back-off, a bounded number of times.
	ClassRetry Class = iota
	// ClassPermanent means that no retry can help. The message goes to the dead letters.
	ClassPermanent
	// ClassGone means that the receiver does not exist any more.
	ClassGone
	// ClassCanceled means that the work was cancelled. It counts as if it had not begun.
	ClassCanceled
	// ClassRefused means that the receiver refused this one notification. It is retried a few
	// times, and does not hold up the next notification after that.
	ClassRefused
	// ClassBroken means that the store is damaged, or that a message is of a newer version. The
	// Router stops with the error and handles the message again when it is restarted.
	ClassBroken
	// ClassLimited means that the receiver accepts nothing more at the moment, as with the HTTP
	// status 429. It is retried when the receiver asked for it, and does not count as a failure.
	ClassLimited
)

// String returns the name of c in one word.
func (c Class) String() string {
	switch c {
	case ClassRetry:
		return "retry"
	case ClassPermanent:
		return "permanent"
	case ClassGone:
		return "gone"
	case ClassCanceled:
		return "canceled"
	case ClassRefused:
		return "refused"
	case ClassBroken:
		return "broken"
	case ClassLimited:
		return "limited"
	}
	return "unknown"
}

type classified struct {
	error
	class Class
	after time.Duration
}

func (e *classified) Unwrap() error { return e.error }

// Permanent marks err as one that no retry can fix. Permanent(nil) is nil.
func Permanent(err error) error { return classify(err, ClassPermanent, 0) }

// RetryAfter marks err as one whose retry waits for at least d. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error { return classify(err, ClassRetry, max(d, 0)) }

// Limited marks err as the answer of a receiver that was sent too much and wants the next
// attempt after d. A d of 0 means that the receiver did not say when. Limited(nil, d) is nil.
func Limited(err error, d time.Duration) error { return classify(err, ClassLimited, max(d, 0)) }

// Gone marks err as one that says that the receiver does not exist any more. Gone(nil) is nil.
func Gone(err error) error { return classify(err, ClassGone, 0) }

// Refused marks err as a receiver's refusal of one notification, not of all. The delay of
// a RetryAfter in err stays. Refused(nil) is nil.
func Refused(err error) error {
	_, after := ClassOf(err)
	return classify(err, ClassRefused, after)
}

// Broken marks err as one that stops the Router, because going on would lose something.
// Broken(nil) is nil.
func Broken(err error) error { return classify(err, ClassBroken, 0) }

func classify(err error, c Class, after time.Duration) error {
	if err == nil {
		return nil
	}
	return &classified{err, c, after}
}

// ClassOf returns the class of err and the least delay before its retry. An error without a
// mark is ClassRetry, or ClassCanceled where it is context.Canceled.
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

// TellAtOnce marks err as a failure that a person has to mend, such as a token that the
// receiver refuses or a certificate that is not valid: the health event follows the first
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
