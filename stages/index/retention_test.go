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
	for n := uint64(1); n <= 700; n++ {
		_, ok, err := LoadVersion(d.state(), whole, n)
		if err != nil {
			d.Fatal(err)
		}
		if ok {
			all = append(all, n)
		}
	}
	numbers, err := KeptVersions(d.state(), whole)
	if err != nil {
		d.Fatal(err)
	}
	if slices.Reverse(numbers); len(all) == 0 || p.Document(whole).N != all[len(all)-1] || !slices.Equal(numbers, all) {
		d.Errorf("stored are %v, but %v are listed", all, numbers)
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

// TestLinkedVersionsStay has a notification link to a version, then 500 more versions, then a month.
func TestLinkedVersionsStay(t *testing.T) {
	d := newDesk(t, Config{Keep: 4})
	d.subscribe("c")
	n := 0
	check := func(later time.Duration) {
		if d.now = d.now.Add(later); n > 0 {
			d.wake()
		}
		n++
		d.answer(fmt.Sprintf("%sNumber %s.\n", english, strings.Repeat("x", n)))
	}
	for range 5 {
		check(time.Minute)
	}
	p, err := Load(d.state())
	if err != nil {
		t.Fatal(err)
	}
	m := flow.Told{Page: page, Incarnation: p.Incarnation, Document: whole, Version: 5, Time: d.now}.Message()
	d.handle(m)
	d.handle(m) // again, as after a crash
	other := flow.Told{Page: page, Incarnation: "another", Document: whole, Version: 2, Time: d.now}
	d.handle(other.Message())
	for range 500 {
		check(time.Minute)
	}
	if got, want := d.stored(), []uint64{4, 5, 502, 503, 504, 505}; !slices.Equal(got, want) {
		t.Errorf("stored are %v, want %v", got, want)
	}
	check(31 * 24 * time.Hour)
	if got, want := d.stored(), []uint64{503, 504, 505, 506}; !slices.Equal(got, want) {
		t.Errorf("stored are %v a month later, want %v", got, want)
	}
}

// TestVersionsAreShed has no room for old versions, then less, then enough.
func TestVersionsAreShed(t *testing.T) {
	d := newDesk(t, Config{Keep: 100, KeepFor: 90 * 24 * time.Hour})
	d.subscribe("c")
	n := 0
	check := func(later time.Duration, new bool) {
		d.now = d.now.Add(later)
		if n > 0 {
			d.wake()
		}
		if new {
			n++
		}
		d.answer(fmt.Sprintf("%sNumber %s.\n", english, strings.Repeat("x", n)))
	}
	for range 10 {
		check(time.Hour, true)
	}
	p, err := Load(d.state())
	if err != nil {
		t.Fatal(err)
	}
	d.handle(flow.Told{Page: page, Incarnation: p.Incarnation, Document: whole, Version: 3, Time: d.now}.Message())
	d.stage.Shed(150 * time.Minute)
	check(time.Hour, true)
	if got, want := d.stored(), []uint64{2, 3, 8, 9, 10, 11}; !slices.Equal(got, want) || d.stage.Shedded() != 5 {
		t.Errorf("stored are %v, want %v, what a notification links to among them; %d were shed", got, want, d.stage.Shedded())
	}
	d.stage.Shed(minShed)
	check(25*time.Hour, false) // a page that does not change drops them, too
	if got, want := d.stored(), []uint64{11}; !slices.Equal(got, want) || d.stage.Shedded() != 10 {
		t.Errorf("with hardly any room %v are stored, want %v; %d were shed", got, want, d.stage.Shedded())
	}
	d.stage.Shed(0)
	check(time.Hour, true)
	check(200*time.Hour, true)
	if got, want := d.stored(), []uint64{11, 12, 13}; !slices.Equal(got, want) || d.stage.Shedded() != 10 {
		t.Errorf("with room again %v are stored, want %v; %d were shed", got, want, d.stage.Shedded())
	}
}

func TestPrunedVersions(t *testing.T) {
	day := int64(24 * 60 * 60)
	now := time.Unix(100*day, 0)
	var all []keptVersion // one a day, the last one today
	for n := range int64(50) {
		all = append(all, keptVersion{N: uint64(n + 1), At: (51 + n) * day})
	}
	all[2].Linked, all[9].Linked = 99*day, 20*day // 3 and 10, the latter long ago
	r := retention{Versions: 20, For: 90 * 24 * time.Hour}
	for name, c := range map[string]struct {
		r           retention
		shed        time.Duration
		want, short int
	}{
		"by number":                {r, 0, 21, 0},
		"by age":                   {retention{1000, 10 * 24 * time.Hour}, 0, 12, 0},
		"for lack of room":         {r, 5 * 24 * time.Hour, 7, 14},
		"linked ones go last":      {r, minShed, 2, 19},
		"there is room for more":   {r, 80 * 24 * time.Hour, 21, 0},
		"the current one stays":    {retention{1, time.Nanosecond}, time.Nanosecond, 1, 1},
		"as many as are there":     {retention{1000, 0}, 0, 50, 0},
		"and what they link to":    {retention{2, 0}, 0, 3, 0},
		"a link of long ago is no": {retention{1, 0}, 0, 2, 0},
	} {
		kept, short := prunedVersions(all, c.r, c.shed, now)
		if len(kept) != c.want || short != c.short || kept[len(kept)-1].N != 50 {
			t.Errorf("%s: %d are kept, %d dropped for lack of room, want %d and %d", name, len(kept), short, c.want, c.short)
		}
	}
}

func TestKeptVersionsAreStored(t *testing.T) {
	d := newDesk(t, Config{})
	all := []keptVersion{{N: 3, At: 1 << 31}, {N: 4, At: 1<<31 - 5, Linked: 1<<31 + 7, Picture: true}, {N: 900, At: 1 << 32, Picture: true}}
	st := d.state()
	if err := storeKept(st, whole, all); err != nil {
		t.Fatal(err)
	}
	if got, err := loadKept(st, whole); err != nil || !slices.Equal(got, all) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, b := range [][]byte{{}, {9}, {format, 2}, {format, 0x80}} {
		if err := st.Set(keptName+whole, b); err != nil {
			t.Fatal(err)
		}
		if _, err := loadKept(st, whole); err == nil {
			t.Errorf("%v is read", b)
		}
	}
}
