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
	// exclusiveWeight is the weight of a message that is handled alone.
	exclusiveWeight = 1 << 30
	// turnTimeout is how long a message waits until it can be handled alone, or beside others.
	turnTimeout = 30 * time.Second
	// maxStarts is after how many starts a message that does not come again is forgotten. It may
	// have been committed just before the process died, or another process handles it.
	maxStarts = 16
)

// Log is the file and its contents. A nil Log records nothing. It is safe for concurrent use.
type Log struct {
	path  string
	log   *slog.Logger
	turns *semaphore.Weighted
	// hasDeaths says that there are messages during which a process died.
	hasDeaths atomic.Bool

	mu          sync.Mutex
	file        *os.File
	entries     map[Key]entry
	slotCount   int
	freeSlots   []int
	writeFailed bool
}

// Open reads the file at path, or creates it. Only one Log may use a file.
func Open(path string, log *slog.Logger) (*Log, error) {
	l := &Log{path: path, log: log, turns: semaphore.NewWeighted(exclusiveWeight), entries: make(map[Key]entry), slotCount: 1}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range decodeEntries(b) {
		if e.inProgress {
			e.deaths, e.starts = byte(min(int(e.deaths)+1, 255)), 0
		} else {
			e.starts++
		}
		if e.inProgress = false; e.starts <= maxStarts {
			e.slot = l.slotCount
			l.entries[e.key] = e
			l.slotCount++
		}
	}
	image := bytes.NewBuffer(append([]byte(nil), magic[:]...))
	image.Grow(l.slotCount * slotSize)
	ordered := make([]entry, l.slotCount)
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
	l.hasDeaths.Store(len(l.entries) > 0)
	return l, nil
}

// Careful reports whether there are messages during which a process died.
func (l *Log) Careful() bool { return l != nil && l.hasDeaths.Load() }

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
	if l.hasDeaths.Load() {
		defer l.acquireTurn(ctx, l.Deaths(k) > 0)()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if k == (Key{}) {
		return f()
	}
	l.recordBegin(k)
	returned := false
	var err error
	defer func() { l.recordEnd(k, returned && err == nil) }() // also where f panics
	err = f()
	returned = true
	return err
}

// acquireTurn waits until a message may be handled, alone or beside others. It gives up after turnTimeout,
// since a handler may wait for another one. The caller must call release.
func (l *Log) acquireTurn(ctx context.Context, alone bool) (release func()) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	weight := int64(1)
	if alone {
		weight = exclusiveWeight
	}
	if l.turns.Acquire(ctx, weight) != nil {
		return func() {}
	}
	return func() { l.turns.Release(weight) }
}

// Forget removes the deaths of k.
func (l *Log) Forget(k Key) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.entries[k]; ok {
		l.dropEntry(e)
	}
}

// recordBegin records that k is being handled.
func (l *Log) recordBegin(k Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.entries[k]
	if !ok {
		e = entry{key: k, slot: l.slotCount}
		if n := len(l.freeSlots); n > 0 {
			e.slot, l.freeSlots = l.freeSlots[n-1], l.freeSlots[:n-1]
		} else {
			l.slotCount++
		}
	}
	e.inProgress, e.starts = true, 0
	l.entries[k] = e
	l.writeSlot(e.slot, e.encode())
}

// recordEnd records that the handling of k ended. If it failed, k comes again, so its deaths are kept.
func (l *Log) recordEnd(k Key, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[k]
	if ok || e.deaths == 0 {
		l.dropEntry(e)
		return
	}
	e.inProgress = false
	l.entries[k] = e
	l.writeSlot(e.slot, e.encode())
}

// dropEntry removes e. l.mu is held.
func (l *Log) dropEntry(e entry) {
	delete(l.entries, e.key)
	l.freeSlots = append(l.freeSlots, e.slot)
	if e.deaths == 0 {
		return
	}
	l.writeSlot(e.slot, make([]byte, slotSize))
	for _, o := range l.entries {
		if o.deaths > 0 {
			return
		}
	}
	l.hasDeaths.Store(false)
}

// writeSlot writes b into a slot. An error is only logged. l.mu is held.
func (l *Log) writeSlot(slot int, b []byte) {
	if _, err := l.file.WriteAt(b, int64(slot)*slotSize); err != nil && !l.writeFailed {
		l.writeFailed = true
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
	for _, slot := range l.freeSlots {
		if len(l.entries) > 0 {
			l.writeSlot(slot, make([]byte, slotSize))
		}
	}
	err := l.file.Close()
	if len(l.entries) == 0 {
		err = errors.Join(err, os.Remove(l.path))
	}
	return err
}

// slotSize is how many bytes a slot of the file has. The first one holds magic.
const slotSize = 32

// magic identifies the file and the format of its slots.
var magic = [slotSize]byte([]byte("vokter: messages in flight, 1\n\x00\x00"))

// entry is a message that is being handled, or during which a process died.
type entry struct {
	key  Key
	slot int
	// inProgress says that the message is being handled now.
	inProgress bool
	// deaths is how often a process died while it handled the message. starts is how often a
	// process has started since then without handling it.
	deaths, starts byte
}

func (e entry) encode() []byte {
	b := make([]byte, slotSize)
	copy(b, e.key[:])
	b[16], b[17], b[18] = 1, e.deaths, e.starts
	if e.inProgress {
		b[16] = 2
	}
	return b
}

// decodeEntries returns the entries in the bytes of a file, none if they do not begin with magic.
func decodeEntries(b []byte) []entry {
	if len(b) < slotSize || [slotSize]byte(b) != magic {
		return nil
	}
	var all []entry
	for b = b[slotSize:]; len(b) >= slotSize; b = b[slotSize:] {
		if b[16] == 1 || b[16] == 2 {
			all = append(all, entry{key: Key(b[:16]), inProgress: b[16] == 2, deaths: b[17], starts: b[18]})
		}
	}
	return all
}
