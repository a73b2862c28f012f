package inspector

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/index"
)

// loadPage returns the page with the state st. It returns ok false where the page is neither watched
// nor expired.
func loadPage(page string, st flow.State) (info inspect.Page, ok bool, err error) {
	p, err := index.Load(st)
	if err != nil {
		return info, false, err
	}
	info = inspect.Page{
		URL: page, State: inspect.StateActive, Keep: p.Keep, Pushed: p.Incarnation != "" && !p.Fetched() && !p.Rests(), Checks: p.Check, LastCheck: p.Asked, NextCheck: nextCheck(p),
		Failures: p.Failures, Documents: []inspect.Document{}, Subscriptions: []inspect.Subscription{},
	}
	if err := addSubscriptions(&info, st); err != nil {
		return info, false, err
	}
	switch {
	case p.Rests():
		if err = addDocuments(&info, p, st); err == nil {
			err = addExpiry(&info, p, st)
		}
	case p.Incarnation != "":
		if err = addDocuments(&info, p, st); err == nil {
			err = addFailures(&info, p, st)
		}
	case p.Expiry != nil || len(info.Subscriptions) > 0:
		err = addExpiry(&info, p, st)
	default:
		return info, false, nil
	}
	return info, true, err
}

// nextCheck returns when the next check of p is due. It returns zero where a check is being made,
// is due at once, or where none will be made.
func nextCheck(p index.Page) time.Time {
	at := p.NextDue()
	switch {
	case !p.Fetched() || p.Open != nil:
		return time.Time{}
	case p.Soon:
		at = time.Time{}
	case !p.Delayed.IsZero():
		at = p.Delayed
	}
	if p.NotBefore.After(at) {
		at = p.NotBefore
	}
	return at
}

// addDocuments fills in the documents of a page that is watched or paused.
func addDocuments(p *inspect.Page, page index.Page, st flow.State) error {
	for _, d := range page.Documents {
		words := slices.ContainsFunc(p.Subscriptions, func(s inspect.Subscription) bool {
			return s.Document == d.ID && s.Restless == pipeline.RestlessMute
		})
		doc, err := describeDocument(d, st, words)
		if err != nil {
			return err
		}
		p.Documents = append(p.Documents, doc)
	}
	return nil
}

// addFailures fills in the failures of a page that is watched.
func addFailures(p *inspect.Page, page index.Page, st flow.State) error {
	if !isFailing(page) && page.Open == nil && page.Fetched() {
		return nil
	}
	checks, err := index.History(st)
	if err != nil {
		return err
	}
	if page.Open != nil || !page.Fetched() {
		setLastCheck(p, checks)
	}
	if !isFailing(page) {
		return nil
	}
	p.State, p.Since, p.GiveUp = inspect.StateFailing, page.FailedSince, page.GiveUpAt
	if !page.DormantSince.IsZero() {
		p.State = inspect.StateDormant
	}
	for _, c := range checks {
		if c.Result != flow.OutcomeFailed {
			break
		}
		p.Reason = cmp.Or(p.Reason, c.Reason)
		if page.FailedSince.IsZero() {
			p.Since = c.Time // the host was too busy, which does not count
		}
	}
	return nil
}

// setLastCheck sets the last check of p to the first of checks, which are the newest first.
func setLastCheck(p *inspect.Page, checks []index.CheckRecord) {
	p.Checks, p.LastCheck = 0, time.Time{}
	if len(checks) > 0 {
		p.Checks, p.LastCheck = checks[0].Check, checks[0].Time
	}
}

// addExpiry fills in why and when the page expired or was paused, or the last of its subscriptions.
func addExpiry(p *inspect.Page, page index.Page, st flow.State) error {
	p.State, p.Failures = inspect.StateExpired, 0
	if page.Expiry == nil && !slices.ContainsFunc(p.Subscriptions, func(s inspect.Subscription) bool { return s.State != inspect.StatePaused }) {
		p.State = inspect.StatePaused
		for _, s := range p.Subscriptions {
			if !s.PausedUntil.IsZero() && (p.PausedUntil.IsZero() || s.PausedUntil.Before(p.PausedUntil)) {
				p.PausedUntil = s.PausedUntil
			}
		}
	}
	if e := page.Expiry; e != nil {
		p.Since, p.Reason, p.Failures, p.Keep = e.Time, e.Reason, e.Failures, e.Keep
	} else {
		for _, s := range p.Subscriptions { // its receivers expired, the last one last
			if s.Since.After(p.Since) {
				p.Since, p.Reason = s.Since, s.Reason
			}
		}
	}
	checks, err := index.History(st)
	setLastCheck(p, checks)
	return err
}

// describeDocument returns what a list says of d. words says that a subscription is not told of places that are
// restless in their words.
func describeDocument(d index.Document, st flow.State, words bool) (inspect.Document, error) {
	doc := inspect.Document{ID: d.ID, View: d.View, State: inspect.StateActive, TextHash: d.TextHash}
	switch {
	case d.GoneSince.IsZero():
	case d.GoneClass == pipeline.FailReplaced:
		doc.State = inspect.StatePageReplaced
	default:
		doc.State = inspect.StateSelectorGone
	}
	if d.TextHash == "" {
		return doc, nil // a document that returned has no version yet, but a number
	}
	v, ok, err := index.LoadVersion(st, d.ID, d.N)
	if err != nil || !ok {
		return doc, err
	}
	doc.Version, doc.Time, doc.Baseline, doc.Title, doc.ContentType = d.N, v.Time, v.Previous == 0, v.Title, v.ContentType
	doc.Language, doc.LanguageFrom = v.Language, v.LanguageFrom
	if d.View.Value != nil {
		content, err := unpackText(v, d.N)
		if err != nil {
			return doc, err
		}
		doc.Value = strings.TrimSpace(content)
	}
	if d.Restless > 0 {
		return doc, addRestless(&doc, d, st, v, words)
	}
	return doc, nil
}

// maxPlaces is how many restless places of a document are shown.
const maxPlaces = 5

// addRestless fills in the restless places of d, whose current version is v.
func addRestless(doc *inspect.Document, d index.Document, st flow.State, v index.StoredVersion, words bool) error {
	t, places, whole, err := index.LoadRestless(st, d.ID)
	if err != nil {
		return err
	}
	content, err := unpackText(v, d.N)
	if err != nil {
		return err
	}
	m := &pipeline.Muting{Places: places.Labels(content, maxPlaces), Count: len(places), Whole: whole}
	if words {
		rotating := t.RestlessWords(content)
		m = m.With(&rotating)
	}
	if !m.IsZero() {
		doc.Restless = m
	}
	return nil
}

// addSubscriptions fills in the subscriptions, active and expired.
func addSubscriptions(p *inspect.Page, st flow.State) error {
	standing, err := index.Subscriptions(st)
	if err != nil {
		return err
	}
	for _, s := range standing {
		p.Subscriptions = append(p.Subscriptions, describeSubscription(s, inspect.StateActive))
	}
	expired, err := index.Expired(st)
	if err != nil {
		return err
	}
	for _, x := range expired {
		s := describeSubscription(x.Stamped, inspect.StateExpired)
		s.Since, s.Reason = x.Time, x.Reason
		if x.End == flow.EndPaused {
			s.State, s.Reason, s.PausedUntil = inspect.StatePaused, "", x.PausedUntil
		}
		p.Subscriptions = append(p.Subscriptions, s)
	}
	slices.SortFunc(p.Subscriptions, func(a, b inspect.Subscription) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Document, b.Document), cmp.Compare(a.State, b.State))
	})
	return nil
}

// describeSubscription returns what a list says of s.
func describeSubscription(s flow.Stamped, state string) inspect.Subscription {
	sub := inspect.Subscription{Subscription: s.Subscription.WithDefaults(), Document: s.Document, Origin: s.Origin, State: state, From: s.From}
	if s.Followed != nil {
		sub.FollowedFrom = s.Followed.Root
	}
	return sub
}

// addTrees fills in the linked pages of the subscriptions.
func addTrees(p *inspect.Page, st flow.State) error {
	for i := range p.Subscriptions {
		s := &p.Subscriptions[i]
		if s.FollowedFrom != "" || s.State != inspect.StateActive {
			continue
		}
		linked, bounded, err := index.Tree(st, flow.Stamped{Page: p.URL, Document: s.Document, Subscription: s.Subscription})
		if err != nil {
			return err
		}
		s.Bounded = bounded
		for _, l := range linked {
			s.Linked = append(s.Linked, inspect.LinkedPage(l))
		}
	}
	return nil
}
