package store

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// fillNamespace puts one of everything into d.
func fillNamespace(t *testing.T, d *DB, value string) {
	commit(t, d, func(b *Batch) {
		b.Append("t", 3, 7, Record{ID: value})
		b.Trim("t", 3, 0, 7)
		b.SetPosition("g", "t", 3, 7)
		b.SetState("g", 3, "k", "n", []byte(value))
		b.SetState("g", 3, "k", flow.Hot+"n", nil)
	})
}

// TestNamespaces: what one holds is not seen from another, and stays when another's is
// dropped.
func TestNamespaces(t *testing.T) {
	d := open(t, Options{})
	names, empty := []string{"", "a", "a\x00", "b"}, readContent(t, d)
	for _, n := range names[1:] {
		fillNamespace(t, d.Namespace(n), "in "+n)
	}
	if got := readContent(t, d); !maps.Equal(got, empty) {
		t.Errorf("the default namespace has %v", got)
	}
	for key := range d.StateKeys("g", "", "") {
		t.Errorf("the default namespace has state of %q", key)
	}
	fillNamespace(t, d, "in ")
	ids := map[string]bool{}
	for _, n := range names {
		v := d.Namespace(n)
		ids[v.ID()] = true
		if v.ID() != d.Namespace(n).ID() || strings.Contains(v.ID(), "/") {
			t.Errorf("the ID of %q is %q", n, v.ID())
		}
		commit(t, v, func(b *Batch) { b.DropPositions("g", "t"); b.DropState("g") })
		if got := readContent(t, v); got["positions"] != empty["positions"] || got["state n"] != "" {
			t.Errorf("%q still has %v", n, got)
		}
		fillNamespace(t, v, "again "+n)
	}
	if len(ids) != len(names) {
		t.Errorf("%d namespaces have the IDs %v", len(names), ids)
	}
	for _, n := range names {
		v := d.Namespace(n)
		if got := readContent(t, v); got["state n"] != "again "+n || got["log 7"] != "again "+n || got["bounds"] != "7 8" {
			t.Errorf("%q has %v", n, got)
		}
		if groups, err := v.HotGroups(); !slices.Equal(groups, []string{"g"}) || err != nil {
			t.Errorf("%q has the groups %q, %v", n, groups, err)
		}
	}
}

// TestUsers: a namespace has one user at a time, and all users hear of a full disk and of
// the end.
func TestUsers(t *testing.T) {
	d := open(t, Options{})
	heard := make(chan string, 10)
	user := func(name string) User {
		return User{DiskFull: func() { heard <- name + " full" }, Fatal: func(err error) { heard <- name + " " + err.Error() }}
	}
	leave := enter(t, d, user("default"))
	enter(t, d.Namespace("a"), user("a"))
	enter(t, d.Namespace("mute"), User{})
	for name, want := range map[string]string{"": "default namespace", "a": `namespace "a"`} {
		_, err := d.Namespace(name).Enter(User{})
		wantErrorText(t, "a second user", err, want, "a name of its own")
	}
	hears := func(want ...string) {
		t.Helper()
		var got []string
		for len(heard) > 0 {
			got = append(got, <-heard)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	d.users.notifyDiskFull()
	hears("a full", "default full")
	leave()
	d.users.fatalHandler(func(err error) { heard <- "first " + err.Error() })(errors.New("over"))
	hears("a over", "first over")
	enter(t, d, User{})
	d.users.reportBroken(errors.New("damaged"))
	enter(t, d.Namespace("late"), User{Broken: func(err error) { heard <- "late " + err.Error() }})
	if got := <-heard; got != "late damaged" {
		t.Errorf("heard %q", got)
	}
	leave() // again, which concerns the next user no more
	if _, err := d.Enter(User{}); err == nil {
		t.Error("a namespace has two users")
	}
}
