package sinks

import (
	"testing"
	"time"

	"github.com/vokter/vokter/internal/txtest"
	"github.com/vokter/vokter/pipeline"
)

// sharing is a transaction whose commit comes with that of others.
type sharing struct {
	*txtest.Tx
	later *[]func()
}

func (s sharing) OnCommit(f func()) { *s.later = append(*s.later, f) }

// TestNotificationsOfOneCommit: a transport may commit several messages of a receiver
// together. The attempt that the first led to is not taken for lost by the second.
func TestNotificationsOfOneCommit(t *testing.T) {
	var made []Attempt
	store := txtest.New()
	d := NewDelivery(Config{Hand: func(a Attempt) { made = append(made, a) }, Now: func() time.Time { return time.Unix(1, 0) }})
	var later []func()
	for _, id := range []string{"a", "b", "c"} {
		m, err := pipeline.Addressed{
			Receiver: pipeline.Receiver{Sink: "s"}, Notification: pipeline.Notification{ID: id},
		}.Message()
		if err != nil {
			t.Fatal(err)
		}
		tx := sharing{store.Begin(), &later}
		if err := d.Process(t.Context(), tx, m); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
	}
	for _, f := range later {
		f()
	}
	if len(made) != 1 || made[0].Notification.ID != "a" {
		t.Errorf("got %d attempts, want one, of the first notification: %+v", len(made), made)
	}
}
