package vokter

import (
	"context"
	"fmt"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// Explain says what the last checks of the page of url found, whom its last changes told,
// how the deliveries ended, and what became of each keyword in the last change of its
// document: of the clients and keywords that f selects. It waits until the Router is at
// work. It fails once Run has ended, where url is no URL, with a *Refusal of CodeNotFound
// where the page is neither watched nor expired, with ErrElsewhere where another process looks
// after it, and where the store cannot be read.
func (r *Router) Explain(ctx context.Context, url string, f ExplainFilter) (Explanation, error) {
	e, err := r.explain(ctx, url, f)
	return e, r.unlessClosing(err)
}

func (r *Router) explain(ctx context.Context, url string, f ExplainFilter) (Explanation, error) {
	e := Explanation{Checks: []CheckInfo{}, Changes: []ChangeInfo{}, Keywords: []KeywordInfo{}}
	if err := r.readable(ctx); err != nil {
		return e, err
	}
	page, err := pipeline.CanonicalURL(url)
	if err != nil {
		return e, err
	}
	if err := r.here(page); err != nil {
		return e, err
	}
	st := r.transport.State(flow.GroupIndex, page)
	var ok bool
	e.Page, ok, err = inspect(page, st)
	switch {
	case err != nil:
		return e, err
	case !ok:
		return e, &pipeline.Refusal{Code: pipeline.CodeNotFound, Message: fmt.Sprintf("%s is not watched", page)}
	case !e.Page.only(f.Client):
		return e, &pipeline.Refusal{Code: pipeline.CodeNotFound, Message: fmt.Sprintf("%s is not watched for client %q", page, f.Client)}
	}
	checks, err := index.History(st)
	if err != nil {
		return e, err
	}
	if len(checks) > 0 && checks[0].Check == e.Page.Checks {
		e.Page.LastCheck = checks[0].Time // the page knows when it was asked for
	}
	for _, c := range checks {
		e.Checks = append(e.Checks, CheckInfo(c))
	}
	records, err := match.History(r.transport.State(flow.GroupMatch, page))
	if err != nil {
		return e, err
	}
	for _, c := range records {
		info, err := r.change(c, f)
		if err != nil {
			return e, err
		}
		e.Changes = append(e.Changes, info)
	}
	err = r.keywords(ctx, &e, st, records, f)
	return e, err
}

// change returns what rec says to those whom f selects, and what became of it.
func (r *Router) change(rec match.ChangeRecord, f ExplainFilter) (ChangeInfo, error) {
	c := ChangeInfo{
		ID: rec.ID, Document: rec.Document, Version: rec.Version, Check: rec.Check, Time: rec.Time, Expired: rec.Expired,
		Matches: []MatchInfo{}, Omitted: rec.Omitted,
	}
	for _, m := range rec.Matches {
		if f.Client != "" && m.Client != f.Client ||
			f.Keyword != "" && rec.Expired == "" && !slices.Contains(m.Keywords, f.Keyword) {
			continue
		}
		info := MatchInfo{
			Notification: m.Notification, Client: m.Client, Keywords: append([]string{}, m.Keywords...),
			Sink: m.Receiver.Sink, Target: m.Receiver.Target,
		}
		if err := r.delivery(&info, m.Receiver); err != nil {
			return c, err
		}
		c.Matches = append(c.Matches, info)
	}
	return c, nil
}

// delivery fills in what became of the notification m at a receiver.
func (r *Router) delivery(m *MatchInfo, to pipeline.Receiver) error {
	if !r.transport.Owns(to.ID()) {
		m.Delivery = DeliveryElsewhere
		return nil
	}
	known, ok, err := sinks.Known(r.transport.State(flow.GroupDelivery, to.ID()), m.Notification)
	if err != nil {
		return err
	}
	m.Attempts, m.Reason, m.Time = known.Attempts, known.Reason, known.Time
	if known.State == sinks.RecordCollected {
		m.Delivery = DeliveryDigest
		return nil
	}
	m.Digest = known.In
	switch {
	case !ok:
		m.Delivery = DeliveryForgotten
	case known.State == sinks.RecordDelivered:
		m.Delivery = DeliveryDelivered
	case known.State == sinks.RecordDead:
		m.Delivery = DeliveryDead
	case known.State == sinks.RecordDropped:
		m.Delivery = DeliveryDropped
	default:
		m.Delivery = DeliveryPending
	}
	return nil
}
