package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
)

// fakeDisk says how many bytes a disk has free, and how far the clock was set back.
type fakeDisk struct{ free, clockSetBack atomic.Int64 }

func (d *fakeDisk) freeBytes(string) (int64, error) {
	if n := d.free.Load(); n >= 0 {
		return n, nil
	}
	return 0, errors.New("no such disk")
}

// openWatched opens a transport in memory that watches the disk d, which needs 1000 bytes free.
func openWatched(t *testing.T, d *fakeDisk, log *bytes.Buffer) *Transport {
	return open(t, Config{
		Lanes: 1, MinFree: 1000, Free: d.freeBytes, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Now:    func() time.Time { return time.Now().Add(-time.Duration(d.clockSetBack.Load())) },
		Topics: map[string]Topic{"in": {Groups: []string{"g"}}, "out": {Groups: []string{"g"}}},
	})
}

// TestShortage: below MinFree publishers wait and the handlers go on; when there is room
// again all that waited is published.
func TestShortage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d fakeDisk
		var log bytes.Buffer
		d.free.Store(1000)
		tr := openWatched(t, &d, &log)
		in, out := subscribe(t, tr, "g", "in"), subscribe(t, tr, "g", "out")
		publish(t, tr, newMessage("in", "k", "before", 0))
		if err, room := tr.Ready(), tr.Room(); err != nil || room != nil {
			t.Fatalf("with enough room: %v, %v", err, room)
		}
		d.free.Store(999)
		time.Sleep(store.LookEvery)
		synctest.Wait()
		var s *Shortage
		if err := tr.Ready(); !errors.As(err, &s) || s.Free != 999 || s.Need != 1000 || tr.Room() == nil {
			t.Fatalf("got %v, want a shortage of 1 byte", err)
		}
		published := make(chan error, 20)
		for i := range 20 {
			p := []flow.Publisher{tr, tr.Unsynced()}[i%2]
			go func() { published <- p.Publish(context.Background(), newMessage("in", "k", fmt.Sprint(i), 0)) }()
		}
		msg := <-in
		transactionOf(msg).Emit(newMessage("out", "k", "handled", 0))
		msg.Ack()
		if msg := <-out; msg.UUID != "handled" || !msg.Ack() {
			t.Errorf("got %s", msg.UUID)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(published) != 0 || !tr.Idle() {
			t.Errorf("%d were published without room; idle %v", len(published), tr.Idle())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tr.Publish(ctx, newMessage("in", "k", "impatient", 0)); !errors.As(err, &s) {
			t.Errorf("impatient: got %v, want the shortage", err)
		}

		d.free.Store(1000)
		seen := map[string]bool{}
		for range 20 {
			if err := <-published; err != nil {
				t.Error(err)
			}
			msg := <-in
			seen[msg.UUID] = true
			msg.Ack()
		}
		if len(seen) != 20 || seen["impatient"] || tr.Ready() != nil || tr.Room() != nil {
			t.Errorf("after: %v, %v", seen, tr.Ready())
		}
		synctest.Wait()
		if got := strings.Count(log.String(), "\n"); got != 2 || strings.Count(log.String(), "level=WARN") != 2 {
			t.Errorf("%d lines, want one warning when it stops and one when it goes on:\n%s", got, log.String())
		}
	})
}

// TestShortageEndsWithClose: who waits for room is told.
func TestShortageEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d fakeDisk
		var log bytes.Buffer
		tr := openWatched(t, &d, &log)
		published := make(chan error, 1)
		go func() { published <- tr.Publish(context.Background(), newMessage("in", "k", "1", 0)) }()
		synctest.Wait()
		mustClose(t, tr)
		if err := <-published; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

// TestDiskFull: where the store finds the disk full its write waits for room, whatever
// the file system tells, and however little was asked for. A clock that is set back does not
// prolong that.
func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d fakeDisk
		var log bytes.Buffer
		d.free.Store(1 << 40)
		tr := openWatched(t, &d, &log)
		full := func(free int64) <-chan struct{} {
			d.free.Store(free)
			returned := make(chan struct{})
			go func() {
				defer close(returned)
				tr.room.DiskFull()
			}()
			synctest.Wait()
			return returned
		}
		began := time.Now()
		returned := full(1 << 40)
		if err := tr.Ready(); err == nil || !strings.Contains(err.Error(), "quota") {
			t.Errorf("got %v, want a word about quotas", err)
		}
		d.clockSetBack.Store(int64(time.Hour))
		<-returned
		if d := time.Since(began); d < store.FullFor || d > store.FullFor+2*store.LookEvery || tr.Ready() != nil {
			t.Errorf("it went on after %v: %v", d, tr.Ready())
		}
		returned = full(1000)
		time.Sleep(time.Hour)
		select {
		case <-returned:
			t.Error("it went on with 1,000 bytes")
		default:
		}
		d.free.Store(store.FullNeeds)
		<-returned

		began = time.Now()
		<-full(-1)
		if d := time.Since(began); d < store.LookEvery {
			t.Errorf("a disk that tells nothing is tried again after %v", d)
		}
	})
}

// TestIdleWaitsForNobody: a commit that waits for the disk has locked its lanes, and a group that is
// being registered, which has no work yet, its topic.
func TestIdleWaitsForNobody(t *testing.T) {
	tr := open(t, Config{Lanes: 1, Topics: map[string]Topic{"in": {Groups: []string{"g"}}}})
	tp := tr.topic("in")
	if _, err := tr.consumer("g", tp); err != nil {
		t.Fatal(err)
	}
	for mu, idle := range map[sync.Locker]bool{&tp.lanes[0].mu: false, &tp.mu: true} {
		mu.Lock()
		if got := tr.Idle(); got != idle {
			t.Errorf("Idle = %v, want %v", got, idle)
		}
		mu.Unlock()
	}
	if !tr.Idle() {
		t.Error("not idle at the end")
	}
}

// TestOpenOnAFullDisk: it says what to do.
func TestOpenOnAFullDisk(t *testing.T) {
	var d fakeDisk
	_, err := Open(Config{Dir: t.TempDir(), MinFree: 1, Free: d.freeBytes})
	if err == nil || !strings.Contains(err.Error(), "its disk has 0 bytes free") || !strings.Contains(err.Error(), "make room") {
		t.Errorf("got %v, want what to do", err)
	}
}
