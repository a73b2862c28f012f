package sinks

import (
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// maxDigestBytes is how large a digest becomes.
const maxDigestBytes = pipeline.MaxNotification

// Windows is what a Queue knows of the digests that are being collected for its receiver, one
// for each subscription that wants them.
type Windows struct {
	// Open is how many there are, Items how many notifications they hold.
	Open  int `json:"open,omitempty"`
	Items int `json:"items,omitempty"`
	// Due is when the first of them ends. None began later than Last.
	Due  time.Time `json:"due,omitzero"`
	Last time.Time `json:"last,omitzero"`
	// Over is why all of them are to end and to be given up, since the receiver is expired;
	// empty where they are not.
	Over string `json:"over,omitempty"`
}

// window is the digest of one subscription while it is collected. The zero window is that
// of a subscription for which nothing is.
type window struct {
	// Digest is the setting of the last item.
	Digest pipeline.Digest `json:"digest"`
	// Start is when the first item came, Due when the window ends.
	Start time.Time `json:"start"`
	Due   time.Time `json:"due"`
	// Items is how many there are, Bytes how large they are stored.
	Items int `json:"items"`
	Bytes int `json:"bytes"`
	// Page and Client are those of the subscription.
	Page   string `json:"page"`
	Client string `json:"client"`
}

// fits reports whether one more item of that size may be collected.
func (w window) fits(size int) bool { return w.Items == 0 || w.Bytes+size <= maxDigestBytes }

// add collects an item of that size.
func (w window) add(d pipeline.Digest, at time.Time, size int) window {
	if w.Items == 0 {
		w.Start, w.Due = at, d.End(at)
	}
	w.Due = earlier(w.Due, d.End(w.Start)) // the subscription may have changed
	w.Digest = d
	w.Items++
	w.Bytes += size
	return w
}

// full reports whether the window ends before its time.
func (w window) full() bool { return w.Items >= w.Digest.Items() || w.Bytes >= maxDigestBytes }

// clamp corrects a window that began later than at, since the clock was set back.
func (w window) clamp(at time.Time) window {
	if w.Start.After(at) {
		w.Start, w.Due = at, w.Digest.End(at)
	}
	return w
}

// freeze makes one notification of items, which began to be collected at start. It comes
// out the same whenever it is made.
func freeze(start time.Time, items []pendingRecord) pendingRecord {
	first, last := items[0].Addressed, items[len(items)-1]
	n := last.Addressed.Notification
	n.ID = flow.DeriveID("digest", last.Addressed.Subscription, start.UTC().Format(time.RFC3339Nano), first.Notification.ID, n.ID)
	n.Type, n.Change = pipeline.NotificationTypeDigest, ""
	n.Diffs, n.Items, n.Truncated, n.Omitted = []pipeline.Diff{}, nil, false, 0
	for _, p := range items {
		i := p.Addressed.Notification
		n.Diffs = append(n.Diffs, i.Diffs...)
		n.Truncated = n.Truncated || i.Truncated
		n.Omitted += i.Omitted
		n.Items = append(n.Items, pipeline.Item{
			ID: i.ID, Time: i.Time, Version: i.Version, Title: i.Title, Change: i.Change, Diffs: len(i.Diffs), Truncated: i.Truncated, Omitted: i.Omitted,
		})
	}
	last.Addressed.Notification, last.Addressed.Digest = n, nil
	return last
}
