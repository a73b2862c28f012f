package store

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

// logger passes Pebble's reports on.
type logger struct {
	log     *slog.Logger
	dir     string
	onFatal func(error)
}

var _ pebble.Logger = (*logger)(nil)

func newLogger(l *slog.Logger, dir string, onFatal func(error)) *logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return &logger{l, dir, onFatal}
}

func (l *logger) Infof(format string, args ...any)  { l.log.Debug(fmt.Sprintf(format, args...)) }
func (l *logger) Errorf(format string, args ...any) { l.log.Error(fmt.Sprintf(format, args...)) }

// Fatalf ends the process. It must not return: Pebble would report success for commits
// that failed.
func (l *logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("the store in %s cannot go on (%s): see that its disk has room and works, then start again",
		l.dir, fmt.Sprintf(format, args...))
	l.log.Error(err.Error())
	if l.onFatal != nil {
		l.onFatal(err)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
