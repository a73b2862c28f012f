package web

import (
	"cmp"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/pipeline/text/stemmers"
	"github.com/vokter/vokter/stages/match"
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
	match.Trial
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
		v.Sub.Client, v.Sub.Sinks = r.defaultClient(), []string{config.Inbox}
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
	v := &trialView{Trial: match.Try(h.Changes, s, text.NewLanguages(stemmers.All()...)), Changes: len(h.Changes)}
	for _, p := range h.Proposals {
		if p.Helps(s) {
			v.Proposals = append(v.Proposals, p)
		}
	}
	slices.Reverse(v.Notifications)
	return v
}

// fieldset is a set of fields of a form.
type fieldset struct {
	Legend string
	Fields []field
}

// field is an option in a form.
type field struct {
	pipeline.Option
	Text    string // as the user would write it
	Default string // in words
	Choices []option
}

// IsBox reports whether f is a box to mark, and IsLong whether it has lines.
func (f field) IsBox() bool { return f.Kind() == reflect.Bool }

// IsLong reports whether f has lines.
func (f field) IsLong() bool { return f.Kind() == reflect.Slice && !f.Words }

// Size returns how many characters the user sees of a field that is no box and has no lines.
func (f field) Size() int {
	if f.Name == "title" || f.Words {
		return 40
	}
	return 10
}

// Fieldsets returns the fields that the form has for the options of a subscription.
func (v subscribeView) Fieldsets() []fieldset {
	var sets []fieldset
	for _, legend := range pipeline.Groups() {
		set := fieldset{Legend: legend}
		if legend == pipeline.GroupValue {
			set.Fields = append(set.Fields, field{Option: valueOption, Default: "the text is watched", Choices: v.values()})
		}
		for _, o := range pipeline.Options() {
			if o.Label != "" && o.Group == legend {
				set.Fields = append(set.Fields, newField(o, v.Sub))
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// valueOption is the field of the values to choose from.
var valueOption = pipeline.Option{Name: "value", Label: "Value"}

func newField(o pipeline.Option, s pipeline.Subscription) field {
	plain := func(markdown string) string { return pipeline.PlainText(markdown, strings.TrimSpace) }
	f := field{Option: o, Text: strings.Join(config.OptionTexts(s, o), "\n"), Default: plain(o.Default)}
	if o.Kind() != reflect.String && !f.IsLong() {
		f.Text = shortInterval(f.Text)
	}
	for _, v := range o.Values {
		f.Choices = append(f.Choices, option{v.Value, cmp.Or(plain(v.Doc), v.Value), v.Value == f.Text})
	}
	return f
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

// values returns the values to choose from.
func (v subscribeView) values() []option {
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

// option is one of the values of a field.
type option struct {
	Name, Label string
	On          bool
}

// Has reports whether the subscription names sink.
func (v subscribeView) Has(sink string) bool { return slices.Contains(v.Sub.Sinks, sink) }

// SinkList returns the sinks, separated by commas.
func (v subscribeView) SinkList() string { return strings.Join(v.Sub.Sinks, ", ") }

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
	for _, o := range pipeline.Options() {
		if o.Label == "" {
			continue
		}
		texts := []string{strings.TrimSpace(r.form.Get(o.Name))}
		if (field{Option: o}).IsLong() {
			texts = formLines(r.form, o.Name)
		}
		if len(texts) == 0 || texts[0] == "" {
			o.Field(&s).SetZero()
		} else if err := config.SetOption(&s, o, texts...); err != nil {
			return s, err
		}
	}
	s.Sinks = nil
	for _, one := range r.form["sink"] {
		for name := range strings.SplitSeq(one, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(s.Sinks, name) {
				s.Sinks = append(s.Sinks, name)
			}
		}
	}
	if chosen := r.form.Get(valueOption.Name); chosen != otherValue {
		s.Value = nil
		for _, x := range offeredValues {
			if x.Name == chosen {
				s.Value = &x.value
			}
		}
	}
	return s.WithDefaults(), nil
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
		_, err = r.api.Subscribe(r.Context(), s)
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
