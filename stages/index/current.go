package index

import (
	"fmt"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// publishCurrent publishes the current text of a document on flow.TopicCurrent.
type publishCurrent struct {
	Document, Incarnation string
	N                     uint64
}

// publishGone says on that topic that a document ended.
type publishGone struct {
	Document, Incarnation string
	Time                  time.Time
}

func (publishCurrent) output() {}
func (publishGone) output()    {}

// publishTexts publishes the texts that differ from what was last published of their documents, and says which of the
// documents of before ended. Each document remembers what was published. So where the topic was not published before,
// a text that stays the same comes with the next message of its page.
func (a *applier) publishTexts(before *Page) {
	for _, was := range before.Documents {
		if d := a.p.Document(was.ID); was.Published != 0 && (d == nil || d.TextHash == "") {
			a.emit(publishGone{was.ID, before.Incarnation, a.Now})
		}
	}
	for i := range a.p.Documents {
		switch d := &a.p.Documents[i]; {
		case !a.Rules.Current && len(a.out) > 0:
			d.Published = 0 // when the topic is published again, it may be another one
		case a.Rules.Current && d.TextHash != "" && d.Published != d.N:
			d.Published = d.N
			a.emit(publishCurrent{d.ID, a.p.Incarnation, d.N})
		}
	}
}

// emitCurrent emits the text of o, which is stored.
func (s *Stage) emitCurrent(tx flow.Tx, st flow.State, page string, o publishCurrent) error {
	v, ok, err := LoadVersion(st, o.Document, o.N)
	if err != nil {
		return err
	}
	if !ok {
		return failure.Broken(fmt.Errorf("index: version %d of document %s is missing in the store", o.N, o.Document))
	}
	content, err := flow.UnpackText(v.Packed)
	if err != nil {
		return failure.Broken(fmt.Errorf("index: version %d of document %s: %w", o.N, o.Document, err))
	}
	c := flow.Current{
		Document: o.Document, Page: page, Incarnation: o.Incarnation, Version: o.N, Previous: v.Previous, Time: v.Time.UTC(),
		Title: v.Title, Language: v.Language, ContentType: v.ContentType, Hash: v.TextHash, Text: flow.PlainText(content),
	}
	if s.cfg.Link != nil && v.Previous > 0 {
		c.Link = s.cfg.Link(page, o.Document, o.N)
	}
	m, err := c.Message()
	if err != nil {
		return err
	}
	tx.Emit(m)
	return nil
}
