package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	filesource "github.com/vokter/vokter/sources/file"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// convertSubscriptions checks and converts the subscriptions of f.
func (d *decoder) convertSubscriptions(f *yamlFile) []pipeline.Subscription {
	known := slices.Collect(maps.Keys(f.Sinks))
	type pair struct{ document, client string }
	seen := make(map[pair]int)
	tags := make(map[string][]string) // of the documents, by page
	for _, doc := range f.Documents {
		if page, err := pageurl.Canonical(doc.URL); err == nil {
			tags[page] = doc.Tags
		}
	}
	all := make([]pipeline.Subscription, 0, len(f.Subscriptions))
	for i, y := range f.Subscriptions {
		path := fmt.Sprintf("subscriptions[%d]", i)
		s := y.toPipeline()
		if page, err := pageurl.Canonical(s.URL); err == nil {
			s.Tags = mergeTags(s.Tags, tags[page])
		}
		d.checkSubscription(y, s, path, known, f.Allow.Files)
		all = append(all, s)
		page, err := pageurl.Canonical(s.URL)
		if err != nil {
			continue // reported
		}
		s = s.WithDefaults()
		p := pair{flow.DocumentID(page, s.View), s.Client}
		if j, dup := seen[p]; dup {
			d.failPath(joinPath(path, y.urlKey()), "%s: client %q already has a subscription to this document in line %d; merge the two or set another client", path, s.Client, d.entryLine(j, "subscriptions"))
			continue
		}
		seen[p] = i
	}
	return all
}

// toPipeline returns y as package pipeline has it.
func (y subscriptionEntry) toPipeline() pipeline.Subscription {
	s := pipeline.Subscription{
		URL: cmp.Or(y.Sitemap, y.URL), Client: y.Client, Title: y.Title, Paused: y.Paused, Keywords: y.Keywords, Interval: pipeline.Interval(y.Interval), Quiet: y.Quiet, Expire: y.Expire.toPipeline(),
		Stem: y.Stem, FilterStopwords: y.FilterStopwords, MatchCase: y.MatchCase, IgnoreDiacritics: y.IgnoreDiacritics,
		Match: y.Match, Near: y.Near, NewItems: y.NewItems, Moved: y.Moved, MinChange: pipeline.MinChange(y.MinChange), Restless: y.Restless,
		Language: y.Language, SnippetOffset: y.SnippetOffset, Sinks: y.Sinks,
		Severity: y.Severity, Channel: y.Channel,
		View: pipeline.View{Select: y.Select, Remove: y.Remove, Ignore: y.Ignore, FlipFlop: y.FlipFlop, Replaced: y.Replaced, Expect: y.Expect, Items: y.Items, Sitemap: y.Sitemap != ""},
	}
	s.Tags = y.Tags
	s.Condition = pipeline.Condition{Below: pipeline.Amount(y.Below), Above: pipeline.Amount(y.Above), ChangesBy: pipeline.Amount(y.ChangesBy), Becomes: y.Becomes}
	if v := y.Value; v != nil {
		s.Value = &pipeline.Value{Offer: v.Offer, Pattern: v.Pattern, Word: v.Word}
		s.Select = append(slices.Clip(s.Select), v.Select...)
	}
	for _, e := range y.Events {
		s.Events = append(s.Events, pipeline.Event(e))
	}
	if y.Confirm != nil {
		s.Confirm = *y.Confirm
	}
	s.Digest = (*pipeline.Digest)(y.Digest)
	if f := y.Follow; f != nil {
		s.Follow = &pipeline.Follow{SameHost: f.SameHost, Include: f.Include, Exclude: f.Exclude}
		if f.Depth != nil {
			s.Follow.Depth = *f.Depth
		}
		if f.MaxPages != nil {
			s.Follow.MaxPages = *f.MaxPages
		}
	}
	return s
}

// mergeTags returns the tags of a subscription and those of its document, each once.
func mergeTags(tags, more []string) []string {
	tags = slices.Clip(tags)
	for _, t := range more {
		if !slices.Contains(tags, t) {
			tags = append(tags, t)
		}
	}
	return tags
}

// urlKey returns the key that names the page of y.
func (y subscriptionEntry) urlKey() string {
	if y.Sitemap != "" {
		return "sitemap"
	}
	return "url"
}

// checkSubscription reports what is wrong with the subscription y at path, which is s.
func (d *decoder) checkSubscription(y subscriptionEntry, s pipeline.Subscription, path string, sinks, files []string) {
	if d.brokenPaths[path] {
		return
	}
	_, url := d.positions.get(path + ".url")
	_, sitemap := d.positions.get(path + ".sitemap")
	switch {
	case url && sitemap:
		d.failPath(path+".sitemap", "%s has both url and sitemap; keep url to watch that page, or sitemap to watch the pages that the sitemap lists", path)
		return
	case sitemap && y.Sitemap == "":
		return // the decoder has reported it
	case !url && !sitemap:
		d.failPath(path, "%s has no url; add one such as url: https://example.com/page, or sitemap: with the URL of a sitemap", path)
	}
	for _, f := range []struct {
		name     string
		values   []string
		required bool
	}{{"sinks", y.Sinks, true}, {"events", y.Events, false}} {
		_, given := d.positions.get(joinPath(path, f.name))
		switch {
		case !given && f.required:
			d.failPath(path, "%s has no %s; add at least one", path, f.name)
		case f.values != nil && len(f.values) == 0:
			d.failPath(joinPath(path, f.name), "%s is empty; list at least one", joinPath(path, f.name))
		}
	}
	if y.Keywords != nil && len(y.Keywords) == 0 {
		d.failPath(path+".keywords", "%s.keywords is empty; list at least one, or leave keywords out to be notified of every change", path)
	}
	d.checkSinkNames(path+".sinks", y.Sinks, sinks)
	var errs []error
	if y.Confirm != nil && *y.Confirm == 0 { // to the vocabulary 0 is "not given"
		errs = append(errs, &pipeline.FieldError{Field: "confirm", Reason: fmt.Sprintf("0 is not between 1 and %d", pipeline.MaxConfirm)})
	}
	if f := y.Follow; f != nil {
		if f.Depth != nil && *f.Depth == 0 {
			errs = append(errs, &pipeline.FieldError{Field: "follow.depth", Reason: fmt.Sprintf("0 is not between 1 and %d; remove follow to watch no linked pages", pipeline.MaxFollowDepth)})
		}
		if f.MaxPages != nil && *f.MaxPages == 0 {
			errs = append(errs, &pipeline.FieldError{Field: "follow.max_pages", Reason: fmt.Sprintf("0 is not between 1 and %d", pipeline.MaxFollowPages)})
		}
	}
	for _, fe := range CheckSubscription(s) {
		if fe.Field == "url" {
			fe.Field = y.urlKey()
		}
		errs = append(errs, fe)
	}
	if page, err := pageurl.Canonical(s.URL); err == nil && s.Interval != pipeline.Never {
		if err := checkFileURL(page, files); err != nil {
			errs = append(errs, &pipeline.FieldError{Field: y.urlKey(), Reason: err.Error()})
		}
	}
	d.failEach(path, errors.Join(errs...))
}

// fetchedSchemes are the URL schemes of the pages that the program fetches.
var fetchedSchemes = []string{"http", "https", filesource.Scheme}

// CheckSubscription returns all that is wrong with s. The field of a value in a list has
// its index: keywords[0].
func CheckSubscription(s pipeline.Subscription) []*pipeline.FieldError {
	var errs []*pipeline.FieldError
	for _, err := range splitJoined(vokter.CheckSubscription(s, fetchedSchemes...)) {
		fe, ok := errors.AsType[*pipeline.FieldError](err)
		if !ok {
			continue
		}
		for i, e := range s.Events {
			if fe.Field == fmt.Sprintf("events[%d]", i) {
				hint := nearest.Hint(string(e), []string{string(pipeline.Added), string(pipeline.Removed)})
				fe = &pipeline.FieldError{Field: fe.Field, Reason: fmt.Sprintf("%q is not an event; %s", string(e), hint)}
			}
		}
		errs = append(errs, fe)
	}
	return errs
}

// splitJoined splits what errors.Join joined; an error that wraps several in a sentence of
// its own stays whole.
func splitJoined(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, splitJoined(e)...)
	}
	return all
}

// selectors are written as one selector that pipeline.ParseSelector reads, such as a CSS selector,
// as one range {from: CSS, to: CSS}, or as a list of both.
type selectors []pipeline.Selector

func (s *selectors) decodeYAML(d *decoder, n ast.Node, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		*s = appendSelector(*s, d, n, path)
		return
	}
	if len(seq.Values) == 0 {
		d.failNode(n, "%s is empty; list at least one selector or remove the key", path)
	}
	for i, item := range seq.Values {
		*s = appendSelector(*s, d, item, fmt.Sprintf("%s[%d]", path, i))
	}
}

// appendSelector appends the selector in n, a string or a mapping of from and to, to s. If n is not
// valid it records the mistake and returns s.
func appendSelector(s []pipeline.Selector, d *decoder, n ast.Node, path string) []pipeline.Selector {
	var sel pipeline.Selector
	before := len(d.errs)
	if n = d.resolveAlias(n); n == nil {
		return s
	}
	if _, mapping := n.(*ast.MappingNode); mapping {
		var r struct {
			From string `yaml:"from"`
			To   string `yaml:"to"`
		}
		d.decodeValue(n, reflect.ValueOf(&r).Elem(), path)
		sel.From, sel.To = r.From, r.To
	} else {
		var text string
		d.decodeValue(n, reflect.ValueOf(&text).Elem(), path)
		sel = pipeline.ParseSelector(text)
	}
	if len(d.errs) > before {
		return s
	}
	if err := checkSelector(sel); err != nil {
		d.failPath(path, "%s: %v", path, err)
		return s
	}
	return append(s, sel)
}

// ParseSelector reads a selector in one of the forms of pipeline.ParseSelector, or a range such as
// {from: h1, to: h2}. It returns an error if the selector is not valid.
func ParseSelector(text string) (pipeline.Selector, error) {
	if !strings.HasPrefix(text, "{") {
		s := pipeline.ParseSelector(text)
		return s, checkSelector(s)
	}
	d := newDecoder("", nil)
	var found selectors
	if body := d.parseYAML([]byte(text)); body != nil {
		found = appendSelector(nil, d, body, "range")
	}
	if len(d.errs) > 0 {
		return pipeline.Selector{}, errors.New(strings.TrimPrefix(d.errs[0].Message, "range: "))
	}
	return found[0], nil
}

func checkSelector(s pipeline.Selector) error {
	switch {
	case s == pipeline.Selector{}:
		return errors.New("a selector must not be empty; write a CSS selector, or xpath:, jq:, lines: or re: and what follows")
	case s.From == "" && s.To != "":
		return errors.New("a range needs from; write {from: CSS, to: CSS}")
	}
	err := selector.Validate(pipeline.View{Select: []pipeline.Selector{s}})
	if fe, ok := errors.AsType[*pipeline.FieldError](err); ok {
		return errors.New(fe.Reason)
	}
	return err
}

var _ yamlDecoder = (*selectors)(nil)
