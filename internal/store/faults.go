package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/vokter/vokter/pipeline/failure"
)

// A repeated error is logged at most once in repeatInterval. The logger remembers up to
// maxSeenErrors different errors.
const (
	repeatInterval = 10 * time.Second
	maxSeenErrors  = 100
)

// logger forwards Pebble's reports to slog.
type logger struct {
	log     *slog.Logger
	dir     string
	onFatal func(error)
	now     func() time.Time

	mu   sync.Mutex
	seen map[string]*loggedError // by the text without its numbers
}

// loggedError is an error that was logged.
type loggedError struct {
	at         time.Time
	suppressed int // how often it was repeated since
}

var _ pebble.Logger = (*logger)(nil)

func newLogger(l *slog.Logger, dir string, onFatal func(error)) *logger {
	return &logger{log: l, dir: dir, onFatal: onFatal, now: time.Now, seen: make(map[string]*loggedError)}
}

func (l *logger) Infof(format string, args ...any) { l.log.Debug(fmt.Sprintf(format, args...)) }

// Errorf logs an error. Pebble retries at once and without end, each time with a new file. So
// errors that differ only in numbers count as the same.
func (l *logger) Errorf(format string, args ...any) {
	text := firstLine(fmt.Sprintf(format, args...))
	left, ok := l.shouldLog(text)
	switch {
	case ok && left > 0:
		l.log.Error(text, "repeated", left)
	case ok:
		l.log.Error(text)
	}
}

// shouldLog reports whether text is logged now, and how many errors like it were not logged before.
func (l *logger) shouldLog(text string) (left int, ok bool) {
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
		if len(l.seen) >= maxSeenErrors {
			clear(l.seen)
		}
		l.seen[key] = &loggedError{at: now}
		return 0, true
	case now.Sub(r.at) < repeatInterval:
		r.suppressed++
		return 0, false
	}
	left = r.suppressed
	r.at, r.suppressed = now, 0
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

// readError returns err, an error of a read, with advice, as a failure.Broken error.
func (c *core) readError(err error) error {
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	if class, _ := failure.ClassOf(err); class == failure.ClassBroken {
		return err
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, errKey) || errors.Is(err, errRecord) {
		return failure.Broken(damageError(c.dir, "", err))
	}
	return failure.Broken(fmt.Errorf("the store in %s cannot be read or written (%s): see that its disk works and that this user may write there, then start again; if it does not help, restore a backup",
		describeDir(c.dir), firstLine(err.Error())))
}

// damageError returns err, which says how a store is damaged, with advice. file is the damaged
// file, if it is known.
func damageError(dir, file string, err error) error {
	what := firstLine(err.Error())
	if file != "" && !strings.Contains(what, file) {
		what = file + ": " + what
	}
	return fmt.Errorf("the store in %s is damaged (%s): restore a backup, and keep this directory to find out why", describeDir(dir), what)
}

// onCorruption is called by Pebble when it reads damaged data, also in the background.
func (c *core) onCorruption(info pebble.DataCorruptionInfo) {
	err := failure.Broken(damageError(c.dir, filepath.Base(info.Path), info.Details))
	c.log.Errorf("%v", err)
	c.users.reportBroken(err)
}

// onBackgroundError is called by Pebble when work in the background fails. Pebble retries at once and
// without end. Committed data is safe in the log.
func (c *core) onBackgroundError(err error) {
	c.log.Errorf("background error: %v", err)
	if errors.Is(err, syscall.ENOSPC) || pebble.IsCorruptionError(err) {
		return // the write waits for room, or onCorruption was called
	}
	c.users.reportBroken(c.readError(err))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
