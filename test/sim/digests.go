package sim

import (
	"fmt"
	"reflect"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// digestSettings are the digests that subscriptions ask for.
var digestSettings = []pipeline.Digest{
	{Every: pipeline.Duration(10 * time.Minute)}, {Every: pipeline.Duration(3 * time.Hour), Max: 3}, {Cron: "*/30 * * * * Europe/Berlin"}, {Every: pipeline.Duration(20 * 24 * time.Hour), Max: 5},
}

// quietHours are those of subscriptions.
var quietHours = []pipeline.Quiet{{From: 22 * 60, To: 7 * 60, Zone: "Europe/Berlin"}, {From: 8 * 60, To: 20 * 60}}

// alwaysCollects reports whether d collects outside of quiet hours, too.
func alwaysCollects(d *pipeline.Digest) bool { return d != nil && (d.Every != 0 || d.Cron != "") }

// digest is one that a receiver was offered, or that became a dead letter.
type digest struct {
	notification pipeline.Notification
	items        []*publishedNotification
}

// digests are those of a run, by ID; of says which one tells an item.
type digests struct {
	byID         map[string]*digest
	digestOfItem map[string]string
}

// verifyDigest takes note of a digest, which must hold what its items say, in their order, and
// say the same each time.
func (w *world) verifyDigest(ds digests, byID map[string]*publishedNotification, sink string, n pipeline.Notification) (*digest, error) {
	if d := ds.byID[n.ID]; d != nil {
		if !reflect.DeepEqual(d.notification, n) {
			return nil, fmt.Errorf("digest %s for %s changed: %+v, first it was %+v", n.ID, sink, n, d.notification)
		}
		return d, nil
	}
	if len(n.Items) == 0 {
		return nil, fmt.Errorf("digest %s for %s is empty", n.ID, sink)
	}
	d := &digest{notification: n}
	want := pipeline.Notification{ID: n.ID, Status: pipeline.StatusOK, Type: pipeline.NotificationTypeDigest, Diffs: []pipeline.Diff{}}
	most, edits := 0, 0 // edits of the items are numbered on
	for _, i := range n.Items {
		item := byID[i.ID]
		if item == nil || item.Digest == nil || item.Receiver.Sink != sink || len(d.items) > 0 && item.Subscription != d.items[0].Subscription {
			return nil, fmt.Errorf("digest %s for %s holds %s, which does not belong there: %+v", n.ID, sink, i.ID, item)
		}
		if other, ok := ds.digestOfItem[i.ID]; ok {
			return nil, fmt.Errorf("%s is in two digests for %s, %s and %s", i.ID, sink, other, n.ID)
		}
		ds.digestOfItem[i.ID] = n.ID
		d.items = append(d.items, item)
		x := item.Notification
		want.URL, want.Client, want.Time, want.Version, want.Title, want.Language, want.ContentType = x.URL, x.Client, x.Time, x.Version, x.Title, x.Language, x.ContentType
		for _, diff := range x.Diffs {
			if diff.Edit > 0 {
				diff.Edit += edits
			}
			want.Diffs = append(want.Diffs, diff)
		}
		if n := len(want.Diffs); n > 0 && len(x.Diffs) > 0 {
			edits = want.Diffs[n-1].Edit
		}
		want.Truncated = want.Truncated || x.Truncated
		want.Omitted += x.Omitted
		want.Muting = want.Muting.With(x.Muting)
		want.Items = append(want.Items, pipeline.Item{
			ID: x.ID, Time: x.Time, Version: x.Version, Title: x.Title, Change: x.Change, Value: x.Value, Diffs: len(x.Diffs), Truncated: x.Truncated, Omitted: x.Omitted,
		})
		most = max(most, item.Digest.Items())
	}
	if !reflect.DeepEqual(n, want) {
		return nil, fmt.Errorf("digest %s for %s is %+v, want %+v", n.ID, sink, n, want)
	}
	if len(d.items) > most {
		return nil, fmt.Errorf("digest %s for %s has %d items, want %d at most", n.ID, sink, len(d.items), most)
	}
	ds.byID[n.ID] = d
	w.stats.Digests++
	if len(d.items) > 1 {
		w.stats.MergedDigests++
	}
	return d, nil
}
