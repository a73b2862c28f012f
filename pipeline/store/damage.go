package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/vokter/vokter/pipeline"
)

// readError says what to do about err, which a read gave. It is Broken.
func (c *core) readError(err error) error {
	if err == nil || errors.Is(err, ErrClosed) {
		return err
	}
	if class, _ := pipeline.ClassOf(err); class == pipeline.ClassBroken {
		return err
	}
	if pebble.IsCorruptionError(err) || errors.Is(err, errKey) || errors.Is(err, errRecord) {
		return pipeline.Broken(damageError(c.dir, "", err))
	}
	return pipeline.Broken(fmt.Errorf("the store in %s cannot be read or written (%s): see that its disk works and that this user may write there, then start again; if it does not help, restore a backup",
		where(c.dir), firstLine(err.Error())))
}

// damageError says what to do about err, which says what is wrong with a store's contents,
// in a file if that is known.
func damageError(dir, file string, err error) error {
	what := firstLine(err.Error())
	if file != "" && !strings.Contains(what, file) {
		what = file + ": " + what
	}
	return fmt.Errorf("the store in %s is damaged (%s): restore a backup, and keep this directory to find out why", where(dir), what)
}

// corrupt is told by Pebble of what it found damaged while it read, also in the background.
func (c *core) corrupt(info pebble.DataCorruptionInfo) {
	err := pipeline.Broken(damageError(c.dir, filepath.Base(info.Path), info.Details))
	c.log.Errorf("%v", err)
	c.sharing.broke(err)
}

// background is told by Pebble of what it could not do beside the reads and writes; it
// tries again at once, for ever. What was committed is in its log.
func (c *core) background(err error) {
	c.log.Errorf("background error: %v", err)
	if errors.Is(err, syscall.ENOSPC) || pebble.IsCorruptionError(err) {
		return // it waits for room, or corrupt was told
	}
	c.sharing.broke(c.readError(err))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
