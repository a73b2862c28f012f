package pipeline

import (
	"context"
	"time"
)

// Sink delivers notifications to receivers. A Sink may have more methods:
//
//   - Rate() (perSecond float64, burst int) limits its attempts: perSecond is above 0, and burst,
//     at least 1, is how many may follow each other at once after a pause.
//   - Batch() (notifications, atOnce int) says how many waiting notifications of one receiver an
//     attempt may deliver, and how many of them at the same time, both at least 1. Deliver is
//     called for each; those of one document are called one after the other. The result of an
//     attempt is stored as a whole: after a crash, or where one call of the same time fails, the
//     others are delivered again under the same IDs. It is for receivers that recognise repeats by
//     their IDs. A sink with a Rate has no batches.
//   - Timeout() time.Duration ends an attempt after that time, instead of DefaultTimeout.
//   - Check(ctx) error: see Checker.
//   - Validate() error returns why the sink cannot be used as it is configured.
//   - Unwrap() Sink returns the sink that this one wraps. The methods above are then looked for
//     there as well.
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

// DefaultTimeout bounds an attempt of a sink that has no other timeout.
const DefaultTimeout = 20 * time.Second
