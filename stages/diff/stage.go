// Package diff finds what differs between two versions of a document: the stage that
// turns snapshots into changes, and its core, the function Diff, which needs neither
// transport nor clock.
//
// Diff first decides which blocks belong together, since keywords are counted within
// such groups, and then what was removed and added in each group:
//
//  1. Units (a block, or a short list item or table row) with equal folded tokens pair
//     off, where a shortest diff of the units keeps them in order. Equal ones that are
//     left over pair off from the top: those moved.
//  2. What is left on both sides is diffed as one sequence of folded tokens in which each
//     block ends with a border. Two units belong together when this diff keeps enough of
//     the smaller one in the larger.
//  3. A unit that then belongs to none may still join another such unit of the other side
//     by the tokens they have in common in any order.
//  4. Belonging together is transitive. Each group, and each pair whose exact tokens
//     differ, is diffed on its own, on exact tokens with borders.
//
// Several shortest diffs of one pair of sequences may exist. The one taken keeps the
// longest common prefix, then the longest common suffix, and between them what
// go-diff's bisection finds in the tokens that both sides have. It depends on nothing but
// the two texts.
//
// Work is bounded by counted cells, never by time, so that the same texts give the same
// result on any machine under any load; see limits. Memory is bounded by how many blocks and
// tokens are grouped: where more changed, steps 2 to 4 are left out, and all changed blocks
// are one coarse group.
package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Config is what New takes. The zero Config is ready to use.
type Config struct {
	// Logger is told of each change, at level debug. Default: nobody.
	Logger *slog.Logger
	// Observe hears of each change, as pipeline.KindChange, once it is committed.
	Observe flow.Observer
	// Memory bounds what comparing large texts takes. Default: no bound.
	Memory flow.Memory
}

// Processor is the stage: it turns the snapshots of pipeline.TopicSnapshots into
// changes on pipeline.TopicChanges. It keeps no state and is safe for concurrent use.
type Processor struct{ cfg Config }

var _ flow.Processor = (*Processor)(nil)

// New returns the stage for consumer group pipeline.GroupDiff.
func New(cfg Config) *Processor {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Processor{cfg}
}

// Process handles one message. A snapshot without one before it, or without a token
// difference and without a moved block, emits nothing; any other emits its change. The
// end of a page is passed on behind its last change, as it is. What cannot be read is a
// permanent error, and a type that is not known a pipeline.Message.UnknownType: no message
// is dropped in silence.
func (p *Processor) Process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	switch m.Type {
	case flow.TypeSnapshot:
		return p.snapshot(ctx, tx, m)
	case flow.TypeEnded:
		return passOn(tx, m)
	}
	return m.UnknownType(flow.GroupDiff)
}

// memoryFor is how many bytes comparing two texts takes for each of theirs: about as many for
// lines of one short word, and far fewer for most texts.
const memoryFor = 128

func (p *Processor) snapshot(ctx context.Context, tx flow.Tx, m flow.Message) error {
	free, err := p.cfg.Memory.Take(ctx, memoryFor*flow.UnpackedSize(m.Body))
	if err != nil {
		return err
	}
	defer free()
	s, err := flow.SnapshotFrom(m)
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	c, ok := ChangeOf(s)
	if !ok {
		return nil
	}
	out, err := c.Message()
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	tx.Emit(out)
	tx.OnCommit(func() {
		p.cfg.Logger.Debug("change", "url", c.URL, "version", c.Version, "groups", len(c.Groups), "id", c.ID)
		p.cfg.Observe.Note(flow.Observation{Kind: flow.KindChange, Page: c.Page, Document: c.Document,
			URL: c.URL, ID: c.ID, N: int(c.Version), Time: c.Time})
	})
	return nil
}

// ChangeOf returns the change that s tells of, and whether there is one: not for a first
// version, which is a baseline, nor where no token differs and no block moved.
func ChangeOf(s flow.Snapshot) (flow.Change, bool) {
	if s.Previous == 0 {
		return flow.Change{}, false
	}
	groups := Diff(text.AnalyzePacked(s.Old, s.OldTokens), text.AnalyzePacked(s.New, s.NewTokens))
	return flow.Change{
		ID:  flow.ChangeID(s.Document, s.Incarnation, s.Lineage, s.N),
		URL: s.Page, Page: s.Page, Document: s.Document, Incarnation: s.Incarnation,
		Check: s.Check, Version: s.N, Previous: s.Previous, Time: s.Time, Stamp: s.Stamp,
		Language: s.Language, Title: s.Title, Groups: groups,
	}, len(groups) > 0
}

// passOn emits m, which says that a page ended, on pipeline.TopicChanges.
func passOn(tx flow.Tx, m flow.Message) error {
	var e flow.Ended
	if err := json.Unmarshal(m.Body, &e); err != nil {
		return failure.Permanent(fmt.Errorf("diff: message %s: %w", m.ID, err))
	}
	out := m
	out.ID = flow.DeriveID("ended", flow.TopicChanges, e.Page, e.Incarnation)
	out.Topic, out.Position = flow.TopicChanges, ""
	out.Header = maps.Clone(m.Header)
	tx.Emit(out)
	return nil
}
