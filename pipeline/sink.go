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

// ChangeSink is a Sink that also delivers change records, for other programs. Such a notification has
// Type NotificationTypeChange and a Record.
type ChangeSink interface {
	Sink
	// TakesChanges returns nil, or why the sink as it is configured cannot deliver change records.
	TakesChanges() error
}

// ChannelSink is a Sink of a kind that can serve many channels.
type ChannelSink interface {
	Sink
	// TakesChannel returns nil if the sink, as it is configured, delivers to the channel that a
	// subscription names, and otherwise why not.
	TakesChannel() error
}

// RoutingSink is a Sink that delivers nothing itself: it names the sinks that get a notification.
type RoutingSink interface {
	Sink
	// Route returns the names of the sinks that get n at the time at, each once. It returns none
	// where nobody is to get n.
	Route(n Notification, at time.Time) []string
	// Targets returns the names of all sinks that Route may return, each once.
	Targets() []string
}

// SinkFunc is a function that is a Sink.
type SinkFunc func(ctx context.Context, n Notification) error

// Deliver calls f.
func (f SinkFunc) Deliver(ctx context.Context, n Notification) error { return f(ctx, n) }

// Attempt lets Sink.Deliver read and keep a note between attempts, and report a degraded delivery.
// AttemptFrom gets it from the context. It is safe for concurrent use.
type Attempt interface {
	// Document is the ID of the document of the notification; it is empty for health events.
	Document() string
	// Note returns the note that an earlier attempt for this receiver and document set. It is empty
	// where none did within the last week.
	Note() string
	// SetNote stores note, of at most MaxNote bytes, when the attempt ends, whatever its result. A
	// longer note is dropped. A note is lost where the process is killed before that.
	SetNote(note string)
	// Degraded reports that the notification is delivered in a worse form than configured, for
	// example without its layout. The first report becomes a health event.
	Degraded(reason string)
}

// MaxNote is the largest size of the note of an Attempt, in bytes.
const MaxNote = 1 << 10

type attemptKey struct{}

// WithAttempt returns a context for Sink.Deliver that carries a.
func WithAttempt(ctx context.Context, a Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// AttemptFrom returns the Attempt of ctx. Where ctx has none, it returns one without a note that
// ignores what it is told.
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

// Checker is a Sink that can check its receiver without delivering anything. The commands
// `sink test` and `lint --connect` call it.
type Checker interface {
	// Check returns nil if notifications would arrive, and otherwise an error that says what is
	// wrong and how to mend it. It changes nothing at the receiver and shows nothing to anybody
	// there. It returns soon after ctx is done, is safe for concurrent use, and its errors hold no
	// secret.
	Check(ctx context.Context) error
}

// DefaultTimeout ends an attempt of a sink that has no method Timeout.
const DefaultTimeout = 20 * time.Second
