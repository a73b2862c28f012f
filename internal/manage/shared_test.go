package manage

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestStarting: before the pipeline works a process says which one it is, and otherwise why
// it does not.
func TestStarting(t *testing.T) {
	f := &fake{starting: true, down: errBroken}
	c, _ := serve(t, f)
	if p, err := c.Process(t.Context()); err != nil || p.Data == "" || p.Lanes != nil {
		t.Errorf("process: got %+v, %v", p, err)
	}
	_, list := c.List(t.Context(), inspect.ListFilter{})
	_, explain := c.Explain(t.Context(), "https://example.com/", inspect.ExplainFilter{})
	_, replay := c.Replay(t.Context(), flow.DeadFilter{})
	for what, err := range map[string]error{
		"list": list, "explain": explain, "replay": replay, "cancel": c.Cancel(t.Context(), "https://example.com/", "c"),
	} {
		if err == nil || err.Error() != errBroken.Error() {
			t.Errorf("%s: got %v, want %v", what, err, errBroken)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the pipeline was asked %v", f.asked)
	}
	f.starting = false
	if _, err := c.List(t.Context(), inspect.ListFilter{}); err != nil {
		t.Errorf("list of one at work: %v", err)
	}
}

func TestLanes(t *testing.T) {
	c, _ := serve(t, &fake{gauges: []flow.Gauge{
		{Name: "vokter_ready", Value: 1}, {Name: flow.GaugeLanes, Value: 32}, {Name: flow.GaugeLanesOwned, Value: 11},
		{Name: flow.GaugeLanesRestoring, Value: 2},
	}})
	p, err := c.Process(t.Context())
	if want := (Process{Data: "/var/lib/vokter", Lanes: &Lanes{11, 2, 32}}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v, %v, want %+v", p, err, want)
	}
}

func TestElsewhere(t *testing.T) {
	want := fmt.Errorf("https://example.com/: %w", inspect.ErrElsewhere)
	c, _ := serve(t, &fake{err: want})
	_, err := c.Explain(t.Context(), "https://example.com/", inspect.ExplainFilter{})
	if !errors.Is(err, inspect.ErrElsewhere) || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}
