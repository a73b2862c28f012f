package delivery

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
)

// unitOfWork handles one message of a receiver, in a transaction.
type unitOfWork struct {
	d      *Delivery
	policy Policy
	tx     flow.Tx
	key    string
	now    time.Time
	st     state
	q      Queue
	// queueBefore is the Queue before the message.
	queueBefore Queue
	epoch       uint64
	// hasMarkers says that there are markers of cancelled subscriptions. Without it, none is read.
	hasMarkers bool
	// newPending is the notification that the message brought, if it is pending; its number is newSeq.
	// endedAttempt is the one whose result is handled. Neither is read from the state again.
	newPending   *pendingRecord
	newSeq       uint64
	endedAttempt Attempt
	// windowsDueStale says that Windows.Due must be read from the state again.
	windowsDueStale bool
	// expiredPages are the pages that were sent an ExpireCommand.
	expiredPages map[string]bool
	// receiving says how the receiver gets its notifications. route is set if it is a route.
	receiving pipeline.Receiving
	route     pipeline.RoutingSink
}

// cachedQueues is about how many bytes of queues Delivery.queues holds.
const cachedQueues = 16 << 20

func (d *Delivery) openReceiver(tx flow.Tx, key string) (*unitOfWork, error) {
	w := &unitOfWork{d: d, tx: tx, key: key, now: d.cfg.Now().Round(0).UTC(), st: state{tx.State(key)}}
	w.applySettings(d.live.Load())
	w.epoch = d.cfg.Epoch(key)
	var err error
	if w.q, err = d.loadQueue(w.st, key, w.epoch); err != nil {
		return w, err
	}
	w.hasMarkers = w.q.WithdrawnMarkers > 0
	if w.q.InFlight {
		if _, ok := d.pool.attempts.Find(key, w.q.Attempt, w.epoch); !ok {
			w.q.undoAttempt() // it went down with its process, or the receiver was another's since
		}
	}
	w.queueBefore = w.q
	return w, w.clampWindows()
}

// applyAndStore applies ev, the last event of the message, and stores the queue.
func (w *unitOfWork) applyAndStore(ev event) error {
	if w.windowsDueStale && w.q.Windows.Open > 0 {
		due, err := w.st.firstWindowEnd()
		if err != nil {
			return err
		}
		w.q.Windows.Due = due.UTC()
	}
	if err := w.apply(ev); err != nil {
		return err
	}
	if w.q == w.queueBefore {
		return nil
	}
	return w.storeQueue()
}

// loadQueue returns the queue in the state st of a receiver.
func (d *Delivery) loadQueue(st state, receiver string, epoch uint64) (q Queue, err error) {
	if q, ok := d.queues.Get(receiver, epoch); ok {
		return q, nil
	}
	_, err = st.read(nameQueue, &q)
	return q, err
}

// storeQueue stores the queue, or deletes one that says nothing.
func (w *unitOfWork) storeQueue() error {
	q := w.q
	if q.canForget() {
		q = Queue{}
	}
	w.d.queues.Put(w.tx, w.key, w.epoch, q, int64(1<<10+len(q.Reason)+len(q.PastReason)+len(q.LimitReason)+len(q.ExpiredReason)))
	if q.canForget() {
		return w.st.Delete(nameQueue)
	}
	return w.st.write(nameQueue, q)
}

// apply applies ev to the queue and carries out the actions that follow.
func (w *unitOfWork) apply(ev event) error {
	before := w.q
	var failed error
	q, acts := w.policy.apply(before, ev, func(seq uint64) bool {
		withdrawn, err := w.isWithdrawn(seq)
		failed = errors.Join(failed, err)
		return withdrawn
	})
	if failed != nil {
		return failed
	}
	w.q = q
	// This comes before the hand-over of an attempt, which must be known before it ends.
	w.tx.OnCommit(func() { w.d.pool.recordCommit(w.key, w.q) })
	w.logChanges(before, acts)
	var forget *pruneRecords
	for _, act := range acts {
		if p, ok := act.(pruneRecords); ok {
			forget = &p
		} else if err := w.execute(act); err != nil {
			return err
		}
	}
	if forget == nil {
		return nil
	}
	// A replay may bring back dead letters of a cancelled subscription while they are kept.
	pruned, err := w.st.prune(forget.Before, earlier(forget.Before, w.now.Add(-keepLetters)), w.q.Head)
	if err != nil {
		return err
	}
	if !pruned.MoreOld { // otherwise the next prune comes soon; scanning the notes can wait for it
		notes, err := w.st.pruneNotes(forget.Before)
		if err != nil {
			return err
		}
		w.q.HasNotes = notes
		pruned.OthersRemain = pruned.OthersRemain || notes
	}
	pruned.At = w.now
	return w.apply(pruned)
}

// execute carries out act, which is not a pruneRecords.
func (w *unitOfWork) execute(act action) error {
	switch act := act.(type) {
	case startAttempt:
		return w.startAttempt(act)
	case markDelivered:
		return w.finishPending(act.Seq, flow.KindDelivered, Record{State: RecordDelivered, Attempts: act.Attempts})
	case dropWithdrawn:
		return w.finishPending(act.Seq, flow.KindDropped, Record{State: RecordDropped, Attempts: act.Attempts})
	case moveToDead:
		return w.giveUp(act)
	case passToSinks:
		return w.passToSinks(act)
	case emitHealth:
		return w.emitHealth(act)
	case scheduleWake:
		if act.AtStart {
			w.tx.WakeAt(w.key, act.At, flow.AtStart)
		} else {
			w.tx.WakeAt(w.key, act.At)
		}
	}
	return nil
}

// isWithdrawn reports whether the subscription of a pending notification was cancelled.
func (w *unitOfWork) isWithdrawn(seq uint64) (bool, error) {
	if !w.hasMarkers {
		return false, nil
	}
	p, err := w.st.pending(seq)
	if err != nil {
		return false, err
	}
	return w.st.isWithdrawn(p.Addressed.Subscription)
}

// startAttempt begins an attempt. The notification must be durable before the receiver gets it: after
// a power failure the pipeline could make another one with the same ID.
func (w *unitOfWork) startAttempt(s startAttempt) error {
	w.tx.Sync()
	p, err := w.pending(s.Seq)
	if err != nil {
		return err
	}
	a := Attempt{Receiver: p.Addressed.Receiver, Number: s.Number}
	if err := w.addToAttempt(&a, s.Seq, p); err != nil {
		return err
	}
	if err := w.fillAttempt(&a, s.Seq+1, s.BatchLimit); err != nil {
		return err
	}
	f := &inFlightAttempt{Attempt: a, needsSlowSlot: s.AfterFailure}
	w.d.pool.attempts.Begin(w.key, s.Number, w.d.cfg.Epoch(w.key), f)
	w.tx.OnCommit(func() { w.d.handOver(f) })
	return nil
}

// maxBatch and maxBatchBytes limit the notifications of one attempt, however many its sink
// takes: all are held in memory, and one transaction applies the result.
const (
	maxBatch      = 100
	maxBatchBytes = 1 << 20
)

// pending returns the notification that is pending under the number seq.
func (w *unitOfWork) pending(seq uint64) (pendingRecord, error) {
	if w.newPending != nil && w.newSeq == seq {
		return *w.newPending, nil
	}
	return w.st.pending(seq)
}

// addToAttempt adds a notification, which is pending under the number seq, to an attempt.
func (w *unitOfWork) addToAttempt(a *Attempt, seq uint64, p pendingRecord) error {
	note := ""
	if w.q.HasNotes {
		var err error
		if note, err = w.st.noteOf(p.Addressed.Document, w.now.Add(-w.policy.withDefaults().Remember)); err != nil {
			return err
		}
	}
	a.Notifications = append(a.Notifications, p.Addressed.Notification)
	a.contexts = append(a.contexts, attemptContext{seq, p.Addressed.Document, note, p.Addressed.Subscription, p.Trace})
	return nil
}

// fillAttempt adds the pending notifications from seq on to an attempt, until it has limit, or as many
// as its sink takes at a time. It stops at the first whose subscription was cancelled.
func (w *unitOfWork) fillAttempt(a *Attempt, seq uint64, limit int) error {
	batch, _ := registry.BatchOf(w.d.cfg.sink(w.d.live.Load(), a.Receiver.Sink))
	limit = min(batch, maxBatch, limit)
	for bytes := 0; seq < w.q.Next && len(a.Notifications) < limit; seq++ {
		p, err := w.st.pending(seq)
		if err != nil {
			return err
		}
		if w.hasMarkers {
			if withdrawn, err := w.st.isWithdrawn(p.Addressed.Subscription); err != nil || withdrawn {
				return err
			}
		}
		if bytes += p.size; bytes > maxBatchBytes {
			return nil
		}
		if err := w.addToAttempt(a, seq, p); err != nil {
			return err
		}
	}
	return nil
}

// finishPending removes a pending notification, and records and reports what became of it.
func (w *unitOfWork) finishPending(seq uint64, kind string, r Record) error {
	a, tried := w.endedAttempt.addressed(seq)
	if !tried {
		p, err := w.st.pending(seq)
		if err != nil {
			return err
		}
		a = p.Addressed
	}
	w.observe(kind, a, r.Reason)
	r.Time = w.now
	return errors.Join(w.st.Delete(pendingName(seq)), w.st.setEnded(a.Notification.ID, r))
}

// giveUp gives up a notification: it emits a dead letter. If the receiver is expired, it tells the pages.
func (w *unitOfWork) giveUp(a moveToDead) error {
	p, err := w.st.pending(a.Seq)
	if err != nil {
		return err
	}
	n := p.Addressed.Notification
	letter := flow.DeadLetter{Reason: a.Reason, Time: w.now, Attempts: a.Attempts, Addressed: &p.Addressed}
	w.tx.Emit(letter.Message(n.ID, w.key, n.URL))
	if a.Expired {
		w.expirePage(n, n.URL)
		for _, i := range n.Items {
			w.expirePage(n, i.URL)
		}
	}
	return w.finishPending(a.Seq, flow.KindDead, Record{State: RecordDead, Attempts: a.Attempts, Reason: a.Reason})
}

// observe reports a notification to the observer; of a digest, each of its items. Health events
// are not reported.
func (w *unitOfWork) observe(kind string, a flow.Addressed, text string) {
	n := a.Notification
	if n.Type == pipeline.NotificationTypeHealth {
		return
	}
	items := n.Items
	var after time.Duration
	if len(items) == 0 {
		if kind == flow.KindDelivered {
			after = w.now.Sub(n.Time)
		}
		items = []pipeline.Item{{ID: n.ID, Diffs: len(n.Diffs)}}
	}
	main, document := n.URL, a.Document // without the rest of a, which is large
	w.tx.OnCommit(func() {
		for _, i := range items {
			url := cmp.Or(i.URL, main)
			w.d.cfg.Observe.Note(flow.Observation{
				Kind: kind, Page: canonicalURL(url), Document: document, URL: url, ID: i.ID, N: i.Diffs, Time: w.now, Sink: w.key, After: after, Text: text,
			})
		}
	})
}

// pageOf returns the canonical URL of n, or its URL if it has none.
func pageOf(n pipeline.Notification) string { return canonicalURL(n.URL) }

func canonicalURL(url string) string {
	page, err := pageurl.Canonical(url)
	if err != nil {
		return url
	}
	return page
}

// logSummary counts what a message did to the notifications of a receiver.
type logSummary struct {
	gaveUp, dropped, passed int
	// reason says why notifications were given up, degraded why they arrive in another way.
	reason, degraded string
	// needsOperator says that the failure does not go away without the operator.
	needsOperator bool
}

// logChanges logs the changes of the receiver after the commit.
func (w *unitOfWork) logChanges(before Queue, acts []action) {
	var h logSummary
	for _, act := range acts {
		switch act := act.(type) {
		case moveToDead:
			h.gaveUp++
			h.reason = act.Reason
		case dropWithdrawn:
			h.dropped++
		case passToSinks:
			h.passed++
		case emitHealth:
			switch act.Event {
			case pipeline.HealthReceiverDegraded:
				h.degraded = act.Reason
			case pipeline.HealthReceiverFailing:
				h.needsOperator = w.q.Failures < failingAfter
			}
		}
	}
	if before.healthy() && w.q.healthy() && h.gaveUp+h.dropped+h.passed == 0 && h.degraded == "" {
		return
	}
	w.tx.OnCommit(w.logFunc(h, before, w.q))
}

// logFunc returns the function that logs h, with the queue before and after the message. It copies the
// queues: most messages log nothing, and need no copy.
func (w *unitOfWork) logFunc(h logSummary, before, q Queue) func() {
	return func() {
		log := w.d.cfg.Logger.With("sink", w.key)
		if h.dropped > 0 {
			log.Info("notifications of cancelled subscriptions were dropped", "dropped", h.dropped)
		}
		if h.passed > 0 && w.route == nil {
			log.Warn("notifications go to the fallback", "fallback", w.receiving.Fallback, "passed_on", h.passed, "reason", q.Reason)
		}
		if h.degraded != "" {
			log.Warn("notifications arrive, but not as the configuration says", "reason", h.degraded)
		}
		switch {
		case q.Limited() && !before.Limited():
			log.Warn("a receiver limits how much it takes: what waits follows as it allows", "reason", q.LimitReason, "waiting", q.Pending(), "next", q.Due)
		case !q.Limited() && before.Limited():
			log.Info("nothing waits for the limit of a receiver any more", "limited_for", w.now.Sub(before.LimitedSince), "put_off", before.LimitedCount)
		}
		switch {
		case before.Failures > 0 && q.Failures == 0:
			log.Info("a receiver takes notifications again", "failed_for", w.now.Sub(before.FailingSince), "attempts", before.Failures)
		case q.Expired() && !before.Expired():
			log.Error("a receiver is expired: mend it, then resume its subscriptions and replay what was given up", "reason", q.ExpiredReason, "dead", h.gaveUp)
		case h.gaveUp > 0:
			log.Error("notifications were given up", "dead", h.gaveUp, "reason", h.reason)
		case q.Failures > before.Failures && q.Reason != before.Reason && h.needsOperator:
			log.Error("a receiver has to be mended: its notifications wait, and are tried again", "reason", q.Reason, "next", q.Due)
		case q.Failures > before.Failures && q.Reason != before.Reason:
			log.Warn("a delivery failed and will be tried again", "reason", q.Reason, "next", q.Due)
		}
	}
}

// storeNote stores the note that the attempt in flight has set for the document of a pending notification.
func (w *unitOfWork) storeNote(seq uint64, text *string) error {
	if text == nil {
		return nil
	}
	p, err := w.st.pending(seq)
	if err != nil {
		return err
	}
	w.q.schedulePrune(w.now, w.policy.withDefaults())
	w.q.HasNotes = true
	return w.st.setNote(p.Addressed.Document, strings.ToValidUTF8(*text, ""), w.now)
}

// eventKey returns what the IDs of events about the notification id are derived from. A receiver that was
// forgotten counts its attempts from one again, so KnownSince is part of it.
func (w *unitOfWork) eventKey(id string) string {
	return w.key + " " + w.q.KnownSince.Format(time.RFC3339Nano) + " " + id
}

// emitHealth emits a health event.
func (w *unitOfWork) emitHealth(t emitHealth) error {
	p, err := w.st.pending(t.Seq)
	if err != nil {
		return err
	}
	n := p.Addressed.Notification
	h := pipeline.Health{
		ID:    flow.HealthID(t.Event, w.eventKey(n.ID), w.q.Attempt),
		Event: t.Event, Time: w.now, Receiver: &p.Addressed.Receiver,
		Reason: t.Reason, Since: t.Since, Count: t.Count, Expired: t.Expired,
	}
	if t.Event == pipeline.HealthDeadLetter {
		h.URL = n.URL
	}
	w.tx.Emit(flow.HealthMessage(h))
	return nil
}

// expirePage tells the stage that owns the page url of n that its receiver has expired. It is
// called for each page of each notification that is given up.
func (w *unitOfWork) expirePage(n pipeline.Notification, url string) {
	page, err := pageurl.Canonical(url)
	if err != nil || n.Type == pipeline.NotificationTypeHealth || w.expiredPages[page] {
		return
	}
	if w.expiredPages == nil {
		w.expiredPages = make(map[string]bool)
	}
	w.expiredPages[page] = true
	body, err := json.Marshal(flow.ExpireCommand{URL: page, Receiver: w.key, Reason: w.q.ExpiredReason})
	if err != nil {
		panic(fmt.Sprintf("delivery: expire: %v", err)) // every field is encodable
	}
	w.tx.Emit(flow.Message{
		ID:    flow.DeriveID("expire", w.eventKey(n.ID), strconv.FormatUint(w.q.Attempt, 10), page),
		Topic: flow.TopicDocuments, Key: page, Type: flow.TypeExpire, Subject: page, Time: w.now,
		Header: map[string]string{"content-type": "application/json"}, Body: body,
	})
}
