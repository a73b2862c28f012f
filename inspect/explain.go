package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/sinks"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// Explain says what the last checks of the page of url found, which notifications its last changes
// made, how their deliveries ended, and whether each keyword matched in the last change of its
// document: for the clients and keywords that f selects. It compares texts again and may take some
// seconds of computing. It fails where url is no URL, with a *pipeline.Refusal of CodeNotFound
// where the page is neither watched nor expired, with [ErrElsewhere] where another process owns
// it, and where the store cannot be read.
func Explain(ctx context.Context, s Store, languages *text.Languages, url string, f ExplainFilter) (Explanation, error) {
	e := Explanation{Checks: []Check{}, Changes: []Change{}, Keywords: []Keyword{}}
	page, err := pipeline.CanonicalURL(url)
	if err != nil {
		return e, err
	}
	if err := owned(s, page); err != nil {
		return e, err
	}
	st := s.State(flow.GroupIndex, page)
	var ok bool
	e.Page, ok, err = load(page, st)
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
		e.Checks = append(e.Checks, Check(c))
	}
	records, err := match.History(s.State(flow.GroupMatch, page))
	if err != nil {
		return e, err
	}
	for _, c := range records {
		info, err := change(s, c, f)
		if err != nil {
			return e, err
		}
		e.Changes = append(e.Changes, info)
	}
	err = e.addKeywords(ctx, languages, st, records, f)
	return e, err
}

// change returns the notifications of one change that f selects, and how their deliveries ended.
func change(s Store, rec match.ChangeRecord, f ExplainFilter) (Change, error) {
	c := Change{
		ID: rec.ID, Document: rec.Document, Version: rec.Version, Check: rec.Check, Time: rec.Time, Expired: rec.Expired,
		Matches: []Match{}, Omitted: rec.Omitted,
	}
	for _, m := range rec.Matches {
		if f.Client != "" && m.Client != f.Client ||
			f.Keyword != "" && rec.Expired == "" && !slices.Contains(m.Keywords, f.Keyword) {
			continue
		}
		info := Match{
			Notification: m.Notification, Client: m.Client, Keywords: append([]string{}, m.Keywords...),
			Sink: m.Receiver.Sink,
		}
		if err := info.addDelivery(s, m.Receiver); err != nil {
			return c, err
		}
		c.Matches = append(c.Matches, info)
	}
	return c, nil
}

// addDelivery fills in how the delivery of m to a receiver ended.
func (m *Match) addDelivery(s Store, to pipeline.Receiver) error {
	if !s.Owns(to.ID()) {
		m.Delivery = DeliveryElsewhere
		return nil
	}
	known, ok, err := sinks.Known(s.State(flow.GroupDelivery, to.ID()), m.Notification)
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
