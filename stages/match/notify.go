package match

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// tell emits what c says to the subscriptions of t and notes it in r. It returns how many
// subscriptions are told.
func (p *Processor) tell(tx flow.Tx, c *pipeline.Change, t *table, r *ChangeRecord) (int, error) {
	told := 0
	for _, found := range t.matcher.Match(c) {
		s := t.records[found.ID]
		if c.Version <= s.From || c.Version > s.Until {
			continue
		}
		told++
		n := pipeline.Notification{
			Status: pipeline.StatusOK, URL: s.Subscription.URL, Diffs: found.Diffs, Type: pipeline.NotificationType, Time: c.Time,
			Client: s.Subscription.WithDefaults().Client, Version: c.Version, Title: c.Title, Language: c.Language, Change: c.ID,
			Truncated: found.Omitted > 0, Omitted: found.Omitted,
		}
		for _, to := range s.Subscription.Receivers() {
			n.ID = flow.NotificationID(c.ID, s.Incarnation, to.ID())
			if err := p.send(tx, s, to, n, s.Subscription.Digest, r); err != nil {
				return told, err
			}
		}
	}
	return told, nil
}

// timeOut tells each client of the page once at each receiver that it was given up: in the
// name of the smallest incarnation of those of its subscriptions that ended with the page
// and name that receiver, so that a withdrawal of it takes this back as well.
func (p *Processor) timeOut(tx flow.Tx, st flow.State, e *flow.Ended) error {
	over, err := expiredRecords(st, e.Incarnation)
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("given up after %d failed checks in a row; the last one: %s", e.Expiry.Failures, cmp.Or(e.Expiry.Reason, e.Expiry.Class))
	r := ChangeRecord{Time: e.Expiry.Time, Expired: reason}
	type ear struct {
		client   string
		receiver pipeline.Receiver
	}
	told := map[ear]bool{}
	for _, s := range over {
		client := s.Subscription.WithDefaults().Client
		n := pipeline.Notification{
			Status: pipeline.StatusTimeout, URL: s.Subscription.URL, Diffs: []pipeline.Diff{}, Type: pipeline.NotificationType,
			Time: e.Expiry.Time, Client: client, Reason: reason,
		}
		for _, to := range s.Subscription.Receivers() {
			if told[ear{client, to}] {
				continue
			}
			told[ear{client, to}] = true
			n.ID = flow.TimeoutID(e.Page, e.Incarnation, e.Expiry.Lineage, s.Incarnation, to.ID())
			if err := p.send(tx, s, to, n, nil, &r); err != nil {
				return err
			}
		}
	}
	return remember(st, r)
}

// expiredRecords returns the subscriptions that ended because the page was given up, by
// client and then by incarnation.
func expiredRecords(st flow.State, incarnation string) ([]*flow.Stamped, error) {
	var all []*flow.Stamped
	for _, v := range st.Scan(name(expired, incarnation, "")) {
		if v.Err != nil {
			return nil, v.Err
		}
		s := new(flow.Stamped)
		if err := get(v.Bytes, s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *flow.Stamped) int {
		return cmp.Or(cmp.Compare(a.Subscription.WithDefaults().Client, b.Subscription.WithDefaults().Client), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return all, nil
}

// send emits n, which s hears, to one receiver and notes it in r. It is collected there where
// digest says so.
func (p *Processor) send(tx flow.Tx, s *flow.Stamped, to pipeline.Receiver, n pipeline.Notification, digest *pipeline.Digest, r *ChangeRecord) error {
	out, err := flow.Addressed{Receiver: to, Document: s.Document, Subscription: s.Incarnation, Notification: n, Digest: digest}.Message()
	if err != nil {
		return err
	}
	tx.Emit(out)
	r.note(to, n)
	tx.OnCommit(func() {
		p.cfg.Observe.Note(flow.Observation{Kind: flow.KindNotification, Page: s.Page, Document: s.Document,
			URL: n.URL, ID: out.ID, N: len(n.Diffs), Time: n.Time})
	})
	return nil
}
