package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/test/txtest"
)

// TestMemoryIsAskedFor: a version is stored once there is memory for its text, which is given
// back; nothing is stored where there is none in time.
func TestMemoryIsAskedFor(t *testing.T) {
	var asked, held int64
	var refusal error
	d := newDesk(t, Config{Memory: func(_ context.Context, bytes int64) (func(), error) {
		if refusal != nil {
			return nil, refusal
		}
		asked = bytes
		held += bytes
		return func() { held -= bytes }, nil
	}})
	d.subscribe("c")
	first := strings.Repeat("one line\n", 100)
	d.answer(first)
	if want := int64(memoryFor * len(first)); asked != want || held != 0 {
		t.Errorf("asked for %d bytes, want %d; %d were not given back", asked, want, held)
	}
	d.wake()
	refusal = errors.New("stopping")
	m := fetched(d.request, 0, first+"another\n").Message()
	m.Position = "S/documents/0/99"
	if err := d.store.Handle(t.Context(), d.stage, m); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the refusal", err)
	}
	if _, ok, err := LoadVersion(d.store.Begin().State(page), whole, 2); ok || err != nil {
		t.Errorf("there is a version 2 (%v)", err)
	}
	refusal = nil
	d.answer(first + "another\n")
	if got := d.types(); len(got) == 0 || got[0] != flow.TypeSnapshot {
		t.Errorf("got %v, want a snapshot", got)
	}
}

// sharing is a transaction whose commit comes with that of others.
type sharing struct {
	*txtest.Tx
	later *[]func()
}

func (s sharing) OnCommit(f func()) { *s.later = append(*s.later, f) }

// TestMessagesOfOneCommit: a transport may commit several messages of a page together. What
// the first asked for is not lost to the second, though it is not committed.
func TestMessagesOfOneCommit(t *testing.T) {
	d := newDesk(t, Config{Checks: 1})
	d.stage.Expect(page)
	var later []func()
	handle := func(m flow.Message) {
		tx := sharing{d.store.Begin(), &later}
		if err := d.stage.Process(flow.WithTx(t.Context(), tx), tx, m); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
	}
	list := []byte(`{"url":"` + page + `","origin":"yaml","client":"c","subscriptions":[{"url":"` + page + `","client":"c","keywords":["stock"],"sinks":["s"]}]}`)
	for _, position := range []string{"S/documents/0/0", "S/documents/0/1"} {
		handle(flow.Message{ID: position, Topic: flow.TopicDocuments, Key: page, Type: flow.TypeApply, Body: list, Position: position})
	}
	for _, m := range d.store.Due(d.now) {
		handle(m)
	}
	for _, f := range later {
		f()
	}
	for _, m := range d.store.Take() {
		if m.Type == flow.TypeRequest {
			d.request = body[flow.Request](d, m)
		}
	}
	d.answer("z")
	if !slices.Contains(d.notes, flow.KindVersion) || !d.stage.Finished() {
		t.Errorf("the outcome was dropped: %q", d.notes)
	}
}

func TestLanguageOf(t *testing.T) {
	const german = "Jeden Morgen gingen die Kinder durch den alten Wald zur Schule, und am Abend kamen sie zurück."
	numbers := strings.Repeat("17 ", 100)
	for name, c := range map[string]struct {
		n        uint64
		old, new string
		choice   text.LanguageChoice
		last     StoredVersion
		want     string
		from     text.LanguageSource
	}{
		"a fallback is detected again":          {2, numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "de", text.FromText},
		"so is what a page no longer declares":  {2, numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromPage}, "de", text.FromText},
		"a detected language stands":            {2, numbers, numbers + german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "sv", text.FromText},
		"until most is new":                     {2, "17", german, text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "de", text.FromText},
		"or is too short to tell":               {2, "17", "18", text.LanguageChoice{}, StoredVersion{Language: "sv", LanguageFrom: text.FromText}, "sv", text.FromText},
		"the page of a short part":              {2, "17", "18", text.LanguageChoice{Text: "fr"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "fr", text.FromText},
		"the text before its page":              {2, "17", german, text.LanguageChoice{Text: "fr"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "de", text.FromText},
		"what the page declares":                {2, "17", german, text.LanguageChoice{Page: "fr-CA"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "fr", text.FromPage},
		"what the user sets":                    {2, "17", german, text.LanguageChoice{Document: "it", Page: "fr"}, StoredVersion{Language: "fr", LanguageFrom: text.FromPage}, "it", text.FromDocument},
		"a fallback of one's own":               {2, "17", "18", text.LanguageChoice{Fallback: "pt"}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "pt", text.FromFallback},
		"a fallback stands where little is new": {2, numbers + german, numbers + german + " 18", text.LanguageChoice{}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "en", text.FromFallback},
		"but not for ever":                      {32, numbers + german, numbers + german + " 18", text.LanguageChoice{}, StoredVersion{Language: "en", LanguageFrom: text.FromFallback}, "de", text.FromText},
	} {
		if got, from := languageOf(flow.Snapshot{N: c.n, Previous: 1, Old: c.old, New: c.new}, c.choice, c.last); got != c.want || from != c.from {
			t.Errorf("%s: got %s (%s), want %s (%s)", name, got, from, c.want, c.from)
		}
	}
}

// TestScreenshots stores the picture of a page with the version that it came with, as long as the
// version is stored.
func TestScreenshots(t *testing.T) {
	d := newDesk(t, Config{Keep: 2})
	d.subscribe("c")
	for i := range 4 {
		if i > 0 {
			d.wake()
		}
		o := fetched(d.request, 0, fmt.Sprintf("%sNumber %s.\n", english, strings.Repeat("x", i+1)))
		o.Time = d.now
		if i != 2 { // no picture could be taken
			o.Screenshot = []byte{'p', byte(i)}
		}
		d.handle(o.Message())
		v, ok, err := LoadVersion(d.state(), whole, uint64(i+1))
		if err != nil || !ok || v.Screenshot != (i != 2) {
			t.Fatalf("version %d: %+v, %v, %v", i+1, v, ok, err)
		}
	}
	for n, want := range map[uint64][]byte{1: nil, 2: nil, 3: nil, 4: {'p', 3}} {
		got, ok, err := LoadScreenshot(d.state(), whole, n)
		if err != nil || ok != (want != nil) || !bytes.Equal(got, want) {
			t.Errorf("version %d: got %v, %v, %v, want %v", n, got, ok, err, want)
		}
	}
	if o, err := flow.OutcomeFrom(fetched(d.request, 0, english).Message()); err != nil || o.Screenshot != nil {
		t.Errorf("an outcome without: %v, %v", o.Screenshot, err)
	}
	d.cancel("c")
	for _, name := range d.store.Names(page) {
		if strings.HasPrefix(name, screenshotsName) {
			t.Errorf("%s stays when the document ends", name)
		}
	}
}
