package match

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// handleOutage tells the clients of o, from at on: each once at each of its receivers. The ID of a notification names
// the smallest incarnation of the client's subscriptions that are told and name the receiver, so that cancelling that
// subscription withdraws it. It returns false if there are more.
func (p *Processor) handleOutage(tx flow.Tx, key string, o *flow.Outage, at *progress) (done bool, err error) {
	st := tx.State(key)
	all, err := toldRecords(st, o)
	if err != nil {
		return false, err
	}
	if len(all) == 0 {
		return true, nil
	}
	b := batch{p: p, tx: tx, record: &at.Record}
	var client string
	told := map[toldAt]bool{}
	for _, next := range candidatesAfter(all, at.After) {
		if next.client != client {
			if b.full() {
				return false, nil
			}
			client = next.client
			clear(told)
		}
		s, err := readRecord(st, next.recordName)
		if err != nil {
			return false, err
		}
		reason := outageReason(s, o)
		if at.After == "" {
			at.Record = ChangeRecord{Time: o.Time, Status: s.Tell, Reason: reason}
		}
		at.After = next.sortKey
		n := pipeline.Notification{
			Status: s.Tell, URL: s.Subscription.URL, Diffs: []pipeline.Diff{}, Type: pipeline.NotificationType, Since: o.Since,
			Time: o.Time, Client: client, Title: s.Subscription.Title, Tags: s.Subscription.Tags, Reason: reason, Severity: s.Subscription.Severity, Channel: s.Subscription.Channel,
		}
		for _, to := range s.Subscription.Receivers() {
			if told[toldAt{s.Tell, to}] {
				continue
			}
			told[toldAt{s.Tell, to}] = true
			n.ID = flow.OutageID(s.Tell, *o, s.Incarnation, to.Sink)
			if err := b.send(s, to, n, nil); err != nil {
				return false, err
			}
		}
	}
	for _, c := range all {
		if err := st.Delete(c.recordName); err != nil {
			return false, err
		}
	}
	return true, addToHistory(st, at.Record)
}

// toldAt is what a client was told, and where.
type toldAt struct {
	status string
	to     pipeline.Receiver
}

// toldRecords returns the records whose clients o tells, by client and then by incarnation.
func toldRecords(st flow.State, o *flow.Outage) ([]candidate, error) {
	var all []candidate
	for n, v := range st.Scan(stateName(kindTell, o.Incarnation, "")) {
		if v.Err != nil {
			return nil, v.Err
		}
		var s flow.Stamped
		if err := decodeValue(v.Bytes, &s); err != nil {
			return nil, err
		}
		if s.Stamp < o.First || s.Stamp > o.Stamp {
			continue
		}
		client := s.Subscription.WithDefaults().Client
		all = append(all, candidate{sortKey: stateName(client, s.Incarnation), client: client, recordName: n})
	}
	slices.SortFunc(all, candidate.compare)
	return all, nil
}

// outageReason says in words for the user why the client of s is told.
func outageReason(s *flow.Stamped, o *flow.Outage) string {
	last := cmp.Or(o.Reason, o.Class)
	switch {
	case s.Tell == pipeline.StatusRecovered && o.Failures == 0: // others were told during a pause of this client
		return fmt.Sprintf("it answers again; you were told %s ago that it does not", awayFor(o.Time.Sub(o.Since)))
	case s.Tell == pipeline.StatusRecovered:
		return fmt.Sprintf("it answers again after %s; %d checks in a row had failed", awayFor(o.Time.Sub(o.Since)), o.Failures)
	case s.Tell == pipeline.StatusExpired:
		return fmt.Sprintf("given up after %s; %d checks in a row failed, the last one: %s", awayFor(o.Time.Sub(o.Since)), o.Failures, last)
	case s.End != "":
		return fmt.Sprintf("given up after %d failed checks in a row; the last one: %s", o.Failures, last)
	}
	return fmt.Sprintf("%d checks in a row failed, so it is checked ever more rarely; the last one: %s", o.Failures, last)
}

// awayFor returns d in words for the user, such as 2m10s, 3h20m or 2d4h.
func awayFor(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Hour:
		return max(d.Round(time.Second), 0).String()
	case d < 2*day:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}
