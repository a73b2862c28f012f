package sinks

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// format1 is the state of a receiver as a store of format 1 has it: "old" was delivered,
// "first" failed once, "second" waits for it.
var format1 = map[string]string{
	"queue": "\x01" + `{"head":1,"next":3,"attempt":2,"due":"2026-01-02T03:04:10Z","first":"2026-01-02T03:04:05Z","tries":1,"failures":1,` +
		`"failing_since":"2026-01-02T03:04:05Z","reason":"down","prune_at":"2026-01-09T03:04:05Z"}`,
	"p/00000000000000000001":     "\x01" + `{"addressed":{"receiver":{"sink":"a"},"document":"D","subscription":"S","notification":{"id":"first","url":"https://example.com/"}}}`,
	"p/00000000000000000002":     "\x01" + `{"addressed":{"receiver":{"sink":"a"},"document":"D","subscription":"S","notification":{"id":"second","url":"https://example.com/"}}}`,
	"d/old":                      "\x01",
	"d/first":                    "\x01",
	"d/second":                   "\x01",
	"t/01767323045000000000/old": "\x01",
}

func TestMigrateState(t *testing.T) {
	store := txtest.New()
	tx := store.Begin()
	for name, v := range format1 {
		value, err := MigrateState("a", name, []byte(v))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := MigrateState("a", name, value)
		if err != nil || !bytes.Equal(again, value) {
			t.Errorf("%s, migrated twice: got %q, %v; want %q", name, again, err, value)
		}
		if err := tx.State("a").Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	tx.Commit()
	for name, v := range map[string]string{"x/S": "\x01", "m/00000000000000000001/S": "\x01{}"} { // not in format 1
		if value, err := MigrateState("a", name, []byte(v)); err != nil || string(value) != v {
			t.Errorf("%s: got %q, %v; want it as it is", name, value, err)
		}
	}

	want := map[string]Record{
		"old":    {State: RecordDelivered, Attempts: 1, Time: t0},
		"first":  {State: RecordPending, Attempts: 1, Reason: "down", Time: t0.Add(5 * time.Second)},
		"second": {State: RecordPending, Reason: "waits for an earlier one: down", Time: t0.Add(5 * time.Second)},
	}
	for id, want := range want {
		if got, ok, err := Known(store.Begin().State("a"), id); err != nil || !ok || got != want {
			t.Errorf("%s: got %+v, %v, %v; want %+v", id, got, ok, err, want)
		}
	}

	// It goes on where it stood, and what was delivered is still known.
	var sent []string
	now := t0.Add(time.Minute)
	var attempt Attempt
	d := NewDelivery(Config{Now: func() time.Time { return now }, Hand: func(a Attempt) { attempt = a; sent = append(sent, a.Notifications[0].ID) }})
	for _, m := range []flow.Message{notification(t, "a", "S", "old"), notification(t, "a", "S", "first"), {Type: flow.TypeWake, Key: "a"}} {
		if err := store.Handle(t.Context(), d, m); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := store.Handle(t.Context(), d, attempt.Result(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if len(sent) != 2 || sent[0] != "first" || sent[1] != "second" {
		t.Errorf("sent %v, want first and second", sent)
	}
}

func TestMigrateStateRefuses(t *testing.T) {
	values := maps.Clone(format1)
	for name := range values {
		values[name] = "\x07{}"
	}
	values["surprise"] = "\x01"
	values["d/empty"], values["queue"] = "", ""
	for name, v := range values {
		_, err := MigrateState("a", name, []byte(v))
		if class, _ := pipeline.ClassOf(err); class != pipeline.ClassBroken {
			t.Errorf("%s %q: got %v, want an error that stops the Router", name, v, err)
		}
	}
}
