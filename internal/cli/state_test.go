package cli

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestStateMoves: from a data directory to Kafka and back a page goes on as if nothing had
// happened: each change is told once, under an ID that no other has.
func TestStateMoves(t *testing.T) {
	broker, p := cluster(t), newPage(t, "")
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
		r := vs(t, "run", "-c", config, "--allow", loopback, "--checks", "1", "--every", "0s")
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
		expect(t, 0, "imported ", "state", "import", exported(t, "-c", move.from), "-c", move.to)
		check(move.to, move.stands, 0) // nothing is told again
		check(move.to, move.comes, 1)
	}
	expect(t, 1, "nothing was imported", "state", "import", exported(t, "-c", a), "-c", b)

	found := objects(t, vs(t, "list", "-c", last, "--format", "json"))
	if len(found["page"]) != 1 || len(found["subscription"]) != 1 {
		t.Errorf("list: got %v", found)
	}
	r := vs(t, "explain", p.URL, "-c", last)
	for _, want := range []string{"check 1 ", "Version 2,", "Version 3,", "Version 4,", "Version 5,"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("explain does not say %q: %s", want, r.stdout)
		}
	}
	// The original goes on under IDs of its own, too.
	version = 2
	check(first, without, 1)
}

// exported returns the directory of an export of what is in the place that the flags name.
func exported(t *testing.T, flags ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "export")
	expect(t, 0, "holds what was in", append([]string{"state", "export", dir}, flags...)...)
	return dir
}

func TestStateMistakes(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	expect(t, 2, "write vokter-stream state export DIR", "state")
	expect(t, 2, `did you mean "export"?`, "state", "exprt")
	expect(t, 2, "no directory is given", "state", "export", "--data", none)
	expect(t, 2, "takes one directory", "state", "import", none, "b", "--data", none)
	expect(t, 2, "no data directory and no cluster is given", "state", "export", none)
	expect(t, 2, "does not exist", "state", "export", filepath.Join(dir, "e"), "--data", none)
	expect(t, 2, "is no export of state", "state", "import", dir, "--data", none)
	p := newPage(t, "<p>Zeus.</p>")
	data := filepath.Join(dir, "data")
	expect(t, 0, "", "watch", p.URL, "Zeus", "--allow", loopback, "--checks", "1", "--data", data)
	expect(t, 2, "are one in the other", "state", "export", filepath.Join(data, "e"), "--data", data)
	expect(t, 2, "is not empty", "state", "export", dir, "--data", data)
	e := exported(t, "--data", data)
	expect(t, 1, "is not empty", "state", "import", e, "--data", data)
	found := objects(t, vs(t, "state", "import", e, "--data", none, "--format", "json"))
	if l := found["state_import"]; len(l) != 1 || l[0]["directory"] != e || l[0]["place"] != none || l[0]["groups"] == 0.0 {
		t.Errorf("got %v", found)
	}
}
