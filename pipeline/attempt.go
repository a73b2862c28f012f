package pipeline

import "context"

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
func (noAttempt) Note() string     { return "" }
func (noAttempt) SetNote(string)   {}
func (noAttempt) Degraded(string)  {}
