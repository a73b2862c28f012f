package vokter

import (
	"cmp"
	"maps"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// receivers returns the receivers that the subscriptions of pages name, and where f selects all
// pages every other one that delivery or the dead letters know.
func (r *Router) receivers(pages []PageInfo, f ListFilter) ([]ReceiverInfo, error) {
	all := f.URL == "" && f.Client == ""
	known := make(map[string]bool)
	for _, p := range pages {
		for _, s := range p.Subscriptions {
			for _, sink := range s.Sinks {
				known[pipeline.Receiver{Sink: sink}.ID()] = true
			}
		}
	}
	if all && f.Sinks {
		for name := range r.live.Load().Sinks {
			known[pipeline.Receiver{Sink: name}.ID()] = true
		}
	}
	if all {
		for id, st := range r.transport.States(flow.GroupDelivery) {
			if _, err := sinks.Load(st); err != nil {
				return nil, err
			}
			known[id] = true
		}
		for id, st := range r.transport.States(flow.GroupDead) {
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
	infos := make([]ReceiverInfo, 0, len(known))
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if !r.transport.Owns(id) {
			continue
		}
		info, err := r.receiver(id)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// receiver returns how the receiver with the given ID does.
func (r *Router) receiver(id string) (ReceiverInfo, error) {
	to := sinks.ReceiverOf(id)
	info := ReceiverInfo{Sink: to.Sink, Target: to.Target, State: StateActive}
	q, err := sinks.Load(r.transport.State(flow.GroupDelivery, id))
	if err != nil {
		return info, err
	}
	if info.Dead, err = sinks.CountLetters(r.transport.State(flow.GroupDead, id)); err != nil {
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

// Duplicate is one text that stands several times.
type Duplicate struct {
	TextHash  string              `json:"text_hash"`
	Documents []DuplicateDocument `json:"documents"`
}

// DuplicateDocument is a document with its page's URL.
type DuplicateDocument struct {
	URL string `json:"url"`
	DocumentInfo
}

// Duplicates returns the texts that stand under several URLs of l, in the order of the first.
func (l Listing) Duplicates() []Duplicate {
	same := make(map[string]*Duplicate)
	for _, p := range l.Pages {
		for _, d := range p.Documents {
			if d.TextHash == "" {
				continue
			}
			if same[d.TextHash] == nil {
				same[d.TextHash] = &Duplicate{TextHash: d.TextHash}
			}
			same[d.TextHash].Documents = append(same[d.TextHash].Documents, DuplicateDocument{p.URL, d})
		}
	}
	found := []Duplicate{}
	for _, d := range same {
		if d.Documents[0].URL != d.Documents[len(d.Documents)-1].URL { // pages stand in order
			found = append(found, *d)
		}
	}
	slices.SortFunc(found, func(a, b Duplicate) int {
		return cmp.Or(cmp.Compare(a.Documents[0].URL, b.Documents[0].URL), cmp.Compare(a.TextHash, b.TextHash))
	})
	return found
}
