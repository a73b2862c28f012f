package index

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// TestSketchIsThatOfTheVersion: a short text has none, also where the one before was long.
func TestSketchIsThatOfTheVersion(t *testing.T) {
	d := newDesk(t, Config{})
	d.subscribe("c")
	long := strings.Repeat(english, 3)
	for i, content := range []string{long, "short\n", "shorter\n", long + "and more\n"} {
		d.answer(content)
		d.wake()
		got, ok, err := LoadSketch(d.store.Begin().State(page), whole)
		want, exists := text.NewSketch(text.Analyze(content))
		if err != nil || ok != exists || got != want {
			t.Errorf("text %d: stored %v, %v, want %v", i, ok, err, exists)
		}
	}
	d.cancel("c")
	if names := d.store.Names(page); len(names) != 0 {
		t.Errorf("after the end the state holds %q", names)
	}
}

// TestSketchesDecideNothing compares what a stage emits with what it emits where its sketches
// are lost, or are all the same, after each message.
func TestSketchesDecideNothing(t *testing.T) {
	other, _ := text.NewSketch(text.Analyze(strings.Repeat(english, 5)))
	damage := map[string]func(st flow.State) error{
		"kept":                     func(flow.State) error { return nil },
		"lost":                     func(st flow.State) error { return st.Delete(sketchName + whole) },
		"the same in all versions": func(st flow.State) error { return st.Set(sketchName+whole, other.Pack()) },
	}
	said := map[string][]flow.Message{}
	for name, spoil := range damage {
		d := newDesk(t, Config{})
		keep := func() {
			for _, m := range d.out {
				if m.Type != flow.TypeRequest { // it has a random nonce
					said[name] = append(said[name], m)
				}
			}
			tx := d.store.Begin()
			if err := spoil(tx.State(page)); err != nil {
				t.Fatal(err)
			}
			tx.Commit()
		}
		r := rand.New(rand.NewPCG(8, 8))
		words := strings.Fields(strings.Repeat(english, 10))
		d.subscribe("c")
		keep()
		for range 12 {
			for range []int{0, 1, 100}[r.IntN(3)] {
				words[r.IntN(len(words))] = fmt.Sprint("word", r.IntN(50))
			}
			d.answer(strings.Join(words, " ") + "\n")
			keep()
			d.wake()
			keep()
		}
	}
	for name, got := range said {
		if want := said["kept"]; !reflect.DeepEqual(got, want) || len(want) < 6 {
			t.Errorf("sketches %s: %d messages, not the same %d", name, len(got), len(want))
		}
	}
}
