package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestStateMoves: from a data directory to Kafka and back a page goes on as if nothing had
// happened: each change is told once, under an ID that no other has.
func TestStateMoves(t *testing.T) {
	broker, p := startCluster(t), newPage(t, "")
	place := func(where string) string {
		return file(t, "c.yaml", fmt.Sprintf("%s\nsinks: {out: {stdout: {format: json}}}\nsubscriptions: [{url: %q, keywords: [stock], sinks: [out]}]\n", where, p.URL))
	}
	directory := func() string { return place("data: " + filepath.Join(t.TempDir(), "d")) }
	topics := func(prefix string) string {
		return place(fmt.Sprintf("transport: {kafka: {brokers: [%q], partitions: 3, topic_prefix: %s}}", broker, prefix))
	}
	ids := make(map[string]bool)
	version := uint64(1)
	check := func(config, body string, want int) {
		t.Helper()
		p.set(http.StatusOK, body)
		r := runCLI(t, "run", "-c", config, "--allow", loopback, "--checks", "1", "--every", "0s")
		told := notifications(t, r.stdout)
		if r.code != 0 || len(told) != want {
			t.Fatalf("%s: got %+v, want %d notifications", body, r, want)
		}
		for _, n := range told {
			if version++; n.Version != version || ids[n.ID] {
				t.Errorf("%s: got version %d under %s, want version %d under a new ID", body, n.Version, n.ID, version)
			}
			ids[n.ID] = true
		}
	}
	const with, without = "<p>Zeus. In stock.</p>", "<p>Zeus. Gone.</p>"
	first, a, b, last := directory(), topics("a."), topics("b."), directory()
	check(first, without, 0)
	check(first, with, 1)
	for _, move := range []struct{ from, to, stands, comes string }{
		{first, a, with, without},
		{a, b, without, with},
		{b, last, with, without},
	} {
		expectExit(t, 0, "imported ", "state", "import", exportedState(t, "-c", move.from), "-c", move.to)
		check(move.to, move.stands, 0) // nothing is told again
		check(move.to, move.comes, 1)
	}
	expectExit(t, 1, "nothing was imported", "state", "import", exportedState(t, "-c", a), "-c", b)

	found := objects(t, runCLI(t, "list", "-c", last, "--format", "json"))
	if len(found["page"]) != 1 || len(found["subscription"]) != 1 {
		t.Errorf("list: got %v", found)
	}
	r := runCLI(t, "explain", p.URL, "-c", last)
	for _, want := range []string{"check 1 ", "Version 2,", "Version 3,", "Version 4,", "Version 5,"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("explain does not say %q: %s", want, r.stdout)
		}
	}
	// The original goes on under IDs of its own, too.
	version = 2
	check(first, without, 1)
}

// exportedState returns the directory of an export of what is in the place that the flags name.
func exportedState(t *testing.T, flags ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "export")
	expectExit(t, 0, "holds what was in", append([]string{"state", "export", dir}, flags...)...)
	return dir
}

func TestStateMistakes(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	expectExit(t, 2, "write vokter-stream state export DIR", "state")
	expectExit(t, 2, `did you mean "export"?`, "state", "exprt")
	expectExit(t, 2, "no directory is given", "state", "export", "--data", none)
	expectExit(t, 2, "takes one directory", "state", "import", none, "b", "--data", none)
	expectExit(t, 2, "no data directory and no cluster is given", "state", "export", none)
	expectExit(t, 2, "does not exist", "state", "export", filepath.Join(dir, "e"), "--data", none)
	expectExit(t, 2, "is no export of state", "state", "import", dir, "--data", none)
	p := newPage(t, "<p>Zeus.</p>")
	data := filepath.Join(dir, "data")
	expectExit(t, 0, "", "watch", p.URL, "Zeus", "--allow", loopback, "--checks", "1", "--data", data)
	expectExit(t, 2, "are one in the other", "state", "export", filepath.Join(data, "e"), "--data", data)
	expectExit(t, 2, "is not empty", "state", "export", dir, "--data", data)
	e := exportedState(t, "--data", data)
	expectExit(t, 1, "is not empty", "state", "import", e, "--data", data)
	found := objects(t, runCLI(t, "state", "import", e, "--data", none, "--format", "json"))
	if l := found["state_import"]; len(l) != 1 || l[0]["directory"] != e || l[0]["place"] != none || l[0]["states"] == 0.0 {
		t.Errorf("got %v", found)
	}
}

// TestBackupInside: a copy within the data directory is refused, however it is named, for
// a stopped process and a running one.
func TestBackupInside(t *testing.T) {
	s := newTestSetup(t, "listen: 127.0.0.1:0\n")
	s.check(t, "<p>one</p>")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.data, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(s.data))
	relative := filepath.Base(s.data)
	all := func() {
		t.Helper()
		for _, args := range [][]string{
			{filepath.Join(s.data, "in"), s.data}, {filepath.Join(s.data, "a", "b"), s.data},
			{filepath.Join(relative, "in"), s.data}, {filepath.Join(s.data, "in"), relative}, {filepath.Join(relative, "in"), relative},
			{filepath.Join(link, "in"), s.data}, {filepath.Join(s.data, "in"), link}, {filepath.Join(link, "a", "b"), relative},
		} {
			expectExit(t, 2, "no backup was made: "+args[0]+" and the data directory "+args[1]+" are one in the other; name another directory",
				"backup", args[0], "--data", args[1])
		}
	}
	all()
	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.awaitAddress(t, s.data)
	all()
	for _, dir := range []string{s.data + "-2", filepath.Join(t.TempDir(), "a", "b")} { // beside it
		expectExit(t, 0, "is a copy of", "backup", dir, "--data", s.data)
	}
	run.stop()
	<-run.ended
}

// failingBackup makes backups that are part, and then fail.
type failingBackup struct {
	part string
	err  error
}

func (s *failingBackup) Backup(_ context.Context, w io.Writer) error {
	if _, err := io.WriteString(w, s.part); err != nil {
		return fmt.Errorf("the copy broke off: %w", err)
	}
	return s.err
}

// TestFailedCopy: what failed first is told, and nothing is left.
func TestFailedCopy(t *testing.T) {
	top := t.TempDir()
	busy := errors.New("another backup is being made")
	cut := fmt.Errorf("the copy broke off: %w", syscall.ECONNRESET)
	for name, c := range map[string]struct {
		m    failingBackup
		want string
	}{
		"refused":   {failingBackup{err: busy}, busy.Error()},
		"broke off": {failingBackup{part: "half", err: cut}, cut.Error()},
		"no tar":    {failingBackup{part: strings.Repeat("no archive ", 1000)}, "no backup was made: this is no backup of a store: archive/tar: invalid tar header"},
	} {
		if err := copyStore(t.Context(), c.m.Backup, filepath.Join(top, "b")); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	if left, err := os.ReadDir(top); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestVerbsOfADamagedDirectory: what is left of a store says that it is damaged, not that
// there never was one.
func TestVerbsOfADamagedDirectory(t *testing.T) {
	for _, gone := range []string{"MANIFEST-*", "marker.format-version.*"} {
		s := newTestSetup(t, "")
		s.check(t, "<p>one</p>")
		names, err := filepath.Glob(filepath.Join(s.data, gone))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, n := range names {
			if err := os.Remove(n); err != nil {
				t.Fatal(err)
			}
		}
		expectExit(t, 1, "is damaged (", "list", "--data", s.data)
		expectExit(t, 1, "restore a backup", "backup", filepath.Join(t.TempDir(), "b"), "--data", s.data)
	}
	for name, want := range map[string]bool{
		"MANIFEST-000001": true, "marker.manifest.000001.MANIFEST-000001": true, "000004.sst": true, "000004.log": true,
		"syslog.log": false, "notes.txt": false, "listen": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkDirectory(dir); (err == nil) != want || err != nil && !strings.Contains(err.Error(), "nothing was ever watched there") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
