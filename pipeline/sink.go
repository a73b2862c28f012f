package pipeline

import (
	"context"
	"math"
	"time"
)

// Sink hands notifications to receivers.
type Sink interface {
	// Deliver returns nil only when the receiver has n. Package failure marks its error with
	// what happens next; an error without a mark is tried again. It returns soon after ctx is
	// done, is safe for concurrent use, and its errors hold no secret.
	Deliver(ctx context.Context, n Notification) error
}

// SinkFunc is a function that is a Sink.
type SinkFunc func(ctx context.Context, n Notification) error

// Deliver calls f.
func (f SinkFunc) Deliver(ctx context.Context, n Notification) error { return f(ctx, n) }

// Attempt is what a Sink may ask and say, beyond its error, about the attempt that it
// makes. It is safe for concurrent use.
type Attempt interface {
	// Document names the document of the notification; it is empty for health events.
	Document() string
	// Note returns what an earlier attempt, of this receiver and document, has noted; empty
	// where none has, or a week ago.
	Note() string
	// SetNote keeps note, of at most MaxNote bytes, once the attempt has ended, however it
	// did; a longer one is dropped. Where the process is killed before, it may be lost.
	SetNote(note string)
	// Degraded says that the notification is delivered other than the operator wanted, such
	// as without its layout, and why. It becomes a health event when that begins.
	Degraded(reason string)
}

// MaxNote bounds the note of an Attempt, in bytes.
const MaxNote = 1 << 10

type attemptKey struct{}

// WithAttempt returns a context for Sink.Deliver that carries a.
func WithAttempt(ctx context.Context, a Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// AttemptFrom returns the Attempt of ctx. Where there is none, it returns one that has no
// note and keeps none.
func AttemptFrom(ctx context.Context) Attempt {
	if a, ok := ctx.Value(attemptKey{}).(Attempt); ok {
		return a
	}
	return noAttempt{}
}

type noAttempt struct{}

func (noAttempt) Document() string { return "" }

func (noAttempt) Note() string { return "" }

func (noAttempt) SetNote(string) {}

func (noAttempt) Degraded(string) {}

// Checker is a Sink that can ask its receiver, before anything is delivered, whether
// notifications would arrive there as they should. `sink test` and `lint --connect` ask it.
type Checker interface {
	// Check returns nil where all is well, and otherwise what is wrong and what to write
	// instead. It changes nothing at the receiver, and nobody there sees that it was asked. It
	// returns soon after ctx is done, is safe for concurrent use, and its errors hold no
	// secret.
	Check(ctx context.Context) error
}

// CheckerOf returns s, or the first of the sinks that it wraps, that is a Checker; ok is false
// where none is.
func CheckerOf(s Sink) (c Checker, ok bool) { return find[Checker](s) }

// DefaultTimeout bounds an attempt of a sink that has no other timeout.
const DefaultTimeout = 20 * time.Second

// LimitRate returns s with another rate: perSecond attempts a second, above 0, and at most
// burst, at least 1, at once.
func LimitRate(s Sink, perSecond float64, burst int) Sink {
	return rated{wrapped{s}, perSecond, burst}
}

// LimitTime returns s with another timeout: an attempt ends after d, which is above 0.
func LimitTime(s Sink, d time.Duration) Sink { return timed{wrapped{s}, d} }

// RateOf returns the rate of s, with a burst of at least 1; ok is false where it has none, or
// one that is not above 0 and finite.
func RateOf(s Sink) (perSecond float64, burst int, ok bool) {
	r, ok := find[interface{ Rate() (float64, int) }](s)
	if !ok {
		return 0, 0, false
	}
	perSecond, burst = r.Rate()
	if !(perSecond > 0) || math.IsInf(perSecond, 1) {
		return 0, 0, false
	}
	return perSecond, max(burst, 1), true
}

// BatchOf returns how many notifications an attempt of s may deliver, and how many of them at
// the same time: 1 and 1 where s does not say, and where it has a rate, which is one of
// attempts.
func BatchOf(s Sink) (notifications, atOnce int) {
	b, ok := find[interface{ Batch() (int, int) }](s)
	if !ok {
		return 1, 1
	}
	if _, _, limited := RateOf(s); limited {
		return 1, 1
	}
	notifications, atOnce = b.Batch()
	return max(notifications, 1), max(atOnce, 1)
}

// TimeoutOf returns how long an attempt of s may take; 0 where s does not say.
func TimeoutOf(s Sink) time.Duration {
	if t, ok := find[interface{ Timeout() time.Duration }](s); ok {
		return max(t.Timeout(), 0)
	}
	return 0
}

// find returns s, or the first of the sinks that it wraps, that is a T.
func find[T any](s Sink) (found T, ok bool) {
	for s != nil {
		if found, ok = s.(T); ok {
			return found, true
		}
		w, wraps := s.(interface{ Unwrap() Sink })
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return found, false
}

// wrapped is a Sink with other limits.
type wrapped struct{ sink Sink }

func (w wrapped) Deliver(ctx context.Context, n Notification) error { return w.sink.Deliver(ctx, n) }

// Unwrap returns the sink with the limits of its own.
func (w wrapped) Unwrap() Sink { return w.sink }

// Validate returns why the sink cannot be used, where it says that.
func (w wrapped) Validate() error {
	if v, ok := w.sink.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

type rated struct {
	wrapped
	perSecond float64
	burst     int
}

func (r rated) Rate() (perSecond float64, burst int) { return r.perSecond, r.burst }

type timed struct {
	wrapped
	timeout time.Duration
}

func (t timed) Timeout() time.Duration { return t.timeout }
