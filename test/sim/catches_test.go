package sim

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestCatches breaks the product in one place each and wants the simulator to notice.
func TestCatches(t *testing.T) {
	notification := func(f func(n *pipeline.Notification)) func(*flow.Message) {
		return alterBody(flow.TypeAddressed, func(a *flow.Addressed) { f(&a.Notification) })
	}
	everyChange := func(f func(n *pipeline.Notification)) func(*flow.Message) {
		return notification(func(n *pipeline.Notification) {
			if len(n.Diffs) > 0 && n.Diffs[0].Keyword == "" {
				f(n)
			}
		})
	}
	for _, c := range []struct {
		name  string
		group string
		m     mutation
		want  string // in the error
	}{
		{"a lost snapshot", flow.GroupIndex, alterOutput(nthOfType(5, flow.TypeSnapshot, dropMessage)), "versions were told"},
		{"an edit that match does not hear of", flow.GroupIndex, alterOutput(nthOfType(4, flow.TypeStamp, dropMessage)), ""},
		{"a lost change", flow.GroupDiff, alterOutput(nthOfType(3, flow.TypeChange, dropMessage)), "no change to version"},
		{"a lost notification", flow.GroupMatch, alterOutput(nthOfType(2, flow.TypeAddressed, dropMessage)), "missed"},
		{"state without outputs", flow.GroupIndex,
			breakTx(brokenTx{emit: dropMessage}, func(n int, _ flow.Message) bool { return n == 40 }), ""},
		{"outputs without state", flow.GroupIndex,
			breakTx(brokenTx{dropsWrites: true}, func(n int, _ flow.Message) bool { return n == 40 }), ""},
		{"a queue that forgets", flow.GroupDelivery,
			breakTx(brokenTx{dropsWrites: true}, func(n int, _ flow.Message) bool { return n == 4 }), ""},
		{"an index that never wakes", flow.GroupIndex, breakTx(brokenTx{dropsWakes: true}, everyMessage), ""},
		{"swapped changes", flow.GroupDiff, alterOutput(swapChanges), ""},
		{"a notification again under another ID", flow.GroupMatch, alterOutput(nthOfType(3, flow.TypeAddressed, repeatUnderNewID)), "told twice"},
		{"the same notification again", flow.GroupMatch, alterOutput(nthOfType(3, flow.TypeAddressed,
			func(m flow.Message) []flow.Message { return []flow.Message{m, m} })), "two notifications with ID"},
		{"a receiver told before it is durable", flow.GroupDelivery, breakTx(brokenTx{skipsSync: true}, func(_ int, m flow.Message) bool {
			return m.Type == flow.TypeAddressed
		}), "other content"},
		{"an answer that is not durable", flow.GroupDelivery, breakTx(brokenTx{skipsSync: true}, everyMessage), "times"},
		{"memory ahead of the commit", flow.GroupDiff, rememberBeforeCommit, "no change to version"},
		{"an old outcome taken for the new", flow.GroupIndex,
			alterOutcomeByRequest(func(o *flow.Outcome, last flow.Request) { o.Check, o.Nonce = last.Check, last.Nonce }), "versions were told"},
		{"a subscription without its end", flow.GroupIndex, breakTx(brokenTx{keptPrefix: flow.KeptSubscriptions}, everyMessage), ""},
		{"an end that is not passed on", flow.GroupIndex, alterOutput(nthOfType(1, flow.TypeEnded, dropMessage)), "lives of the page ended"},
		{"case taken for no case", flow.GroupMatch, stamp(func(s *flow.Stamped) { s.Subscription.MatchCase = true }), ""},
		{"moves never told", flow.GroupMatch, stamp(func(s *flow.Stamped) { s.Subscription.Moved = false }), ""},
		{"terms taken for a phrase", flow.GroupMatch,
			stamp(func(s *flow.Stamped) { s.Subscription.Match = pipeline.MatchPhrase }), ""},
		{"one group of all blocks", flow.GroupMatch, alterInput(alterBody(flow.TypeChange, mergeGroups)), "missed"},
		{"an edit taken for none", flow.GroupMatch, alterInput(alterBody(flow.TypeChange, func(c *flow.Change) {
			c.Groups = c.Groups[:len(c.Groups)-1]
		})), "missed"},
		{"events exchanged", flow.GroupMatch, alterEmitted(notification(func(n *pipeline.Notification) {
			for i := range n.Diffs {
				n.Diffs[i].Event = map[pipeline.Event]pipeline.Event{pipeline.Added: pipeline.Removed, pipeline.Removed: pipeline.Added}[n.Diffs[i].Event]
			}
		})), ""},
		{"text in other letters", flow.GroupMatch, alterEmitted(notification(func(n *pipeline.Notification) {
			n.Diffs[0].Text = strings.ToUpper(n.Diffs[0].Text)
		})), "is not what stands"},
		{"a diff too few", flow.GroupMatch, alterEmitted(notification(func(n *pipeline.Notification) {
			n.Diffs = n.Diffs[1:]
		})), "must be reported"},
		{"a diff twice", flow.GroupMatch, alterEmitted(notification(func(n *pipeline.Notification) {
			n.Diffs = append(n.Diffs, n.Diffs[0])
		})), "reported twice"},
		{"an edit too few", flow.GroupMatch, alterEmitted(everyChange(func(n *pipeline.Notification) {
			last := n.Diffs[len(n.Diffs)-1].Edit
			n.Diffs = slices.DeleteFunc(n.Diffs, func(d pipeline.Diff) bool { return d.Edit == last && last > 1 })
		})), "must be reported"},
		{"what replaces a text not told", flow.GroupMatch, alterEmitted(everyChange(func(n *pipeline.Notification) {
			n.Diffs = slices.DeleteFunc(n.Diffs, func(d pipeline.Diff) bool { return d.Event == pipeline.Added && d.Edit > 1 })
		})), "must be reported"},
		{"edits without numbers", flow.GroupMatch, alterEmitted(everyChange(func(n *pipeline.Notification) {
			for i := range n.Diffs {
				n.Diffs[i].Edit = 0
			}
		})), "edit 0, want 1"},
		{"every move taken for a change", flow.GroupMatch, stamp(func(s *flow.Stamped) {
			s.Subscription.Moved = s.Subscription.Moved || len(s.Subscription.Keywords) == 0
		}), ""},
		{"every change told to nobody", flow.GroupMatch, stamp(func(s *flow.Stamped) {
			if len(s.Subscription.Keywords) == 0 {
				s.Subscription.Keywords = []string{"nothing of it stands there"}
			}
		}), "missed"},
		{"a value compared word by word", flow.GroupDiff, alterInput(func(m *flow.Message) {
			if s, err := flow.SnapshotFrom(*m); err == nil && m.Type == flow.TypeSnapshot {
				s.Value = false
				*m = s.Message()
			}
		}), ""},
		{"a condition of a value not heeded", flow.GroupMatch, stamp(func(s *flow.Stamped) { s.Subscription.Condition = pipeline.Condition{} }), ""},
		{"another value told", flow.GroupMatch, alterEmitted(notification(func(n *pipeline.Notification) {
			if n.Value != nil {
				n.Value.New = n.Value.Old
			}
		})), "wrong"},
		{"an empty notification", flow.GroupMatch, alterOutput(addEmptyNotification), ""},

		{"a busy host counted", flow.GroupIndex, alterOutcome(func(o *flow.Outcome) {
			if o.Class == pipeline.FailBusy {
				o.Class = pipeline.FailStatus
			}
		}), ""},
		{"checks counted while nothing can be reached", flow.GroupIndex, alterOutcome(func(o *flow.Outcome) { o.Offline = false }), ""},
		{"failures not counted", flow.GroupIndex, alterOutcome(func(o *flow.Outcome) { o.Offline = true }), ""},
		{"a timeout told twice", flow.GroupMatch, alterOutput(onlyStatus(pipeline.StatusTimeout, repeatUnderNewID)), "told twice"},
		{"a timeout not told", flow.GroupMatch, alterOutput(onlyStatus(pipeline.StatusTimeout, dropMessage)), "missed"},
		{"a recovery told twice", flow.GroupMatch, alterOutput(onlyStatus(pipeline.StatusRecovered, repeatUnderNewID)), "told twice"},
		{"a recovery not told", flow.GroupMatch, alterOutput(onlyStatus(pipeline.StatusRecovered, dropMessage)), "missed"},
		{"the end of a dormant page not told", flow.GroupMatch, alterOutput(onlyStatus(pipeline.StatusExpired, dropMessage)), "missed"},
		{"an outage told to clients that left", flow.GroupMatch, alterInput(func(m *flow.Message) {
			alterBody(flow.TypeOutage, func(o *flow.Outage) { o.First = 1 })(m)
			alterBody(flow.TypeStamp, func(s *flow.Stamped) {
				if s.End == flow.EndCancelled {
					s.Tell = pipeline.StatusTimeout
				}
			})(m)
		}), ""},
		{"a cancel that delivery does not hear of", flow.GroupIndex, alterOutput(nthOfType(2, flow.TypeWithdraw, dropMessage)), "not withdrawn"},
		{"a withdrawal too many", flow.GroupIndex, alterOutput(nthOfType(2, flow.TypeWithdraw, duplicate)), "but not cancelled"},
		{"parked notifications of a cancelled client sent", flow.GroupDelivery, ignoreType(flow.TypeWithdraw), "is tried although"},
		{"a withdrawal forgotten", flow.GroupDelivery, breakTx(brokenTx{dropsWrites: true}, ofType(flow.TypeWithdraw)), "is tried although"},
		{"what was pending of an expired receiver lost", flow.GroupDelivery, alterOutput(nthOfType(2, flow.TypeDeadLetter, dropMessage)), ""},
		{"a digest that was not asked for", flow.GroupMatch, alterOutput(nthOfType(1, flow.TypeAddressed, func(m flow.Message) []flow.Message {
			alterBody(flow.TypeAddressed, func(a *flow.Addressed) {
				a.Digest = &pipeline.Digest{Every: pipeline.Duration(time.Minute), Max: 7}
			})(&m)
			return []flow.Message{m}
		})), "is told in the digest"},
		{"a digest told twice", flow.GroupDelivery, breakTx(brokenTx{skipsDeletes: true}, ofType(flow.TypeWake)), ""},
		{"a digest that is lost", flow.GroupDelivery, breakTx(brokenTx{droppedPrefix: "gw/"}, everyMessage), ""},
		{"a digest that nobody ends", flow.GroupDelivery, breakTx(brokenTx{dropsWakes: true}, func(_ int, m flow.Message) bool {
			return strings.Contains(string(m.Body), `"digest":{`)
		}), ""},
		{"what was collected for a cancelled client told", flow.GroupDelivery, breakTx(brokenTx{skipsDeletes: true}, ofType(flow.TypeWithdraw)), ""},
		{"a dead letter lost", flow.GroupDead, breakTx(brokenTx{droppedPrefix: "l/"}, ofType(flow.TypeDeadLetter)), ""},
		{"quiet hours that are not heeded", flow.GroupDelivery, alterInput(alterBody(flow.TypeAddressed, func(a *flow.Addressed) {
			if a.Digest != nil {
				a.Digest.Quiet = pipeline.Quiet{}
			}
		})), "in quiet hours"},
		{"what is brought back taken for known", flow.GroupDelivery, alterInput(func(m *flow.Message) {
			m.Header = maps.Clone(m.Header)
			delete(m.Header, flow.HeaderReplay)
		}), "0 times"},
		{"a letter lost on its way back", flow.GroupDead, alterOutput(nthOfType(1, flow.TypeAddressed, dropMessage)), "0 times"},
		{"a letter brought back and kept", flow.GroupDead, breakTx(brokenTx{skipsDeletes: true}, ofType(flow.TypeWake)), ""},
		{"articles of a feed forgotten", flow.GroupIndex, breakTx(brokenTx{droppedPrefix: "itm/"}, everyMessage), "has texts"},
		{"articles of a feed taken for others", flow.GroupIndex, alterOutcome(func(o *flow.Outcome) { slices.Reverse(o.Items) }), ""},
		{"what expired is not kept", flow.GroupIndex, breakTx(brokenTx{droppedPrefix: "exp/"}, everyMessage), ""},
		{"an expired page that keeps its state", flow.GroupIndex, breakTx(brokenTx{skipsDeletes: true}, ofType(flow.TypeOutcome)), ""},
		{"a list that begins anew what expired", flow.GroupIndex,
			alterInput(alterBody(flow.TypeApply, func(c *flow.ApplyCommand) { c.Resume = true })), ""},
		{"a resume that does nothing", flow.GroupIndex, ignoreType(flow.TypeResume), ""},
		{"a pause that does nothing", flow.GroupIndex, ignoreType(flow.TypePause), ""},
		{"a pause whose end is forgotten", flow.GroupIndex,
			alterInput(alterBody(flow.TypePause, func(c *flow.PauseCommand) { c.Until = time.Time{} })), "was paused until"},
		{"a pause that ends too early", flow.GroupIndex,
			alterInput(alterBody(flow.TypeResume, func(c *flow.ResumeCommand) { c.Due = false })), ""},
		{"a paused subscription that is told", flow.GroupIndex,
			breakTx(brokenTx{keptPrefix: flow.KeptSubscriptions}, ofType(flow.TypePause)), ""},
		{"a baseline that is none", flow.GroupIndex, alterOutput(baselineAsLater), "comes after"},
		{"an expired receiver whose subscriptions stay", flow.GroupIndex, ignoreType(flow.TypeExpire), ""},
		{"a health event told twice", flow.GroupIndex, alterOutput(nthOfType(1, flow.TypeHealth, duplicate)), "health events"},
		{"a health event not told", flow.GroupIndex, alterOutput(nthOfType(2, flow.TypeHealth, dropMessage)), "health events"},
		{"the end of a page that names no sinks", flow.GroupIndex, alterOutput(func() func(flow.Message) []flow.Message {
			return func(m flow.Message) []flow.Message {
				alterBody(flow.TypeHealth, func(h *pipeline.Health) { h.Sinks = nil })(&m)
				return []flow.Message{m}
			}
		}), "health events"},
		{"a receiver's event told twice", flow.GroupDelivery, alterOutput(nthOfType(1, flow.TypeHealth, duplicate)), "delivery tells of"},
		{"a receiver's event not told", flow.GroupDelivery, alterOutput(nthOfType(2, flow.TypeHealth, dropMessage)), "delivery tells of"},
		{"a linked page that is not told to begin", flow.GroupIndex, alterOutput(nthOfType(1, flow.TypeFollow, dropMessage)), "commands to linked pages"},
		{"a linked page that does not begin", flow.GroupIndex, ignoreType(flow.TypeFollow), ""},
		{"links that are not reported", flow.GroupIndex, alterOutput(nthOfType(2, flow.TypeLinks, dropMessage)), "pages are watched, want"},
		{"a linked page that nobody ends", flow.GroupIndex, alterInput(alterBody(flow.TypeFollow, func(c *flow.FollowCommand) { c.End = false })), ""},
		{"a pause that drops what waits about linked pages", flow.GroupIndex, alterInput(alterBody(flow.TypeFollow, func(c *flow.FollowCommand) { c.Kept = false })), "withdrawn"},
		{"a change that is told for each tree", flow.GroupMatch, stamp(func(s *flow.Stamped) { s.Followed = nil }), ""},
		{"a challenge taken for a text", flow.GroupIndex, alterOutcome(removeChallengeMarks), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			expectCaughtIn(t, c.group, c.m, strings.Contains(c.name, "durable"), c.want)
		})
	}
	t.Run("the answer to a lost request taken for that to another", func(t *testing.T) {
		m := alterOutcomeByRequest(func(o *flow.Outcome, last flow.Request) {
			if o.Check == last.Check {
				o.Nonce = last.Nonce
			}
		})
		expectCaught(t, "", func(seed uint64) Config {
			return Config{Seed: seed, Processes: 4, WrapProcessor: func(group string, p flow.Processor) flow.Processor {
				if group == flow.GroupIndex {
					return m()(p)
				}
				return p
			}}
		})
	})
	for name, late := range map[string]int{"a page given up too early": -1, "a page given up too late": 1} {
		t.Run(name, func(t *testing.T) {
			expectCaught(t, "ended", func(seed uint64) Config { return Config{Seed: seed, ExpireDelay: late} })
		})
	}
	// Only a subscription that begins while an earlier change is told in batches shows it: longer histories have more
	// of these.
	t.Run("a subscription without its beginning", func(t *testing.T) {
		begin := stamp(func(s *flow.Stamped) { s.From = 0 })
		expectCaught(t, "invented", func(seed uint64) Config {
			return Config{Seed: 3*seed + batchRemainder, Steps: 3000, Processes: 1, WrapProcessor: func(group string, p flow.Processor) flow.Processor {
				if group == flow.GroupMatch {
					return begin()(p)
				}
				return p
			}}
		})
	})
	t.Run("every attempt made twice", func(t *testing.T) {
		expectCaught(t, "times", func(seed uint64) Config { return Config{Seed: seed, DuplicateAttempts: true} })
	})
}

// expectCaught runs seeds until one fails with want in its error, and fails t if none does.
func expectCaught(t *testing.T, want string, config func(seed uint64) Config) {
	t.Helper()
	if *seeds < 100 {
		t.Skip("deliberate faults take many seeds: -sim.seeds=100")
	}
	var other error
	for seed := uint64(1); seed <= 1000; seed++ {
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

// TestCatchesBatches breaks the results of attempts that deliver several notifications, and
// wants the simulator to notice.
func TestCatchesBatches(t *testing.T) {
	type result = map[string]any
	for name, c := range map[string]struct {
		alter func(r *result)
		want  string // in the error
	}{
		"what was delivered before the last not counted": {func(r *result) { delete(*r, "before") }, ""},
		"a failure behind others taken for a success": {func(r *result) {
			if (*r)["before"] != nil {
				(*r)["delivered"] = true
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := alterInput(alterBody("vokter.delivery.result.v1", c.alter))
			expectCaught(t, c.want, func(seed uint64) Config {
				broken := m()
				return Config{Seed: 4*seed + crowdedRemainder, Steps: 2000, Processes: 1, WrapProcessor: func(g string, p flow.Processor) flow.Processor {
					if g == flow.GroupDelivery {
						return broken(p)
					}
					return p
				}}
			})
		})
	}
}

// expectCaughtIn fails t unless the simulator notices the mutation m of a group.
func expectCaughtIn(t *testing.T, group string, m mutation, stormy bool, want string) {
	t.Helper()
	expectCaught(t, want, func(seed uint64) Config {
		broken := m()
		return Config{Seed: seed, OnlyPowerCuts: stormy, Processes: 1, WrapProcessor: func(g string, p flow.Processor) flow.Processor {
			if g == group {
				return broken(p)
			}
			return p
		}}
	})
}
