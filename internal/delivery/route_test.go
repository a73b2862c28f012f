package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// setReceiving sets how the sink r gets its notifications.
func (k *deliveryFixture) setReceiving(r pipeline.Receiving) {
	k.d.Reconfigure(nil, Policy{Receivers: map[string]pipeline.Receiving{"r": r}})
}

// pageNotification is a notification to "r" of a page of its own.
func (k *deliveryFixture) pageNotification(url, client string) flow.Message {
	k.Helper()
	a := flow.Addressed{
		Receiver: pipeline.Receiver{Sink: "r"}, Subscription: "sub " + url + client, Document: "doc " + url,
		Notification: pipeline.Notification{
			Status: pipeline.StatusOK, ID: flow.NotificationID("change "+url, "sub "+url+client, "r"), URL: url, Client: client, Type: pipeline.NotificationType,
			Time: k.now, Version: 2, Title: "Title of " + url, Change: "change " + url,
			Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "stock", Text: "stock", Snippet: "in stock"}},
		},
	}
	m, err := a.Message()
	if err != nil {
		k.Fatal(err)
	}
	return m
}

// failNext lets the next attempt end with err, and returns the IDs that it had.
func (k *deliveryFixture) failNext(err error) string {
	k.Helper()
	if len(k.attempts) == 0 {
		k.Fatal("no attempt was made")
	}
	a := k.attempts[0]
	k.attempts = k.attempts[1:]
	k.handle(a.Result(err))
	return itemsOf(a.Notifications[0])
}

// takeEmitted returns the messages to other sinks since its last call, and handles none of them.
func (k *deliveryFixture) takeEmitted() (to []flow.Addressed) {
	k.Helper()
	for _, m := range k.store.Take() {
		if m.Type != flow.TypeAddressed {
			continue
		}
		a, err := bodyOf(m)
		if err != nil {
			k.Fatal(err)
		}
		to = append(to, a)
	}
	return to
}

func sinksOf(all []flow.Addressed) string {
	var names []string
	for _, a := range all {
		names = append(names, a.Receiver.Sink)
	}
	return strings.Join(names, " ")
}

// TestThirtyPagesInOneMessage: what many pages say within the wait is one notification that names
// each of them, with its client and its differences.
func TestThirtyPagesInOneMessage(t *testing.T) {
	k := newDeliveryFixture(t)
	k.setReceiving(pipeline.Receiving{GroupBy: []string{pipeline.GroupByHost}, GroupWait: time.Minute})
	for i := range 30 {
		k.handle(k.pageNotification(fmt.Sprintf("https://shop.example.com/%d", i), "team"))
		k.tick(time.Second)
	}
	k.handle(k.pageNotification("https://other.example.com/", "team"))
	if len(k.attempts) > 0 {
		t.Fatalf("%d attempts before the wait is over", len(k.attempts))
	}
	k.start() // the process is killed
	k.setReceiving(pipeline.Receiving{GroupBy: []string{pipeline.GroupByHost}, GroupWait: time.Minute})
	k.tick(30 * time.Second)
	if len(k.attempts) != 1 {
		t.Fatalf("%d attempts, want one for the group", len(k.attempts))
	}
	n := k.attempts[0].Notifications[0]
	if n.Type != pipeline.NotificationTypeDigest || n.URL != "" || n.Title != "" || n.Client != "team" || len(n.Items) != 30 || len(n.Diffs) != 30 {
		t.Fatalf("got %+v", n)
	}
	for i, item := range n.Items {
		if want := fmt.Sprintf("https://shop.example.com/%d", i); item.URL != want || item.Client != "team" || item.Diffs != 1 {
			t.Errorf("item %d is %+v, want %s", i, item, want)
		}
		if r := k.record(item.ID); r.State != RecordPending {
			t.Errorf("%s is %+v, want pending in its digest", item.ID, r)
		}
	}
	k.takeDelivered()
	if r := k.record(n.Items[29].ID); r.State != RecordDelivered || r.In != n.ID {
		t.Errorf("got %+v, want delivered in the digest", r)
	}
	k.tick(time.Minute)
	if len(k.attempts) != 1 || k.attempts[0].Notifications[0].Type != pipeline.NotificationType || k.attempts[0].Notifications[0].Title == "" {
		t.Errorf("a group of one is %+v, want the notification itself", k.attempts)
	}
	k.takeDelivered()
	k.tick(time.Hour)
	if len(k.attempts) > 0 {
		t.Errorf("there are further attempts: %+v", k.attempts)
	}
}

// TestGroupOfClients: a group of several clients names none, and drops what was cancelled.
func TestGroupOfClients(t *testing.T) {
	k := newDeliveryFixture(t)
	k.setReceiving(pipeline.Receiving{GroupBy: []string{pipeline.GroupByURL}})
	for _, client := range []string{"a", "b", "c"} {
		k.handle(k.pageNotification("https://example.com/", client))
	}
	k.handle(flow.Withdraw{Receiver: pipeline.Receiver{Sink: "r"}, Subscription: "sub https://example.com/b"}.Message(k.now))
	k.tick(pipeline.DefaultGroupWait)
	n := k.attempts[0].Notifications[0]
	if n.Client != "" || n.URL != "https://example.com/" || len(n.Items) != 2 || n.Items[0].Client != "a" || n.Items[1].Client != "c" {
		t.Errorf("got %+v", n)
	}
	if r := k.record(flow.NotificationID("change https://example.com/", "sub https://example.com/b", "r")); r.State != RecordDropped {
		t.Errorf("the cancelled one is %+v", r)
	}
}

// TestTimeoutFollowsItsGroup: a page that is given up is told at once, after what was collected.
func TestTimeoutFollowsItsGroup(t *testing.T) {
	k := newDeliveryFixture(t)
	k.setReceiving(pipeline.Receiving{GroupBy: []string{pipeline.GroupByHost}})
	k.handle(k.pageNotification("https://example.com/1", "c"), k.pageNotification("https://example.com/2", "c"))
	m := k.pageNotification("https://example.com/1", "c")
	a, err := bodyOf(m)
	if err != nil {
		t.Fatal(err)
	}
	a.Notification.ID, a.Notification.Status, a.Notification.Diffs = "over", pipeline.StatusTimeout, nil
	if m, err = a.Message(); err != nil {
		t.Fatal(err)
	}
	k.handle(m)
	if got := k.takeDelivered(); strings.Count(got, " ") != 3 || !strings.HasSuffix(got, "| over") {
		t.Errorf("got %s, want the group, then the timeout", got)
	}
}

// TestQuietReceiver: in its quiet hours a sink gets nothing but timeouts, and then one message.
func TestQuietReceiver(t *testing.T) {
	k := newDeliveryFixture(t)
	start := k.now.Hour()*60 + k.now.Minute()
	k.setReceiving(pipeline.Receiving{Quiet: pipeline.Quiet{From: start, To: (start + 60) % (24 * 60)}})
	for i := range 3 {
		k.handle(k.pageNotification(fmt.Sprintf("https://example.com/%d", i), "c"))
		k.tick(time.Minute)
	}
	if len(k.attempts) > 0 {
		t.Fatal("an attempt was made in the quiet hours")
	}
	k.tick(time.Hour)
	if len(k.attempts) != 1 || len(k.attempts[0].Notifications[0].Items) != 3 {
		t.Fatalf("got %+v, want one of three", k.attempts)
	}
	k.takeDelivered()
	k.handle(k.pageNotification("https://example.com/9", "c"))
	if len(k.attempts) != 1 {
		t.Error("after the quiet hours nothing is sent at once")
	}
}

// TestFallback: a sink that has failed for its time passes on what waits, and what comes; it is
// tried again with what comes later, and is used again once it works.
func TestFallback(t *testing.T) {
	k := newDeliveryFixture(t)
	k.setReceiving(pipeline.Receiving{Fallback: "mail", FallbackAfter: 10 * time.Minute})
	down := errors.New("connection refused")
	k.handle(k.pageNotification("https://example.com/1", "c"), k.pageNotification("https://example.com/2", "c"))
	for range 60 { // an hour
		for len(k.attempts) > 0 {
			k.failNext(down)
		}
		if k.now.Sub(t0) < 10*time.Minute {
			if got := k.takeEmitted(); len(got) > 0 {
				t.Fatalf("after %v %+v went to the fallback", k.now.Sub(t0), got)
			}
		}
		k.tick(time.Minute)
	}
	got := k.takeEmitted()
	if sinksOf(got) != "mail mail" || got[0].Notification.ID == got[1].Notification.ID {
		t.Fatalf("passed on is %+v", got)
	}
	if want := flow.NotificationID("change https://example.com/1", "sub https://example.com/1c", "mail"); got[0].Notification.ID != want {
		t.Errorf("its ID is %s, want that of the sink mail", got[0].Notification.ID)
	}
	if r := k.record(flow.NotificationID("change https://example.com/1", "sub https://example.com/1c", "r")); r.State != RecordPassed || !slices.Equal(r.To(), []Passed{{"mail", got[0].Notification.ID}}) {
		t.Errorf("it is known as %+v", r)
	}
	// Down for an hour, so the next one is an attempt, and then goes to the fallback at once.
	k.handle(k.pageNotification("https://example.com/3", "c"))
	k.failNext(down)
	k.handle(k.pageNotification("https://example.com/4", "c")) // not due: it goes there without an attempt
	if got := k.takeEmitted(); sinksOf(got) != "mail mail" || len(k.attempts) > 0 {
		t.Fatalf("passed on is %+v, with %d attempts", got, len(k.attempts))
	}
	k.tick(15 * time.Minute)
	k.handle(k.pageNotification("https://example.com/5", "c"))
	k.takeDelivered()
	k.handle(k.pageNotification("https://example.com/6", "c"))
	k.takeDelivered()
	if got := k.takeEmitted(); len(got) > 0 {
		t.Errorf("after it was repaired, %+v went to the fallback", got)
	}
}

// TestFallbackAfterStandstill: a process that stood still tries a sink first.
func TestFallbackAfterStandstill(t *testing.T) {
	k := newDeliveryFixture(t)
	r := pipeline.Receiving{Fallback: "mail", FallbackAfter: 10 * time.Minute}
	k.setReceiving(r)
	k.handle(k.pageNotification("https://example.com/1", "c"))
	k.failNext(errors.New("connection refused"))
	k.now = k.now.Add(time.Hour)
	k.start()
	k.setReceiving(r)
	k.tick(0)
	if got := k.takeEmitted(); len(got) > 0 {
		t.Fatalf("%+v went to the fallback without an attempt", got)
	}
	if got := k.takeDelivered(); got == "" || len(k.takeEmitted()) > 0 {
		t.Error("it was not tried")
	}
}

// TestFallbackTakesWhatIsRefused: nothing becomes a dead letter, and nobody expires.
func TestFallbackTakesWhatIsRefused(t *testing.T) {
	for name, err := range map[string]error{
		"permanent": failure.Permanent(errors.New("too large")), "gone": failure.Gone(errors.New("no such channel")),
	} {
		k := newDeliveryFixture(t)
		k.setReceiving(pipeline.Receiving{Fallback: "mail", FallbackAfter: 10 * time.Minute})
		k.handle(k.pageNotification("https://example.com/1", "c"))
		k.failNext(err)
		for _, m := range k.store.Take() {
			if m.Type == flow.TypeDeadLetter || m.Type == flow.TypeExpire {
				t.Errorf("%s: emitted %s", name, m.Type)
			}
			if m.Type == flow.TypeAddressed && m.Key != "mail" {
				t.Errorf("%s: it went to %s", name, m.Key)
			}
		}
		if r := k.record(flow.NotificationID("change https://example.com/1", "sub https://example.com/1c", "r")); r.State != RecordPassed {
			t.Errorf("%s: it is %+v", name, r)
		}
	}
}

// TestFallbackForALimit: a limit that lasts counts, and does not wait for what the receiver said.
func TestFallbackForALimit(t *testing.T) {
	k := newDeliveryFixture(t)
	k.setReceiving(pipeline.Receiving{Fallback: "mail", FallbackAfter: 10 * time.Minute})
	k.handle(k.pageNotification("https://example.com/1", "c"))
	k.failNext(failure.Limited(errors.New("429"), 5*time.Hour))
	k.tick(9 * time.Minute)
	if len(k.takeEmitted()) > 0 {
		t.Error("the fallback was used too early")
	}
	k.tick(time.Minute)
	if got := k.takeEmitted(); sinksOf(got) != "mail" {
		t.Errorf("passed on is %+v", got)
	}
}

// clientRoute is a route that has the sinks of each client.
type clientRoute map[string][]string

func (w clientRoute) Deliver(context.Context, pipeline.Notification) error {
	return errors.New("a route was asked to deliver")
}

func (w clientRoute) Route(n pipeline.Notification, _ time.Time) []string { return w[n.Client] }

func (w clientRoute) Targets() []string { return []string{"chat", "pager"} }

// TestRoute: a route passes everything on at once, under an ID of each sink, and so a cancellation.
func TestRoute(t *testing.T) {
	k := newDeliveryFixture(t)
	k.d.Reconfigure(map[string]pipeline.Sink{"r": clientRoute{"c": {"chat"}, "d": {"chat", "pager"}}}, Policy{})
	k.handle(k.pageNotification("https://example.com/1", "c"), k.pageNotification("https://example.com/1", "d"), k.pageNotification("https://example.com/1", "nobody"))
	m := k.pageNotification("https://example.com/2", "c")
	a, err := bodyOf(m)
	if err != nil {
		t.Fatal(err)
	}
	a.Digest = &pipeline.Digest{Every: pipeline.Duration(time.Hour)}
	if m, err = a.Message(); err != nil {
		t.Fatal(err)
	}
	k.handle(m, m)
	got := k.takeEmitted()
	if sinksOf(got) != "chat chat pager chat" || len(k.attempts) > 0 {
		t.Fatalf("passed on is %s, with %d attempts", sinksOf(got), len(k.attempts))
	}
	if got[3].Digest == nil {
		t.Error("the digest is not collected behind the route")
	}
	if r := k.record(a.Notification.ID); r.State != RecordPassed || len(r.To()) != 1 {
		t.Errorf("it is %+v", r)
	}
	k.handle(flow.Withdraw{Receiver: pipeline.Receiver{Sink: "r"}, Subscription: "s"}.Message(k.now))
	var keys []string
	for _, m := range k.store.Take() {
		if m.Type == flow.TypeWithdraw {
			keys = append(keys, m.Key)
		}
	}
	if strings.Join(keys, " ") != "chat pager" {
		t.Errorf("the cancellation went to %v", keys)
	}
}

// TestSinkBecomesARoute: what waits for a sink that becomes a route goes its way.
func TestSinkBecomesARoute(t *testing.T) {
	k := newDeliveryFixture(t)
	k.handle(k.pageNotification("https://example.com/1", "c"))
	k.failNext(errors.New("down"))
	k.d.Reconfigure(map[string]pipeline.Sink{"r": clientRoute{"c": {"chat"}}}, Policy{})
	k.tick(time.Minute)
	if got := k.takeEmitted(); sinksOf(got) != "chat" {
		t.Errorf("passed on is %+v", got)
	}
}

func bodyOf(m flow.Message) (a flow.Addressed, err error) {
	err = json.Unmarshal(m.Body, &a)
	return a, err
}
