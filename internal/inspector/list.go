package inspector

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/stages/index"
)

// List returns the pages that are watched or expired, as far as f selects them, and their
// receivers. Without a URL, client or tag in f it adds all other receivers with notifications or dead
// letters, and with f.Sinks the sinks named in configured.
//
// The pipeline may run meanwhile: each page is as it was at some moment during the call. Pages and
// receivers that other processes own are left out. List fails with [ErrElsewhere] where f.URL is
// such a page, where f.URL is not a URL, and where the store cannot be read.
func List(ctx context.Context, s Store, f inspect.ListFilter, configured []string) (inspect.Listing, error) {
	l := inspect.Listing{Pages: []inspect.Page{}, Receivers: []inspect.Receiver{}}
	var err error
	if l.Pages, _, err = Pages(ctx, s, f); err != nil {
		return l, err
	}
	l.Receivers, err = selectReceivers(s, l.Pages, f, configured)
	return l, err
}

// Receivers returns the receivers of List. Without a URL, client or tag in f it reads no page, so that it
// leaves out receivers without a notification or dead letter that no sink of configured is.
func Receivers(ctx context.Context, s Store, f inspect.ListFilter, configured []string) ([]inspect.Receiver, error) {
	var pages []inspect.Page
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
func Pages(ctx context.Context, s Store, f inspect.ListFilter) (pages []inspect.Page, next string, err error) {
	pages = []inspect.Page{}
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
		if url != "" && !matchesURL(f, url) { // an empty one says that the iteration failed
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
func matchesURL(f inspect.ListFilter, url string) bool {
	return f.Contains == "" || strings.Contains(strings.ToLower(url), strings.ToLower(f.Contains))
}

// appendSelected appends the page with the state st to pages if f selects it.
func appendSelected(pages []inspect.Page, url string, st flow.State, f inspect.ListFilter) ([]inspect.Page, error) {
	if f.State != "" {
		if p, err := index.Load(st); err != nil || !mayBeInState(p, f.State) {
			return pages, err
		}
	}
	p, ok, err := loadPage(url, st)
	if err == nil && f.Tree {
		err = addTrees(&p, st)
	}
	if err != nil || !ok || !keepClients(&p, f.Client, f.Clients) || !keepTagged(&p, f.Tag) || f.State != "" && p.State != f.State {
		return pages, err
	}
	return append(pages, p), nil
}

// keepClients removes the subscriptions of clients other than client, which is empty for any, and those of
// clients that are not in clients, which is nil for all. In the latter case it also removes the
// documents of other clients. It reports whether p is still selected.
func keepClients(p *inspect.Page, client string, clients []string) bool {
	if client == "" && clients == nil {
		return true
	}
	p.Subscriptions = slices.DeleteFunc(p.Subscriptions, func(s inspect.Subscription) bool {
		return client != "" && s.Client != client || clients != nil && !slices.Contains(clients, s.Client)
	})
	if clients != nil {
		p.Keep = nil
		p.Documents = slices.DeleteFunc(p.Documents, func(d inspect.Document) bool { return !hasSubscriptionTo(p, d.ID) })
	}
	return len(p.Subscriptions) > 0
}

// keepTagged removes the subscriptions without tag, unless it is empty. It reports whether p is still
// selected.
func keepTagged(p *inspect.Page, tag string) bool {
	if tag == "" {
		return true
	}
	p.Subscriptions = slices.DeleteFunc(p.Subscriptions, func(s inspect.Subscription) bool { return !slices.Contains(s.Tags, tag) })
	return len(p.Subscriptions) > 0
}

// hasSubscriptionTo reports whether a subscription in p is to the document with this ID.
func hasSubscriptionTo(p *inspect.Page, document string) bool {
	return slices.ContainsFunc(p.Subscriptions, func(s inspect.Subscription) bool { return s.Document == document })
}

// mayBeInState reports whether a page may be in a state. It needs no more than p to say so.
func mayBeInState(p index.Page, state string) bool {
	switch state {
	case inspect.StateFailing:
		return p.Incarnation != "" && !p.Rests() && isFailing(p) && p.DormantSince.IsZero()
	case inspect.StateDormant:
		return !p.DormantSince.IsZero()
	case inspect.StateActive:
		return p.Incarnation != "" && !p.Rests() && !isFailing(p)
	}
	return p.Incarnation == "" || p.Rests()
}

// isFailing reports whether the last check of p failed, or did not find a document that somebody watches.
func isFailing(p index.Page) bool {
	return p.Failures > 0 || p.Busy > 0 || p.LacksDocument()
}

// selectReceivers returns the receivers that the subscriptions of pages name. Where f selects all pages
// it adds those with notifications or dead letters, and with f.Sinks those of the configured sinks.
func selectReceivers(s Store, pages []inspect.Page, f inspect.ListFilter, configured []string) ([]inspect.Receiver, error) {
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
			if _, err := delivery.Load(st); err != nil {
				return nil, err
			}
			known[id] = true
		}
		for id, st := range s.States(flow.GroupDead, "") {
			for l, err := range delivery.Letters(st) {
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
	infos := make([]inspect.Receiver, 0, len(known))
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
func loadReceiver(s Store, id string) (inspect.Receiver, error) {
	info := inspect.Receiver{Sink: id, State: inspect.StateActive}
	q, err := delivery.Load(s.State(flow.GroupDelivery, id))
	if err != nil {
		return info, err
	}
	if info.Dead, err = delivery.CountLetters(s.State(flow.GroupDead, id)); err != nil {
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
		info.State, info.Since, info.Reason = inspect.StateExpired, q.ExpiredSince, q.ExpiredReason
	case q.Failures > 0:
		info.State, info.Since, info.Reason = inspect.StateFailing, q.FailingSince, q.Reason
	case q.Limited():
		info.State, info.Since, info.Reason = inspect.StateLimited, q.LimitedSince, q.LimitReason
	}
	if info.Pending > 0 {
		info.NextAttempt = q.Due
	}
	return info, nil
}
