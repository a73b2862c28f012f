package sim

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/oracle"
)

// notificationKey says what a notification is about. No two notifications have the same key.
type notificationKey struct {
	document, subscription, client, sink string
	version                              uint64
}

// publishedNotification is a notification that match made.
type publishedNotification struct {
	flow.Addressed
	key     notificationKey
	matched bool
	replays int // how often it was brought back
}

// verify compares all that was told with all that had to be.
func (w *world) verify() error {
	var truths []*pageModel
	for _, s := range w.sites {
		t, err := w.modelOf(s.url)
		if err == nil {
			err = t.verifyFinal()
		}
		if err != nil {
			return err
		}
		truths = append(truths, t)
	}
	if err := w.verifyTrees(truths); err != nil {
		return err
	}
	if err := w.verifyChanges(truths); err != nil {
		return err
	}
	if err := w.verifyCurrent(truths); err != nil {
		return err
	}
	all, byID, err := w.readNotifications()
	w.notificationsByID = byID
	if err != nil {
		return err
	}
	for _, t := range truths {
		if err := w.compareNotifications(t, all); err != nil {
			return fmt.Errorf("%s: %w", t.url, err)
		}
		if err := w.compareOutages(t, all); err != nil {
			return fmt.Errorf("%s: %w", t.url, err)
		}
	}
	for _, n := range all {
		if !n.matched {
			return fmt.Errorf("invented: notification %s about %+v", n.Notification.ID, n.key)
		}
	}
	if err := w.verifyHealth(); err != nil {
		return err
	}
	return w.verifyDeliveries(byID)
}

// readNotifications reads the notifications that match published: every notification once, under an ID of its own.
func (w *world) readNotifications() (map[notificationKey]*publishedNotification, map[string]*publishedNotification, error) {
	all, byID := make(map[notificationKey]*publishedNotification), make(map[string]*publishedNotification)
	w.digestReplays = make(map[string]int)
	for _, lane := range w.transport.log(flow.TopicNotifications) {
		for _, m := range lane {
			if m.Type != flow.TypeAddressed {
				continue
			}
			var a flow.Addressed
			if err := json.Unmarshal(m.Body, &a); err != nil {
				return nil, nil, err
			}
			n := a.Notification
			k := notificationKey{a.Document, a.Subscription, n.Client, a.Receiver.Sink, n.Version}
			if n.TellsOutage() {
				k = outageKey(n.Status, a.Subscription, n.Client, a.Receiver.Sink, n.Time)
			}
			if m.Header[flow.HeaderReplay] == "1" && n.Type == pipeline.NotificationTypeDigest {
				w.digestReplays[n.ID]++
				w.stats.Replays++
				continue
			}
			if m.Header[flow.HeaderReplay] == "1" {
				first := byID[n.ID]
				if first == nil || !reflect.DeepEqual(first.Addressed, a) {
					return nil, nil, fmt.Errorf("brought back as %s: %+v, but first it was %+v", n.ID, a, first)
				}
				first.replays++
				w.stats.Replays++
				continue
			}
			if m.ID != n.ID || m.Key != a.Receiver.Sink {
				return nil, nil, fmt.Errorf("message %s for %s holds notification %s for %s", m.ID, m.Key, n.ID, a.Receiver.Sink)
			}
			if byID[n.ID] != nil {
				return nil, nil, fmt.Errorf("two notifications with ID %s: %+v and %+v", n.ID, byID[n.ID].key, k)
			}
			if all[k] != nil {
				return nil, nil, fmt.Errorf("told twice, as %s and as %s: %+v", all[k].Notification.ID, n.ID, k)
			}
			all[k] = &publishedNotification{Addressed: a, key: k}
			byID[n.ID] = all[k]
		}
	}
	w.stats.Notifications += len(all)
	return all, byID, nil
}

// compareNotifications compares each notification about a page with the oracle.
func (w *world) compareNotifications(t *pageModel, all map[notificationKey]*publishedNotification) error {
	for _, l := range t.lives {
		for i := 1; i < len(l.versions); i++ {
			if l.versions[i].baseline {
				continue
			}
			change := oracle.Compare(l.previousText(i).page, l.versions[i].text.page)
			w.stats.Changes++
			if change.Doubtful() {
				w.stats.DoubtfulChanges++
			}
			for _, r := range t.spans {
				if v := l.versions[i]; r.life == l && r.from < v.n && v.n <= r.until {
					err := error(nil)
					if l.view.Value != nil {
						err = w.compareValue(t, r, l.versions[i-1], v, all)
					} else {
						err = w.compareRecord(t, r, v, change, all)
					}
					if err != nil {
						return fmt.Errorf("version %d of document %s, client %s: %w\nsubscription: %s\nold: %q\nnew: %q", v.n, l.id, r.sub.Client, err, asJSON(r.sub),
							l.previousText(i).content, v.text.content)
					}
				}
			}
		}
	}
	return nil
}

// outageKey is the key of what a client was told of an outage because of the check at that time, in the name of that
// subscription: another one of the client may be told because of another check at the same time.
func outageKey(status, subscription, client, sink string, at time.Time) notificationKey {
	return notificationKey{status, subscription, client, sink, uint64(at.UnixNano())}
}

// compareOutages holds what clients were told of a page that fails, answers again or was given up against
// what they must be told: once at each receiver.
func (w *world) compareOutages(t *pageModel, all map[notificationKey]*publishedNotification) error {
	for _, o := range t.outages {
		for sink, by := range o.sinks {
			n := all[outageKey(o.status, by.incarnation, o.client, sink, o.at)]
			if n == nil {
				return fmt.Errorf("missed: client %s was not told at %s: %s of the page at %v", o.client, sink, o.status, o.at)
			}
			n.matched = true
			switch o.status {
			case pipeline.StatusTimeout:
				w.stats.Timeouts++
			case pipeline.StatusRecovered:
				w.stats.Recoveries++
			default:
				w.stats.Expiries++
			}
			x := n.Notification
			if n.Subscription != by.incarnation || x.URL != by.sub.URL || !x.Since.Equal(o.since) || x.Diffs == nil || len(x.Diffs) > 0 || x.Reason == "" {
				return fmt.Errorf("wrong: client %s was told at %s: %s as %+v of subscription %s, want %+v of %s, failing since %v",
					o.client, sink, o.status, x, n.Subscription, by.sub, by.incarnation, o.since)
			}
		}
	}
	return nil
}

// compareRecord compares what one subscription was told of one change with the oracle.
func (w *world) compareRecord(t *pageModel, r *subscriptionSpan, v version, change *oracle.Change, all map[notificationKey]*publishedNotification) error {
	s := r.sub.WithDefaults()
	language := v.language
	if s.Language != "" {
		language = s.Language
	}
	e := change.Expect(oracle.Subscription{
		Keywords: s.Keywords, Added: s.Wants(pipeline.Added), Removed: s.Wants(pipeline.Removed),
		MatchCase: s.MatchCase, IgnoreDiacritics: s.IgnoreDiacritics, Stem: s.Stem, FilterStopwords: s.FilterStopwords,
		Terms: s.Match == pipeline.MatchTerms, Moved: s.Moved,
		NearBlock: s.Near == pipeline.NearBlock, NearRow: s.Near == pipeline.NearRow,
		Min: oracle.MinChange{Tokens: s.MinChange.Tokens, Share: s.MinChange.Share},
	}, languageOf(language))
	w.stats.Expectations++
	if e.Doubtful() {
		w.stats.DoubtfulExpectations++
	}
	for _, sink := range s.Sinks {
		n := all[notificationKey{r.life.id, r.incarnation, s.Client, sink, v.n}]
		if n == nil {
			says := func(n *publishedNotification) bool {
				return reflect.DeepEqual(n.Digest, r.sub.Collected()) && e.Check(n.oracleReports(), n.Notification.Omitted, n.Notification.Truncated) == nil
			}
			if e.Must() && !r.cancelled && t.isRepeat(r, v, sink, all, says) {
				w.stats.SuppressedRepeats++
				continue
			}
			// Every change is told, but for that of a number that may be restless.
			if quiet := len(s.Keywords) == 0 && sameButForRayID(v.snapshot.Old, v.snapshot.New); e.Must() && !r.cancelled && !quiet {
				return fmt.Errorf("missed: sink %s was not told; want %v", sink, e)
			}
			continue
		}
		n.matched = true
		w.stats.ExpectedNotifications++
		same := func(other *publishedNotification) bool {
			return reflect.DeepEqual(other.Digest, n.Digest) && reflect.DeepEqual(other.Notification.Diffs, n.Notification.Diffs)
		}
		if t.isRepeat(r, v, sink, all, same) {
			return fmt.Errorf("told twice: sink %s was told the same of another subscription", sink)
		}
		if !reflect.DeepEqual(n.Digest, r.sub.Collected()) {
			return fmt.Errorf("wrong: sink %s is told in the digest %v, want %v", sink, n.Digest, r.sub.Collected())
		}
		if r.life.view.Items {
			w.stats.FeedChanges++
		}
		w.stats.Diffs += len(n.Notification.Diffs)
		if !e.May() {
			return fmt.Errorf("invented: sink %s was told %+v", sink, n.Notification.Diffs)
		}
		if n.Notification.URL != s.URL || n.Notification.Status != pipeline.StatusOK || !n.Notification.Time.Equal(v.snapshot.Time) ||
			n.Notification.Title != v.text.title {
			return fmt.Errorf("wrong: url %s, status %s, time %v, title %q in %+v", s.URL, pipeline.StatusOK, v.snapshot.Time, v.text.title, n.Notification)
		}
		rs := n.oracleReports()
		size := len(asJSON(n.Notification))
		if size > flow.MaxNotification {
			return fmt.Errorf("wrong: sink %s was told %d bytes, want at most %d", sink, size, flow.MaxNotification)
		}
		if n.Notification.Truncated != (n.Notification.Omitted > 0) {
			return fmt.Errorf("wrong: sink %s was told truncated %v, omitted %d", sink, n.Notification.Truncated, n.Notification.Omitted)
		}
		if err := e.Check(rs, n.Notification.Omitted, size > flow.MaxNotification/2); err != nil {
			return fmt.Errorf("sink %s: %w\nreports: %+v", sink, err, rs)
		}
	}
	return nil
}

// oracleReports returns the diffs of n as the oracle reads them.
func (n *publishedNotification) oracleReports() []oracle.Report {
	var rs []oracle.Report
	for _, d := range n.Notification.Diffs {
		rs = append(rs, oracle.Report{Event: string(d.Event), Keyword: d.Keyword, Text: d.Text, Snippet: d.Snippet, Item: d.Item, Title: d.Title, Offset: d.Offset, Edit: d.Edit})
	}
	return rs
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
