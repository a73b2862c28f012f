package local

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
)

// ErrClosed is what a closed Transport and its publishers, subscribers and posters return.
var ErrClosed = errors.New("local: the transport is closed")

// Gather is how long a commit that need not be durable may stay in memory before it is written to
// the disk with all others of its time. A crash may lose as much.
const Gather = 5 * time.Second

// Config configures a Transport. Its zero value means a transport in memory.
type Config struct {
	// Dir is the data directory. Open makes it if it does not exist. Empty: everything is kept
	// in memory and lost at Close.
	Dir string
	// Store is used instead of Dir if it is not nil. It stays open at Close. Several
	// Transports may use it, each in a namespace of its own.
	Store *store.DB
	// Namespace is the namespace of the Transport in the store. Topics and groups of different
	// namespaces are separate. The empty name is a namespace, too.
	Namespace string
	// Lanes is the number of lanes of a new data directory, and so how many messages of a topic
	// are handled at the same time. An existing directory keeps its number. 0 means 64.
	Lanes int
	// Memory is about how many bytes the store in Dir may hold in memory. 0 means 64 MiB; see
	// store.Options.
	Memory int64
	// Bound is how many messages may wait in a lane for the slowest group before Publish
	// blocks. 0 means 1024.
	Bound int
	// MaxAge and MaxBytes limit what a topic without groups keeps. The oldest messages are
	// deleted first. 0 means 7 days and 64 MiB.
	MaxAge   time.Duration
	MaxBytes int64
	// Topics declares the groups of each topic. If it is not empty, Open deletes groups in the
	// store that it does not declare and logs a warning, unless KeepUndeclared is set.
	Topics map[string]Topic
	// KeepUndeclared keeps groups in the store that Topics does not declare, with their
	// positions. It is for a Transport that does only a part of the work.
	KeepUndeclared bool
	// Asleep are groups whose wakes are not delivered. The wakes stay in the store.
	Asleep []string
	// Grace is how long a closing subscription lets handlers finish before it cancels their
	// contexts. It abandons handlers that run for another second. 0 means 10 s.
	Grace time.Duration
	// MaxPause is the longest pause before a rejected message is redelivered. Pauses begin at 5
	// ms and double. 0 means 1 s.
	MaxPause time.Duration
	// MinFree is how many bytes must be free on the disk of Dir. With less, publishers outside
	// transactions wait, while messages in the store are still handled. 0 means that the disk
	// is not watched.
	MinFree int64
	// Free returns how many bytes the file system of dir has free for this user. Nil asks the
	// operating system; the disk is then not watched if Dir is empty.
	Free func(dir string) (int64, error)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger gets messages for operators. Nil discards them.
	Logger *slog.Logger
	// OnBroken is called when the store cannot be read, from any goroutine and possibly more
	// than once. Its argument is a failure.Broken error that says what to do. Messages that
	// could not be handled are retried, and are redelivered after the next start.
	OnBroken func(error)
	// OnFatal is called just before the process ends because the disk fails; see
	// store.Options.
	OnFatal func(error)
}

// Topic declares a topic. The messages of an Ephemeral one are kept in memory only and are
// gone with the process, however it ends; in a store that outlives the process they have no
// pipeline.Message.Position. They count with the commit that publishes them.
type Topic = flow.Topic

func (c Config) withDefaults() Config {
	c.Bound = cmp.Or(c.Bound, 1024)
	c.MaxAge = cmp.Or(c.MaxAge, 7*24*time.Hour)
	c.MaxBytes = cmp.Or(c.MaxBytes, 64<<20)
	c.Grace = cmp.Or(c.Grace, 10*time.Second)
	c.MaxPause = cmp.Or(c.MaxPause, time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnBroken == nil {
		c.OnBroken = func(error) {}
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Store != nil && c.Dir != "":
		return errors.New("local: Dir and Store are both set")
	case c.Bound < 0 || c.MaxAge < 0 || c.MaxBytes < 0 || c.Grace < 0 || c.MaxPause < 0 || c.MinFree < 0 || c.Memory < 0:
		return errors.New("local: a limit is negative")
	}
	for name, t := range c.Topics {
		for _, g := range t.Groups {
			if g == "" {
				return fmt.Errorf("local: topic %q declares a group without a name", name)
			}
		}
	}
	return nil
}
