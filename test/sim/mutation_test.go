package sim

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// tap is a transaction in which one thing is broken.
type tap struct {
	pipeline.Tx
	emit      func(m pipeline.Message) []pipeline.Message // what is emitted in place of m
	forgetful bool                                        // state is not stored
	lazy      bool                                        // nothing is synced
	deaf      bool                                        // no wake is set
	clings    bool                                        // state is not deleted
	drops     string                                      // what has such a name is not stored
}

func (t tap) Emit(m pipeline.Message) {
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

func (t tap) WakeAt(key string, at time.Time, opts ...pipeline.WakeOption) {
	if !t.deaf {
		t.Tx.WakeAt(key, at, opts...)
	}
}

func (t tap) State(key string) pipeline.State {
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

type clinging struct{ pipeline.State }

func (clinging) Delete(string) error { return nil }

type dropping struct {
	pipeline.State
	prefix string
}

func (d dropping) Set(name string, value []byte) error {
	if strings.HasPrefix(name, d.prefix) {
		return nil
	}
	return d.State.Set(name, value)
}

type forgetful struct{ pipeline.State }

func (forgetful) Set(string, []byte) error { return nil }
func (forgetful) Delete(string) error      { return nil }

// mutation breaks the processor of one group. It is made anew for each run.
type mutation func() func(p pipeline.Processor) pipeline.Processor

// input returns a mutation that alters what a group is given.
func input(alter func(m *pipeline.Message)) mutation {
	return func() func(pipeline.Processor) pipeline.Processor {
		return func(p pipeline.Processor) pipeline.Processor {
			return pipeline.ProcessorFunc(func(ctx context.Context, tx pipeline.Tx, m pipeline.Message) error {
				alter(&m)
				return p.Process(ctx, tx, m)
			})
		}
	}
}

// output returns a mutation that alters what a group emits.
func output(make func() func(m pipeline.Message) []pipeline.Message) mutation {
	return func() func(pipeline.Processor) pipeline.Processor {
		emit := make()
		return func(p pipeline.Processor) pipeline.Processor {
			return pipeline.ProcessorFunc(func(ctx context.Context, tx pipeline.Tx, m pipeline.Message) error {
				return p.Process(ctx, tap{Tx: tx, emit: emit}, m)
			})
		}
	}
}

// broken returns a mutation that breaks the transactions that pick picks.
func broken(t tap, pick func(n int, m pipeline.Message) bool) mutation {
	return func() func(pipeline.Processor) pipeline.Processor {
		n := 0
		return func(p pipeline.Processor) pipeline.Processor {
			return pipeline.ProcessorFunc(func(ctx context.Context, tx pipeline.Tx, m pipeline.Message) error {
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

func every(int, pipeline.Message) bool { return true }

// of picks the messages of a type.
func of(kind string) func(int, pipeline.Message) bool {
	return func(_ int, m pipeline.Message) bool { return m.Type == kind }
}

// ignored returns a mutation in which messages of a type are acknowledged and no more.
func ignored(kind string) mutation {
	return func() func(pipeline.Processor) pipeline.Processor {
		return func(p pipeline.Processor) pipeline.Processor {
			return pipeline.ProcessorFunc(func(ctx context.Context, tx pipeline.Tx, m pipeline.Message) error {
				if m.Type == kind {
					return nil
				}
				return p.Process(ctx, tx, m)
			})
		}
	}
}

// found alters what checks found.
func found(f func(o *pipeline.Outcome)) mutation {
	return input(func(m *pipeline.Message) {
		if m.Type != pipeline.TypeOutcome {
			return
		}
		o, err := pipeline.OutcomeFrom(*m)
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
func only(f func(m pipeline.Message) []pipeline.Message) func() func(pipeline.Message) []pipeline.Message {
	return func() func(pipeline.Message) []pipeline.Message {
		return func(m pipeline.Message) []pipeline.Message {
			timeout := false
			alter(pipeline.TypeNotification, func(a *pipeline.Addressed) { timeout = a.Notification.Status == pipeline.StatusTimeout })(&m)
			if timeout {
				return f(m)
			}
			return []pipeline.Message{m}
		}
	}
}

func twice(m pipeline.Message) []pipeline.Message { return []pipeline.Message{m, m} }

// later makes every baseline look like a later version.
func later() func(pipeline.Message) []pipeline.Message {
	return func(m pipeline.Message) []pipeline.Message {
		if s, err := pipeline.SnapshotFrom(m); m.Type == pipeline.TypeSnapshot && err == nil && s.Previous == 0 && s.Check > 1 {
			s.Previous, s.Old = s.N, s.New
			m = s.Message()
		}
		return []pipeline.Message{m}
	}
}

// nth makes what f does to a message happen to the nth of a type only.
func nth(n int, kind string, f func(m pipeline.Message) []pipeline.Message) func() func(pipeline.Message) []pipeline.Message {
	return func() func(pipeline.Message) []pipeline.Message {
		seen := 0
		return func(m pipeline.Message) []pipeline.Message {
			if m.Type == kind {
				if seen++; seen == n {
					return f(m)
				}
			}
			return []pipeline.Message{m}
		}
	}
}

func drop(pipeline.Message) []pipeline.Message { return nil }

// alter changes the JSON body of messages of one type.
func alter[T any](kind string, f func(*T)) func(m *pipeline.Message) {
	return func(m *pipeline.Message) {
		if m.Type != kind {
			return
		}
		var v T
		if err := json.Unmarshal(m.Body, &v); err != nil {
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
func emitted(f func(m *pipeline.Message)) mutation {
	return output(func() func(pipeline.Message) []pipeline.Message {
		return func(m pipeline.Message) []pipeline.Message {
			f(&m)
			return []pipeline.Message{m}
		}
	})
}

// swap holds the second change of a page back behind its third.
func swap() func(pipeline.Message) []pipeline.Message {
	held := make(map[string]pipeline.Message)
	seen := make(map[string]int)
	return func(m pipeline.Message) []pipeline.Message {
		seen[m.Key]++
		switch h, ok := held[m.Key]; {
		case seen[m.Key] == 2:
			held[m.Key] = m
			return nil
		case ok:
			delete(held, m.Key)
			return []pipeline.Message{m, h}
		}
		return []pipeline.Message{m}
	}
}

// renumber makes every outcome look as if it answered the last request.
func renumber() func(pipeline.Processor) pipeline.Processor {
	last := make(map[string]uint64)
	return func(p pipeline.Processor) pipeline.Processor {
		return pipeline.ProcessorFunc(func(ctx context.Context, tx pipeline.Tx, m pipeline.Message) error {
			if m.Type == pipeline.TypeOutcome {
				o, err := pipeline.OutcomeFrom(m)
				if err != nil {
					return err
				}
				o.Check = last[m.Key]
				m = o.Message()
			}
			note := alter(pipeline.TypeRequest, func(r *pipeline.Request) { last[r.Page] = r.Check })
			return p.Process(ctx, tap{Tx: tx, emit: func(m pipeline.Message) []pipeline.Message {
				note(&m)
				return []pipeline.Message{m}
			}}, m)
		})
	}
}

// hasty remembers in memory what it has handled, before that is committed.
func hasty() func(pipeline.Processor) pipeline.Processor {
	return func(p pipeline.Processor) pipeline.Processor {
		seen := make(map[string]bool)
		return pipeline.ProcessorFunc(func(ctx context.Context, tx pipeline.Tx, m pipeline.Message) error {
			if m.Position != "" && seen[m.Position] {
				return nil
			}
			seen[m.Position] = true
			return p.Process(ctx, tx, m)
		})
	}
}

func again(m pipeline.Message) []pipeline.Message {
	other := m
	alter(pipeline.TypeNotification, func(a *pipeline.Addressed) {
		a.Notification.ID = pipeline.DeriveID(a.Notification.ID)
		other.ID = a.Notification.ID
	})(&other)
	return []pipeline.Message{m, other}
}

// TestCatches breaks the product in one place each and wants the simulator to notice.
func TestCatches(t *testing.T) {
	notification := func(f func(n *pipeline.Notification)) func(*pipeline.Message) {
		return alter(pipeline.TypeNotification, func(a *pipeline.Addressed) { f(&a.Notification) })
	}
	stamp := func(f func(s *pipeline.Stamped)) mutation { return input(alter(pipeline.TypeStamp, f)) }
	for _, c := range []struct {
		name  string
		group string
		m     mutation
		want  string // in the error
	}{
		{"a lost snapshot", pipeline.GroupIndex, output(nth(5, pipeline.TypeSnapshot, drop)), "versions were told"},
		{"a lost stamp", pipeline.GroupIndex, output(nth(4, pipeline.TypeStamp, drop)), ""},
		{"a lost change", pipeline.GroupDiff, output(nth(3, pipeline.TypeChange, drop)), "no change to version"},
		{"a lost notification", pipeline.GroupMatch, output(nth(2, pipeline.TypeNotification, drop)), "missed"},
		{"state without outputs", pipeline.GroupIndex,
			broken(tap{emit: drop}, func(n int, _ pipeline.Message) bool { return n == 40 }), ""},
		{"outputs without state", pipeline.GroupIndex,
			broken(tap{forgetful: true}, func(n int, _ pipeline.Message) bool { return n == 40 }), ""},
		{"a queue that forgets", pipeline.GroupDelivery,
			broken(tap{forgetful: true}, func(n int, _ pipeline.Message) bool { return n == 4 }), ""},
		{"an index that never wakes", pipeline.GroupIndex, broken(tap{deaf: true}, every), ""},
		{"swapped changes", pipeline.GroupDiff, output(swap), ""},
		{"a notification again under another ID", pipeline.GroupMatch, output(nth(3, pipeline.TypeNotification, again)), "told twice"},
		{"the same notification again", pipeline.GroupMatch, output(nth(3, pipeline.TypeNotification,
			func(m pipeline.Message) []pipeline.Message { return []pipeline.Message{m, m} })), "two notifications with ID"},
		{"a receiver told before it is durable", pipeline.GroupDelivery, broken(tap{lazy: true}, func(_ int, m pipeline.Message) bool {
			return m.Type == pipeline.TypeNotification
		}), "other content"},
		{"an answer that is not durable", pipeline.GroupDelivery, broken(tap{lazy: true}, every), "times"},
		{"memory ahead of the commit", pipeline.GroupDiff, hasty, "no change to version"},
		{"an old outcome taken for the new", pipeline.GroupIndex, renumber, "versions were told"},
		{"a subscription without its beginning", pipeline.GroupMatch, stamp(func(s *pipeline.Stamped) { s.From = 0 }), "invented"},
		{"a subscription without its end", pipeline.GroupMatch, stamp(func(s *pipeline.Stamped) { s.Until = pipeline.Forever }), ""},
		{"a change that does not wait", pipeline.GroupMatch,
			input(alter(pipeline.TypeChange, func(c *pipeline.Change) { c.Stamp = 0 })), ""},
		{"an end that does not wait", pipeline.GroupMatch,
			input(alter(pipeline.TypeEnded, func(e *pipeline.Ended) { e.Stamp = 0 })), ""},
		{"an end that is not passed on", pipeline.GroupDiff, output(nth(1, pipeline.TypeEnded, drop)), "keeps"},
		{"case taken for no case", pipeline.GroupMatch, stamp(func(s *pipeline.Stamped) { s.Subscription.IgnoreCase = false }), ""},
		{"moves never told", pipeline.GroupMatch, stamp(func(s *pipeline.Stamped) { s.Subscription.Moved = false }), ""},
		{"terms taken for a phrase", pipeline.GroupMatch,
			stamp(func(s *pipeline.Stamped) { s.Subscription.Match = pipeline.MatchPhrase }), ""},
		{"one group of all blocks", pipeline.GroupMatch, input(alter(pipeline.TypeChange, oneGroup)), "missed"},
		{"an edit taken for none", pipeline.GroupMatch, input(alter(pipeline.TypeChange, func(c *pipeline.Change) {
			c.Groups = c.Groups[:len(c.Groups)-1]
		})), "missed"},
		{"events exchanged", pipeline.GroupMatch, emitted(notification(func(n *pipeline.Notification) {
			for i := range n.Diffs {
				n.Diffs[i].Event = map[pipeline.Event]pipeline.Event{pipeline.Added: pipeline.Removed, pipeline.Removed: pipeline.Added}[n.Diffs[i].Event]
			}
		})), ""},
		{"text in other letters", pipeline.GroupMatch, emitted(notification(func(n *pipeline.Notification) {
			n.Diffs[0].Text = strings.ToUpper(n.Diffs[0].Text)
		})), "is not what stands"},
		{"a diff too few", pipeline.GroupMatch, emitted(notification(func(n *pipeline.Notification) {
			n.Diffs = n.Diffs[1:]
		})), "must be reported"},
		{"a diff twice", pipeline.GroupMatch, emitted(notification(func(n *pipeline.Notification) {
			n.Diffs = append(n.Diffs, n.Diffs[0])
		})), "reported twice"},
		{"an empty notification", pipeline.GroupMatch, output(empties), ""},

		{"a busy host counted", pipeline.GroupIndex, found(func(o *pipeline.Outcome) {
			if o.Class == pipeline.FailBusy {
				o.Class = pipeline.FailStatus
			}
		}), ""},
		{"checks counted while nothing can be reached", pipeline.GroupIndex, found(func(o *pipeline.Outcome) { o.Offline = false }), ""},
		{"failures not counted", pipeline.GroupIndex, found(func(o *pipeline.Outcome) { o.Offline = true }), ""},
		{"a timeout told twice", pipeline.GroupMatch, output(only(again)), "told twice"},
		{"a timeout not told", pipeline.GroupMatch, output(only(drop)), "missed"},
		{"a timeout for a cancelled client", pipeline.GroupMatch, stamp(func(s *pipeline.Stamped) {
			if s.End == pipeline.EndCancelled {
				s.End = pipeline.EndExpired
			}
		}), ""},
		{"a cancel that delivery does not hear of", pipeline.GroupIndex, output(nth(2, pipeline.TypeWithdraw, drop)), "not withdrawn"},
		{"a withdrawal too many", pipeline.GroupIndex, output(nth(2, pipeline.TypeWithdraw, twice)), "but not cancelled"},
		{"parked notifications of a cancelled client sent", pipeline.GroupDelivery, ignored(pipeline.TypeWithdraw), "is tried although"},
		{"a withdrawal forgotten", pipeline.GroupDelivery, broken(tap{forgetful: true}, of(pipeline.TypeWithdraw)), "is tried although"},
		{"what was pending of an expired receiver lost", pipeline.GroupDelivery, output(nth(2, pipeline.TypeDeadLetter, drop)), ""},
		{"a digest that was not asked for", pipeline.GroupMatch, output(nth(1, pipeline.TypeNotification, func(m pipeline.Message) []pipeline.Message {
			alter(pipeline.TypeNotification, func(a *pipeline.Addressed) {
				a.Digest = &pipeline.Digest{Every: pipeline.Duration(time.Minute), Max: 7}
			})(&m)
			return []pipeline.Message{m}
		})), "is told in the digest"},
		{"a digest told twice", pipeline.GroupDelivery, broken(tap{clings: true}, of(pipeline.TypeWake)), ""},
		{"a digest that is lost", pipeline.GroupDelivery, broken(tap{drops: "gw/"}, every), ""},
		{"a digest that nobody ends", pipeline.GroupDelivery, broken(tap{deaf: true}, func(_ int, m pipeline.Message) bool {
			return strings.Contains(string(m.Body), `"digest":{`)
		}), ""},
		{"what was collected for a cancelled client told", pipeline.GroupDelivery, broken(tap{clings: true}, of(pipeline.TypeWithdraw)), ""},
		{"a dead letter lost", pipeline.GroupDead, broken(tap{drops: "l/"}, of(pipeline.TypeDeadLetter)), ""},
		{"what is brought back taken for known", pipeline.GroupDelivery, input(func(m *pipeline.Message) {
			m.Header = maps.Clone(m.Header)
			delete(m.Header, pipeline.HeaderReplay)
		}), "0 times"},
		{"a letter lost on its way back", pipeline.GroupDead, output(nth(1, pipeline.TypeNotification, drop)), "0 times"},
		{"a letter brought back and kept", pipeline.GroupDead, broken(tap{clings: true}, of(pipeline.TypeWake)), ""},
		{"what expired is not kept", pipeline.GroupIndex, broken(tap{drops: "exp/"}, every), ""},
		{"an expired page that keeps its state", pipeline.GroupIndex, broken(tap{clings: true}, of(pipeline.TypeOutcome)), ""},
		{"a list that begins anew what expired", pipeline.GroupIndex,
			input(alter(pipeline.TypeApply, func(c *pipeline.ApplyCommand) { c.Resume = true })), ""},
		{"a resume that does nothing", pipeline.GroupIndex, ignored(pipeline.TypeResume), ""},
		{"a baseline that is none", pipeline.GroupIndex, output(later), "comes after"},
		{"an expired receiver whose subscriptions stay", pipeline.GroupIndex, ignored(pipeline.TypeExpire), ""},
		{"a health event told twice", pipeline.GroupIndex, output(nth(1, pipeline.TypeHealth, twice)), "health events"},
		{"a health event not told", pipeline.GroupIndex, output(nth(2, pipeline.TypeHealth, drop)), "health events"},
		{"a receiver's event told twice", pipeline.GroupDelivery, output(nth(1, pipeline.TypeHealth, twice)), "delivery tells of"},
		{"a receiver's event not told", pipeline.GroupDelivery, output(nth(2, pipeline.TypeHealth, drop)), "delivery tells of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			caughtIn(t, c.group, c.m, strings.Contains(c.name, "durable"), c.want)
		})
	}
	t.Run("the answer to a lost request taken for that to another", func(t *testing.T) {
		m := found(func(o *pipeline.Outcome) { o.Nonce = "" })
		caught(t, "", func(seed uint64) Config {
			return Config{Seed: seed, Processes: 4, Wrap: func(group string, p pipeline.Processor) pipeline.Processor {
				if group == pipeline.GroupIndex {
					return m()(p)
				}
				return p
			}}
		})
	})
	for name, late := range map[string]int{"a page given up too early": -1, "a page given up too late": 1} {
		t.Run(name, func(t *testing.T) {
			caught(t, "ended", func(seed uint64) Config { return Config{Seed: seed, Late: late} })
		})
	}
	t.Run("every attempt made twice", func(t *testing.T) {
		caught(t, "times", func(seed uint64) Config { return Config{Seed: seed, Twice: true} })
	})
}

// caught runs seeds until one fails, with want in its error.
func caught(t *testing.T, want string, config func(seed uint64) Config) {
	t.Helper()
	var other error
	for seed := uint64(1); seed <= 100; seed++ {
		_, err := Run(config(seed))
		switch {
		case err == nil:
		case strings.Contains(err.Error(), want):
			t.Logf("seed %d: %.150s", seed, err)
			return
		default:
			other = err
		}
	}
	t.Errorf("not caught; another error: %v", other)
}

// oneGroup makes one group of all that are no moved blocks.
func oneGroup(c *pipeline.Change) {
	var all pipeline.Group
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
func empties() func(pipeline.Message) []pipeline.Message {
	done := false
	return func(m pipeline.Message) []pipeline.Message {
		if done || m.Type != pipeline.TypeNotification {
			return []pipeline.Message{m}
		}
		done = true
		other := m
		alter(pipeline.TypeNotification, func(a *pipeline.Addressed) {
			a.Notification.Diffs, a.Notification.Version = []pipeline.Diff{}, a.Notification.Version+1
			a.Notification.ID = pipeline.DeriveID(a.Notification.ID)
			other.ID = a.Notification.ID
		})(&other)
		return []pipeline.Message{m, other}
	}
}
