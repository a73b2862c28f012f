package store

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// fill puts one of everything into d.
func fill(t *testing.T, d *DB, value string) {
	commit(t, d, func(b *Batch) {
		b.Append("t", 0, 7, Record{ID: value})
		b.Trim("t", 0, 0, 7)
		b.SetPosition("g", "t", 0, 7)
		b.SetState("g", 0, "k", "n", []byte(value))
		b.SetState("g", 0, "k", flow.Hot+"n", nil)
	})
}

// TestNamespaces: what one holds is not seen from another, and stays when another's is
// dropped.
func TestNamespaces(t *testing.T) {
	d := open(t, Options{})
	names := []string{"", "a", "a\x00", "b"}
	for _, n := range names[1:] {
		fill(t, d.Namespace(n), "in "+n)
	}
	if topics, err := d.Topics(); len(topics) > 0 || err != nil {
		t.Errorf("the default namespace has topics %q, %v", topics, err)
	}
	if p, err := d.Positions(); len(p) > 0 || err != nil {
		t.Errorf("the default namespace has positions %v, %v", p, err)
	}
	for key := range d.StateKeys("g", "", "") {
		t.Errorf("the default namespace has state of %q", key)
	}
	fill(t, d, "in ")
	if got, err := d.Namespaces(); !slices.Equal(got, names[1:]) || err != nil {
		t.Errorf("Namespaces = %q, %v, want %q", got, err, names[1:])
	}
	ids := map[string]bool{}
	for _, n := range names {
		v := d.Namespace(n)
		ids[v.ID()] = true
		if v.ID() != d.Namespace(n).ID() || strings.Contains(v.ID(), "/") {
			t.Errorf("the ID of %q is %q", n, v.ID())
		}
		commit(t, v, func(b *Batch) { b.DropPositions("g", "t"); b.DropState("g") })
		if p, err := v.Positions(); len(p) > 0 || err != nil {
			t.Errorf("%q still has positions %v, %v", n, p, err)
		}
		fill(t, v, "again "+n)
	}
	if len(ids) != len(names) {
		t.Errorf("%d namespaces have the IDs %v", len(names), ids)
	}
	for _, n := range names {
		v := d.Namespace(n)
		value, _, err := v.GetState("g", 0, "k", "n")
		if string(value) != "again "+n || err != nil {
			t.Errorf("%q holds %q, %v", n, value, err)
		}
		log, err := v.ReadLog("t", 0, 0, 99, 1<<20)
		if len(log) != 1 || log[0].Record.ID != "again "+n || err != nil {
			t.Errorf("%q has the log %v, %v", n, log, err)
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
	leave, err := d.Enter(user("default"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Namespace("a").Enter(user("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Namespace("mute").Enter(User{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "default namespace", "a": `namespace "a"`} {
		if _, err := d.Namespace(name).Enter(User{}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a name of its own") {
			t.Errorf("entering %q twice: %v", name, err)
		}
	}
	all := func() []string {
		var out []string
		for len(heard) > 0 {
			out = append(out, <-heard)
		}
		slices.Sort(out)
		return out
	}
	d.sharing.diskFull()
	if got, want := all(), []string{"a full", "default full"}; !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
	leave()
	d.sharing.fatal(func(err error) { heard <- "first " + err.Error() })(errors.New("over"))
	if got, want := all(), []string{"a over", "first over"}; !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
	if _, err := d.Enter(User{}); err != nil {
		t.Errorf("entering again: %v", err)
	}
	leave() // again, which concerns the next user no more
	if _, err := d.Enter(User{}); err == nil {
		t.Error("a namespace has two users")
	}
}
