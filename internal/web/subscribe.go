package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// subscribeView is the form of a subscription, with a preview once there is a URL.
type subscribeView struct {
	// Sub is the subscription that the form describes. Document is the ID of the document whose
	// subscription it changes, or empty for a new subscription.
	Sub      pipeline.Subscription
	Document string
	// Sinks are the names of all sinks, or nil if the user may not see them.
	Sinks []string
	// Problem is what is wrong with the form, or why there is no preview.
	Problem string
	Preview *previewView
	Trial   *trialView
}

// previewView is the text that a subscription would watch.
type previewView struct {
	inspect.Preview
	Pieces []piece
	Cut    bool
}

// trialView is what a subscription would have reported of the last versions.
type trialView struct {
	inspect.Trial
	Changes   int
	Proposals []inspect.Proposal
	Problem   string
}

const (
	// maxPreview is how much text a preview shows, in bytes.
	maxPreview = 100_000
	// maxTriedChanges is how many of the last changes a trial compares.
	maxTriedChanges = 10
)

func showSubscribe(r *request) (any, error) {
	var v subscribeView
	var err error
	v.Document = r.form.Get("document")
	switch {
	case v.Document != "" && !r.form.Has("keywords"): // the form opens with what there is
		p, err := requestedPage(r)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(p.Subscriptions, func(s inspect.Subscription) bool { return s.Document == v.Document && s.Client == r.form.Get("client") })
		if i < 0 {
			return nil, &flow.Refusal{Code: flow.CodeNotFound, Message: "there is no such subscription"}
		}
		v.Sub = p.Subscriptions[i].Subscription
	case r.form.Get("url") != "":
		if v.Sub, err = subscriptionFromForm(r); err != nil {
			v.Problem = userMessage(err)
		}
	default:
		v.Sub = pipeline.Subscription{}.WithDefaults()
	}
	if r.bearer.Clients() == nil {
		all, err := r.api.Receivers(r.Context(), inspect.ListFilter{Sinks: true})
		if err != nil {
			return nil, err
		}
		for _, x := range all {
			v.Sinks = append(v.Sinks, x.Sink)
		}
	}
	if v.Sub.URL == "" || v.Problem != "" {
		return v, nil
	}
	p, err := r.api.Preview(r.Context(), v.Sub, false)
	if err != nil {
		v.Problem = userMessage(err)
		return v, nil
	}
	v.Preview = &previewView{Preview: p}
	content := firstBytes(p.Text, maxPreview)
	v.Preview.Cut = len(content) < len(p.Text)
	v.Preview.Pieces = cutPieces(0, []inspect.Segment{{Text: content}}, sortWithoutOverlaps(p.Places))
	for i, x := range v.Preview.Pieces {
		v.Preview.Pieces[i].Text = inspect.Plain(x.Text)
	}
	v.Trial = trySubscription(r, v.Sub)
	return v, nil
}

// trySubscription returns what s would have reported of the last changes of its document, or nil if no version is
// stored.
func trySubscription(r *request, s pipeline.Subscription) *trialView {
	p, err := r.api.Pages(r.Context(), inspect.ListFilter{URL: s.URL})
	if err != nil || len(p.Pages) == 0 {
		return nil
	}
	h, err := r.api.Changes(r.Context(), s.URL, inspect.DocumentFilter{Document: flow.DocumentOf(p.Pages[0].URL, s)}, maxTriedChanges)
	if refused, ok := errors.AsType[*flow.Refusal](err); ok && refused.Code == flow.CodeNotFound && s.IsZero() {
		h, err = r.api.Changes(r.Context(), s.URL, inspect.DocumentFilter{}, maxTriedChanges)
	}
	if err != nil {
		return &trialView{Problem: userMessage(err)}
	}
	v := &trialView{Trial: inspect.Try(h.Changes, s, text.NewLanguages()), Changes: len(h.Changes)}
	for _, p := range h.Proposals {
		if p.Helps(s) {
			v.Proposals = append(v.Proposals, p)
		}
	}
	slices.Reverse(v.Notifications)
	return v
}

// optionFields are the fields of a form that are a box to mark.
var optionFields = []struct {
	Name, Label string
	field       func(*pipeline.Subscription) *bool
}{
	{"match_case", "Match case", func(s *pipeline.Subscription) *bool { return &s.MatchCase }},
	{"ignore_diacritics", "Ignore accents", func(s *pipeline.Subscription) *bool { return &s.IgnoreDiacritics }},
	{"stem", "Other forms of a word too (stems)", func(s *pipeline.Subscription) *bool { return &s.Stem }},
	{"filter_stopwords", "Ignore stop words", func(s *pipeline.Subscription) *bool { return &s.FilterStopwords }},
	{"new_items", "Only items that came: list items, rows, cards", func(s *pipeline.Subscription) *bool { return &s.NewItems }},
	{"moved", "Text that only moved too", func(s *pipeline.Subscription) *bool { return &s.Moved }},
}

// offeredValues are the values that a form offers. One that has a pattern stays as it is.
var offeredValues = []struct {
	Name, Label string
	value       pipeline.Value
}{
	{"price", "the price that the page declares", pipeline.Value{Offer: pipeline.OfferPrice}},
	{"availability", "the availability that the page declares", pipeline.Value{Offer: pipeline.OfferAvailability}},
	{"number", "the first number in the parts below", pipeline.Value{}},
	{"word", "the words of the parts below", pipeline.Value{Word: true}},
}

// otherValue is the value of a form that keeps the value of the subscription that it changes.
const otherValue = "other"

// Values returns the values to choose from.
func (v subscribeView) Values() []option {
	var all []option
	known := v.Sub.Value == nil
	for _, x := range offeredValues {
		on := v.Sub.Value != nil && *v.Sub.Value == x.value
		known = known || on
		all = append(all, option{x.Name, x.Label, on})
	}
	if !known {
		all = append(all, option{otherValue, "as it is: " + strings.ToLower(v.Sub.Value.Name()), true})
	}
	return all
}

// TagList returns the tags, separated by commas.
func (v subscribeView) TagList() string { return strings.Join(v.Sub.Tags, ", ") }

// option is a box to mark.
type option struct {
	Name, Label string
	On          bool
}

// Options returns the boxes as they are in v.
func (v subscribeView) Options() []option {
	var all []option
	for _, o := range optionFields {
		all = append(all, option{o.Name, o.Label, *o.field(&v.Sub)})
	}
	return all
}

// Has reports whether the subscription names sink.
func (v subscribeView) Has(sink string) bool { return slices.Contains(v.Sub.Sinks, sink) }

// Restless returns what may be told of places that change at nearly every check.
func (v subscribeView) Restless() []option {
	all := []option{
		{"", "the numbers are left out, unless nothing else changes", false},
		{pipeline.RestlessMuteNumbers, "the numbers are left out", false},
		{pipeline.RestlessMute, "numbers and words are left out", false},
		{pipeline.RestlessTell, "all is reported", false},
	}
	for i := range all {
		all[i].On = all[i].Name == v.Sub.Restless
	}
	return all
}

// Event returns the event that alone is reported, or "".
func (v subscribeView) Event() string {
	if len(v.Sub.Events) == 1 {
		return string(v.Sub.Events[0])
	}
	return ""
}

// Every returns how often the page is checked, and Least the least change, as the form has them.
func (v subscribeView) Every() string { return shortInterval(v.Sub.Interval.String()) }

// Least returns the least change.
func (v subscribeView) Least() string {
	if v.Sub.MinChange == (pipeline.MinChange{}) {
		return ""
	}
	return v.Sub.MinChange.String()
}

// ExpireAfter and ExpireRetry return when a page that fails is dormant and when it is given up, as the form has them.
func (v subscribeView) ExpireAfter() string {
	after, _ := v.Sub.Expire.Texts()
	return after
}

// ExpireRetry returns for how long a dormant page is checked.
func (v subscribeView) ExpireRetry() string {
	_, retry := v.Sub.Expire.Texts()
	return shortInterval(retry)
}

// SinkList returns the sinks, separated by commas.
func (v subscribeView) SinkList() string { return strings.Join(v.Sub.Sinks, ", ") }

// Keywords, Select and Remove return the lines of the form.
func (v subscribeView) Keywords() string { return strings.Join(v.Sub.Keywords, "\n") }

// Select returns the selectors, one on each line.
func (v subscribeView) Select() string { return selectorLines(v.Sub.Select) }

// Remove returns the selectors of what is removed, one on each line.
func (v subscribeView) Remove() string { return selectorLines(v.Sub.Remove) }

func selectorLines(all []pipeline.Selector) string {
	var lines []string
	for _, s := range all {
		lines = append(lines, s.String())
	}
	return strings.Join(lines, "\n")
}

// subscriptionFromForm returns the subscription in a form. Where the form changes a subscription, fields that
// the form does not have stay as they were.
func subscriptionFromForm(r *request) (pipeline.Subscription, error) {
	var s pipeline.Subscription
	if document := r.form.Get("document"); document != "" {
		found, err := r.api.Pages(r.Context(), inspect.ListFilter{URL: strings.TrimSpace(r.form.Get("url"))})
		if err != nil {
			return s, err
		}
		for _, p := range found.Pages {
			for _, x := range p.Subscriptions {
				if x.Document == document && x.Client == r.form.Get("client") {
					s = x.Subscription
				}
			}
		}
	}
	s.URL, s.Client = strings.TrimSpace(r.form.Get("url")), strings.TrimSpace(r.form.Get("client"))
	s.Title, s.Keywords = strings.TrimSpace(r.form.Get("title")), formLines(r.form, "keywords")
	s.Select, s.Remove = parseSelectors(formLines(r.form, "select"), s.Select), parseSelectors(formLines(r.form, "remove"), s.Remove)
	for _, o := range optionFields {
		*o.field(&s) = r.form.Get(o.Name) != ""
	}
	s.Events = nil
	s.Near, s.Restless, s.Expect = r.form.Get("near"), r.form.Get("restless"), r.form.Get("expect")
	if e := r.form.Get("event"); e != "" {
		s.Events = []pipeline.Event{pipeline.Event(e)}
	}
	s.Sinks = nil
	for _, one := range r.form["sink"] {
		for name := range strings.SplitSeq(one, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(s.Sinks, name) {
				s.Sinks = append(s.Sinks, name)
			}
		}
	}
	s.Match = ""
	s.Tags = nil
	for tag := range strings.SplitSeq(r.form.Get("tags"), ",") {
		if tag = strings.TrimSpace(tag); tag != "" && !slices.Contains(s.Tags, tag) {
			s.Tags = append(s.Tags, tag)
		}
	}
	if chosen := r.form.Get("value"); chosen != otherValue {
		s.Value = nil
		for _, x := range offeredValues {
			if x.Name == chosen {
				s.Value = &x.value
			}
		}
	}
	s.Condition = pipeline.Condition{Becomes: strings.TrimSpace(r.form.Get("becomes"))}
	for name, to := range map[string]*pipeline.Amount{"below": &s.Below, "above": &s.Above, "changes_by": &s.ChangesBy} {
		text := strings.TrimSpace(r.form.Get(name))
		if text != "" && !pipeline.IsNumber(strings.TrimSuffix(text, "%")) {
			return s, &pipeline.FieldError{Field: name, Reason: fmt.Sprintf("%.50q is not a number; write one such as 100 or 99.90", text)}
		}
		*to = pipeline.Amount(text)
	}
	var err error
	if s.MinChange, err = pipeline.ParseMinChange(cmp.Or(strings.TrimSpace(r.form.Get("min_change")), "0")); err != nil {
		return s, &pipeline.FieldError{Field: "min_change", Reason: err.Error()}
	}
	expire, mistakes := pipeline.ParseExpire(strings.TrimSpace(r.form.Get("expire_after")), strings.TrimSpace(r.form.Get("expire_retry")))
	if s.Expire = expire; len(mistakes) > 0 {
		return s, mistakes[0]
	}
	s.Interval = pipeline.Interval{}
	if every := strings.TrimSpace(r.form.Get("interval")); every != "" {
		if s.Interval, err = config.ParseInterval(every); err != nil {
			return s, &pipeline.FieldError{Field: "interval", Reason: err.Error()}
		}
	}
	return s.WithDefaults(), nil
}

// parseSelectors returns the selectors in lines. One that stands in before stays as it is, because a range
// has no form on one line.
func parseSelectors(lines []string, before []pipeline.Selector) []pipeline.Selector {
	var all []pipeline.Selector
	for _, l := range lines {
		if i := slices.IndexFunc(before, func(s pipeline.Selector) bool { return s.String() == l }); i >= 0 {
			all = append(all, before[i])
		} else {
			all = append(all, pipeline.ParseSelector(l))
		}
	}
	return all
}

// formLines returns the lines of a field of the form that are not empty.
func formLines(form url.Values, name string) []string {
	var all []string
	for line := range strings.Lines(form.Get(name)) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// subscribeFromForm adds or changes the subscription of a form and sends the browser to its page.
func subscribeFromForm(r *request) (string, error) {
	s, err := subscriptionFromForm(r)
	if err != nil {
		return "", err
	}
	note := "Subscribed " + s.Client + ". The version that the next check finds, or the current one, is the baseline."
	if document := r.form.Get("document"); document != "" {
		note = "Changed the subscription of " + s.Client + "."
		err = r.api.Change(r.Context(), document, s)
	} else {
		err = r.api.Subscribe(r.Context(), s)
	}
	if err != nil {
		return "", err
	}
	to, err := urlWithQuery("/page", "url", s.URL)
	if err != nil {
		return "", err
	}
	return "", &redirect{to, note}
}
