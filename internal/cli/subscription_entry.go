package cli

import (
	"cmp"

	"github.com/goccy/go-yaml"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sources/browser"
)

// subscriptionEntry is a subscription as it stands in a configuration, without what is the default.
type subscriptionEntry struct {
	URL              string           `yaml:"url,omitempty"`
	Client           string           `yaml:"client,omitempty"`
	Title            string           `yaml:"title,omitempty"`
	Paused           bool             `yaml:"paused,omitempty"`
	Keywords         []string         `yaml:"keywords,flow,omitempty"`
	Events           []pipeline.Event `yaml:"events,flow,omitempty"`
	Interval         string           `yaml:"interval,omitempty"`
	Stem             bool             `yaml:"stem,omitempty"`
	FilterStopwords  bool             `yaml:"filter_stopwords,omitempty"`
	MatchCase        bool             `yaml:"match_case,omitempty"`
	IgnoreDiacritics bool             `yaml:"ignore_diacritics,omitempty"`
	Match            string           `yaml:"match,omitempty"`
	Near             string           `yaml:"near,omitempty"`
	NewItems         bool             `yaml:"new_items,omitempty"`
	Moved            bool             `yaml:"moved,omitempty"`
	Language         string           `yaml:"language,omitempty"`
	SnippetOffset    *int             `yaml:"snippet_offset,omitempty"`
	Sinks            []string         `yaml:"sinks,flow"`
	Digest           any              `yaml:"digest,omitempty"`
	Quiet            string           `yaml:"quiet,omitempty"`
	Expire           *expireEntry     `yaml:"expire,omitempty"`
	Severity         string           `yaml:"severity,omitempty"`
	Channel          string           `yaml:"channel,omitempty"`
	Select           []any            `yaml:"select,omitempty"`
	Remove           []any            `yaml:"remove,omitempty"`
	Ignore           []string         `yaml:"ignore,omitempty"`
	Confirm          int              `yaml:"confirm,omitempty"`
	FlipFlop         int              `yaml:"flip_flop,omitempty"`
	MinChange        string           `yaml:"min_change,omitempty"`
	Restless         string           `yaml:"restless,omitempty"`
	Tags             []string         `yaml:"tags,flow,omitempty"`
	Value            *valueEntry      `yaml:"value,omitempty"`
	Below            string           `yaml:"below,omitempty"`
	Above            string           `yaml:"above,omitempty"`
	ChangesBy        string           `yaml:"changes_by,omitempty"`
	Becomes          string           `yaml:"becomes,omitempty"`
	Replaced         bool             `yaml:"replaced,omitempty"`
	Expect           string           `yaml:"expect,omitempty"`
	Items            bool             `yaml:"items,omitempty"`
	Sitemap          string           `yaml:"sitemap,omitempty"`
	Fetch            string           `yaml:"fetch,omitempty"`
	Steps            []stepEntry      `yaml:"steps,omitempty"`
	Follow           *followEntry     `yaml:"follow,omitempty"`
}

// valueEntry is the value of an entry.
type valueEntry struct {
	Select  []any  `yaml:"select,omitempty"`
	Offer   string `yaml:"offer,omitempty"`
	Pattern string `yaml:"pattern,omitempty"`
	Word    bool   `yaml:"word,omitempty"`
}

// expireEntry is the expire of an entry.
type expireEntry struct {
	After any    `yaml:"after,omitempty"`
	Retry string `yaml:"retry,omitempty"`
}

// newExpireEntry returns e as it stands in a configuration; nil if it says nothing.
func newExpireEntry(e pipeline.Expire) *expireEntry {
	if e.IsZero() {
		return nil
	}
	after, retry := e.Texts()
	x := &expireEntry{Retry: retry}
	switch {
	case e.After > 0:
		x.After = e.After
	case e.After < 0:
		x.After = after
	}
	return x
}

// stepEntry is a step of an entry.
type stepEntry struct {
	WaitFor string     `yaml:"wait_for,omitempty"`
	Click   string     `yaml:"click,omitempty"`
	Fill    *fillEntry `yaml:"fill,omitempty"`
	Scroll  int        `yaml:"scroll,omitempty"`
}

// fillEntry is the fill of a step.
type fillEntry struct {
	Select string `yaml:"select"`
	Value  string `yaml:"value"`
}

// setFetch writes into e how its page is fetched.
func (e *subscriptionEntry) setFetch(p browser.Page) {
	e.Fetch = string(p.Mode)
	for _, s := range p.Steps {
		e.Steps = append(e.Steps, newStepEntry(s))
	}
}

// newStepEntry returns s as it stands in a configuration.
func newStepEntry(s browser.Step) stepEntry {
	e := stepEntry{WaitFor: s.WaitFor, Click: s.Click, Scroll: s.Scroll}
	if s.Fill != nil {
		e.Fill = &fillEntry{s.Fill.Select, s.Fill.Value.Reveal()}
	}
	return e
}

// followEntry is the follow of an entry.
type followEntry struct {
	Depth    int      `yaml:"depth,omitempty"`
	SameHost *bool    `yaml:"same_host,omitempty"`
	MaxPages int      `yaml:"max_pages,omitempty"`
	Include  []string `yaml:"include,flow,omitempty"`
	Exclude  []string `yaml:"exclude,flow,omitempty"`
}

// newSubscriptionEntry returns s as it stands in a configuration.
func newSubscriptionEntry(s pipeline.Subscription) subscriptionEntry {
	bare := pipeline.Subscription{Stem: s.Stem, FilterStopwords: s.FilterStopwords}.WithDefaults()
	s = s.WithDefaults()
	e := subscriptionEntry{
		URL: s.URL, Title: s.Title, Paused: s.Paused, Keywords: s.Keywords, Stem: s.Stem, FilterStopwords: s.FilterStopwords, MatchCase: s.MatchCase,
		IgnoreDiacritics: s.IgnoreDiacritics, Near: s.Near, NewItems: s.NewItems, Moved: s.Moved, Restless: s.Restless, Language: s.Language, Sinks: s.Sinks,
		Select: selectorEntries(s.Select), Remove: selectorEntries(s.Remove), Ignore: s.Ignore, FlipFlop: s.FlipFlop,
		Replaced: s.Replaced, Expect: s.Expect, Items: s.Items, Severity: s.Severity, Channel: s.Channel,
	}
	e.Tags, e.Expire = s.Tags, newExpireEntry(s.Expire)
	e.Below, e.Above, e.ChangesBy, e.Becomes = string(s.Below), string(s.Above), string(s.ChangesBy), s.Becomes
	if v := s.Value; v != nil {
		e.Value, e.Select = &valueEntry{e.Select, v.Offer, v.Pattern, v.Word}, nil
	}
	if s.Sitemap {
		e.URL, e.Sitemap = "", s.URL
	}
	if f := s.Follow; f != nil {
		e.Follow = &followEntry{f.Depth, f.SameHost, f.MaxPages, f.Include, f.Exclude}
	}
	if s.Client != bare.Client {
		e.Client = s.Client
	}
	if len(s.Events) < len(bare.Events) {
		e.Events = s.Events
	}
	if s.Interval != bare.Interval {
		e.Interval = s.Interval.String()
	}
	if s.Match != bare.Match {
		e.Match = s.Match
	}
	if *s.SnippetOffset != *bare.SnippetOffset {
		e.SnippetOffset = s.SnippetOffset
	}
	if s.Confirm > 1 {
		e.Confirm = s.Confirm
	}
	if s.MinChange != bare.MinChange {
		e.MinChange = s.MinChange.String()
	}
	if !s.Quiet.IsZero() {
		e.Quiet = s.Quiet.String()
	}
	if d := s.Digest; d != nil {
		every := cmp.Or(string(d.Cron), d.Every.String())
		e.Digest = every
		if d.Max > 0 {
			e.Digest = yaml.MapSlice{{Key: "every", Value: every}, {Key: "max", Value: d.Max}}
		}
	}
	return e
}

// selectorEntries returns selectors as they stand in a configuration.
func selectorEntries(all []pipeline.Selector) []any {
	var out []any
	for _, s := range all {
		switch {
		case s.To != "":
			out = append(out, yaml.MapSlice{{Key: "from", Value: s.From}, {Key: "to", Value: s.To}})
		case s.From != "":
			out = append(out, yaml.MapSlice{{Key: "from", Value: s.From}})
		default:
			out = append(out, s.String())
		}
	}
	return out
}
