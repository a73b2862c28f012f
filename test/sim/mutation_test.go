package sim

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// brokenTx is a transaction in which one thing is broken.
type brokenTx struct {
	flow.Tx
	emit          func(m flow.Message) []flow.Message // what is emitted in place of m
	dropsWrites   bool                                // state is not stored
	skipsSync     bool                                // nothing is synced
	dropsWakes    bool                                // no wake is set
	skipsDeletes  bool                                // state is not deleted
	droppedPrefix string                              // what has such a name is not stored
	keptPrefix    string                              // what has such a name is not deleted
	alterKept     func(s *flow.Stamped)               // alters the subscriptions that index keeps
}

func (t brokenTx) Emit(m flow.Message) {
	if t.emit == nil {
		t.Tx.Emit(m)
		return
	}
	for _, m := range t.emit(m) {
		t.Tx.Emit(m)
	}
}

func (t brokenTx) Sync() {
	if !t.skipsSync {
		t.Tx.Sync()
	}
}

func (t brokenTx) WakeAt(key string, at time.Time, opts ...flow.WakeOption) {
	if !t.dropsWakes {
		t.Tx.WakeAt(key, at, opts...)
	}
}

func (t brokenTx) State(key string) flow.State {
	st := t.Tx.State(key)
	switch {
	case t.dropsWrites:
		return readOnlyState{st}
	case t.skipsDeletes:
		return undeletableState{st, ""}
	case t.keptPrefix != "":
		return undeletableState{st, t.keptPrefix}
	case t.droppedPrefix != "":
		return prefixDroppingState{st, t.droppedPrefix}
	}
	return st
}

func (t brokenTx) StateOf(group, key string) flow.State {
	st := t.Tx.StateOf(group, key)
	if t.alterKept == nil {
		return st
	}
	return alteredState{st, t.alterKept}
}

// alteredState is the state of index with other subscriptions.
type alteredState struct {
	flow.State
	alter func(s *flow.Stamped)
}

func (a alteredState) altered(b []byte) []byte {
	s, err := flow.StampedFrom(b)
	if err != nil {
		panic(err)
	}
	a.alter(s)
	if b, err = stored.Encode(flow.KeptFormat, s); err != nil {
		panic(err)
	}
	return b
}

func (a alteredState) Get(name string) ([]byte, bool, error) {
	b, ok, err := a.State.Get(name)
	if ok && strings.HasPrefix(name, flow.KeptSubscriptions) {
		b = a.altered(b)
	}
	return b, ok, err
}

func (a alteredState) Scan(prefix string) iter.Seq2[string, flow.Value] {
	return func(yield func(string, flow.Value) bool) {
		for name, v := range a.State.Scan(prefix) {
			if v.Err == nil && strings.HasPrefix(name, flow.KeptSubscriptions) {
				v.Bytes = a.altered(v.Bytes)
			}
			if !yield(name, v) {
				return
			}
		}
	}
}

// stamp returns a mutation of match that alters the subscriptions that it reads, and those that it hears of.
func stamp(f func(s *flow.Stamped)) mutation {
	return func() func(flow.Processor) flow.Processor {
		hears := alterInput(alterBody(flow.TypeStamp, f))()
		reads := breakTx(brokenTx{alterKept: f}, everyMessage)()
		return func(p flow.Processor) flow.Processor { return hears(reads(p)) }
	}
}

// undeletableState keeps what has a name with a prefix.
type undeletableState struct {
	flow.State
	prefix string
}

func (u undeletableState) Delete(name string) error {
	if strings.HasPrefix(name, u.prefix) {
		return nil
	}
	return u.State.Delete(name)
}

type prefixDroppingState struct {
	flow.State
	prefix string
}

func (d prefixDroppingState) Set(name string, value []byte) error {
	if strings.HasPrefix(name, d.prefix) {
		return nil
	}
	return d.State.Set(name, value)
}

type readOnlyState struct{ flow.State }

func (readOnlyState) Set(string, []byte) error { return nil }
func (readOnlyState) Delete(string) error      { return nil }

// mutation breaks the processor of one group. It is made anew for each run.
type mutation func() func(p flow.Processor) flow.Processor

// alterInput returns a mutation that alters what a group is given.
func alterInput(alter func(m *flow.Message)) mutation {
	return func() func(flow.Processor) flow.Processor {
		return func(p flow.Processor) flow.Processor {
			return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				alter(&m)
				return p.Process(ctx, tx, m)
			})
		}
	}
}

// alterOutput returns a mutation that alters what a group emits.
func alterOutput(make func() func(m flow.Message) []flow.Message) mutation {
	return func() func(flow.Processor) flow.Processor {
		emit := make()
		return func(p flow.Processor) flow.Processor {
			return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				return p.Process(ctx, brokenTx{Tx: tx, emit: emit}, m)
			})
		}
	}
}

// breakTx returns a mutation that breaks the transactions that pick picks.
func breakTx(t brokenTx, pick func(n int, m flow.Message) bool) mutation {
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

func everyMessage(int, flow.Message) bool { return true }

// ofType picks the messages of a type.
func ofType(kind string) func(int, flow.Message) bool {
	return func(_ int, m flow.Message) bool { return m.Type == kind }
}

// ignoreType returns a mutation in which messages of a type are acknowledged and no more.
func ignoreType(kind string) mutation {
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

// alterOutcome returns a mutation that alters the outcomes of checks.
func alterOutcome(f func(o *flow.Outcome)) mutation {
	return alterInput(func(m *flow.Message) {
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

// onlyStatus applies f only to notifications with that status.
func onlyStatus(status string, f func(m flow.Message) []flow.Message) func() func(flow.Message) []flow.Message {
	return func() func(flow.Message) []flow.Message {
		return func(m flow.Message) []flow.Message {
			found := false
			alterBody(flow.TypeAddressed, func(a *flow.Addressed) { found = a.Notification.Status == status })(&m)
			if found {
				return f(m)
			}
			return []flow.Message{m}
		}
	}
}

func duplicate(m flow.Message) []flow.Message { return []flow.Message{m, m} }

// baselineAsLater makes every baseline look like a later version.
func baselineAsLater() func(flow.Message) []flow.Message {
	return func(m flow.Message) []flow.Message {
		if s, err := flow.SnapshotFrom(m); m.Type == flow.TypeSnapshot && err == nil && s.Previous == 0 && s.Check > 1 {
			s.Previous, s.Old, s.OldPacked = s.N, s.New, nil
			m = s.Message()
		}
		return []flow.Message{m}
	}
}

// nthOfType applies f only to the nth message of a type.
func nthOfType(n int, kind string, f func(m flow.Message) []flow.Message) func() func(flow.Message) []flow.Message {
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

func dropMessage(flow.Message) []flow.Message { return nil }

// alterBody changes the JSON body of messages of one type.
func alterBody[T any](kind string, f func(*T)) func(m *flow.Message) {
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
		*m = asReadFromLog(*m)
	}
}

// alterEmitted returns a mutation that alters each message that a group emits.
func alterEmitted(f func(m *flow.Message)) mutation {
	return alterOutput(func() func(flow.Message) []flow.Message {
		return func(m flow.Message) []flow.Message {
			f(&m)
			return []flow.Message{m}
		}
	})
}

// swapChanges moves the second change of a page behind its third.
func swapChanges() func(flow.Message) []flow.Message {
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

// alterOutcomeByRequest returns a mutation that alters what checks found, given the last request for
// the page.
func alterOutcomeByRequest(f func(o *flow.Outcome, last flow.Request)) mutation {
	return func() func(flow.Processor) flow.Processor {
		last := make(map[string]flow.Request)
		note := alterBody(flow.TypeRequest, func(r *flow.Request) { last[r.Page] = *r })
		answer := alterOutcome(func(o *flow.Outcome) { f(o, last[o.Page]) })()
		return func(p flow.Processor) flow.Processor {
			return answer(flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				return p.Process(ctx, brokenTx{Tx: tx, emit: func(m flow.Message) []flow.Message {
					note(&m)
					return []flow.Message{m}
				}}, m)
			}))
		}
	}
}

// rememberBeforeCommit skips what it remembers to have handled, although that may not have been committed.
func rememberBeforeCommit() func(flow.Processor) flow.Processor {
	return func(p flow.Processor) flow.Processor {
		seen := make(map[string]bool)
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if seen[m.ID] {
				return nil
			}
			seen[m.ID] = true
			return p.Process(ctx, tx, m)
		})
	}
}

func repeatUnderNewID(m flow.Message) []flow.Message {
	other := m
	alterBody(flow.TypeAddressed, func(a *flow.Addressed) {
		a.Notification.ID = flow.DeriveID(a.Notification.ID)
		other.ID = a.Notification.ID
	})(&other)
	return []flow.Message{m, other}
}

// removeChallengeMarks replaces the words in a text that show that it is a challenge.
func removeChallengeMarks(o *flow.Outcome) {
	content, err := flow.UnpackText(o.Packed)
	if o.Kind != flow.OutcomeRead || err != nil {
		return
	}
	content = strings.NewReplacer("Just a moment", "Amber ocean", "Checking your browser", "Silver river").Replace(content)
	o.TextHash, o.Packed = text.Hash(content), flow.PackText(content)
}

// mergeGroups makes one group of all groups but moved blocks.
func mergeGroups(c *flow.Change) {
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

// addEmptyNotification adds an empty notification to the first one.
func addEmptyNotification() func(flow.Message) []flow.Message {
	done := false
	return func(m flow.Message) []flow.Message {
		if done || m.Type != flow.TypeAddressed {
			return []flow.Message{m}
		}
		done = true
		other := m
		alterBody(flow.TypeAddressed, func(a *flow.Addressed) {
			a.Notification.Diffs, a.Notification.Version = []pipeline.Diff{}, a.Notification.Version+1
			a.Notification.ID = flow.DeriveID(a.Notification.ID)
			other.ID = a.Notification.ID
		})(&other)
		return []flow.Message{m, other}
	}
}
