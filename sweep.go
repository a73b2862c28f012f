package vokter

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/index"
)

// lookAgain is after what time the pages of receivers are looked up again. What is
// subscribed meanwhile to a receiver that expired is found by delivery.
const lookAgain = 10 * time.Second

// lookout is what was seen of each lane, by the name of the lane. Many receivers of one host
// may expire at once, and one look at a lane's pages is enough for them.
type lookout struct {
	mu    sync.Mutex
	lanes map[string]*laneLook
}

// laneLook is what was seen of one lane.
type laneLook struct {
	mu sync.Mutex
	// pages are those that each receiver means something to, as they were at at.
	pages map[string][]string
	at    time.Time
}

// of returns the look at lane, an empty one if there was none.
func (l *lookout) of(lane string) *laneLook {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes == nil {
		l.lanes = make(map[string]*laneLook)
	}
	if l.lanes[lane] == nil {
		l.lanes[lane] = new(laneLook)
	}
	return l.lanes[lane]
}

// broadcast asks every lane to tell its pages what became of the receiver of e: their
// states may be kept by other processes.
func broadcast(tx flow.Tx, e pipeline.Health) {
	s := flow.Sweep{Event: e.ID, Time: e.Time, Receiver: e.Receiver.ID(), Reason: e.Reason}
	if e.Event == pipeline.HealthReceiverRecovered {
		s.Resume, s.Reason = true, ""
	}
	tx.EmitAll(s.Message())
}

// sweep tells the pages in the lane of m, all in one transaction: were it split, a sweep that
// ends and one that resumes could overtake each other.
func (h *healthStage) sweep(ctx context.Context, tx flow.Tx, m flow.Message) error {
	s, err := flow.SweepFrom(m)
	if err != nil {
		return err
	}
	l := h.seen.of(m.Position[:strings.LastIndex(m.Position, "/")+1])
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := h.now(); l.pages == nil || now.Sub(l.at).Abs() > lookAgain {
		if l.pages, err = receivedBy(ctx, tx); err != nil {
			return err
		}
		l.at = now
	}
	for _, page := range l.pages[s.Receiver] {
		if err := tellPage(tx, s, page); err != nil {
			return err
		}
	}
	return nil
}

// receivedBy finds out which pages in the lane of tx each receiver means something to.
func receivedBy(ctx context.Context, tx flow.Tx) (map[string][]string, error) {
	pages := make(map[string][]string)
	for page, st := range tx.Neighbours(flow.GroupIndex) {
		receivers, err := index.Receivers(st)
		if err != nil {
			return nil, err
		}
		for _, r := range receivers {
			pages[r] = append(pages[r], page)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return pages, nil
}

// tellPage emits the command to page that follows from s, with an ID that follows from it too.
func tellPage(tx flow.Tx, s flow.Sweep, page string) error {
	typ, body := flow.TypeExpire, any(flow.ExpireCommand{URL: page, Receiver: s.Receiver, Reason: s.Reason})
	if s.Resume {
		typ, body = flow.TypeResume, flow.ResumeCommand{URL: page, Receiver: s.Receiver}
	}
	m, err := newCommand(page, typ, body, s.Time)
	if err != nil {
		return pipeline.Permanent(err)
	}
	m.ID = flow.DeriveID("command", s.Event, page)
	tx.Emit(m)
	return nil
}
