package local

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/store"
)

// ErrClosed is what a closed Transport and its publishers, subscribers and posters return.
var ErrClosed = errors.New("local: the transport is closed")

// Config says where a Transport keeps its messages and how many. Its zero value is a
// transport in memory.
type Config struct {
	// Dir is the data directory; it is made if it is missing. Empty: everything is in
	// memory and gone at Close.
	Dir string
	// Store is used instead of Dir if it is not nil. It stays open at Close. Several
	// Transports may use it, each in a namespace of its own.
	Store *store.DB
	// Namespace is which topics and groups of the store are this Transport's; those of
	// others are as if they were in another store. Empty is a namespace, too.
	Namespace string
	// Lanes is how many messages of a topic are handled at the same time, for a data
	// directory that is made now; one that exists keeps its own number. 0 is 16.
	Lanes int
	// Bound is how many messages may wait in a lane for the slowest group before
	// publishing into it blocks. 0 is 1024.
	Bound int
	// MaxAge and MaxBytes limit what is kept in a topic without groups: the oldest
	// messages go first. 0 is 7 days and 64 MiB.
	MaxAge   time.Duration
	MaxBytes int64
	// Topics declares who consumes what. Where anything is declared, groups that the
	// store knows and that are not declared any more are dropped, with a warning; but see
	// KeepUndeclared.
	Topics map[string]Topic
	// KeepUndeclared keeps the groups that the store knows and Topics does not declare,
	// where they stand: for a Transport that does not do all that others do with the store.
	KeepUndeclared bool
	// Asleep are groups whose wakes do not come: what they have scheduled stays as it is
	// until a Transport without them is opened.
	Asleep []string
	// Grace is how long a closing subscription lets handlers finish before their contexts
	// are cancelled; those that go on for another second are abandoned. 0 is 10 s.
	Grace time.Duration
	// MaxPause is the longest pause before a rejected message comes again. Pauses begin
	// at 5 ms and double. 0 is 1 s.
	MaxPause time.Duration
	// MinFree is how many bytes the disk of Dir must have free; below that publishers
	// outside transactions wait, while what is in the store is still worked on. 0: nothing
	// is watched.
	MinFree int64
	// Free returns how many bytes the file system of dir has free for this user; nil asks
	// the operating system, and watches nothing where there is no Dir.
	Free func(dir string) (int64, error)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Logger gets what operators should know; nil discards it.
	Logger *slog.Logger
	// Migrations bring the store in Dir to today's format; see store.Options.
	Migrations map[int][]store.Migration
	// OnBroken is called, from any goroutine and maybe more than once, when the store cannot
	// be read, with a failure.Broken error that says what to do. What could not be handled
	// is tried again meanwhile, and comes again next time.
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
	if c.Bound == 0 {
		c.Bound = 1024
	}
	if c.MaxAge == 0 {
		c.MaxAge = 7 * 24 * time.Hour
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 64 << 20
	}
	if c.Grace == 0 {
		c.Grace = 10 * time.Second
	}
	if c.MaxPause == 0 {
		c.MaxPause = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnBroken == nil {
		c.OnBroken = func(error) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Store != nil && c.Dir != "":
		return errors.New("local: Dir and Store are both set")
	case c.Bound < 0 || c.MaxAge < 0 || c.MaxBytes < 0 || c.Grace < 0 || c.MaxPause < 0 || c.MinFree < 0:
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
