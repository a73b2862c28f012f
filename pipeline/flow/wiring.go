package flow

import (
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

// Wiring is what a Router tells its Transport.
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
	// Bare says that nobody reads the metadata of Watermill's messages, since all handlers ask
	// Tx.Message. A transport need not build them then.
	Bare bool
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
