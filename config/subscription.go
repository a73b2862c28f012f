package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// subscriptions checks and converts the subscriptions of f.
func (d *decoder) subscriptions(f *file) []pipeline.Subscription {
	known := slices.Collect(maps.Keys(f.Sinks))
	type pair struct{ document, client string }
	seen := make(map[pair]int)
	all := make([]pipeline.Subscription, 0, len(f.Subscriptions))
	for i, y := range f.Subscriptions {
		path := fmt.Sprintf("subscriptions[%d]", i)
		s := y.subscription()
		d.checkSubscription(y, s, path, known)
		all = append(all, s)
		page, err := pipeline.CanonicalURL(s.URL)
		if err != nil {
			continue // reported
		}
		s = s.WithDefaults()
		p := pair{flow.DocumentID(page, s.View), s.Client}
		if j, dup := seen[p]; dup {
			d.fail(join(path, "url"), "%s: client %q already watches this document by the subscription in line %d; merge the two or name another client", path, s.Client, d.line(j, "subscriptions"))
			continue
		}
		seen[p] = i
	}
	return all
}

func (y subscription) subscription() pipeline.Subscription {
	s := pipeline.Subscription{
		URL: y.URL, Client: y.Client, Keywords: y.Keywords, Interval: pipeline.Duration(y.Interval),
		Stem: y.Stem, FilterStopwords: y.FilterStopwords, IgnoreCase: y.IgnoreCase, IgnoreDiacritics: y.IgnoreDiacritics,
		Match: y.Match, Moved: y.Moved, Language: y.Language, SnippetOffset: y.SnippetOffset, Sinks: y.Sinks,
		View: pipeline.View{Select: y.Select, Remove: y.Remove, Ignore: y.Ignore},
	}
	for _, e := range y.Events {
		s.Events = append(s.Events, pipeline.Event(e))
	}
	if y.Confirm != nil {
		s.Confirm = *y.Confirm
	}
	s.Digest = (*pipeline.Digest)(y.Digest)
	return s
}

// checkSubscription reports what is wrong with the subscription y at path, which is s.
func (d *decoder) checkSubscription(y subscription, s pipeline.Subscription, path string, sinks []string) {
	if d.broken[path] {
		return
	}
	if _, given := d.at[path+".url"]; !given {
		d.fail(path, "%s has no url; add one such as url: https://example.com/page", path)
	}
	for _, f := range []struct {
		name     string
		values   []string
		required bool
	}{{"keywords", y.Keywords, true}, {"sinks", y.Sinks, true}, {"events", y.Events, false}} {
		_, given := d.at[join(path, f.name)]
		switch {
		case !given && f.required:
			d.fail(path, "%s has no %s; add at least one", path, f.name)
		case f.values != nil && len(f.values) == 0:
			d.fail(join(path, f.name), "%s is empty; name at least one", join(path, f.name))
		}
	}
	d.sinkNames(path+".sinks", y.Sinks, sinks)
	var errs []error
	if y.Confirm != nil && *y.Confirm == 0 { // to the vocabulary 0 is "not given"
		errs = append(errs, &pipeline.FieldError{Field: "confirm", Reason: "0 is not at least 1"})
	}
	for _, fe := range CheckSubscription(s) {
		errs = append(errs, fe)
	}
	d.failEach(path, errors.Join(errs...))
}
