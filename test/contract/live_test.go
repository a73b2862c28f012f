package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// shelf is a page of a shop, before and after: a long paragraph that is edited, one that
// moves, one that comes and one that goes.
func shelf(before bool) string {
	long := strings.Repeat("many words about the shop and what it sells, ", 40)
	moved := "<p>The harbour of Delphi opens at nine in the morning and closes at six.</p>"
	if before {
		return "<title>Shop</title>" + moved + "<p>" + long + "Zeus is in stock, " + long + "</p><p>Nothing else.</p><p>An old notice.</p>"
	}
	return "<title>Shop</title><p>" + long + "Zeus is out of stock, " + long + "</p><p>Nothing else.</p>" + moved + "<p>Argus is in stock too.</p>"
}

// live makes the Router publish something of every public type, and ends it.
func (w *world) live() {
	w.Helper()
	stop := w.run()
	page, other, dead := w.url("/a"), w.url("/b"), w.url("/dead")
	subscribe := func(url string) {
		w.Helper()
		w.decided(w.router.Subscribe(w.Context(), pipeline.Subscription{URL: url, Client: "shop", Keywords: []string{"stock"}, Sinks: []string{"box"}}))
		w.awaitStamp(url, "shop")
	}
	w.set("/a", shelf(true))
	w.send("s0", page, flow.TypeSubscribe, fmt.Sprintf(
		`{"subscription":{"url":%q,"client":"shop","keywords":["stock","harbour"],"moved":true,"sinks":["box","picky","gone"]}}`, page))
	w.awaitCount(flow.TypeOutcome, page, 1)
	w.set("/a", shelf(false))
	w.send("check", page, flow.TypeCheckNow, "")
	w.awaitCount(flow.TypeChange, page, 1)
	w.awaitCount(flow.TypeDeadLetter, "picky", 1)
	w.awaitHealth("the end of the receiver", func(h pipeline.Health) bool { return h.Event == pipeline.HealthReceiverExpired })

	// Another program subscribes, and cancels what is there.
	w.send("s1", page, flow.TypeSubscribe, fmt.Sprintf(`{"subscription":{"url":%q,"client":"crm","keywords":["stock"],"sinks":["box"]}}`, page))
	w.awaitStamp(page, "crm")
	w.send("s2", page, flow.TypeSubscribe, fmt.Sprintf(`{"subscription":{"url":%q,"client":"crm","keywords":["zeus"],"sinks":["box"]}}`, page))
	w.awaitRefusal("s2")
	w.send("u", page, "vokter.unknown.v1", "{}")
	w.awaitHealth("the command of an unknown type", func(h pipeline.Health) bool { return h.Event == pipeline.HealthDeadLetter })
	w.send("p1", page, flow.TypePause, fmt.Sprintf(`{"url":%q,"client":"crm"}`, page))
	w.send("c1", page, flow.TypeCancel, fmt.Sprintf(`{"url":%q,"client":"crm"}`, page))
	w.awaitCount(flow.TypeWithdraw, "box", 1)

	// A page ends with its last subscription; another is given up, and begins anew.
	w.set("/b", "<p>Hera</p>")
	subscribe(other)
	w.await("the text of the page that ends", func(m flow.Message) bool { return m.Type == flow.TypeCurrent && m.Subject == other })
	w.decided(w.router.Cancel(w.Context(), other, "shop"))
	w.awaitCount(flow.TypeEnded, other, 1)
	subscribe(dead)
	for i := range 4 {
		w.awaitCount(flow.TypeOutcome, dead, i+1)
		w.send(fmt.Sprint("check", i), dead, flow.TypeCheckNow, "")
	}
	w.awaitCount(flow.TypeEnded, dead, 1)
	w.await("the timeout notification", func(m flow.Message) bool {
		var a flow.Addressed
		return m.Type == flow.TypeAddressed && json.Unmarshal(m.Body, &a) == nil && a.Notification.Status == pipeline.StatusTimeout
	})
	w.send("r1", dead, flow.TypeResume, fmt.Sprintf(`{"url":%q,"client":"shop"}`, dead))
	w.awaitCount(flow.TypeOutcome, dead, 5)

	n, err := 0, error(nil)
	for n == 0 && err == nil { // what was published may not be filed yet
		n, err = w.router.Replay(w.Context(), flow.DeadFilter{Sink: "picky", Client: "shop"})
	}
	if err != nil || n != 1 {
		w.Fatalf("Replay: %d, %v, want 1", n, err)
	}
	w.await("what is delivered again", func(m flow.Message) bool { return m.Header[flow.HeaderReplay] == "1" })
	if err := stop(); err != nil {
		w.Errorf("Run: %v", err)
	}
}

// TestChangesSayWhatMovedAndWhatWasCut: the page of the other tests has all that a change
// may hold.
func TestChangesSayWhatMovedAndWhatWasCut(t *testing.T) {
	w := newWorld(t)
	stop := w.run()
	w.set("/a", shelf(true))
	page := w.url("/a")
	w.send("s", page, flow.TypeSubscribe, fmt.Sprintf(`{"subscription":{"url":%q,"keywords":["stock"],"sinks":["box"]}}`, page))
	w.awaitCount(flow.TypeOutcome, page, 1)
	w.set("/a", shelf(false))
	w.send("c", page, flow.TypeCheckNow, "")
	m := w.await("the change", func(m flow.Message) bool { return m.Type == flow.TypeChange })
	if err := stop(); err != nil {
		t.Error(err)
	}
	var c flow.Change
	if err := json.Unmarshal(m.Body, &c); err != nil {
		t.Fatal(err)
	}
	var moved, cut, alone, differences int
	for _, g := range c.Groups {
		if g.Moved {
			moved++
		}
		if len(g.Old) == 0 || len(g.New) == 0 {
			alone++
		}
		for _, x := range append(g.Old, g.New...) {
			if x.CutLeft && x.CutRight {
				cut++
			}
		}
		differences += len(g.Differences)
	}
	if c.Title != "Shop" || c.Version != 2 || moved == 0 || cut == 0 || alone == 0 || differences == 0 {
		t.Errorf("%d moved, %d cut, %d one-sided, %d differences in %s", moved, cut, alone, differences, m.Body)
	}
}
