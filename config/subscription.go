package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter"
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
	s := y.Subscription
	if y.Sitemap != "" {
		s.URL, s.Sitemap = y.Sitemap, true
	}
	if v := y.Value; v != nil {
		value := v.Value
		s.Value, s.Select = &value, append(slices.Clip(s.Select), v.Select...)
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
	if _, given := d.positions.get(path + ".sinks"); !given {
		d.failPath(path, "%s has no sinks; add at least one", path)
	}
	for name, empty := range map[string]bool{"sinks": y.Sinks != nil && len(y.Sinks) == 0, "events": y.Events != nil && len(y.Events) == 0} {
		if empty {
			d.failPath(joinPath(path, name), "%s is empty; list at least one", joinPath(path, name))
		}
	}
	if y.Keywords != nil && len(y.Keywords) == 0 {
		d.failPath(path+".keywords", "%s.keywords is empty; list at least one, or leave keywords out to be notified of every change", path)
	}
	d.checkSinkNames(path+".sinks", y.Sinks, sinks)
	var errs []error
	for _, o := range pipeline.Options() { // of a Subscription 0 stands for the default
		if o.Max == 0 || o.Kind() != reflect.Int {
			continue
		}
		if _, given := d.positions.get(joinPath(path, o.Name)); !given {
			continue
		}
		if v := reflect.Indirect(o.Field(&s)); v.CanInt() && v.Int() == 0 && o.OutOfBounds(0) != "" {
			errs = append(errs, &pipeline.FieldError{Field: o.Name, Reason: o.OutOfBounds(0)})
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
		if fe, ok := errors.AsType[*pipeline.FieldError](err); ok {
			errs = append(errs, fe)
		}
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

// decodeSelectors fills all from one selector that pipeline.ParseSelector reads, such as a CSS selector, from one
// range {from: CSS, to: CSS}, or from a list of both.
func (d *decoder) decodeSelectors(n ast.Node, all *[]pipeline.Selector, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		*all = appendSelector(*all, d, n, path)
		return
	}
	if len(seq.Values) == 0 {
		d.failNode(n, "%s is empty; list at least one selector or remove the key", path)
	}
	for i, item := range seq.Values {
		*all = appendSelector(*all, d, item, fmt.Sprintf("%s[%d]", path, i))
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
	var found []pipeline.Selector
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
