package router_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// recordBox is a mailbox that takes change records.
type recordBox struct{ *mailbox }

func (recordBox) TakesChanges() error { return nil }

// TestABaselineIsARecordAndNoNotification: programs get the first version, and people do not.
func TestABaselineIsARecordAndNoNotification(t *testing.T) {
	s, people, programs, dir := newSite(t, "<p>Zeus</p>"), newMailbox(), newMailbox(), t.TempDir()
	for _, page := range []string{"<p>Zeus</p>", "<p>Zeus</p><p>Hera sees Zeus</p>"} {
		s.set(page)
		c := watchConfig(s, people, dir, "zeus")
		c.Sinks["stream"], c.Changes, c.Baseline = recordBox{programs}, []string{"stream"}, true
		runToEnd(t, c)
	}
	var got []flow.Change
	for _, n := range programs.take() {
		var c flow.Change
		if err := json.Unmarshal(n.Record, &c); err != nil {
			t.Fatal(err)
		}
		got = append(got, c)
	}
	if len(got) != 2 || !got[0].Baseline || got[0].Version != 1 || got[0].Size.Added != 1 || got[1].Baseline || got[1].Previous != 1 {
		t.Errorf("got %+v", got)
	}
	if all := people.take(); len(all) != 1 || all[0].Version != 2 {
		t.Errorf("the subscription was told %+v", all)
	}
}

// TestTheTableOfTheWeb is read by a handler of the program: with it, the embedded transport publishes it, too.
func TestTheTableOfTheWeb(t *testing.T) {
	s, dir := newSite(t, ""), t.TempDir()
	table := make(map[string]string) // handlers of one page run one at a time
	run := func(page string, subscribed bool) {
		t.Helper()
		s.set(page)
		c := watchConfig(s, newMailbox(), dir, "zeus")
		if !subscribed {
			c.Subscriptions[0].URL += "/other"
		}
		r, err := vokter.New(c)
		if err != nil {
			t.Fatal(err)
		}
		r.Handle("table", flow.TopicCurrent, flow.ProcessorFunc(func(_ context.Context, _ flow.Tx, m flow.Message) error {
			if m.Subject != s.URL+"/a" {
				return nil
			}
			if len(m.Body) == 0 {
				delete(table, m.Key)
				return nil
			}
			var c flow.Current
			err := json.Unmarshal(m.Body, &c)
			table[m.Key] = c.Text
			return err
		}))
		if err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	document := flow.DocumentID(s.URL+"/a", pipeline.View{})
	run("<p>Zeus</p>", true)
	if len(table) != 1 || table[document] != "Zeus\n" {
		t.Errorf("first the table is %q", table)
	}
	run("<ul><li>Zeus<li>Hera</ul>", true)
	if len(table) != 1 || table[document] != "\nZeus\n\n\nHera\n\n" {
		t.Errorf("after a change the table is %q", table)
	}
	run("<p>Zeus</p>", false)
	if len(table) != 0 {
		t.Errorf("after the last subscription the table is %q", table)
	}
}
