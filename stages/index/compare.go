package index

import (
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// SnapshotOf returns the snapshot of version n of d, a document of p, whose state st is, made again from the stored
// versions. ok is false if n is a baseline, or if one of the texts is no longer stored.
func SnapshotOf(st flow.State, p *Page, d *Document, n uint64) (s flow.Snapshot, ok bool, err error) {
	v, ok, err := LoadVersion(st, d.ID, n)
	if err != nil || !ok {
		return s, false, err
	}
	old, oldKeys, ok, err := v.OldText(st, d.ID)
	if err != nil || !ok {
		return s, false, err
	}
	content, err := flow.UnpackText(v.Packed)
	if err != nil {
		return s, false, failure.Broken(fmt.Errorf("index: version %d of document %s: %w", n, d.ID, err))
	}
	var elapsed time.Duration
	before, ok, err := LoadVersion(st, d.ID, v.Previous)
	if err != nil {
		return s, false, err
	}
	if ok {
		elapsed = v.Time.Sub(before.Time)
	}
	return flow.Snapshot{
		Page: p.URL, Incarnation: p.Incarnation, Document: d.ID, N: n, Previous: v.Previous, Check: v.Check, Time: v.Time,
		Language: v.Language, Title: v.Title, ContentType: v.ContentType, TextHash: v.TextHash, Value: d.View.Value != nil,
		Restless: v.Restless, Words: v.Words, Whole: v.Whole, Elapsed: elapsed,
		Old: old, New: content, OldKeys: oldKeys, NewKeys: flow.UnpackKeys(v.Packed),
	}, true, nil
}

// compareAgain emits the snapshot that m names once more.
func (s *Stage) compareAgain(tx flow.Tx, m flow.Message) error {
	name, err := flow.SnapshotNameFrom(m)
	if err != nil {
		return err
	}
	st := tx.State(m.Key)
	p, err := Load(st)
	if err != nil {
		return err
	}
	var snap flow.Snapshot
	ok := false
	if d := p.Document(name.Document); d != nil && p.Incarnation == name.Incarnation {
		if snap, ok, err = SnapshotOf(st, &p, d, name.N); err != nil {
			return err
		}
	}
	if !ok {
		tx.OnCommit(func() {
			s.cfg.Logger.Warn("a version cannot be compared again: it, or the one before it, is no longer stored", "page", pageurl.Redacted(m.Key), "version", name.N)
		})
		return nil
	}
	snap.Lineage = flow.Lineage(m.Position)
	tx.Emit(snap.Message())
	return nil
}
