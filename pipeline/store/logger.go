package store

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// An error that comes again is logged at most once in repeatEvery. Up to maxRepeated
// different ones are remembered.
const (
	repeatEvery = 10 * time.Second
	maxRepeated = 100
)

// logger passes Pebble's reports on.
type logger struct {
	log     *slog.Logger
	dir     string
	onFatal func(error)
	now     func() time.Time

	mu   sync.Mutex
	seen map[string]*repeated // by the text without its numbers
}

// repeated is an error that was logged.
type repeated struct {
	at   time.Time
	left int // how often it came since
}

var _ pebble.Logger = (*logger)(nil)

func newLogger(l *slog.Logger, dir string, onFatal func(error)) *logger {
	return &logger{log: l, dir: dir, onFatal: onFatal, now: time.Now, seen: make(map[string]*repeated)}
}

func (l *logger) Infof(format string, args ...any) { l.log.Debug(fmt.Sprintf(format, args...)) }

// Errorf logs an error. Pebble tries again at once, for ever, and with a new file each
// time, so those that differ in numbers only are the same.
func (l *logger) Errorf(format string, args ...any) {
	text := firstLine(fmt.Sprintf(format, args...))
	left, ok := l.pass(text)
	switch {
	case ok && left > 0:
		l.log.Error(text, "repeated", left)
	case ok:
		l.log.Error(text)
	}
}

// pass reports whether text is logged now, and how many like it were not before.
func (l *logger) pass(text string) (left int, ok bool) {
	key := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
	l.mu.Lock()
	defer l.mu.Unlock()
	now, r := l.now(), l.seen[key]
	switch {
	case r == nil:
		if len(l.seen) >= maxRepeated {
			clear(l.seen)
		}
		l.seen[key] = &repeated{at: now}
		return 0, true
	case now.Sub(r.at) < repeatEvery:
		r.left++
		return 0, false
	}
	left = r.left
	r.at, r.left = now, 0
	return left, true
}

// Fatalf ends the process. It must not return: Pebble would report success for commits
// that failed.
func (l *logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("the store in %s cannot go on (%s): see that its disk has room and works, then start again",
		l.dir, firstLine(fmt.Sprintf(format, args...)))
	l.log.Error(err.Error())
	if l.onFatal != nil {
		l.onFatal(err)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
