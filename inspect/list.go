package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/sinks"
	"github.com/vokter/vokter/stages/index"
)

// List returns the pages that are watched or expired, as far as f selects them, and their
// receivers. Without a URL, client or tag in f it adds all other receivers with notifications or dead
// letters, and with f.Sinks the sinks named in configured.
//
// The pipeline may run meanwhile: each page is as it was at some moment during the call. Pages and
// receivers that other processes own are left out. List fails with [ErrElsewhere] where f.URL is
// such a page, where f.URL is not a URL, and where the store cannot be read.
func List(ctx context.Context, s Store, f ListFilter, configured []string) (Listing, error) {
	l := Listing{Pages: []Page{}, Receivers: []Receiver{}}
	var err error
	if l.Pages, _, err = Pages(ctx, s, f); err != nil {
		return l, err
	}
	l.Receivers, err = selectReceivers(s, l.Pages, f, configured)
	return l, err
}

// Receivers returns the receivers of List. Without a URL, client or tag in f it reads no page, so that it
// leaves out receivers without a notification or dead letter that no sink of configured is.
func Receivers(ctx context.Context, s Store, f ListFilter, configured []string) ([]Receiver, error) {
	var pages []Page
	if f.URL+f.Client+f.Tag != "" {
		var err error
		if pages, _, err = Pages(ctx, s, f); err != nil {
			return nil, err
		}
	}
	return selectReceivers(s, pages, f, configured)
}

// Pages returns the pages that f selects, in the order of their URLs, as List does. If there may be
// more than f.Limit, next is the value of f.After with which the list goes on; otherwise it is
// empty. With a Limit one call looks at 400 to 4,000 pages at most, so that it may return fewer pages than
// there are, or none, with a next.
func Pages(ctx context.Context, s Store, f ListFilter) (pages []Page, next string, err error) {
	pages = []Page{}
	if f.URL != "" {
		page, err := pageurl.Canonical(f.URL)
		if err != nil {
			return pages, "", err
		}
		if err := checkOwned(s, page); err != nil {
			return pages, "", err
		}
		if page <= f.After {
			return pages, "", nil
		}
		pages, err = appendSelected(pages, page, s.State(flow.GroupIndex, page), f)
		return pages, "", err
	}
	looked, last := 0, "" // how many pages were read, and the URL of the last one
	for url, st := range s.States(flow.GroupIndex, f.After) {
		if err := ctx.Err(); err != nil {
			return pages, "", context.Cause(ctx)
		}
		if f.Limit > 0 && (len(pages) == f.Limit || looked >= maxURLsRead) {
			return pages, last, nil
		}
		last = url
		if url != "" && !f.matchesURL(url) { // an empty one says that the iteration failed
			looked++
			continue
		}
		looked += pageCost
		if pages, err = appendSelected(pages, url, st, f); err != nil {
			return pages, "", err
		}
	}
	return pages, "", nil
}

// maxURLsRead is how many URLs one call of Pages with a Limit looks at. A page whose URL matches counts
// as pageCost URLs, because its state is read.
const (
	maxURLsRead = 4000
	pageCost    = 10
)

// matchesURL reports whether the URL of a page contains what f asks for. Case does not count.
func (f ListFilter) matchesURL(url string) bool {
	return f.Contains == "" || strings.Contains(strings.ToLower(url), strings.ToLower(f.Contains))
}

// appendSelected appends the page with the state st to pages if f selects it.
func appendSelected(pages []Page, url string, st flow.State, f ListFilter) ([]Page, error) {
	if f.State != "" {
		if p, err := index.Load(st); err != nil || !mayBeInState(p, f.State) {
			return pages, err
		}
	}
	p, ok, err := loadPage(url, st)
	if err == nil && f.Sketches {
		err = p.addSketches(st)
	}
	if err == nil && f.Tree {
		err = p.addTrees(st)
	}
	if err != nil || !ok || !p.keepClients(f.Client, f.Clients) || !p.keepTagged(f.Tag) || f.State != "" && p.State != f.State {
		return pages, err
	}
	return append(pages, p), nil
}

// keepClients removes the subscriptions of clients other than client, which is empty for any, and those of
// clients that are not in clients, which is nil for all. In the latter case it also removes the
// documents of other clients. It reports whether p is still selected.
func (p *Page) keepClients(client string, clients []string) bool {
	if client == "" && clients == nil {
		return true
	}
	p.Subscriptions = slices.DeleteFunc(p.Subscriptions, func(s Subscription) bool {
		return client != "" && s.Client != client || clients != nil && !slices.Contains(clients, s.Client)
	})
	if clients != nil {
		p.Keep = nil
		p.Documents = slices.DeleteFunc(p.Documents, func(d Document) bool { return !p.hasSubscriptionTo(d.ID) })
	}
	return len(p.Subscriptions) > 0
}

// keepTagged removes the subscriptions without tag, unless it is empty. It reports whether p is still
// selected.
func (p *Page) keepTagged(tag string) bool {
	if tag == "" {
		return true
	}
	p.Subscriptions = slices.DeleteFunc(p.Subscriptions, func(s Subscription) bool { return !slices.Contains(s.Tags, tag) })
	return len(p.Subscriptions) > 0
}

// hasSubscriptionTo reports whether a subscription in p is to the document with this ID.
func (p *Page) hasSubscriptionTo(document string) bool {
	return slices.ContainsFunc(p.Subscriptions, func(s Subscription) bool { return s.Document == document })
}

// mayBeInState reports whether a page may be in a state. It needs no more than p to say so.
func mayBeInState(p index.Page, state string) bool {
	switch state {
	case StateFailing:
		return p.Incarnation != "" && !p.Rests() && isFailing(p) && p.DormantSince.IsZero()
	case StateDormant:
		return !p.DormantSince.IsZero()
	case StateActive:
		return p.Incarnation != "" && !p.Rests() && !isFailing(p)
	}
	return p.Incarnation == "" || p.Rests()
}

// isFailing reports whether the last check of p failed, or did not find a document that somebody watches.
func isFailing(p index.Page) bool {
	return p.Failures > 0 || p.Busy > 0 || p.LacksDocument()
}

// loadPage returns the page with the state st. It returns ok false where the page is neither watched
// nor expired.
func loadPage(page string, st flow.State) (info Page, ok bool, err error) {
	p, err := index.Load(st)
	if err != nil {
		return info, false, err
	}
	info = Page{
		URL: page, State: StateActive, Keep: p.Keep, Pushed: p.Incarnation != "" && !p.Fetched() && !p.Rests(), Checks: p.Check, LastCheck: p.Asked, NextCheck: nextCheck(p),
		Failures: p.Failures, Documents: []Document{}, Subscriptions: []Subscription{},
	}
	if err := info.addSubscriptions(st); err != nil {
		return info, false, err
	}
	switch {
	case p.Rests():
		if err = info.addDocuments(p, st); err == nil {
			err = info.addExpiry(p, st)
		}
	case p.Incarnation != "":
		if err = info.addDocuments(p, st); err == nil {
			err = info.addFailures(p, st)
		}
	case p.Expiry != nil || len(info.Subscriptions) > 0:
		err = info.addExpiry(p, st)
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
func (p *Page) addDocuments(page index.Page, st flow.State) error {
	for _, d := range page.Documents {
		words := slices.ContainsFunc(p.Subscriptions, func(s Subscription) bool {
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
func (p *Page) addFailures(page index.Page, st flow.State) error {
	if !isFailing(page) && page.Open == nil && page.Fetched() {
		return nil
	}
	checks, err := index.History(st)
	if err != nil {
		return err
	}
	if page.Open != nil || !page.Fetched() {
		p.setLastCheck(checks)
	}
	if !isFailing(page) {
		return nil
	}
	p.State, p.Since, p.GiveUp = StateFailing, page.FailedSince, page.GiveUpAt
	if !page.DormantSince.IsZero() {
		p.State = StateDormant
	}
	for _, c := range checks {
		if c.Result != flow.OutcomeFailed {
			break
		}
		if p.Reason == "" {
			p.Reason = c.Reason
		}
		if page.FailedSince.IsZero() {
			p.Since = c.Time // the host was too busy, which does not count
		}
	}
	return nil
}

// setLastCheck sets the last check of p to the first of checks, which are the newest first.
func (p *Page) setLastCheck(checks []index.CheckRecord) {
	p.Checks, p.LastCheck = 0, time.Time{}
	if len(checks) > 0 {
		p.Checks, p.LastCheck = checks[0].Check, checks[0].Time
	}
}

// addExpiry fills in why and when the page expired or was paused, or the last of its subscriptions.
func (p *Page) addExpiry(page index.Page, st flow.State) error {
	p.State, p.Failures = StateExpired, 0
	if page.Expiry == nil && !slices.ContainsFunc(p.Subscriptions, func(s Subscription) bool { return s.State != StatePaused }) {
		p.State = StatePaused
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
	p.setLastCheck(checks)
	return err
}

// addSketches fills in the sketches of the documents.
func (p *Page) addSketches(st flow.State) error {
	for i := range p.Documents {
		s, ok, err := index.LoadSketch(st, p.Documents[i].ID)
		if err != nil {
			return err
		}
		if ok && p.Documents[i].TextHash != "" {
			p.Documents[i].Sketch = s.Pack()
		}
	}
	return nil
}

// describeDocument returns what a list says of d. words says that a subscription is not told of places that are
// restless in their words.
func describeDocument(d index.Document, st flow.State, words bool) (Document, error) {
	doc := Document{ID: d.ID, View: d.View, State: StateActive, TextHash: d.TextHash}
	switch {
	case d.GoneSince.IsZero():
	case d.GoneClass == pipeline.FailReplaced:
		doc.State = StatePageReplaced
	default:
		doc.State = StateSelectorGone
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
		return doc, doc.addRestless(d, st, v, words)
	}
	return doc, nil
}

// maxPlaces is how many restless places of a document are shown.
const maxPlaces = 5

// addRestless fills in the restless places of d, whose current version is v.
func (doc *Document) addRestless(d index.Document, st flow.State, v index.StoredVersion, words bool) error {
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
func (p *Page) addSubscriptions(st flow.State) error {
	standing, err := index.Subscriptions(st)
	if err != nil {
		return err
	}
	for _, s := range standing {
		p.Subscriptions = append(p.Subscriptions, describeSubscription(s, StateActive))
	}
	expired, err := index.Expired(st)
	if err != nil {
		return err
	}
	for _, x := range expired {
		s := describeSubscription(x.Stamped, StateExpired)
		s.Since, s.Reason = x.Time, x.Reason
		if x.End == flow.EndPaused {
			s.State, s.Reason, s.PausedUntil = StatePaused, "", x.PausedUntil
		}
		p.Subscriptions = append(p.Subscriptions, s)
	}
	slices.SortFunc(p.Subscriptions, func(a, b Subscription) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Document, b.Document), cmp.Compare(a.State, b.State))
	})
	return nil
}

// describeSubscription returns what a list says of s.
func describeSubscription(s flow.Stamped, state string) Subscription {
	sub := Subscription{Subscription: s.Subscription.WithDefaults(), Document: s.Document, Origin: s.Origin, State: state, From: s.From}
	if s.Followed != nil {
		sub.FollowedFrom = s.Followed.Root
	}
	return sub
}

// addTrees fills in the linked pages of the subscriptions.
func (p *Page) addTrees(st flow.State) error {
	for i := range p.Subscriptions {
		s := &p.Subscriptions[i]
		if s.FollowedFrom != "" || s.State != StateActive {
			continue
		}
		var err error
		if s.Linked, s.Bounded, err = index.Tree(st, flow.Stamped{Page: p.URL, Document: s.Document, Subscription: s.Subscription}); err != nil {
			return err
		}
	}
	return nil
}

// selectReceivers returns the receivers that the subscriptions of pages name. Where f selects all pages
// it adds those with notifications or dead letters, and with f.Sinks those of the configured sinks.
func selectReceivers(s Store, pages []Page, f ListFilter, configured []string) ([]Receiver, error) {
	all := f.URL+f.Client+f.Tag == "" && f.Clients == nil
	known := make(map[string]bool)
	for _, p := range pages {
		for _, sub := range p.Subscriptions {
			for _, sink := range sub.Sinks {
				known[sink] = true
			}
		}
	}
	if all && f.Sinks {
		for _, name := range configured {
			known[name] = true
		}
	}
	if all {
		for id, st := range s.States(flow.GroupDelivery, "") {
			if _, err := sinks.Load(st); err != nil {
				return nil, err
			}
			known[id] = true
		}
		for id, st := range s.States(flow.GroupDead, "") {
			for l, err := range sinks.Letters(st) {
				if err != nil {
					return nil, err
				}
				if l.Addressed != nil { // otherwise it is the key of another message
					known[id] = true
				}
				break
			}
		}
	}
	infos := make([]Receiver, 0, len(known))
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if !s.Owns(id) {
			continue
		}
		info, err := loadReceiver(s, id)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// loadReceiver returns the receiver with the given ID.
func loadReceiver(s Store, id string) (Receiver, error) {
	info := Receiver{Sink: id, State: StateActive}
	q, err := sinks.Load(s.State(flow.GroupDelivery, id))
	if err != nil {
		return info, err
	}
	if info.Dead, err = sinks.CountLetters(s.State(flow.GroupDead, id)); err != nil {
		return info, err
	}
	info.Pending, info.Failures, info.Used = q.Pending(), q.Failures, q.Next > 0 || q.Windows.Open > 0 || info.Dead > 0
	info.Collected, info.NextDigest = q.Windows.Items, q.Windows.Due
	info.LastSuccess, info.LastFailure, info.LastError = q.LastSuccess, q.LastFailure, q.PastReason
	if q.Failures > 0 {
		info.LastError = q.Reason
	}
	switch {
	case q.Expired():
		info.State, info.Since, info.Reason = StateExpired, q.ExpiredSince, q.ExpiredReason
	case q.Failures > 0:
		info.State, info.Since, info.Reason = StateFailing, q.FailingSince, q.Reason
	case q.Limited():
		info.State, info.Since, info.Reason = StateLimited, q.LimitedSince, q.LimitReason
	}
	if info.Pending > 0 {
		info.NextAttempt = q.Due
	}
	return info, nil
}
