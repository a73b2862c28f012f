package delivery

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// maxDigestBytes is the largest size of the items of a digest.
const maxDigestBytes = flow.MaxNotification

// Windows summarises the windows of a receiver, which collect digests: one for each
// subscription that wants digests, and for each group of the receiver, that has something to report.
type Windows struct {
	// Open is how many windows there are, Items how many notifications they hold.
	Open  int `json:"open,omitempty"`
	Items int `json:"items,omitempty"`
	// Due is when the first window ends. No window began after LatestStart.
	Due         time.Time `json:"due,omitzero"`
	LatestStart time.Time `json:"last,omitzero"`
	// DropReason is why the receiver expired while there were windows, which are given up for that;
	// empty if it did not.
	DropReason string `json:"over,omitempty"`
}

// window is the digest of one subscription, or a group, while it is collected. The zero window has
// no items.
type window struct {
	// Digest is the setting that came with the last item.
	Digest pipeline.Digest `json:"digest"`
	// Start is when the first item came, Due when the window ends.
	Start time.Time `json:"start"`
	Due   time.Time `json:"due"`
	// Items is the number of items, Bytes their stored size.
	Items int `json:"items"`
	Bytes int `json:"bytes"`
	// Page and Client are those of the subscription. A group has none.
	Page   string `json:"page"`
	Client string `json:"client"`
	// Group says that it collects a group of the receiver, which may be of many subscriptions.
	Group bool `json:"group,omitempty"`
}

// hasRoomFor reports whether one more item of that size may be added.
func (w window) hasRoomFor(size int) bool { return w.Items == 0 || w.Bytes+size <= maxDigestBytes }

// add returns the window with one more item of that size.
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

// isFull reports whether the window must end before Due.
func (w window) isFull() bool { return w.Items >= w.Digest.Items() || w.Bytes >= maxDigestBytes }

// clampStart corrects a window that began after at, because the clock was set back.
func (w window) clampStart(at time.Time) window {
	if w.Start.After(at) {
		w.Start, w.Due = at, w.Digest.End(at)
	}
	return w
}

// newDigest makes one notification of the items of a window that began at start. The same items
// always make the same notification.
func newDigest(start time.Time, items []pendingRecord) pendingRecord {
	first, last := items[0].Addressed, items[len(items)-1]
	n := last.Addressed.Notification
	n.ID = flow.DeriveID("digest", last.Addressed.Subscription, start.UTC().Format(time.RFC3339Nano), first.Notification.ID, n.ID)
	n.Type, n.Change, n.Value = pipeline.NotificationTypeDigest, "", nil
	n.Diffs, n.Items, n.Truncated, n.Omitted, n.Muting = []pipeline.Diff{}, nil, false, 0, nil
	edits := 0
	for _, p := range items {
		i := p.Addressed.Notification
		before := edits
		for _, d := range i.Diffs {
			if d.Edit > 0 {
				d.Edit += before
			}
			edits = max(edits, d.Edit)
			n.Diffs = append(n.Diffs, d)
		}
		n.Truncated = n.Truncated || i.Truncated
		n.Omitted += i.Omitted
		n.Muting = n.Muting.With(i.Muting)
		n.Items = append(n.Items, pipeline.Item{
			ID: i.ID, Time: i.Time, Version: i.Version, Title: i.Title, Change: i.Change, Value: i.Value, Diffs: len(i.Diffs), Truncated: i.Truncated, Omitted: i.Omitted,
		})
	}
	last.Addressed.Notification, last.Addressed.Digest = n, nil
	return last
}

// sortedWindows yields the elements of m in the order of the keys.
func sortedWindows(m map[string]window) iter.Seq2[string, window] {
	return func(yield func(string, window) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// flushBatch limits the digests that flushDue makes in one transaction. After flushBytes in all
// it makes no further one.
const (
	flushBatch = 100
	flushBytes = 2 << 20
)

// windowTarget is where a notification is collected.
type windowTarget struct {
	// window is the name of the window: the incarnation of a subscription, or that of a group.
	window string
	digest pipeline.Digest
	group  bool
}

// windowFor returns where a is collected. ok is false if it is delivered at once. replayed says that
// it is replayed.
func (w *unitOfWork) windowFor(a flow.Addressed, replayed bool) (into windowTarget, ok bool) {
	switch {
	case w.route != nil: // the sinks that it leads to collect
		return windowTarget{}, false
	case a.Digest != nil && a.Digest.Collects(w.now):
		return windowTarget{window: a.Subscription, digest: *a.Digest}, true
	case replayed:
		return windowTarget{}, false
	}
	digest := w.receiving.Digest()
	key, ok := w.receiving.Group(a.Notification)
	if !ok || !digest.Collects(w.now) {
		return windowTarget{}, false
	}
	return windowTarget{window: groupWindowName(key), digest: digest, group: true}, true
}

// collectIntoWindow adds a notification to a window.
func (w *unitOfWork) collectIntoWindow(p pendingRecord, into windowTarget) error {
	a := p.Addressed
	win, err := w.st.window(into.window)
	if err != nil {
		return err
	}
	item, err := encode(p)
	if err != nil {
		return err
	}
	if !win.hasRoomFor(len(item)) {
		if err := w.flush(into.window, win); err != nil {
			return err
		}
		win = window{}
	}
	before := win
	win = win.add(into.digest, w.now, len(item))
	if win.Group = into.group; !win.Group {
		win.Client = a.Notification.Client
		win.Page = pageOf(a.Notification)
	}
	if err := errors.Join(
		w.st.Set(windowItemName(into.window, before.Items), item),
		w.st.Set(nameRecord+a.Notification.ID, Record{State: RecordCollected, In: into.window}.encode()),
		w.st.setWindow(into.window, before, win),
	); err != nil {
		return err
	}
	ws := &w.q.Windows
	if before.Items == 0 {
		ws.Open++
	}
	ws.Items++
	if win.Start.After(ws.LatestStart) {
		ws.LatestStart = win.Start
	}
	if ws.Due.IsZero() || win.Due.Before(ws.Due) {
		ws.Due = win.Due
	}
	if win.isFull() || w.d.endingDigests.Load() {
		return w.flush(into.window, win)
	}
	return nil
}

// flush ends the window of that name. Its items become one pending notification. If the receiver is
// expired, the next event gives that up.
func (w *unitOfWork) flush(name string, win window) error {
	drop, dropReason := w.q.mustDropWindows(), w.q.Windows.DropReason
	items, err := w.removeWindow(name, win)
	if err != nil {
		return err
	}
	var digest pendingRecord
	if win.Group {
		if items, err = w.dropWithdrawnItems(items); err != nil || len(items) == 0 {
			return err
		}
		digest = newGroupDigest(name, win.Start, items)
	} else {
		digest = newDigest(win.Start, items)
	}
	for _, p := range items {
		if p.Addressed.Notification.ID == digest.Addressed.Notification.ID {
			continue // a group of one is the notification itself
		}

		if err := w.st.setEnded(p.Addressed.Notification.ID, Record{
			State: recordDigested, In: digest.Addressed.Notification.ID, Time: w.now,
		}); err != nil {
			return err
		}
	}
	if err := w.st.addPending(w.q.Next, digest); err != nil {
		return err
	}
	if drop {
		w.q.enqueue(w.now)
		w.q.DropTo, w.q.DropReason = w.q.Next, dropReason
		return nil
	}
	return w.apply(enqueued{At: w.now})
}

// dropWindow drops the window of a cancelled subscription.
func (w *unitOfWork) dropWindow(subscription string) error {
	win, err := w.st.window(subscription)
	if err != nil || win.Items == 0 {
		return err
	}
	items, err := w.removeWindow(subscription, win)
	if err != nil {
		return err
	}
	for _, p := range items {
		w.observe(flow.KindDropped, p.Addressed, "")
		if err := w.st.setEnded(p.Addressed.Notification.ID, Record{State: RecordDropped, Time: w.now}); err != nil {
			return err
		}
	}
	log := w.d.cfg.Logger.With("sink", w.key)
	w.tx.OnCommit(func() { log.Info("notifications of cancelled subscriptions were dropped", "dropped", len(items)) })
	return nil
}

// removeWindow removes a window and its items from the state, and returns the items.
func (w *unitOfWork) removeWindow(subscription string, win window) ([]pendingRecord, error) {
	items := make([]pendingRecord, win.Items)
	for i := range items {
		name := windowItemName(subscription, i)
		ok, err := w.st.read(name, &items[i])
		if err == nil && !ok {
			err = damaged(name, errors.New("it is missing"))
		}
		if err = errors.Join(err, w.st.Delete(name)); err != nil {
			return nil, err
		}
	}
	if err := w.st.setWindow(subscription, win, window{}); err != nil {
		return nil, err
	}
	ws := &w.q.Windows
	ws.Open--
	ws.Items -= win.Items
	if ws.Open == 0 {
		*ws = Windows{}
	}
	w.windowsDueStale = w.windowsDueStale || !win.Due.After(ws.Due)
	return items, nil
}

// flushDue ends the windows that are due, or all if the receiver is expired, as many as fit
// into one transaction. A window that became due while the process was not running may be looked at
// in quiet hours: it waits for their end.
func (w *unitOfWork) flushDue() error {
	by, ws := w.now, w.q.Windows
	switch {
	case w.q.mustDropWindows():
		by = time.Time{}
	case ws.Open == 0 || ws.DropReason != "" || w.now.Before(ws.Due):
		return nil
	}
	w.windowsDueStale = true
	due, err := w.st.dueWindows(by, flushBatch)
	if err != nil {
		return err
	}
	size := 0
	for _, subscription := range due {
		win, err := w.st.window(subscription)
		switch {
		case err != nil:
			return err
		case win.Items == 0:
			return damaged(nameWindow+subscription, errors.New("it is missing"))
		}
		if end := win.Digest.Quiet.End(w.now); end.After(w.now) && !by.IsZero() {
			after := win
			after.Due = end
			if err := w.st.setWindow(subscription, win, after); err != nil {
				return err
			}
			continue
		}
		if err := w.flush(subscription, win); err != nil {
			return err
		}
		if size += win.Bytes; size >= flushBytes {
			break
		}
	}
	return nil
}

// flushAll ends all windows.
func (w *unitOfWork) flushAll() error {
	if w.q.Windows.Open == 0 {
		return nil
	}
	open, err := w.st.windows()
	if err != nil {
		return err
	}
	for subscription, win := range sortedWindows(open) {
		if err := w.flush(subscription, win); err != nil {
			return err
		}
	}
	return nil
}

// flushBefore ends the windows whose items must be delivered before a, which goes into no
// digest: that of its subscription or, if its page was given up, all windows of its client
// for that page and all groups.
func (w *unitOfWork) flushBefore(a flow.Addressed) error {
	if w.q.Windows.Open == 0 {
		return nil
	}
	open := make(map[string]window)
	if a.Notification.TellsOutage() {
		var err error
		if open, err = w.st.windows(); err != nil {
			return err
		}
	} else {
		win, err := w.st.window(a.Subscription)
		if err != nil {
			return err
		}
		open[a.Subscription] = win
	}
	page := pageOf(a.Notification)
	for subscription, win := range sortedWindows(open) {
		same := subscription == a.Subscription || win.Group || win.Page == page && win.Client == a.Notification.Client
		if win.Items == 0 || !same {
			continue
		}
		if err := w.flush(subscription, win); err != nil {
			return err
		}
	}
	return nil
}

// clampWindows corrects the windows after the clock was set back.
func (w *unitOfWork) clampWindows() error {
	ws := &w.q.Windows
	if ws.Open == 0 || !ws.LatestStart.After(w.now) {
		return nil
	}
	open, err := w.st.windows()
	if err != nil {
		return err
	}
	for subscription, win := range sortedWindows(open) {
		if err := w.st.setWindow(subscription, win, win.clampStart(w.now)); err != nil {
			return err
		}
	}
	ws.LatestStart = w.now
	w.windowsDueStale = true
	return nil
}
