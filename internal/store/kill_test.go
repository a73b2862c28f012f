package store

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const childEnv = "STORE_KILL_TEST"

// TestKilledBackup kills a process that writes to a store and makes backups of it, one
// after the other. Each backup then is whole or not there, and holds all that was durable
// when it began; the store has lost nothing.
func TestKilledBackup(t *testing.T) {
	if top := os.Getenv(childEnv); top != "" {
		writeAndBackup(top)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 4 {
		top := t.TempDir()
		durable, began := runAndKill(t, top, 50+random.IntN(200))
		d := open(t, Options{Dir: filepath.Join(top, "data")})
		if n := countEntries(t, d); n < durable {
			t.Fatalf("round %d: the store has %d entries of %d", round, n, durable)
		}
		for i, least := range began {
			dir := filepath.Join(top, "backups", strconv.Itoa(i))
			if _, err := os.Stat(dir); os.IsNotExist(err) && i == len(began)-1 {
				continue
			}
			if n := countEntries(t, open(t, Options{Dir: dir})); n < least {
				t.Errorf("round %d: backup %d has %d entries of %d", round, i, n, least)
			}
		}
		last := filepath.Join(top, "backups", strconv.Itoa(len(began)-1))
		if err := os.RemoveAll(last); err != nil {
			t.Fatal(err)
		}
		if err := d.Backup(last); err != nil {
			t.Fatal(err)
		}
		wantNoFiles(t, vfs.Default, filepath.Dir(last), partialInfix)
	}
}

// runAndKill runs writeAndBackup in a process of its own and kills it when it has reported so many
// steps. It returns how many entries were durable, and how many when each backup began.
func runAndKill(t *testing.T, top string, steps int) (durable uint64, began []uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledBackup$")
	cmd.Env = append(os.Environ(), childEnv+"="+top)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	read := func() {
		switch line := lines.Text(); line {
		case "entry":
			durable++
		case "backup":
			began = append(began, durable)
		default:
			t.Errorf("the child says %q", line)
		}
	}
	for range steps {
		if !lines.Scan() {
			t.Fatalf("the child ended by itself: %v, %s", lines.Err(), stderr.String())
		}
		read()
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		read()
	}
	if err := cmd.Wait(); err == nil || stderr.Len() > 0 {
		t.Errorf("the child ended with %v, %s", err, stderr.String())
	}
	if len(began) == 0 {
		t.Fatal("no backup began")
	}
	return durable, began
}

// writeAndBackup runs until it is killed and reports each step on standard output.
func writeAndBackup(top string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	d, err := Open(Options{Dir: filepath.Join(top, "data")})
	fail(err)
	go func() {
		for i := 0; ; i++ {
			_, err := io.WriteString(os.Stdout, "backup\n")
			fail(err)
			fail(d.Backup(filepath.Join(top, "backups", strconv.Itoa(i))))
		}
	}()
	for i := uint64(0); ; i++ {
		fail(putEntry(d, i))
		_, err := io.WriteString(os.Stdout, "entry\n")
		fail(err)
	}
}
