package web

import (
	"cmp"
	"errors"
	"slices"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// piece is a piece of a text.
type piece struct {
	Text string
	// Event is empty for text that both versions have.
	Event pipeline.Event
	// Hit says that a keyword stands here.
	Hit bool
}

// searchTerm is a word or phrase to look for, and how it is compared with texts.
type searchTerm struct {
	term   string
	filter inspect.OccurrenceFilter
}

// maxTerms is how many keywords are looked for in a text, and maxPlaces is how many places of each are
// marked.
const (
	maxTerms  = 20
	maxPlaces = 500
)

// keywordsOf returns the keywords of the subscriptions to a document.
func keywordsOf(r *request, url, document string) ([]searchTerm, error) {
	found, err := r.api.Pages(r.Context(), inspect.ListFilter{URL: url})
	if err != nil {
		return nil, err
	}
	var all []searchTerm
	for _, p := range found.Pages {
		for _, s := range p.Subscriptions {
			for _, k := range s.Keywords {
				known := slices.ContainsFunc(all, func(x searchTerm) bool { return x.term == k })
				if s.Document == document && !known && len(all) < maxTerms {
					all = append(all, searchTerm{k, filterOf(s.Subscription)})
				}
			}
		}
	}
	return all, nil
}

// filterOf returns the filter that compares words as s does.
func filterOf(s pipeline.Subscription) inspect.OccurrenceFilter {
	return inspect.OccurrenceFilter{
		MatchCase: s.MatchCase, IgnoreDiacritics: s.IgnoreDiacritics, Stem: s.Stem, FilterStopwords: s.FilterStopwords, Match: s.Match, Language: s.Language,
	}
}

// findPlaces returns where version n of a document contains terms, in order and without overlaps.
func findPlaces(r *request, url, document string, n uint64, terms []searchTerm) ([]inspect.Place, error) {
	var all []inspect.Place
	for _, t := range terms {
		if t.term == "" {
			continue
		}
		t.filter.Document, t.filter.Version, t.filter.Limit = document, n, maxPlaces
		found, err := r.api.Occurrences(r.Context(), url, t.term, t.filter)
		if _, missing := errors.AsType[*flow.Refusal](err); missing {
			continue // the version was trimmed meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, o := range found.Occurrences {
			all = append(all, o.Places...)
		}
	}
	return sortWithoutOverlaps(all), nil
}

// sortWithoutOverlaps puts places into order and removes those that overlap an earlier one.
func sortWithoutOverlaps(all []inspect.Place) []inspect.Place {
	slices.SortFunc(all, func(a, b inspect.Place) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	end := 0
	return slices.DeleteFunc(all, func(p inspect.Place) bool {
		if p.Start < end || p.End <= p.Start {
			return true
		}
		end = p.End
		return false
	})
}

// linePieces returns the pieces of each line.
func linePieces(all []inspect.Line, places []inspect.Place) [][]piece {
	var out [][]piece
	for _, l := range all {
		if p := cutPieces(l.Offset, l.Segments, places); len(p) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// cutPieces cuts segments, which begin at the byte offset of a text, where a place of that text begins or
// ends. Places are in order.
func cutPieces(offset int, segments []inspect.Segment, places []inspect.Place) []piece {
	i, _ := slices.BinarySearchFunc(places, offset, func(p inspect.Place, at int) int { return cmp.Compare(p.End, at+1) })
	places = places[i:]
	var out []piece
	for _, s := range segments {
		for rest := s.Text; rest != ""; {
			for len(places) > 0 && places[0].End <= offset {
				places = places[1:]
			}
			n, hit := len(rest), false
			if len(places) > 0 {
				if hit = places[0].Start <= offset; hit {
					n = min(n, places[0].End-offset)
				} else {
					n = min(n, places[0].Start-offset)
				}
			}
			out = append(out, piece{rest[:n], s.Event, hit})
			rest, offset = rest[n:], offset+n
		}
	}
	return out
}
