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
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/vokter/vokter/pipeline/failure"
)

// fault is what goes wrong with a file system while it is on.
type fault struct {
	on    atomic.Bool
	kinds []errorfs.OpKind
	file  string // a part of the name of the files that it is about
	err   error
}

func (f *fault) String() string { return "fault" }

func (f *fault) MaybeError(op errorfs.Op) error {
	if !f.on.Load() || !strings.Contains(filepath.Base(op.Path), f.file) {
		return nil
	}
	for _, k := range f.kinds {
		if op.Kind == k {
			return f.err
		}
	}
	return nil
}

var (
	creates = []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite}
	writes  = []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt}
	syncs   = []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}
	reads   = []errorfs.OpKind{errorfs.OpFileRead, errorfs.OpFileReadAt}
)

// fatal are the faults after which nothing can be made durable.
var fatal = map[string]*fault{
	"log write":      {kinds: writes, file: ".log", err: syscall.EIO},
	"log sync":       {kinds: syncs, file: ".log", err: syscall.EIO},
	"log create":     {kinds: creates, file: ".log", err: syscall.EACCES},
	"manifest write": {kinds: writes, file: "MANIFEST", err: syscall.EIO},
}

// TestFaultsEndTheProcess: it says one line that says what to do, and what it had accepted
// is there at the next start.
func TestFaultsEndTheProcess(t *testing.T) {
	if name := os.Getenv(childEnv); name != "" {
		writeWith(fatal[name], os.Getenv(childEnv+"_DIR"))
	}
	for name, f := range fatal {
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
			if n := counted(t, open(t, Options{Dir: dir})); accepted < 10 || n < accepted {
				t.Errorf("%d of %d accepted entries are there", n, accepted)
			}
		})
	}
}

// writeWith writes until the fault ends the process.
func writeWith(f *fault, dir string) {
	d, err := Open(Options{Dir: dir, FS: errorfs.Wrap(vfs.Default, f)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	out := bufio.NewWriterSize(os.Stdout, 1)
	for i := uint64(0); i < 10_000; i++ { // some MB, so that logs are changed
		if i == 10 {
			f.on.Store(true)
		}
		if err := put(d, i); err != nil {
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
	f := &fault{kinds: creates, file: ".sst", err: syscall.EACCES}
	mem := vfs.NewMem()
	d, err := Open(Options{Dir: "/data", FS: errorfs.Wrap(mem, f)})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	leave, err := d.Enter(User{Broken: func(err error) {
		select {
		case told <- err:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	f.on.Store(true)
	var n uint64
	for err = nil; err == nil; n++ {
		mustPut(t, d, n)
		select {
		case err = <-told:
		default:
		}
	}
	class, _ := failure.ClassOf(err)
	if class != failure.ClassBroken || !strings.Contains(err.Error(), "the store in /data cannot be read or written (") ||
		!strings.Contains(err.Error(), "permission denied): see that its disk works and that this user may write there") {
		t.Errorf("told %v", err)
	}
	f.on.Store(false)
	mustClose(t, d)
	if got := counted(t, open(t, Options{Dir: "/data", FS: mem})); got != n {
		t.Errorf("%d entries of %d", got, n)
	}
}

// TestReadErrors: reads of a disk that fails are Broken, and nothing is wrong once it
// works again.
func TestReadErrors(t *testing.T) {
	f := &fault{kinds: reads, file: ".sst", err: syscall.EIO}
	mem := filled(t)
	d := open(t, Options{Dir: "/data", FS: errorfs.Wrap(mem, f)})
	f.on.Store(true)
	_, _, get := d.GetState("g", 0, "30", "n")
	_, scan := d.ReadLog("t", 0, 20, 30, 100)
	for what, err := range map[string]error{"get": get, "scan": scan} {
		class, _ := failure.ClassOf(err)
		if class != failure.ClassBroken || !strings.Contains(err.Error(), "the store in /data cannot be read or written (") || !strings.Contains(err.Error(), "input/output error") {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.on.Store(false)
	if n := counted(t, d); n != 100 {
		t.Errorf("%d entries, want 100", n)
	}
}

// TestUnwritable: what Open says where it cannot write.
func TestUnwritable(t *testing.T) {
	for want, err := range map[string]error{
		"give this user the right": syscall.EACCES, "its file system can only be read": syscall.EROFS, "make room on that disk": syscall.ENOSPC,
	} {
		f := &fault{kinds: append(append([]errorfs.OpKind{errorfs.OpMkdirAll, errorfs.OpLock}, creates...), writes...), err: err}
		f.on.Store(true)
		_, got := Open(Options{Dir: "/data", FS: errorfs.Wrap(vfs.NewMem(), f)})
		if got == nil || !strings.Contains(got.Error(), "the data directory /data cannot be used: ") || !strings.Contains(got.Error(), want) {
			t.Errorf("%v: got %v, want %q", err, got, want)
		}
	}
}

// TestFaultsAreTested: every row of the tables of faults names tests, and those exist.
func TestFaultsAreTested(t *testing.T) {
	root := filepath.Join("..", "..")
	table, err := os.ReadFile(filepath.Join(root, "docs", "faults.md"))
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
