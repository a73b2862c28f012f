package pipeline

import "context"

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
