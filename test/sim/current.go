package sim

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/vokter/vokter/pipeline/flow"
)

// verifyCurrent compares the table that the topic of current texts makes with the documents that are watched: it has
// the last version of each that was read, and nothing of any other.
func (w *world) verifyCurrent(truths []*pageModel) error {
	table := make(map[string]flow.Current)
	for _, lane := range w.transport.log(flow.TopicCurrent) {
		for _, m := range lane {
			if len(m.Body) == 0 {
				delete(table, m.Key)
				continue
			}
			var c flow.Current
			if err := json.Unmarshal(m.Body, &c); err != nil {
				return err
			}
			table[m.Key] = c
		}
	}
	for _, t := range truths {
		live := maps.Clone(t.documents)
		maps.Copy(live, t.resting)
		for id, l := range live {
			c, ok := table[id]
			delete(table, id)
			if len(l.versions) == 0 {
				if ok {
					return fmt.Errorf("%s: document %s has a text of version %d, and was not read since it began", t.url, id, c.Version)
				}
				continue
			}
			want := l.versions[len(l.versions)-1]
			if c.Version != want.n || c.Page != t.url || c.Incarnation != l.incarnation || c.Text != flow.PlainText(want.snapshot.New) || c.Hash != want.snapshot.TextHash {
				return fmt.Errorf("%s: document %s has the text of version %d (%q), want that of %d", t.url, id, c.Version, c.Text, want.n)
			}
		}
	}
	for id, c := range table {
		return fmt.Errorf("document %s of %s ended and still has the text of version %d", id, c.Page, c.Version)
	}
	return nil
}
