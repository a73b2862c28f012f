// Package diff finds what differs between two versions of a document. It is the stage that
// turns snapshots into changes. Its core, the function Diff, needs neither transport nor clock.
//
// Diff first decides which blocks belong together, since keywords are counted within
// such groups, and then what was removed and added in each group:
//
//  1. Blocks that come again and again in one order are items, as withRecords describes. Units (an item or a
//     block; see text.Doc) with equal folded tokens pair off, where a shortest
//     diff of the units keeps them in order. Equal ones that are left over pair off from the top:
//     those moved.
//  2. The units that stayed in order cut both texts into gaps. Items with one trusted key belong
//     together. Within a gap, two units do when a diff of the gap's tokens keeps enough of the smaller
//     one in the larger. What many units have weighs little.
//  3. A unit that then belongs to none may still join another such unit of the other side, wherever
//     it is, that is much alike. Items whose trusted keys differ join only if they are nearly equal.
//  4. Belonging together is transitive. Each group, and each pair whose exact tokens
//     differ, is diffed on its own, on exact tokens with borders.
//
// Two sequences may have several shortest diffs. Diff takes the one that keeps the longest
// common prefix, then the longest common suffix, and between them what go-diff's bisection
// finds in the tokens that both sides have. The result depends only on the two texts.
//
// Work is bounded by counted cells, never by time, so that the same texts give the same result
// on any machine under any load; see limits. Memory is bounded by the number of blocks and
// tokens that are grouped: if more changed, steps 2 to 4 are skipped, and all changed blocks
// form one coarse group.
package diff

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Config is what New takes. The zero Config is ready to use.
type Config struct {
	// Logger gets each change, at level debug. Default: none.
	Logger *slog.Logger
	// Observe gets an observation flow.KindChange for each change, after the commit.
	Observe flow.Observer
	// Baseline says that a version that is compared with nothing is a change as well, in which all of its text is added.
	Baseline bool
	// Memory bounds the memory for comparing large texts. Default: no bound.
	Memory flow.Memory
}

// Processor is the stage: it turns the snapshots of flow.TopicSnapshots into changes on
// flow.TopicChanges. It has no state and is safe for concurrent use.
type Processor struct{ cfg Config }

var _ flow.Processor = (*Processor)(nil)

// New returns the stage for consumer group flow.GroupDiff.
func New(cfg Config) *Processor {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &Processor{cfg}
}

// Process handles a snapshot, and emits its change, unless no token differs and no block moved. Without
// Config.Baseline, there is none for a first version. Another type is an error of flow.Message.UnknownType.
func (p *Processor) Process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	if m.Type != flow.TypeSnapshot {
		return m.UnknownType(flow.GroupDiff)
	}
	s, err := flow.SnapshotFrom(m)
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	free, err := p.cfg.Memory.Take(ctx, memoryPerByte*s.Size())
	if err != nil {
		return err
	}
	defer free()
	if err := s.Unpack(); err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	if s.Previous == 0 && !p.cfg.Baseline {
		return nil
	}
	c, ok := compare(s)
	if !ok {
		return nil
	}
	tx.Emit(c.Message())
	if c.Baseline {
		return nil
	}
	tx.OnCommit(func() {
		p.cfg.Logger.Debug("change", "url", c.URL, "version", c.Version, "groups", len(c.Groups), "id", c.ID)
		p.cfg.Observe.Note(flow.Observation{Kind: flow.KindChange, Page: c.Page, Document: c.Document,
			URL: c.URL, ID: c.ID, N: int(c.Version), Time: c.Time})
	})
	return nil
}

// memoryPerByte is how many bytes of memory it takes to compare two texts, for each of their bytes.
// Texts with lines of one short word take about as many, most texts far fewer.
const memoryPerByte = 128

// ChangeOf returns the change between the two versions in s, and whether there is one. There is
// none for a first version, which is a baseline, or if no token differs and no block moved.
func ChangeOf(s flow.Snapshot) (flow.Change, bool) {
	if s.Previous == 0 {
		return flow.Change{}, false
	}
	return compare(s)
}

// compare returns the change between the two texts in s, and whether anything differs.
func compare(s flow.Snapshot) (flow.Change, bool) {
	old, new := analyzeBoth(s)
	defer old.Release() // not new, which the message may share with later deliveries of it
	groups := Diff(old, new)
	c := flow.Change{
		ID:  flow.ChangeID(s.Document, s.Incarnation, s.Lineage, s.N),
		URL: s.Page, Page: s.Page, Document: s.Document, Incarnation: s.Incarnation,
		Check: s.Check, Version: s.N, Previous: s.Previous, Baseline: s.Previous == 0, Time: s.Time,
		Language: s.Language, Title: s.Title, ContentType: s.ContentType, Groups: groups, Size: changeSize(old, new, groups),
		Muting: s.Muting, Whole: s.Whole, MutingWords: s.MutingWords,
	}
	if !s.Value {
		muteRestless(&c, s)
	}
	return c, len(groups) > 0
}

// analyzeBoth returns both texts with their tokens.
func analyzeBoth(s flow.Snapshot) (old, new *text.Doc) {
	if s.Value {
		return text.AnalyzeValue(s.Old), text.AnalyzeValue(s.New)
	}
	new, ok := s.Analysis.(*text.Doc)
	if !ok || new.Content != s.New {
		new = text.AnalyzePacked(s.New, s.NewKeys, nil)
	}
	return text.AnalyzePacked(s.Old, s.OldKeys, s.OldTokens), new
}
