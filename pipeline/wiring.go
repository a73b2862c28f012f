package pipeline

import (
	"errors"
	"iter"
	"log/slog"
	"time"
)

// Topic declares a topic.
type Topic struct {
	// Groups are the consumer groups that read it.
	Groups []string
	// Feedback marks a topic that closes a circle: handlers never wait for room in it.
	Feedback bool
	// Entry marks a topic that is in no circle: its handlers wait for room in Feedback topics
	// too, where the transport bounds them.
	Entry bool
	// Ephemeral marks a topic whose messages are asked for again after a start, so that they
	// need not outlive the process. They come in order and until they were handled, after the
	// commit that publishes them; where no group reads them, nothing keeps them.
	Ephemeral bool
	// AnyLane marks a topic whose messages are handled in the lane in which their publisher
	// put them, whatever their key is.
	AnyLane bool
}

// Wiring is what a Router tells a Transport that connects to something outside the process.
type Wiring struct {
	// Topics says who consumes what.
	Topics map[string]Topic
	// Dir is where the Transport may keep a cache of its state; empty: in memory.
	Dir string
	// MinFree is how many bytes the disk of Dir must have free; 0: nothing is watched.
	MinFree int64
	// Grace is how long a closing subscription lets handlers finish before their contexts
	// are cancelled.
	Grace time.Duration
	// Now is the clock.
	Now func() time.Time
	// Logger gets what operators should know.
	Logger *slog.Logger
	// OnBroken is called, from any goroutine and maybe more than once, when the Transport
	// cannot go on, with an error that says what to do.
	OnBroken func(error)
	// OnFatal is called just before the process ends because the disk fails.
	OnFatal func(error)
}

// Broadcaster is what a transport's Tx implements beside Tx. A lane is one of the parallel
// parts of all topics: messages and state of one key stand in the same lane of each topic
// and group, and one process at a time owns a lane.
type Broadcaster interface {
	// EmitAll publishes m, which has no key, into every lane of its topic with the commit,
	// each under an ID of its own that is derived from that of m.
	EmitAll(m Message)
	// Neighbours yields the keys in the lane of the message that is handled for which group
	// keeps state, each with its state as it is committed, in no order that means anything.
	Neighbours(group string) iter.Seq2[string, State]
}

// EmitAll publishes m, which has no key, into every lane of its topic with the commit of tx.
// Each copy has an ID of its own. A transport without lanes gets m once.
func EmitAll(tx Tx, m Message) {
	if b, ok := ability[Broadcaster](tx); ok {
		b.EmitAll(m)
		return
	}
	tx.Emit(m)
}

// Neighbours yields what Broadcaster.Neighbours says. Where tx cannot tell, it yields an
// empty key and a state whose reads fail, as it does where the store fails.
func Neighbours(tx Tx, group string) iter.Seq2[string, State] {
	if b, ok := ability[Broadcaster](tx); ok {
		return b.Neighbours(group)
	}
	return func(yield func(string, State) bool) {
		yield("", FailedState(Broken(errors.New("the transaction does not know its lane"))))
	}
}
