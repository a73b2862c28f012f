package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// doubling is a made-up migration of group g from the format before the present one: the
// value "0 x" becomes "1 xx", and "0 gone" is removed. It calls each before each value.
func doubling(each func()) map[int][]Migration {
	return map[int][]Migration{storeFormat - 1: {{Group: "g", Convert: func(key, name string, v []byte) ([]byte, error) {
		each()
		switch s := string(v); {
		case s == "0 gone":
			return nil, nil
		case strings.HasPrefix(s, "0 "):
			return []byte("1 " + s[2:] + s[2:]), nil
		case strings.HasPrefix(s, "1 "):
			return v, nil
		}
		return nil, errors.New("what is this?")
	}}}}
}

const oldValues = 20

// makeOld makes d a store of the previous format with values of groups g, which fill several
// batches, and h in two namespaces, and closes it.
func makeOld(t *testing.T, d *DB) {
	t.Helper()
	for _, n := range []string{"", "other"} {
		commit(t, d.Namespace(n), func(b *Batch) {
			for i := range oldValues {
				b.SetState("g", i%3, fmt.Sprint("key", i/2), fmt.Sprint("name", i), []byte("0 "+text(i)))
			}
			b.SetState("g", 1, "key", "gone", []byte("0 gone"))
			b.SetState("h", 1, "key", "name", []byte("0 h"))
		})
	}
	if err := d.writeMeta(storeFormat - 1); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func text(i int) string { return strings.Repeat(fmt.Sprint(i), 60_000) }

// checkNew checks that d holds what makeOld made, converted.
func checkNew(t *testing.T, d *DB) {
	t.Helper()
	for _, n := range []string{"", "other"} {
		v := d.Namespace(n)
		for i := range oldValues {
			got, _, err := v.GetState("g", i%3, fmt.Sprint("key", i/2), fmt.Sprint("name", i))
			if want := "1 " + text(i) + text(i); string(got) != want || err != nil {
				t.Fatalf("value %d has %d bytes, %.10q, want %d, %.10q (%v)", i, len(got), got, len(want), want, err)
			}
		}
		if got, ok, err := v.GetState("g", 1, "key", "gone"); ok || err != nil {
			t.Errorf("what was to go is %q, %v", got, err)
		}
		if got, _, err := v.GetState("h", 1, "key", "name"); string(got) != "0 h" || err != nil {
			t.Errorf("the other group's value is %q, %v", got, err)
		}
	}
	if v, _, err := d.get([]byte{kindMeta}); v[0] != storeFormat || err != nil {
		t.Errorf("the store has format %d, %v", v[0], err)
	}
}

func TestMigration(t *testing.T) {
	dir := t.TempDir()
	d := open(t, Options{Dir: dir, Lanes: 5})
	id := d.ID()
	makeOld(t, d)
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), fmt.Sprint("format ", storeFormat-1)) || !strings.Contains(err.Error(), "use the version of Vokter that wrote it") {
		t.Errorf("without a migration: %v", err)
	}
	failing := map[int][]Migration{storeFormat - 1: {{Group: "h", Convert: func(string, string, []byte) ([]byte, error) { return nil, errors.New("odd") }}}}
	if _, err := Open(Options{Dir: dir, Migrations: failing}); err == nil || !strings.Contains(err.Error(), `state "name" of key "key" in group h: odd`) {
		t.Errorf("a migration that fails: %v", err)
	}
	var log bytes.Buffer
	o := Options{Dir: dir, Migrations: doubling(func() {}), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))}
	d = open(t, o)
	checkNew(t, d)
	if d.ID() != id || d.Lanes() != 5 {
		t.Errorf("ID %s and %d lanes, want %s and 5", d.ID(), d.Lanes(), id)
	}
	for _, want := range []string{fmt.Sprintf("from=%d to=%d", storeFormat-1, storeFormat), fmt.Sprintf("values=%d changed=%[1]d", 2*oldValues+2)} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	checkNew(t, open(t, o))
	if log.Len() > 0 {
		t.Errorf("a store of today's format is migrated:\n%s", log.String())
	}
}

// TestMigrationGoesOn where one that failed half-way stopped: it meets values that are
// converted already.
func TestMigrationGoesOn(t *testing.T) {
	dir := t.TempDir()
	makeOld(t, open(t, Options{Dir: dir}))
	m := doubling(func() {})
	convert, seen, again := m[storeFormat-1][0].Convert, 0, 0
	m[storeFormat-1][0].Convert = func(key, name string, v []byte) ([]byte, error) {
		if seen++; seen == 2*oldValues {
			return nil, errors.New("odd")
		}
		if v[0] == '1' {
			again++
		}
		return convert(key, name, v)
	}
	if _, err := Open(Options{Dir: dir, Migrations: m}); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Fatal(err)
	}
	checkNew(t, open(t, Options{Dir: dir, Migrations: m}))
	if again == 0 || again == 2*oldValues {
		t.Errorf("%d of %d values were converted before it went on", again, 2*oldValues)
	}
}

// TestMigrationPowerCut cuts the power at operations all over a migration.
func TestMigrationPowerCut(t *testing.T) {
	old := vfs.NewCrashableMem()
	makeOld(t, open(t, Options{Dir: "/data", FS: old}))
	// cut migrates a copy of old.
	cut := func(at int) *powerCut {
		p := &powerCut{mem: old.CrashClone(vfs.CrashCloneCfg{}), at: at, on: true}
		d := open(t, Options{Dir: "/data", FS: p.fs(), Migrations: doubling(func() {})})
		checkNew(t, d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		return p
	}
	const cuts = 10
	all := cut(0).count
	for i := range cuts {
		if p := cut(1 + i*all/cuts); p.after != nil {
			checkNew(t, open(t, Options{Dir: "/data", FS: p.after, Migrations: doubling(func() {})}))
		}
	}
}

// TestKilledMigration kills a process in the middle of a migration, at another value each
// time, until it is through.
func TestKilledMigration(t *testing.T) {
	if top := os.Getenv(childEnv); top != "" {
		migrateAndDie(top)
	}
	top := t.TempDir()
	makeOld(t, open(t, Options{Dir: filepath.Join(top, "data")}))
	for i := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledMigration$")
		cmd.Env = append(os.Environ(), childEnv+"="+top, fmt.Sprintf("STORE_KILL_AT=%d", 5+i*10))
		if out, err := cmd.CombinedOutput(); err == nil || len(out) > 0 {
			t.Fatalf("kill %d: %v, %s", i, err, out)
		}
	}
	checkNew(t, open(t, Options{Dir: filepath.Join(top, "data"), Migrations: doubling(func() {})}))
}

// migrateAndDie kills its own process before the value that the environment says.
func migrateAndDie(top string) {
	var at, seen int
	fmt.Sscan(os.Getenv("STORE_KILL_AT"), &at)
	_, err := Open(Options{Dir: filepath.Join(top, "data"), Migrations: doubling(func() {
		if seen++; seen == at {
			p, err := os.FindProcess(os.Getpid())
			if err == nil {
				err = p.Kill()
			}
			fmt.Println("still alive:", err)
		}
	})})
	fmt.Println("it was not killed:", err)
	os.Exit(0)
}
