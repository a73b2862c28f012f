package sim

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// tap is a transaction in which one thing is broken.
type tap struct {
	flow.Tx
	emit      func(m flow.Message) []flow.Message // what is emitted in place of m
	forgetful bool                                // state is not stored
	lazy      bool                                // nothing is synced
	deaf      bool                                // no wake is set
	clings    bool                                // state is not deleted
	drops     string                              // what has such a name is not stored
}

func (t tap) Emit(m flow.Message) {
	if t.emit == nil {
		t.Tx.Emit(m)
		return
	}
	for _, m := range t.emit(m) {
		t.Tx.Emit(m)
	}
}

func (t tap) Sync() {
	if !t.lazy {
		t.Tx.Sync()
	}
}

func (t tap) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	if !t.deaf {
		t.Tx.WakeAt(key, at, opts...)
	}
}

func (t tap) State(key string) flow.State {
	st := t.Tx.State(key)
	switch {
	case t.forgetful:
		return forgetful{st}
	case t.clings:
		return clinging{st}
	case t.drops != "":
		return dropping{st, t.drops}
	}
	return st
}

type clinging struct{ flow.State }

func (clinging) Delete(string) error { return nil }

type dropping struct {
	flow.State
	prefix string
}

func (d dropping) Set(name string, value []byte) error {
	if strings.HasPrefix(name, d.prefix) {
		return nil
	}
	return d.State.Set(name, value)
}

type forgetful struct{ flow.State }

func (forgetful) Set(string, []byte) error { return nil }
func (forgetful) Delete(string) error      { return nil }

// mutation breaks the processor of one group. It is made anew for each run.
type mutation func() func(p flow.Processor) flow.Processor

// input returns a mutation that alters what a group is given.
func input(alter func(m *flow.Message)) mutation {
	return func() func(flow.Processor) flow.Processor {
		return func(p flow.Processor) flow.Processor {
			return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				alter(&m)
				return p.Process(ctx, tx, m)
			})
		}
	}
}

// output returns a mutation that alters what a group emits.
func output(make func() func(m flow.Message) []flow.Message) mutation {
	return func() func(flow.Processor) flow.Processor {
		emit := make()
		return func(p flow.Processor) flow.Processor {
			return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				return p.Process(ctx, tap{Tx: tx, emit: emit}, m)
			})
		}
	}
}

// broken returns a mutation that breaks the transactions that pick picks.
func broken(t tap, pick func(n int, m flow.Message) bool) mutation {
	return func() func(flow.Processor) flow.Processor {
		n := 0
		return func(p flow.Processor) flow.Processor {
			return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				if n++; pick(n, m) {
					t := t
					t.Tx = tx
					tx = t
				}
				return p.Process(ctx, tx, m)
			})
		}
	}
}

func every(int, flow.Message) bool { return true }

// of picks the messages of a type.
func of(kind string) func(int, flow.Message) bool {
	return func(_ int, m flow.Message) bool { return m.Type == kind }
}

// ignored returns a mutation in which messages of a type are acknowledged and no more.
func ignored(kind string) mutation {
	return func() func(flow.Processor) flow.Processor {
		return func(p flow.Processor) flow.Processor {
			return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				if m.Type == kind {
					return nil
				}
				return p.Process(ctx, tx, m)
			})
		}
	}
}

// found alters what checks found.
func found(f func(o *flow.Outcome)) mutation {
	return input(func(m *flow.Message) {
		if m.Type != flow.TypeOutcome {
			return
		}
		o, err := flow.OutcomeFrom(*m)
		if err != nil {
			panic(err)
		}
		f(&o)
		at := m.Position
		*m = o.Message()
		m.Position = at
	})
}

// only makes f happen to notifications that say that a page was given up.
func only(f func(m flow.Message) []flow.Message) func() func(flow.Message) []flow.Message {
	return func() func(flow.Message) []flow.Message {
		return func(m flow.Message) []flow.Message {
			timeout := false
			alter(flow.TypeNotification, func(a *flow.Addressed) { timeout = a.Notification.Status == pipeline.StatusTimeout })(&m)
			if timeout {
				return f(m)
			}
			return []flow.Message{m}
		}
	}
}

func twice(m flow.Message) []flow.Message { return []flow.Message{m, m} }

// later makes every baseline look like a later version.
func later() func(flow.Message) []flow.Message {
	return func(m flow.Message) []flow.Message {
		if s, err := flow.SnapshotFrom(m); m.Type == flow.TypeSnapshot && err == nil && s.Previous == 0 && s.Check > 1 {
			s.Previous, s.Old = s.N, s.New
			m = s.Message()
		}
		return []flow.Message{m}
	}
}

// nth makes what f does to a message happen to the nth of a type only.
func nth(n int, kind string, f func(m flow.Message) []flow.Message) func() func(flow.Message) []flow.Message {
	return func() func(flow.Message) []flow.Message {
		seen := 0
		return func(m flow.Message) []flow.Message {
			if m.Type == kind {
				if seen++; seen == n {
					return f(m)
				}
			}
			return []flow.Message{m}
		}
	}
}

func drop(flow.Message) []flow.Message { return nil }

// alter changes the JSON body of messages of one type.
func alter[T any](kind string, f func(*T)) func(m *flow.Message) {
	return func(m *flow.Message) {
		if m.Type != kind {
			return
		}
		var v T
		if err := json.Unmarshal(m.Encoded(), &v); err != nil {
			panic(err)
		}
		f(&v)
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		m.Body = b
		*m = wire(*m)
	}
}

// emitted turns alter into an output mutation.
func emitted(f func(m *flow.Message)) mutation {
	return output(func() func(flow.Message) []flow.Message {
		return func(m flow.Message) []flow.Message {
			f(&m)
			return []flow.Message{m}
		}
	})
}

// swap holds the second change of a page back behind its third.
func swap() func(flow.Message) []flow.Message {
	held := make(map[string]flow.Message)
	seen := make(map[string]int)
	return func(m flow.Message) []flow.Message {
		seen[m.Key]++
		switch h, ok := held[m.Key]; {
		case seen[m.Key] == 2:
			held[m.Key] = m
			return nil
		case ok:
			delete(held, m.Key)
			return []flow.Message{m, h}
		}
		return []flow.Message{m}
	}
}

// readdressed returns a mutation that alters what checks found, given the last request for
// the page.
func readdressed(f func(o *flow.Outcome, last flow.Request)) mutation {
	return func() func(flow.Processor) flow.Processor {
		last := make(map[string]flow.Request)
		note := alter(flow.TypeRequest, func(r *flow.Request) { last[r.Page] = *r })
		answer := found(func(o *flow.Outcome) { f(o, last[o.Page]) })()
		return func(p flow.Processor) flow.Processor {
			return answer(flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				return p.Process(ctx, tap{Tx: tx, emit: func(m flow.Message) []flow.Message {
					note(&m)
					return []flow.Message{m}
				}}, m)
			}))
		}
	}
}

// hasty remembers in memory what it has handled, before that is committed.
func hasty() func(flow.Processor) flow.Processor {
	return func(p flow.Processor) flow.Processor {
		seen := make(map[string]bool)
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Position != "" && seen[m.Position] {
				return nil
			}
			seen[m.Position] = true
			return p.Process(ctx, tx, m)
		})
	}
}

func again(m flow.Message) []flow.Message {
	other := m
	alter(flow.TypeNotification, func(a *flow.Addressed) {
		a.Notification.ID = flow.DeriveID(a.Notification.ID)
		other.ID = a.Notification.ID
	})(&other)
	return []flow.Message{m, other}
}

// unmarked takes out of a text what shows that it is a challenge.
func unmarked(o *flow.Outcome) {
	content, err := flow.UnpackText(o.Packed)
	if o.Kind != flow.OutcomeRead || err != nil {
		return
	}
	content = strings.NewReplacer("Just a moment", "Amber ocean", "Checking your browser", "Silver river").Replace(content)
	o.TextHash, o.Packed = text.Hash(content), flow.PackText(content)
}

// oneGroup makes one group of all that are no moved blocks.
func oneGroup(c *flow.Change) {
	var all flow.Group
	groups := c.Groups
	c.Groups = nil
	for _, g := range groups {
		if g.Moved {
			c.Groups = append(c.Groups, g)
			continue
		}
		all.Old, all.New = append(all.Old, g.Old...), append(all.New, g.New...)
		all.Differences = append(all.Differences, g.Differences...)
	}
	c.Groups = append(c.Groups, all)
}

// empties tells of nothing beside the first notification.
func empties() func(flow.Message) []flow.Message {
	done := false
	return func(m flow.Message) []flow.Message {
		if done || m.Type != flow.TypeNotification {
			return []flow.Message{m}
		}
		done = true
		other := m
		alter(flow.TypeNotification, func(a *flow.Addressed) {
			a.Notification.Diffs, a.Notification.Version = []pipeline.Diff{}, a.Notification.Version+1
			a.Notification.ID = flow.DeriveID(a.Notification.ID)
			other.ID = a.Notification.ID
		})(&other)
		return []flow.Message{m, other}
	}
}
