package inspect

import (
	"cmp"
	"maps"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/sinks"
)

// receivers returns the receivers that the subscriptions of pages name. Where f selects all pages,
// it adds those with notifications or dead letters, and with f.Sinks those of the configured sinks.
func receivers(s Store, pages []Page, f ListFilter, configured []string) ([]Receiver, error) {
	all := f.URL == "" && f.Client == ""
	known := make(map[string]bool)
	for _, p := range pages {
		for _, sub := range p.Subscriptions {
			for _, sink := range sub.Sinks {
				known[pipeline.Receiver{Sink: sink}.ID()] = true
			}
		}
	}
	if all && f.Sinks {
		for _, name := range configured {
			known[pipeline.Receiver{Sink: name}.ID()] = true
		}
	}
	if all {
		for id, st := range s.States(flow.GroupDelivery) {
			if _, err := sinks.Load(st); err != nil {
				return nil, err
			}
			known[id] = true
		}
		for id, st := range s.States(flow.GroupDead) {
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
		info, err := receiver(s, id)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// receiver returns the receiver with the given ID.
func receiver(s Store, id string) (Receiver, error) {
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

// Duplicate is one text that stands several times.
type Duplicate struct {
	TextHash  string              `json:"text_hash"`
	Documents []DuplicateDocument `json:"documents"`
}

// DuplicateDocument is a document with its page's URL.
type DuplicateDocument struct {
	URL string `json:"url"`
	Document
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
