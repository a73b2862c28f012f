package stored_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

// TestValues: what delivery stores comes back as it was, with types that are text in JSON, without what is
// empty, and with bytes that are no UTF-8.
func TestValues(t *testing.T) {
	want := flow.Addressed{
		Receiver: pipeline.Receiver{Sink: "hook"}, Document: "d", Subscription: "s",
		Notification: pipeline.Notification{
			Status: pipeline.StatusOK, URL: "https://example.com/\xff", ID: "i", Type: pipeline.NotificationTypeChange, Time: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC),
			Diffs: []pipeline.Diff{}, Tags: []string{"a"}, Record: []byte(`{"a": [1, 2]}`), Omitted: 3,
			Value: &pipeline.ValueChange{Unit: "EUR"}, Items: []pipeline.Item{{ID: "x", Diffs: 1}},
		},
		Digest: &pipeline.Digest{Every: pipeline.Duration(time.Hour), Cron: "0 9 * * 1-5 Europe/Berlin", Quiet: pipeline.Quiet{From: 1, To: 2, Zone: "Europe/Berlin"}},
	}
	b, err := stored.Encode(7, want)
	if err != nil {
		t.Fatal(err)
	}
	var got flow.Addressed
	if err := stored.Decode(b, 7, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for name, b := range map[string][]byte{"empty": nil, "another format": append([]byte{8}, b[1:]...), "cut": b[:len(b)-1]} {
		if class, _ := failure.ClassOf(stored.Decode(b, 7, &got)); class != failure.ClassBroken {
			t.Errorf("%s: the class of the error is %v", name, class)
		}
	}
	_, err = stored.Encode(7, make(chan int))
	if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
		t.Errorf("a channel: %v", err)
	}
}

func TestOnlyWhatIsCommittedCounts(t *testing.T) {
	c, s := stored.NewCommitted[int](1000), txtest.New()
	expect := func(epoch uint64, want int) {
		t.Helper()
		if got, ok := c.Get("k", epoch); ok != (want > 0) || got != want {
			t.Errorf("epoch %d: got %d, %v; want %d", epoch, got, ok, want)
		}
	}
	expect(1, 0)
	first := s.Begin()
	c.Put(first, "k", 1, 1, 10)
	expect(1, 0)
	first.Commit()
	expect(1, 1)
	expect(2, 0)
	c.Put(s.Begin(), "k", 1, 2, 10) // is never committed
	expect(1, 0)

	early, late := s.Begin(), s.Begin()
	c.Put(early, "k", 1, 3, 10)
	c.Put(late, "k", 1, 4, 10)
	early.Commit()
	expect(1, 0)
	late.Commit()
	expect(1, 4)
	c.Drop("k")
	expect(1, 0)
	if got := c.Bytes(); got != 0 {
		t.Errorf("nothing takes %d bytes", got)
	}
}
