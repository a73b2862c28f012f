package sim

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/vokter/vokter/internal/sim/oracle"
	"github.com/vokter/vokter/pipeline"
)

// about names what a notification tells: no two have the same, and one has no two IDs.
type about struct {
	document, subscription, client, sink string
	version                              uint64
}

// told is a notification that match made.
type told struct {
	pipeline.Addressed
	about about
	used  bool
}

// verify compares all that was told with all that had to be.
func (w *world) verify() error {
	all, byID, err := w.told()
	if err != nil {
		return err
	}
	for _, s := range w.sites {
		t, err := w.truthOf(s.url)
		if err != nil {
			return err
		}
		if err := t.final(); err != nil {
			return err
		}
		if err := w.compare(t, all); err != nil {
			return fmt.Errorf("%s: %w", s.url, err)
		}
	}
	for _, n := range all {
		if !n.used {
			return fmt.Errorf("invented: notification %s about %+v", n.Notification.ID, n.about)
		}
	}
	return w.verifyDeliveries(byID)
}

// told reads what match published: every notification once, under an ID of its own.
func (w *world) told() (map[about]*told, map[string]*told, error) {
	all, byID := make(map[about]*told), make(map[string]*told)
	for _, lane := range w.t.log(pipeline.TopicNotifications) {
		for _, m := range lane {
			var a pipeline.Addressed
			if err := json.Unmarshal(m.Body, &a); err != nil {
				return nil, nil, err
			}
			n := a.Notification
			k := about{a.Document, a.Subscription, n.Client, a.Receiver.ID(), n.Version}
			if m.ID != n.ID || m.Key != a.Receiver.ID() {
				return nil, nil, fmt.Errorf("message %s for %s holds notification %s for %s", m.ID, m.Key, n.ID, a.Receiver.ID())
			}
			if byID[n.ID] != nil {
				return nil, nil, fmt.Errorf("two notifications with ID %s: %+v and %+v", n.ID, byID[n.ID].about, k)
			}
			if all[k] != nil {
				return nil, nil, fmt.Errorf("told twice, as %s and as %s: %+v", all[k].Notification.ID, n.ID, k)
			}
			all[k] = &told{Addressed: a, about: k}
			byID[n.ID] = all[k]
		}
	}
	w.stats.Notifications += len(all)
	return all, byID, nil
}

// compare holds each notification about a page against the oracle.
func (w *world) compare(t *truth, all map[about]*told) error {
	for _, l := range t.lives {
		for i := 1; i < len(l.versions); i++ {
			change := oracle.Compare(l.versions[i-1].text.page, l.versions[i].text.page)
			w.stats.Changes++
			if change.Doubtful() {
				w.stats.Doubtful++
			}
			for _, r := range t.records {
				if v := l.versions[i]; r.life == l && r.from < v.n && v.n <= r.until {
					if err := w.compareRecord(t, r, v, change, all); err != nil {
						return fmt.Errorf("version %d of document %s, client %s: %w\nsubscription: %s\nold: %q\nnew: %q", v.n, l.id, r.sub.Client, err, asJSON(r.sub),
							l.versions[i-1].text.content, v.text.content)
					}
				}
			}
		}
	}
	return nil
}

// compareRecord holds what one subscription was told of one change against the oracle.
func (w *world) compareRecord(t *truth, r *record, v version, change *oracle.Change, all map[about]*told) error {
	s := r.sub.WithDefaults()
	language := v.language
	if s.Language != "" {
		language = s.Language
	}
	e := change.Expect(oracle.Subscription{
		Keywords: s.Keywords, Added: s.Wants(pipeline.Added), Removed: s.Wants(pipeline.Removed),
		IgnoreCase: s.IgnoreCase, IgnoreDiacritics: s.IgnoreDiacritics, Stem: s.Stem, FilterStopwords: s.FilterStopwords,
		Terms: s.Match == pipeline.MatchTerms, Moved: s.Moved,
	}, languageOf(language))
	w.stats.Expectations++
	if e.Doubtful() {
		w.stats.Unsure++
	}
	for _, sink := range s.Sinks {
		n := all[about{r.life.id, r.incarnation, s.Client, sink, v.n}]
		if n == nil {
			if e.Must() {
				return fmt.Errorf("missed: sink %s was not told; want %v", sink, e)
			}
			continue
		}
		n.used = true
		w.stats.Expected++
		w.stats.Diffs += len(n.Notification.Diffs)
		if !e.May() {
			return fmt.Errorf("invented: sink %s was told %+v", sink, n.Notification.Diffs)
		}
		if n.Notification.URL != s.URL || n.Notification.Status != pipeline.StatusOK || !n.Notification.Time.Equal(v.snapshot.Time) ||
			n.Notification.Title != v.text.title {
			return fmt.Errorf("wrong: url %s, status %s, time %v, title %q in %+v", s.URL, pipeline.StatusOK, v.snapshot.Time, v.text.title, n.Notification)
		}
		var rs []oracle.Report
		for _, d := range n.Notification.Diffs {
			rs = append(rs, oracle.Report{Event: string(d.Event), Keyword: d.Keyword, Text: d.Text, Snippet: d.Snippet, Offset: d.Offset})
		}
		if err := e.Check(rs, n.Notification.Truncated); err != nil {
			return fmt.Errorf("sink %s: %w\nreports: %+v", sink, err, rs)
		}
	}
	return nil
}

// verifyDeliveries holds what receivers took against what they were to be told: each
// notification once, in order, or a dead letter where they refuse it.
func (w *world) verifyDeliveries(byID map[string]*told) error {
	r := w.receivers
	taken := make(map[string]int)
	type line struct{ document, incarnation, sink string }
	latest := make(map[line]uint64)
	for _, g := range r.got {
		n := byID[g.notification.ID]
		if n == nil || n.Receiver.Sink != g.sink {
			return fmt.Errorf("step %d: %s took %s, which nobody told it", g.step, g.sink, g.notification.ID)
		}
		if !reflect.DeepEqual(n.Notification, g.notification) {
			return fmt.Errorf("step %d: %s took %s with other content: %+v, want %+v", g.step, g.sink, g.notification.ID, g.notification, n.Notification)
		}
		if taken[n.Notification.ID]++; taken[n.Notification.ID] > 1 {
			w.stats.Repeats++
			continue
		}
		l := line{n.Document, w.incarnationOf(n), g.sink}
		if n.about.version < latest[l] {
			return fmt.Errorf("step %d: %s took version %d after %d", g.step, g.sink, n.about.version, latest[l])
		}
		latest[l] = n.about.version
	}
	dead := make(map[string]int)
	for _, lane := range w.t.log(pipeline.TopicDead) {
		for _, m := range lane {
			var d pipeline.DeadLetter
			if err := json.Unmarshal(m.Body, &d); err != nil {
				return err
			}
			if d.Addressed == nil {
				return fmt.Errorf("dead letter %s: %s", m.ID, d.Reason)
			}
			dead[d.Addressed.Notification.ID]++
			w.stats.Dead++
		}
	}
	for id, n := range byID {
		refused := n.Receiver.Sink == "picky" && refuses(id) != nil
		want, wantDead := 1, 0
		if refused || dead[id] > 0 && r.hopeless(id) {
			want, wantDead = 0, 1
		}
		if taken[id] < want || taken[id] > want+r.excused[id] {
			return fmt.Errorf("%s took %s %d times (%d repeats are excused), want %d", n.Receiver.Sink, id, taken[id], r.excused[id], want)
		}
		if dead[id] != wantDead {
			return fmt.Errorf("%s for %s is dead %d times, want %d", id, n.Receiver.Sink, dead[id], wantDead)
		}
	}
	return nil
}

// incarnationOf returns the life of the page that a notification is about.
func (w *world) incarnationOf(n *told) string { return w.incarnations[n.about.subscription] }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
