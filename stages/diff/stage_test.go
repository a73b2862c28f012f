package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// fakeTx collects what a handler does. The stage keeps no state and sets no wakes, so
// those methods of the embedded nil Tx panic.
type fakeTx struct {
	flow.Tx
	emitted  []flow.Message
	onCommit []func()
}

func (t *fakeTx) Emit(m flow.Message) { t.emitted = append(t.emitted, m) }
func (t *fakeTx) OnCommit(f func())   { t.onCommit = append(t.onCommit, f) }

func (t *fakeTx) commit() {
	for _, f := range t.onCommit {
		f()
	}
}

func snapshot(old, new string) flow.Snapshot {
	return flow.Snapshot{
		Page: "https://example.com/a", Incarnation: "life", Document: "doc", N: 7, Previous: 6, Check: 12,
		Time: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Language: "en", Title: "Zeus", Old: old, New: new,
	}
}

// TestTokensOfTheIndex compares the old text by the tokens in the snapshot, and finds them where they
// are missing or made by another program.
func TestTokensOfTheIndex(t *testing.T) {
	s := snapshot("a b\n", "a c\n")
	one := text.PackTokens(&text.Doc{Tokens: []text.Token{{Start: 0, End: 3}}}) // both words are one token
	foreign := append([]byte{0xFF}, one[1:]...)
	for _, tc := range []struct {
		name string
		old  []byte
		want []flow.Difference
	}{
		{"read", one, []flow.Difference{{Event: pipeline.Removed, Text: "a b", Edit: 1}, {Event: pipeline.Added, Text: "a c", Edit: 1}}},
		{"missing", nil, []flow.Difference{{Event: pipeline.Removed, Text: "b", Offset: 2, Edit: 1}, {Event: pipeline.Added, Text: "c", Offset: 2, Edit: 1}}},
		{"foreign", foreign, []flow.Difference{{Event: pipeline.Removed, Text: "b", Offset: 2, Edit: 1}, {Event: pipeline.Added, Text: "c", Offset: 2, Edit: 1}}},
	} {
		s.OldTokens = tc.old
		tx := &fakeTx{}
		if err := New(Config{}).Process(context.Background(), tx, s.Message()); err != nil || len(tx.emitted) != 1 {
			t.Fatalf("%s: %d messages, %v", tc.name, len(tx.emitted), err)
		}
		var got flow.Change
		if err := json.Unmarshal(tx.emitted[0].Encoded(), &got); err != nil {
			t.Fatal(err)
		}
		var differences []flow.Difference
		for _, g := range got.Groups {
			differences = append(differences, g.Differences...)
		}
		slices.SortFunc(differences, func(a, b flow.Difference) int { return -strings.Compare(string(a.Event), string(b.Event)) })
		if !reflect.DeepEqual(differences, tc.want) {
			t.Errorf("%s: got %+v, want %+v", tc.name, differences, tc.want)
		}
	}
}

// TestABaselineIsAChangeIfAskedFor: all of its text is added.
func TestABaselineIsAChangeIfAskedFor(t *testing.T) {
	s := snapshot("", "Zeus\nHera\n")
	s.N, s.Previous = 1, 0
	for _, asked := range []bool{false, true} {
		tx := &fakeTx{}
		if err := New(Config{Baseline: asked}).Process(context.Background(), tx, s.Message()); err != nil {
			t.Fatal(err)
		}
		if !asked {
			if len(tx.emitted) != 0 {
				t.Errorf("got %d messages, want none", len(tx.emitted))
			}
			continue
		}
		if len(tx.emitted) != 1 {
			t.Fatalf("got %d messages, want 1", len(tx.emitted))
		}
		c, err := flow.ChangeFrom(tx.emitted[0])
		if err != nil || !c.Baseline || c.Version != 1 || c.Previous != 0 || c.Size.Added != 2 || c.Size.Removed != 0 || len(c.Groups) != 2 {
			t.Errorf("got %+v, %v", c, err)
		}
	}
}

func TestProcessSnapshot(t *testing.T) {
	var log bytes.Buffer
	var noted []flow.Observation
	p := New(Config{
		Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Observe: func(o flow.Observation) { noted = append(noted, o) },
	})
	s := snapshot(textOf("Zeus is in stock"), textOf("Zeus is out of stock"))
	s.Lineage = "store"
	tx := &fakeTx{}
	if err := p.Process(context.Background(), tx, s.Message()); err != nil {
		t.Fatal(err)
	}
	if len(tx.emitted) != 1 {
		t.Fatalf("%d messages, want 1", len(tx.emitted))
	}
	m := tx.emitted[0]
	id := flow.ChangeID("doc", "life", "store", 7)
	if m.Topic != flow.TopicChanges || m.Type != flow.TypeChange || m.Key != s.Page || m.ID != id || !m.Time.Equal(s.Time) {
		t.Errorf("message %+v", m)
	}
	var got flow.Change
	if err := json.Unmarshal(m.Encoded(), &got); err != nil {
		t.Fatal(err)
	}
	want := flow.Change{
		ID: id, URL: s.Page, Page: s.Page, Document: "doc", Incarnation: "life", Check: s.Check, Version: 7, Previous: 6,
		Time: s.Time, Language: "en", Title: "Zeus",
		Groups: []flow.Group{{
			Old: []flow.Window{{Text: "Zeus is in stock", Tokens: []flow.Span{{0, 4}, {5, 7}, {8, 10}, {11, 16}}, Edits: []flow.Span{{2, 3}}}},
			New: []flow.Window{{Text: "Zeus is out of stock", Tokens: []flow.Span{{0, 4}, {5, 7}, {8, 11}, {12, 14}, {15, 20}}, Edits: []flow.Span{{2, 4}}}},
			Differences: []flow.Difference{
				{Event: pipeline.Removed, Text: "in", Offset: 8, Edit: 1}, {Event: pipeline.Added, Text: "out of", Offset: 8, Edit: 1},
			},
		}},
		Size: flow.Size{Removed: 1, Added: 2, Old: 4, New: 5},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	if len(noted) != 0 {
		t.Errorf("observed before the commit: %v", noted)
	}
	tx.commit()
	if len(noted) != 1 || noted[0].Kind != flow.KindChange || noted[0].ID != id || noted[0].N != 7 || noted[0].Document != "doc" {
		t.Errorf("observed %v", noted)
	}
	if !strings.Contains(log.String(), id) {
		t.Errorf("log %q", log.String())
	}

	again := &fakeTx{}
	if err := p.Process(context.Background(), again, s.Message()); err != nil || !reflect.DeepEqual(again.emitted, tx.emitted) {
		t.Errorf("the second time: %v, %+v", err, again.emitted)
	}
}

func TestProcessNothingToSay(t *testing.T) {
	first := snapshot("", textOf("Zeus is in stock"))
	first.N, first.Previous = 1, 0
	for name, s := range map[string]flow.Snapshot{
		"first version":    first,
		"equal":            snapshot(textOf("a b"), textOf("a b")),
		"punctuation":      snapshot(textOf("a, b"), textOf("a; b!")),
		"markup":           snapshot(textOf("a b|c d"), textOf("a b", "c d")),
		"spacing":          snapshot("a b\n", "a  b \n\n"),
		"empty then empty": snapshot("", "\n"),
	} {
		tx := &fakeTx{}
		if err := New(Config{}).Process(context.Background(), tx, s.Message()); err != nil || len(tx.emitted) != 0 {
			t.Errorf("%s: %v, %d messages, want none", name, err, len(tx.emitted))
		}
	}
}

func TestProcessOnlyMoved(t *testing.T) {
	tx := &fakeTx{}
	s := snapshot(textOf("alpha", "beta", "gamma"), textOf("beta", "gamma", "alpha"))
	if err := New(Config{}).Process(context.Background(), tx, s.Message()); err != nil || len(tx.emitted) != 1 {
		t.Fatalf("%v, %d messages, want 1", err, len(tx.emitted))
	}
	if body := string(tx.emitted[0].Encoded()); !strings.Contains(body, `"moved":true`) {
		t.Errorf("body %s", body)
	}
}

func TestProcessRefuses(t *testing.T) {
	damaged := snapshot("", "b")
	damaged.OldPacked = []byte("no zstd")
	for name, c := range map[string]struct {
		m    flow.Message
		want failure.Class
	}{
		"unknown type":  {flow.Message{ID: "1", Type: "vokter.snapshot.v9"}, failure.ClassBroken},
		"one of others": {flow.Message{ID: "1", Type: "com.example.snapshot", Source: "/crm"}, failure.ClassPermanent},
		"a wake":        {flow.Message{Type: flow.TypeWake}, failure.ClassBroken},
		"none of ours":  {flow.Message{ID: "2", Type: flow.TypeSnapshot}, failure.ClassPermanent},
		"a stored text": {damaged.Message(), failure.ClassBroken},
	} {
		tx := &fakeTx{}
		err := New(Config{}).Process(context.Background(), tx, c.m)
		if class, _ := failure.ClassOf(err); err == nil || class != c.want || len(tx.emitted) != 0 {
			t.Errorf("%s: error %v of class %v, %d messages, want class %v and none", name, err, class, len(tx.emitted), c.want)
		}
	}
}

// TestMemoryIsAskedFor: a snapshot is compared once there is memory for its texts, which is
// given back, and is left as it is where there is none in time.
func TestMemoryIsAskedFor(t *testing.T) {
	s := snapshot(textOf(strings.Repeat("Zeus ", 100)), textOf(strings.Repeat("Argus ", 100)))
	var asked, held int64
	refusal := errors.New("stopping")
	var err error
	p := New(Config{Memory: func(_ context.Context, bytes int64) (func(), error) {
		asked = bytes
		if err != nil {
			return nil, err
		}
		held += bytes
		return func() { held -= bytes }, nil
	}})
	tx := &fakeTx{}
	if err := p.Process(t.Context(), tx, s.Message()); err != nil || len(tx.emitted) != 1 {
		t.Fatalf("%d messages and %v, want a change", len(tx.emitted), err)
	}
	if least := int64(memoryPerByte * (len(s.Old) + len(s.New))); asked < least || asked > 2*least || held != 0 {
		t.Errorf("asked for %d bytes, want at least %d; %d were not given back", asked, least, held)
	}
	tx, err = &fakeTx{}, refusal
	if got := p.Process(t.Context(), tx, s.Message()); !errors.Is(got, refusal) || len(tx.emitted) > 0 {
		t.Errorf("%d messages and %v, want the refusal alone", len(tx.emitted), got)
	}
}

// A change that is handed on in memory is the one that others read in its message.
func TestChangesAreThoseOfTheirMessages(t *testing.T) {
	tx := &fakeTx{}
	for seed := range uint64(200) {
		old, new := randomPair(rand.New(rand.NewPCG(seed, 4)))
		if err := New(Config{}).Process(context.Background(), tx, snapshot(textOf(old...), textOf(new...)).Message()); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range tx.emitted {
		made, err := flow.ChangeFrom(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := flow.ChangeFrom(m.WithBody())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range made.Groups { // absent in JSON, and no different to those who read them
			for _, w := range slices.Concat(g.Old, g.New) {
				if len(w.Tokens) == 0 || len(w.Edits) == 0 {
					t.Fatalf("a window without tokens or edits: %+v", w)
				}
			}
		}
		if !reflect.DeepEqual(got, made) {
			t.Errorf("got  %+v\nwant %+v", got, made)
		}
	}
}
