package store

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fills is a file system whose disk is full while full is set.
type fills struct {
	vfs.FS
	full *atomic.Bool
}

func (f fills) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return fillsFile{file, f.full}, err
}

func (f fills) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(from, to, c)
	return fillsFile{file, f.full}, err
}

type fillsFile struct {
	vfs.File
	full *atomic.Bool
}

func (f fillsFile) Write(b []byte) (int, error) {
	if f.full.Load() {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// TestReadsDoNotWaitForWrites: a commit that waits for room on the disk keeps nobody from reading.
func TestReadsDoNotWaitForWrites(t *testing.T) {
	var full atomic.Bool
	d := open(t, Options{Dir: "data", FS: fills{vfs.NewMem(), &full}})
	waits, room := make(chan struct{}), make(chan struct{})
	leave, err := d.Enter(User{DiskFull: sync.OnceFunc(func() { close(waits); <-room })})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	set := func(name string, size int) {
		if err := d.Write(false, func(b *Batch) error { b.SetState("group", 0, "key", name, make([]byte, size)); return nil }); err != nil {
			t.Error(err)
		}
	}
	set("small", 10)
	full.Store(true)
	wrote, read := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(wrote)
		for range 8 { // more than the buffers of the log take
			set("large", 900<<10)
		}
	}()
	<-waits
	go func() {
		defer close(read)
		for range 10_000 { // until the commit waits, too
			if _, ok, err := d.GetState("group", 0, "key", "small"); !ok || err != nil {
				t.Errorf("got %t, %v", ok, err)
			}
			runtime.Gosched()
		}
	}()
	select {
	case <-read:
	case <-time.After(20 * time.Second):
		t.Error("a read waits for the disk")
	}
	full.Store(false)
	close(room)
	<-wrote
	<-read
}
