// Package inflight records in a small file which messages are being handled. From it the next
// process learns during which messages the last process died.
//
// The file is not synced: what a process wrote survives the end of the process. After a power
// failure the file may be old, which is fine, since no message caused the failure.
//
// To save a write, the end of a message is not written: the next message overwrites its slot.
// So the file may name a few messages that had ended. These count one death at most, since the
// end of a message that has one is written.
package inflight

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Key identifies a message and the group that handles it.
type Key [16]byte

// KeyOf returns the Key for a list of strings.
func KeyOf(parts ...string) Key {
	var b []byte
	for _, p := range parts {
		b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(b)
	return Key(sum[:16])
}

const (
	// all is the weight of a message that is handled alone.
	all = 1 << 30
	// patience is how long a message waits until it can be handled alone, or beside others.
	patience = 30 * time.Second
	// maxStarts is after how many starts a message that does not come again is forgotten. It may
	// have been committed just before the process died, or another process handles it.
	maxStarts = 16
)

// Log is the file and its contents. A nil Log records nothing. It is safe for concurrent use.
type Log struct {
	path  string
	log   *slog.Logger
	alone *semaphore.Weighted
	// careful says that there are messages during which a process died.
	careful atomic.Bool

	mu      sync.Mutex
	file    *os.File
	entries map[Key]entry
	slots   int
	free    []int
	failed  bool
}

// Open reads the file at path, or creates it. Only one Log may use a file.
func Open(path string, log *slog.Logger) (*Log, error) {
	l := &Log{path: path, log: log, alone: semaphore.NewWeighted(all), entries: make(map[Key]entry), slots: 1}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range decode(b) {
		if e.begun {
			e.deaths, e.starts = byte(min(int(e.deaths)+1, 255)), 0
		} else {
			e.starts++
		}
		if e.begun = false; e.starts <= maxStarts {
			e.slot = l.slots
			l.entries[e.key] = e
			l.slots++
		}
	}
	image := bytes.NewBuffer(append([]byte(nil), magic[:]...))
	image.Grow(l.slots * size)
	ordered := make([]entry, l.slots)
	for _, e := range l.entries {
		ordered[e.slot] = e
	}
	for _, e := range ordered[1:] {
		image.Write(e.encode())
	}
	// If the process dies between the two steps, the old file is still complete.
	if err := os.WriteFile(path+".new", image.Bytes(), 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, err
	}
	if l.file, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		return nil, err
	}
	l.careful.Store(len(l.entries) > 0)
	return l, nil
}

// Careful reports whether there are messages during which a process died.
func (l *Log) Careful() bool { return l != nil && l.careful.Load() }

// Deaths returns how often in a row the process died while it handled k.
func (l *Log) Deaths(k Key) int {
	if !l.Careful() {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.entries[k].deaths)
}

// Handle calls f, which handles k, and returns its error. The file names k while f runs. A message
// during which a process died is handled alone, so that no other message is blamed for the next
// death. Messages with the zero Key, which do not come again after a death, are not recorded.
func (l *Log) Handle(ctx context.Context, k Key, f func() error) error {
	if l == nil {
		return f()
	}
	if l.careful.Load() {
		defer l.wait(ctx, l.Deaths(k) > 0)()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if k == (Key{}) {
		return f()
	}
	l.begin(k)
	returned := false
	var err error
	defer func() { l.end(k, returned && err == nil) }() // also where f panics
	err = f()
	returned = true
	return err
}

// wait waits until a message may be handled, alone or beside others. It gives up after patience,
// since a handler may wait for another one. The caller must call release.
func (l *Log) wait(ctx context.Context, alone bool) (release func()) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	weight := int64(1)
	if alone {
		weight = all
	}
	if l.alone.Acquire(ctx, weight) != nil {
		return func() {}
	}
	return func() { l.alone.Release(weight) }
}

// Forget removes the deaths of k.
func (l *Log) Forget(k Key) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.entries[k]; ok {
		l.drop(e)
	}
}

// begin records that k is being handled.
func (l *Log) begin(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[k]
	if !ok {
		e = entry{key: k, slot: l.slots}
		if n := len(l.free); n > 0 {
			e.slot, l.free = l.free[n-1], l.free[:n-1]
		} else {
			l.slots++
		}
	}
	e.begun, e.starts = true, 0
	l.entries[k] = e
	l.write(e.slot, e.encode())
}

// end records that the handling of k ended. If it failed, k comes again, so its deaths are kept.
func (l *Log) end(k Key, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[k]
	if ok || e.deaths == 0 {
		l.drop(e)
		return
	}
	e.begun = false
	l.entries[k] = e
	l.write(e.slot, e.encode())
}

// drop removes e. l.mu is held.
func (l *Log) drop(e entry) {
	delete(l.entries, e.key)
	l.free = append(l.free, e.slot)
	if e.deaths == 0 {
		return
	}
	l.write(e.slot, make([]byte, size))
	for _, o := range l.entries {
		if o.deaths > 0 {
			return
		}
	}
	l.careful.Store(false)
}

// write writes b into a slot. An error is only logged. l.mu is held.
func (l *Log) write(slot int, b []byte) {
	if _, err := l.file.WriteAt(b, int64(slot)*size); err != nil && !l.failed {
		l.failed = true
		l.log.Warn("the messages in flight cannot be recorded: after a crash, the message that caused it will not be recognised", "error", err)
	}
}

// Close closes the file, and removes it if it names no message.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, slot := range l.free {
		if len(l.entries) > 0 {
			l.write(slot, make([]byte, size))
		}
	}
	err := l.file.Close()
	if len(l.entries) == 0 {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}

// size is how many bytes a slot of the file has. The first one holds magic.
const size = 32

// magic identifies the file and the format of its slots.
var magic = [size]byte([]byte("vokter: messages in flight, 1\n\x00\x00"))

// entry is a message that is being handled, or during which a process died.
type entry struct {
	key  Key
	slot int
	// begun says that the message is being handled now.
	begun bool
	// deaths is how often a process died while it handled the message. starts is how often a
	// process has started since then without handling it.
	deaths, starts byte
}

func (e entry) encode() []byte {
	b := make([]byte, size)
	copy(b, e.key[:])
	b[16], b[17], b[18] = 1, e.deaths, e.starts
	if e.begun {
		b[16] = 2
	}
	return b
}

// decode returns the entries in the bytes of a file, none if they do not begin with magic.
func decode(b []byte) []entry {
	if len(b) < size || [size]byte(b) != magic {
		return nil
	}
	var all []entry
	for b = b[size:]; len(b) >= size; b = b[size:] {
		if b[16] == 1 || b[16] == 2 {
			all = append(all, entry{key: Key(b[:16]), begun: b[16] == 2, deaths: b[17], starts: b[18]})
		}
	}
	return all
}
