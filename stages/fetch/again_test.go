package fetch

import (
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

// TestANumberThatComesAgain asks for a check whose number was given before, by a process
// that was killed before it could store that: the last request is the one to answer, whether
// the earlier one waits, has a higher number, or is under way.
func TestANumberThatComesAgain(t *testing.T) {
	req := func(check uint64, nonce string) *job {
		return &job{req: flow.Request{Page: "https://example.com/", Incarnation: "i", Check: check, Nonce: nonce}}
	}
	add := func(q *queue, j *job) {
		t.Helper()
		if !q.add(j) {
			t.Fatal("no room")
		}
	}
	q := newQueue(limits{perHost: 2, rate: 1000, burst: 10, inFlight: 10, waiting: 10}, func() time.Time { return time.Unix(1, 0) })
	add(q, req(4, "old"))
	jobs, _, _ := q.take()
	if len(jobs) != 1 {
		t.Fatalf("took %d jobs, want the first", len(jobs))
	}
	add(q, req(4, "old")) // once more: it is under way
	add(q, req(5, "older"))
	add(q, req(4, "new"))
	again, _, _ := q.take()
	if len(again) != 1 || again[0].req.Nonce != "new" {
		t.Fatalf("took %d jobs, want the one that was asked for last", len(again))
	}
	q.done(jobs[0], 0)
	q.done(again[0], 0)
	if !q.idle() {
		t.Error("something is left")
	}
}
