package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// twoLanes has two lanes. An output is the ID of its message and its lane.
type twoLanes struct{ name string }

type output struct {
	id   string
	lane int
}

func (twoLanes) Lanes() int                            { return 2 }
func (twoLanes) Output(m flow.Message) output          { return output{m.ID, 0} }
func (twoLanes) OutputTo(_ flow.Message, l int) output { return output{"copy", l} }
func (twoLanes) Logged(string) bool                    { return true }
func (twoLanes) Fits(*engine.Effects[output]) error    { return nil }

func newTx(m txtest.Memory, w engine.Work) *engine.Tx[output] {
	return engine.NewTx(m, twoLanes{}, "g", "in", w, nil)
}

// scannedValues lists what st has under a prefix, as name=value.
func scannedValues(t *testing.T, st flow.State, prefix string) []string {
	t.Helper()
	var all []string
	for name, v := range st.Scan(prefix) {
		if v.Err != nil {
			t.Fatal(v.Err)
		}
		all = append(all, name+"="+string(v.Bytes))
	}
	return all
}

func TestStateSeesItsWrites(t *testing.T) {
	p := engine.Place{Group: "g", Key: "k"}
	committed := make(txtest.Memory)
	for _, name := range []string{"a2", "a4", "a6", "b1"} {
		committed.Set(p, name, []byte("old"))
	}
	x := newTx(committed, engine.Work{})
	st := x.State("k")
	for name, value := range map[string][]byte{"a1": []byte("new"), "a3": {}, "a4": []byte("new"), "a7": nil} {
		if err := st.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(st.Delete("a2"), st.Delete("a5")); err != nil {
		t.Fatal(err)
	}
	if got, want := scannedValues(t, st, "a"), []string{"a1=new", "a3=", "a4=new", "a6=old", "a7="}; !slices.Equal(got, want) {
		t.Errorf("the transaction reads %q, want %q", got, want)
	}
	if got, want := scannedValues(t, engine.View(committed, p), ""), []string{"a2=old", "a4=old", "a6=old", "b1=old"}; !slices.Equal(got, want) {
		t.Errorf("others read %q, want %q", got, want)
	}
	for range st.Scan("a") {
		break // the rest is not yielded
	}
	if err := st.Set("", nil); err == nil {
		t.Error("a value without a name is stored")
	}
	x.Reset()
	if got, want := scannedValues(t, st, "a"), []string{"a2=old", "a4=old", "a6=old"}; !slices.Equal(got, want) {
		t.Errorf("after Reset the transaction reads %q, want %q", got, want)
	}
}

func TestCommitEndsTheTransaction(t *testing.T) {
	refused := errors.New("refused")
	x := newTx(nil, engine.Work{Kind: engine.FromWake, Wake: engine.Wake{Key: "k", At: time.Unix(1, 0)}})
	x.Emit(flow.Message{ID: "1"})
	x.EmitAll(flow.Message{ID: "2"})
	x.WakeAt("other", time.Unix(2, 0), flow.AtStart)
	x.WakeAt("other", time.Unix(3, 0))
	if err := x.Commit(func(*engine.Effects[output]) error { return refused }); !errors.Is(err, refused) {
		t.Fatalf("got %v", err)
	}
	err := x.Commit(func(e *engine.Effects[output]) error {
		if want := []output{{"1", 0}, {"copy", 0}, {"copy", 1}}; !slices.Equal(e.Out, want) {
			t.Errorf("outputs %v, want %v", e.Out, want)
		}
		// The wake that was delivered goes, since the handler did not set it again.
		if want := []engine.Wake{{Key: "other", At: time.Unix(3, 0).UTC()}, {Key: "k"}}; !slices.Equal(e.Wakes, want) {
			t.Errorf("wakes %v, want %v", e.Wakes, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.State("k").Set("n", nil); !errors.Is(err, engine.ErrOver) {
		t.Errorf("a write after the commit: %v", err)
	}
	if x.Collect(output{}) {
		t.Error("an output after the commit is collected")
	}
}

func TestJoinOnlyItsTransport(t *testing.T) {
	x := newTx(nil, engine.Work{})
	ctx := flow.WithTx(context.Background(), x)
	if joined, err := engine.Join(ctx, twoLanes{"another"}, []output{{"1", 0}}); joined || err != nil {
		t.Errorf("outputs of another transport: %v, %v", joined, err)
	}
	if joined, err := engine.Join(ctx, twoLanes{}, []output{{"1", 0}}); !joined || err != nil {
		t.Errorf("outputs of this transport: %v, %v", joined, err)
	}
	x.Close()
	if joined, err := engine.Join(ctx, twoLanes{}, []output{{"1", 0}}); !joined || !errors.Is(err, engine.ErrOver) {
		t.Errorf("outputs after the end: %v, %v", joined, err)
	}
}
