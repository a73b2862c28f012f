package manage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestDeadLettersInParts: the parts of a long list hold each letter once, the oldest first.
func TestDeadLettersInParts(t *testing.T) {
	const n = 1000
	f := new(fake)
	for _, i := range rand.Perm(n) {
		f.letters = append(f.letters, flow.DeadLetter{Time: time.Unix(int64(i/3), 0).UTC(), Addressed: &flow.Addressed{
			Receiver: pipeline.Receiver{Sink: "ops"}, Notification: pipeline.Notification{ID: fmt.Sprintf("%04d", i)},
		}})
	}
	c, _ := serve(t, f)
	next, found := "", 0
	for part := (client.DeadLetters{Next: " "}); part.Next != ""; next = part.Next {
		var err error
		if part, err = c.DeadLettersPart(t.Context(), flow.DeadFilter{}, next, 70); err != nil || len(part.DeadLetters) == 0 {
			t.Fatalf("%d letters, %v", len(part.DeadLetters), err)
		}
		for _, d := range part.DeadLetters {
			if got, want := d.Addressed.Notification.ID, fmt.Sprintf("%04d", found); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
			found++
		}
	}
	if found != n {
		t.Errorf("%d letters", found)
	}
}

// TestDeadLettersInMemory: a part of a list does not hold the whole list.
func TestDeadLettersInMemory(t *testing.T) {
	var o oldestLetters
	for _, i := range rand.Perm(10_000) {
		o.add(keyedLetter{key: fmt.Sprintf("%05d", i)}, 5)
		if len(o) > 200 {
			t.Fatalf("%d letters are held", len(o))
		}
	}
	o.trim(5)
	for i, l := range o {
		if want := fmt.Sprintf("%05d", i); l.key != want {
			t.Errorf("got %s, want %s", l.key, want)
		}
	}
	if len(o) != 5 {
		t.Errorf("%d letters are kept", len(o))
	}
}
