package pipeline

import "context"

// Syncer is what a durable transport's Tx implements beside Tx: Sync makes the commit
// wait until the disk has it.
type Syncer interface{ Sync() }

// SyncTx asks that tx be on disk before its OnCommit functions run and the next message
// comes: for handlers whose commit is told to somebody outside. Where the transport has
// no such choice it does nothing.
func SyncTx(tx Tx) {
	if s, ok := ability[Syncer](tx); ok {
		s.Sync()
	}
}

// Fitter is what the Tx of a transport with limits implements beside Tx: Fits returns why
// what was collected so far can never be committed, such as a message that is too large for
// its topic, and otherwise nil.
type Fitter interface{ Fits() error }

// FitsTx returns why what tx collected can never be committed, as a permanent error, or nil.
func FitsTx(tx Tx) error {
	if f, ok := ability[Fitter](tx); ok {
		return Permanent(f.Fits())
	}
	return nil
}

// ResetTx makes tx forget all that was written, emitted and scheduled, so that a handler
// can be tried again.
func ResetTx(tx Tx) {
	if r, ok := ability[Resetter](tx); ok {
		r.Reset()
	}
}

// ability returns tx, or the first Tx within it, that can do what T says. A Tx that wraps
// another has a method Unwrap() Tx.
func ability[T any](tx Tx) (T, bool) {
	for {
		if t, ok := tx.(T); ok {
			return t, true
		}
		w, ok := tx.(interface{ Unwrap() Tx })
		if !ok {
			var none T
			return none, false
		}
		tx = w.Unwrap()
	}
}

// Positioner is what a transport's Tx implements beside Tx: Position is what
// Message.Position says.
type Positioner interface{ Position() string }

// Messenger is what a transport's Tx may implement beside Tx: Message is the message
// that is handled, with its Position; ok is false where it has no ID or type, or was
// published with Watermill's interface and has only metadata.
type Messenger interface{ Message() (m Message, ok bool) }

// MessageFrom returns the message whose transaction ctx carries, where its transport
// knows it better than by its metadata. Its Header is the caller's own.
func MessageFrom(ctx context.Context) (Message, bool) {
	if tx, ok := TxFrom(ctx); ok {
		if c, ok := tx.(Messenger); ok {
			return c.Message()
		}
	}
	return Message{}, false
}

// PositionFrom returns the position of the message whose transaction ctx carries; it is
// empty for wakes, posted messages and outside a transaction.
func PositionFrom(ctx context.Context) string {
	if tx, ok := TxFrom(ctx); ok {
		if p, ok := tx.(Positioner); ok {
			return p.Position()
		}
	}
	return ""
}
