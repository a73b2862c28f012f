package index

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/test/txtest"
)

func benchPage() Page {
	return Page{
		URL: page, Incarnation: "STORE/documents/3/12345", Stamp: 4, Check: 1000, Asked: t0,
		Intervals: []intervalCount{{pipeline.Duration(10 * time.Minute), 3}}, Due: t0.Add(10 * time.Minute), Paced: 10 * time.Minute, Phased: true,
		Open: &Open{Deadline: t0.Add(3 * time.Minute), Parts: 1},
		ETag: `"5e8b-60c1d2f3a4b5c"`, BodyHash: text.Hash("body"),
		Documents: []Document{{ID: whole, N: 17, Oldest: 8, TextHash: text.Hash("text"), Subscriptions: 3}},
	}
}

func BenchmarkPageCodec(b *testing.B) {
	p := benchPage()
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		v, err := encode(p)
		if err != nil {
			b.Fatal(err)
		}
		var q Page
		if err := decode(v, &q); err != nil {
			b.Fatal(err)
		}
		size = len(v)
	}
	b.ReportMetric(float64(size), "B/page")
}

func BenchmarkApplyUnchanged(b *testing.B) {
	p := benchPage()
	ev := event{URL: page, Now: t0.Add(time.Second), Rules: rules{MinInterval: 10 * time.Second, Keep: 10}, Do: outcome{Outcome: flow.Outcome{
		Page: page, Incarnation: p.Incarnation, Check: p.Check, Kind: flow.OutcomeUnchanged, Against: p.BodyHash,
	}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, out := apply(p, ev); len(out) == 0 {
			b.Fatal("dropped")
		}
	}
}

// BenchmarkUnchanged is a whole check that finds nothing: the wake that asks for it, and
// its outcome, through the Stage over maps.
func BenchmarkUnchanged(b *testing.B) {
	store, now := txtest.New(), t0
	s := New(Config{Now: func() time.Time { return now }})
	tx := store.Begin()
	p := benchPage()
	v, err := encode(p)
	if err != nil {
		b.Fatal(err)
	}
	if err := tx.State(page).Set(pageName, v); err != nil {
		b.Fatal(err)
	}
	tx.Commit()
	ctx := context.Background()
	wake := flow.Message{ID: "w", Key: page, Type: flow.TypeWake}
	o := flow.Outcome{Page: page, Incarnation: p.Incarnation, Check: p.Check, Nonce: p.Open.Nonce, Kind: flow.OutcomeUnchanged, Against: p.BodyHash, Time: t0}
	b.ReportAllocs()
	for b.Loop() {
		if err := store.Handle(ctx, s, o.Message()); err != nil {
			b.Fatal(err)
		}
		o.Check++
		now = now.Add(10 * time.Minute)
		if err := store.Handle(ctx, s, wake); err != nil {
			b.Fatal(err)
		}
		store.Take()
	}
	if got, err := Load(store.Begin().State(page)); err != nil || got.Check != o.Check {
		b.Fatalf("got check %d (%v), want %d", got.Check, err, o.Check)
	}
}

// BenchmarkVersion is an outcome with a new text of 20 KB, 1 % of whose words changed.
func BenchmarkVersion(b *testing.B) {
	content := strings.Repeat("The stock of the shop is counted every evening by those who work there, and it was never as large.\n", 200)
	changed := strings.Replace(content, "stock", "store", 40)
	ctx, store := context.Background(), txtest.New()
	s := New(Config{Now: func() time.Time { return t0 }, Every: new(time.Duration)})
	body, err := json.Marshal(flow.SubscribeCommand{Origin: "api", Subscription: sub("c", pipeline.View{})})
	if err != nil {
		b.Fatal(err)
	}
	m := flow.Message{ID: "m", Key: page, Type: flow.TypeSubscribe, Position: "p", Body: body}
	if err := store.Handle(ctx, s, m); err != nil {
		b.Fatal(err)
	}
	check := uint64(0)
	texts := []string{content, changed}
	packed := [][]byte{flow.PackText(content), flow.PackText(changed)}
	hashes := []string{text.Hash(content), text.Hash(changed)}
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		i := check % uint64(len(texts))
		check++
		o := flow.Outcome{Page: page, Incarnation: "p", Check: check, Parts: 1, Document: whole, Kind: flow.OutcomeRead, TextHash: hashes[i], Packed: packed[i], Time: t0}
		if err := store.Handle(ctx, s, o.Message()); err != nil {
			b.Fatal(err)
		}
		store.Take()
	}
	if got, err := Load(store.Begin().State(page)); err != nil || got.Documents[0].N != check {
		b.Fatalf("got %+v (%v), want %d versions", got.Documents, err, check)
	}
}

func TestMostlyNew(t *testing.T) {
	words := func(from, to int) string {
		var b strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "word%d ", i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		old, new string
		want     bool
	}{
		"equal":         {words(0, 1000), words(0, 1000), false},
		"moved":         {words(0, 1000), words(500, 1000) + words(0, 500), false},
		"a quarter":     {words(0, 1000), words(250, 1250), false},
		"two fifths":    {words(0, 1000), words(400, 1400), true},
		"all":           {words(0, 1000), words(1000, 2000), true},
		"from nothing":  {"", words(0, 10), true},
		"to nothing":    {words(0, 10), "", true},
		"both nothing":  {"", "\n", false},
		"marks only":    {"a\nb\n", "\x02a\x03\nb", false},
		"repeats count": {"a a a a", "a", true},
	} {
		if got := mostlyNew(c.old, c.new); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func BenchmarkMostlyNew(b *testing.B) {
	old := strings.Repeat("The stock of the shop is counted every evening by those who work there, and it was never as large.\n", 200)
	changed := strings.Replace(old, "stock", "store", 40)
	b.SetBytes(int64(len(old) + len(changed)))
	for b.Loop() {
		if mostlyNew(old, changed) {
			b.Fatal("got true")
		}
	}
}
