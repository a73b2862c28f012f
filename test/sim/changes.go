package sim

import (
	"encoding/json"
	"fmt"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/oracle"
)

// documentKey names a document in one incarnation of its page.
type documentKey struct{ page, document string }

// verifyChanges compares the changes that were published with the versions that there were:
// each version but the first of a life has one change, in their order. Only one that brings no
// news may be left out.
func (w *world) verifyChanges(truths []*pageModel) error {
	published := make(map[documentKey][]flow.Change)
	for _, lane := range w.transport.log(flow.TopicChanges) {
		for _, m := range lane {
			if m.Type != flow.TypeChange {
				continue
			}
			var c flow.Change
			if err := json.Unmarshal(m.Body, &c); err != nil {
				return err
			}
			of := documentKey{c.Incarnation, c.Document}
			published[of] = append(published[of], c)
		}
	}
	for _, t := range truths {
		for _, l := range t.lives {
			of := documentKey{l.incarnation, l.id}
			rest, err := l.verifyChanges(published[of])
			if err != nil {
				return fmt.Errorf("%s: document %s: %w", t.url, l.id, err)
			}
			published[of] = rest
		}
	}
	for of, left := range published {
		for _, c := range left {
			return fmt.Errorf("document %s: a change to version %d, which is too many, or out of order", of.document, c.Version)
		}
	}
	return nil
}

// verifyChanges takes the changes of l from the beginning of all of its document.
func (l *documentLife) verifyChanges(published []flow.Change) ([]flow.Change, error) {
	for i := 1; i < len(l.versions); i++ {
		if l.versions[i].baseline {
			continue
		}
		n := l.versions[i].n
		if len(published) > 0 && published[0].Version == n {
			if c := published[0]; c.Previous != l.versions[i-1].n {
				return nil, fmt.Errorf("a change from version %d to %d", c.Previous, n)
			}
			published = published[1:]
			continue
		}
		if l.view.Value != nil || oracle.Compare(l.previousText(i).page, l.versions[i].text.page).News() {
			return nil, fmt.Errorf("no change to version %d where it should be", n)
		}
	}
	return published, nil
}
