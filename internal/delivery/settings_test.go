package delivery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/txtest"
)

func TestReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		old := &recorder{do: func(context.Context, pipeline.Notification) error { <-release; return nil }}
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{"a": old}})
		r.notify("a", "x")
		synctest.Wait()
		r.notify("a", "y")
		s := &recorder{do: func(context.Context, pipeline.Notification) error { return errors.New("500") }}
		sinks := map[string]pipeline.Sink{"a": s}
		var wg sync.WaitGroup
		wg.Go(func() { r.d.Reconfigure(sinks, Policy{Retry: []time.Duration{time.Hour}}) })
		wg.Wait()
		clear(sinks)
		close(release)
		synctest.Wait()
		if got, want := old.got()+s.got(), "[x][y]"; got != want {
			t.Errorf("attempts %s, want %s", got, want)
		}
		if got := r.queue("a"); got.Delay != time.Hour {
			t.Errorf("the next attempt is after %s, want 1h", got.Delay)
		}
		r.stop()
	})
}

// closable is a sink that holds connections.
type closable struct {
	recorder
	closed atomic.Int32
}

func (c *closable) Close() error { c.closed.Add(1); return errors.New("not in order") }

// incomparable is a closable that cannot be compared.
type incomparable struct {
	*closable
	_ []int
}

// hiddenIncomparable cannot be compared either, which its type does not tell.
type hiddenIncomparable struct {
	*closable
	rest any
}

// panicking panics where it is closed.
type panicking struct{ recorder }

func (*panicking) Close() error { panic("not today") }

// TestHostileClosers: the process survives sinks that cannot be compared, or panic.
func TestHostileClosers(t *testing.T) {
	c := new(closable)
	sink := hiddenIncomparable{c, []int{1}}
	d := NewDelivery(Config{Sinks: map[string]pipeline.Sink{"a": sink, "b": sink, "c": new(panicking)}})
	d.Reconfigure(map[string]pipeline.Sink{"a": sink}, Policy{})
	d.Reconfigure(nil, Policy{})
	if c.closed.Load() == 0 {
		t.Error("it is not closed")
	}
}

// TestSinksAreClosed: each once, after the last attempt with it, and only if the new
// configuration does not have it too.
func TestSinksAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		busy := &closable{recorder: recorder{do: func(context.Context, pipeline.Notification) error { <-release; return nil }}}
		kept, gone, odd := new(closable), new(closable), new(closable)
		r := newPoolFixture(t, txtest.New(), Config{Sinks: map[string]pipeline.Sink{
			"busy": busy, "kept": kept, "gone": registry.LimitRate(gone, 1, 1), "again": gone, "odd": incomparable{closable: odd}, "other": &recorder{},
		}})
		r.notify("busy", "x")
		synctest.Wait()
		r.d.Reconfigure(map[string]pipeline.Sink{"busy": busy, "renamed": registry.LimitRate(kept, 1, 1)}, Policy{})
		check := func(when string, want map[*closable]int32) {
			t.Helper()
			synctest.Wait()
			for c, n := range want {
				if got := c.closed.Load(); got != n {
					t.Errorf("%s: closed %d times, want %d", when, got, n)
				}
			}
		}
		check("while an attempt is under way", map[*closable]int32{busy: 0, kept: 0, gone: 0, odd: 0})
		// Nothing began under the settings that are replaced now, but the attempt uses a sink of theirs.
		r.d.Reconfigure(map[string]pipeline.Sink{"renamed": registry.LimitRate(kept, 1, 1)}, Policy{})
		check("while it is still under way", map[*closable]int32{busy: 0, kept: 0, gone: 0, odd: 0})
		close(release)
		check("after it", map[*closable]int32{busy: 1, kept: 0, gone: 1, odd: 1})
		r.notify("renamed", "y")
		synctest.Wait()
		r.stop()
		r.d.Reconfigure(nil, Policy{})
		check("after the end", map[*closable]int32{busy: 1, kept: 1, gone: 1, odd: 1})
		if got := kept.got(); got != "[y]" {
			t.Errorf("got %s, want [y]", got)
		}
	})
}

// TestSeverityOfAGroup: a group has the highest severity in it, and one channel.
func TestSeverityOfAGroup(t *testing.T) {
	k := newDeliveryFixture(t)
	k.setReceiving(pipeline.Receiving{GroupBy: []string{pipeline.GroupByHost}})
	for i, n := range []struct{ severity, channel string }{{"info", ""}, {"critical", ""}, {"", ""}, {"warning", "#legal"}, {"warning", "#legal"}} {
		a, err := bodyOf(k.pageNotification("https://example.com/"+string(rune('a'+i)), "c"))
		if err != nil {
			t.Fatal(err)
		}
		a.Notification.Severity, a.Notification.Channel = n.severity, n.channel
		m, err := a.Message()
		if err != nil {
			t.Fatal(err)
		}
		k.handle(m)
	}
	k.tick(time.Minute)
	var groups []pipeline.Notification
	for len(k.attempts) > 0 {
		a := k.attempts[0]
		k.attempts = k.attempts[1:]
		groups = append(groups, a.Notifications...)
		k.handle(a.Result(nil))
	}
	if len(groups) != 2 {
		t.Fatalf("%d groups, want one for each channel", len(groups))
	}
	for _, n := range groups {
		switch {
		case n.Channel == "" && n.Severity == "critical" && len(n.Items) == 3 && n.Items[0].Severity == "info":
		case n.Channel == "#legal" && n.Severity == "warning" && len(n.Items) == 2:
		default:
			t.Errorf("got %+v", n)
		}
	}
}
