package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// stored returns the numbers of the stored versions of the document of the whole page.
func (d *desk) stored() []uint64 {
	d.Helper()
	p, err := Load(d.state())
	if err != nil {
		d.Fatal(err)
	}
	var all []uint64
	for n := uint64(1); n <= 100; n++ {
		_, ok, err := LoadVersion(d.state(), whole, n)
		if err != nil {
			d.Fatal(err)
		}
		if ok {
			all = append(all, n)
		}
	}
	doc := p.Document(whole)
	if len(all) == 0 || doc.Oldest != all[0] || doc.N != all[len(all)-1] || len(doc.Kept) != len(all) {
		d.Errorf("stored are %v, but the page says %d to %d, with %d kept", all, doc.Oldest, doc.N, len(doc.Kept))
	}
	return all
}

// TestRetentionByAge drops versions some time after the next one took their place, at any check.
func TestRetentionByAge(t *testing.T) {
	d := newDesk(t, Config{Keep: 5, KeepFor: 3 * time.Hour})
	d.subscribe("c")
	text := ""
	check := func(later time.Duration, new bool) []uint64 {
		d.now = d.now.Add(later)
		if text != "" {
			d.wake()
		}
		if new || text == "" {
			text = fmt.Sprintf("%sNumber %s.\n", english, strings.Repeat("x", d.n))
		}
		d.answer(text)
		return d.stored()
	}
	for i, c := range []struct {
		later time.Duration
		new   bool
		want  []uint64
	}{
		{0, true, []uint64{1}},
		{100 * time.Hour, true, []uint64{1, 2}}, // version 1 stood until now
		{2 * time.Hour, true, []uint64{1, 2, 3}},
		{2 * time.Hour, false, []uint64{2, 3}}, // 1 was replaced four hours ago, 2 two hours
		{2 * time.Hour, false, []uint64{3}},
		{1000 * time.Hour, false, []uint64{3}}, // the current one stays
		{time.Minute, true, []uint64{3, 4}},
		{time.Minute, true, []uint64{3, 4, 5}},
		{time.Minute, true, []uint64{3, 4, 5, 6}},
		{time.Minute, true, []uint64{3, 4, 5, 6, 7}},
		{time.Minute, true, []uint64{4, 5, 6, 7, 8}}, // at most five
	} {
		if got := check(c.later, c.new); !slices.Equal(got, c.want) {
			t.Errorf("step %d: stored are %v, want %v", i, got, c.want)
		}
	}
}

// TestRetentionOfAPage follows what the origins that keep a page say about its versions.
func TestRetentionOfAPage(t *testing.T) {
	d := newDesk(t, Config{Keep: 2})
	d.subscribe("c")
	n := 0
	versions := func(more int) int {
		for range more {
			if n++; n > 1 {
				d.wake()
			}
			d.answer(fmt.Sprintf("%sNumber %s.\n", english, strings.Repeat("x", n)))
		}
		return len(d.stored())
	}
	keep := func(origin string, versions int, age time.Duration, keep bool) {
		d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: origin, Keep: keep, KeepVersions: versions, KeepFor: pipeline.Duration(age)})
	}
	if got := versions(4); got != 2 {
		t.Errorf("%d versions are stored, want 2", got)
	}
	keep("yaml", 4, 0, true)
	if got := versions(4); got != 4 {
		t.Errorf("with 4 at the page: %d versions are stored", got)
	}
	keep("go", 6, 0, true)
	if got := versions(4); got != 6 {
		t.Errorf("with another origin that wants 6: %d versions are stored", got)
	}
	keep("go", 0, 0, false)
	if got := versions(1); got != 4 {
		t.Errorf("without the other origin: %d versions are stored", got)
	}
	keep("yaml", 0, time.Nanosecond, true)
	if got := versions(1); got != 1 {
		t.Errorf("with an age of nothing: %d versions are stored", got)
	}
	keep("yaml", 0, 0, true)
	if got := versions(3); got != 2 {
		t.Errorf("with the standard again: %d versions are stored", got)
	}
	keep("yaml", 0, 0, false)
	if got := versions(1); got != 2 {
		t.Errorf("without anybody who keeps the page: %d versions are stored", got)
	}
}

func TestRetentionOfSeveralOrigins(t *testing.T) {
	standard := retention{10, time.Hour}
	for _, c := range []struct {
		of       map[string]retention
		standard retention
		want     retention
	}{
		{nil, standard, standard},
		{map[string]retention{"a": {Versions: 3}}, standard, retention{3, time.Hour}},
		{map[string]retention{"a": {For: time.Minute}}, standard, retention{10, time.Minute}},
		{map[string]retention{"a": {Versions: 3, For: time.Minute}, "b": {Versions: 2, For: 2 * time.Minute}}, standard, retention{3, 2 * time.Minute}},
		{map[string]retention{"a": {For: time.Minute}, "b": {Versions: 20}}, retention{Versions: 10}, retention{20, 0}},
		{map[string]retention{"a": {Versions: 20}, "b": {For: time.Minute}}, retention{Versions: 10}, retention{20, 0}},
		{map[string]retention{"gone": {Versions: 20}}, standard, standard},
	} {
		p := Page{Keep: []string{"a", "b"}, Retentions: c.of}
		if got := p.retention(c.standard); got != c.want {
			t.Errorf("%v: got %v, want %v", c.of, got, c.want)
		}
	}
}
