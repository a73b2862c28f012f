package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// fault is what goes wrong with a file system while it is on.
type fault struct {
	active   atomic.Bool
	kinds    []errorfs.OpKind
	pathPart string // a part of the paths that it is about
	err      error
}

func (f *fault) String() string { return "fault" }

func (f *fault) MaybeError(op errorfs.Op) error {
	if !f.active.Load() || !slices.Contains(f.kinds, op.Kind) || !strings.Contains(op.Path, f.pathPart) {
		return nil
	}
	return f.err
}

var (
	createOps = []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite}
	writeOps  = []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt}
	syncOps   = []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	readOps   = []errorfs.OpKind{errorfs.OpFileRead, errorfs.OpFileReadAt}
)

// fatalFaults are the faults after which nothing can be made durable.
var fatalFaults = map[string]*fault{
	"log write":      {kinds: writeOps, pathPart: ".log", err: syscall.EIO},
	"log sync":       {kinds: syncOps, pathPart: ".log", err: syscall.EIO},
	"log create":     {kinds: createOps, pathPart: ".log", err: syscall.EACCES},
	"manifest write": {kinds: writeOps, pathPart: "MANIFEST", err: syscall.EIO},
}

// TestFaultsEndTheProcess: it says one line that says what to do, and what it had accepted
// is there at the next start.
func TestFaultsEndTheProcess(t *testing.T) {
	if name := os.Getenv(childEnv); name != "" {
		writeUntilFault(fatalFaults[name], os.Getenv(childEnv+"_DIR"))
	}
	for name, f := range fatalFaults {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=^TestFaultsEndTheProcess$")
			cmd.Env = append(os.Environ(), childEnv+"="+name, childEnv+"_DIR="+dir)
			var out, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &stderr
			err := cmd.Run()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Fatalf("it ended with %v, want code 1\n%s", err, stderr.String())
			}
			line := stderr.String()
			for _, want := range []string{"the store in " + dir + " cannot go on (", f.err.Error(), "see that its disk has room and works, then start again"} {
				if strings.Count(line, "\n") != 1 || !strings.Contains(line, want) {
					t.Errorf("it says %q, want one line with %q", line, want)
				}
			}
			accepted := uint64(strings.Count(out.String(), "accepted"))
			if n := countEntries(t, open(t, Options{Dir: dir})); accepted < 10 || n < accepted {
				t.Errorf("%d of %d accepted entries are there", n, accepted)
			}
		})
	}
}

// writeUntilFault writes until the fault ends the process.
func writeUntilFault(f *fault, dir string) {
	d, err := Open(Options{Dir: dir, FS: errorfs.Wrap(vfs.Default, f)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	out := bufio.NewWriterSize(os.Stdout, 1)
	for i := uint64(0); i < 10_000; i++ { // some MB, so that logs are changed
		if i == 10 {
			f.active.Store(true)
		}
		if err := putEntry(d, i); err != nil {
			fmt.Fprintln(os.Stderr, "a write failed:", err)
			os.Exit(2)
		}
		fmt.Fprintln(out, "accepted")
	}
	os.Exit(0)
}

// TestFilesCannotBeMade: what comes into the log is safe, and the user is told what is
// wrong.
func TestFilesCannotBeMade(t *testing.T) {
	f := &fault{kinds: createOps, pathPart: ".sst", err: syscall.EACCES}
	mem := vfs.NewMem()
	d := open(t, Options{Dir: "/data", FS: errorfs.Wrap(mem, f)})
	told := make(chan error, 1)
	enter(t, d, User{Broken: func(err error) {
		select {
		case told <- err:
		default:
		}
	}})
	f.active.Store(true)
	var n uint64
	var err error
	for ; err == nil; n++ {
		mustPutEntries(t, d, n, n+1)
		select {
		case err = <-told:
		default:
		}
	}
	wantBroken(t, "told", err, "the store in /data cannot be read or written (", "permission denied): see that its disk works and that this user may write there")
	f.active.Store(false)
	mustClose(t, d)
	if got := countEntries(t, open(t, Options{Dir: "/data", FS: mem})); got != n {
		t.Errorf("%d entries of %d", got, n)
	}
}

// TestReadErrors: reads of a disk that fails are Broken, and nothing is wrong once it
// works again.
func TestReadErrors(t *testing.T) {
	f := &fault{kinds: readOps, pathPart: ".sst", err: syscall.EIO}
	mem := newFilledFS(t)
	d := open(t, Options{Dir: "/data", FS: errorfs.Wrap(mem, f)})
	f.active.Store(true)
	_, _, get := d.GetState("g", 0, "30", "n")
	_, scan := d.ReadLog("t", 0, 20, 30, 100)
	for what, err := range map[string]error{"get": get, "scan": scan} {
		wantBroken(t, what, err, "the store in /data cannot be read or written (", "input/output error")
	}
	f.active.Store(false)
	if n := countEntries(t, d); n != 100 {
		t.Errorf("%d entries, want 100", n)
	}
}

// TestUnwritable: what Open says where it cannot write or lock.
func TestUnwritable(t *testing.T) {
	const right = "give this user the right"
	for err, want := range map[error]string{
		syscall.EACCES:  right,
		syscall.EPERM:   right,
		syscall.EROFS:   "its file system can only be read",
		syscall.ENOSPC:  "make room on that disk",
		syscall.ENOTDIR: "a part of this path is a file",
		syscall.EIO:     "on a local disk",
	} {
		f := &fault{kinds: slices.Concat(createOps, writeOps), err: &fs.PathError{Op: "mkdir", Path: "/data/part", Err: err}}
		f.kinds = append(f.kinds, errorfs.OpMkdirAll, errorfs.OpLock)
		f.active.Store(true)
		_, got := Open(Options{Dir: "/data", FS: errorfs.Wrap(vfs.NewMem(), f)})
		wantErrorText(t, err.Error(), got, "the data directory /data cannot be used: ", want)
		if strings.Contains(got.Error(), "part:") || strings.Contains(got.Error(), right) != (want == right) {
			t.Errorf("%v: got %v", err, got)
		}
	}
	missing := &fs.PathError{Op: "mkdir", Path: "/data/part", Err: syscall.ENOENT}
	wantErrorText(t, "no parent", openError("/data", missing), "no such file or directory; no directory can be made there")
	locked := &fault{kinds: []errorfs.OpKind{errorfs.OpLock}, err: os.NewSyscallError("fcntl", syscall.EAGAIN)}
	locked.active.Store(true)
	_, err := Open(Options{Dir: "/data", FS: errorfs.Wrap(vfs.NewMem(), locked)})
	wantErrorText(t, "locked", err, "/data is in use by another process: stop that one")
	if !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
}

// TestReadsDoNotWaitForWrites: a commit that waits for room on the disk keeps nobody from reading.
func TestReadsDoNotWaitForWrites(t *testing.T) {
	full := &fault{kinds: writeOps, err: syscall.ENOSPC}
	d := open(t, Options{Dir: "data", FS: errorfs.Wrap(vfs.NewMem(), full)})
	waits, room := make(chan struct{}), make(chan struct{})
	enter(t, d, User{DiskFull: sync.OnceFunc(func() { close(waits); <-room })})
	set := func(name string, size int) {
		if err := d.Write(false, func(b *Batch) error { b.SetState("group", 0, "key", name, make([]byte, size)); return nil }); err != nil {
			t.Error(err)
		}
	}
	set("small", 10)
	full.active.Store(true)
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
	full.active.Store(false)
	close(room)
	<-wrote
	<-read
}

// TestFaultsAreTested: every row of the tables of faults names tests, and those exist.
func TestFaultsAreTested(t *testing.T) {
	root := filepath.Join("..", "..")
	table, err := os.ReadFile(filepath.Join(root, "docs", "internals", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		tests.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	suite, err := os.ReadFile(filepath.Join(root, "pipeline", "pipelinetest", "transport.go"))
	if err != nil {
		t.Fatal(err)
	}
	rows, name := 0, regexp.MustCompile(`\w+`)
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "---") || cells[1] == " fault " {
			continue
		}
		rows++
		names := name.FindAllString(cells[4], -1)
		if len(names) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, n := range names {
			if !strings.Contains(tests.String(), "func "+n+"(t ") && !strings.Contains(string(suite), `"`+n) {
				t.Errorf("there is no test %s", n)
			}
		}
	}
	if rows < 25 {
		t.Errorf("%d rows were found", rows)
	}
}
