package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/vokter/vokter/pipeline/pageurl"
)

// Event says whether a keyword was added to a page or removed from it.
type Event string

// The events.
const (
	Added   Event = "added"
	Removed Event = "removed"
)

// Values of Subscription.Match: how the words of a keyword are matched.
const (
	MatchPhrase = "phrase" // next to each other, in this order
	MatchTerms  = "terms"  // all in the same change of a paragraph, in any order
)

// Values of Subscription.Near: what has to change around a keyword that stays.
const (
	NearBlock = "block" // its paragraph, cell or line
	NearRow   = "row"   // the table row, list item or card in which it stands, or else its block
)

// Values of Subscription.Severity, the least severe first.
const (
	SeverityInfo     = "info"
	SeverityWarning  = "warning"
	SeverityCritical = "critical"
)

// Severities lists the values of Subscription.Severity, the least severe first.
func Severities() []string { return []string{SeverityInfo, SeverityWarning, SeverityCritical} }

// Defaults and bounds of a subscription.
const (
	DefaultInterval      = Duration(10 * time.Minute)
	DefaultMinInterval   = 10 * time.Second
	DefaultSnippetOffset = 50
	MaxKeywords          = 10_000
	MaxKeywordLength     = 1000 // characters
	MaxTitleLength       = 200  // characters

	maxSnippetOffset = 500
	maxClientLength  = 1000 // characters
	maxChannelLength = 100  // characters
)

// Subscription says what a client watches in a document, keywords or every change, and which sinks
// notify it. A document and a client have at most one subscription. Options describes each field.
type Subscription struct {
	// URL is the page, as the client spells it. Notifications repeat this spelling.
	URL string `json:"url"`
	// Client names who is notified. Empty means "default".
	Client string `json:"client"`
	// Title takes the place of the title of the page. At most MaxTitleLength characters.
	Title string `json:"title,omitempty"`
	// Paused makes the subscription begin paused, until it is resumed or replaced by one without Paused.
	Paused bool `json:"paused,omitempty"`
	// Keywords are words or phrases. Nil means every change, with one Diff for each text that was added or removed.
	// An empty list that is not nil is invalid.
	Keywords []string `json:"keywords,omitempty"`
	// Events are the events to report; none means both.
	Events []Event `json:"events,omitempty"`
	// Interval is how often the page is checked. 0 means DefaultInterval. With Never this subscription causes no check.
	Interval Interval `json:"interval,omitzero"`
	// Stem matches lexical variants; MatchCase has no effect with it.
	Stem             bool `json:"stem,omitempty"`
	FilterStopwords  bool `json:"filter_stopwords,omitempty"`
	MatchCase        bool `json:"match_case,omitempty"`
	IgnoreDiacritics bool `json:"ignore_diacritics,omitempty"`
	// Match is MatchPhrase or MatchTerms. Empty means MatchPhrase, or MatchTerms with
	// FilterStopwords.
	Match string `json:"match,omitempty"`
	// Near is NearBlock or NearRow, and then what changes there beside a keyword that stays is reported, too.
	Near string `json:"near,omitempty"`
	// Moved also reports keywords in paragraphs that only moved within the page.
	Moved bool `json:"moved,omitempty"`
	// NewItems reports nothing of a text without items.
	NewItems bool `json:"new_items,omitempty"`
	// MinChange is the smallest change that is reported. A smaller one matches no keyword.
	MinChange MinChange `json:"min_change,omitzero"`
	// Restless is RestlessMuteNumbers, RestlessMute or RestlessTell. Empty means RestlessMuteNumbers, except where
	// nothing else of the page changes: then it is RestlessTell.
	Restless string `json:"restless,omitempty"`
	// Language is the language of the page, a BCP 47 tag. Empty means that it is detected.
	Language string `json:"language,omitempty"`
	// SnippetOffset is the length of the context on each side of a match, in characters; nil means
	// DefaultSnippetOffset.
	SnippetOffset *int `json:"snippet_offset,omitempty"`
	// Sinks are the names of the sinks to deliver to, at least one.
	Sinks []string `json:"sinks"`
	// Digest collects notifications and delivers them as one. Nil means that each is delivered at
	// once. A timeout notification is always delivered at once.
	Digest *Digest `json:"digest,omitempty"`
	// Quiet are hours of the day: notifications that come in them are collected and delivered as one when they end,
	// and so is a digest that would end in them.
	Quiet  Quiet  `json:"quiet,omitzero"`
	Expire Expire `json:"expire,omitzero"`
	// Severity is one of Severities, or empty.
	Severity string `json:"severity,omitempty"`
	// Channel is where a sink for many channels delivers to. Other sinks ignore it.
	Channel string   `json:"channel,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	// Follow says which linked pages are watched as well; nil means none. The other fields hold for these pages, too.
	Follow *Follow `json:"follow,omitempty"`
	// View is the part of the page that is watched.
	View
	// Condition says which changes of View.Value are reported.
	Condition
}

// WithDefaults returns s with the defaults in place of zero fields.
func (s Subscription) WithDefaults() Subscription {
	s.Client = cmp.Or(s.Client, "default")
	if len(s.Events) == 0 {
		s.Events = []Event{Added, Removed}
	}
	if s.Interval.IsZero() {
		s.Interval.Every = DefaultInterval
	}
	if s.Match == "" {
		s.Match = MatchPhrase
		if s.FilterStopwords {
			s.Match = MatchTerms
		}
	}
	if s.Stem {
		s.MatchCase = false
	}
	if s.Value != nil && !s.Value.Text() {
		v := *s.Value
		v.Language, s.Value = s.Language, &v
	}
	if s.SnippetOffset == nil {
		n := DefaultSnippetOffset
		s.SnippetOffset = &n
	}
	return s
}

// FieldError says what is wrong with one field of a subscription or of a configuration. Field is
// its name in YAML and JSON.
type FieldError struct {
	// Field is the path of the field, such as "keywords[0]" or "tls.ca".
	Field string
	// Reason says what is wrong and what to write, without a full stop.
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Validate returns everything that is wrong with s as joined FieldErrors, or nil. A value in a list
// is named with its index, such as keywords[0]. Validate does not count the words of a keyword:
// text.ValidKeyword does.
func (s Subscription) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{field, fmt.Sprintf(format, args...)})
	}
	for i := range options {
		options[i].check(&s, bad)
	}
	if err := pageurl.Check(s.URL); err != nil {
		bad("url", "%v", err)
	}
	if n := utf8.RuneCountInString(s.Client); n > maxClientLength {
		bad("client", "a name of %d characters is too long; at most %d", n, maxClientLength)
	} else if strings.ContainsFunc(s.Client, unicode.IsControl) {
		bad("client", "%q has a control character; write a name without it", s.Client)
	}
	if n := utf8.RuneCountInString(s.Title); n > MaxTitleLength {
		bad("title", "a title of %d characters is too long; at most %d", n, MaxTitleLength)
	} else if strings.ContainsFunc(s.Title, unicode.IsControl) {
		bad("title", "%q has a control character; write a line without it", s.Title)
	}
	switch n := len(s.Keywords); {
	case n == 0 && s.Keywords != nil:
		bad("keywords", "the list is empty; name at least one keyword, or leave keywords out to be notified of every change")
	case n > MaxKeywords:
		bad("keywords", "%d keywords are too many; at most %d", n, MaxKeywords)
	}
	for i, k := range s.Keywords {
		if n := utf8.RuneCountInString(k); n > MaxKeywordLength {
			bad(fmt.Sprintf("keywords[%d]", i), "a keyword of %d characters is too long; at most %d", n, MaxKeywordLength)
		}
	}
	if err := s.Interval.Validate(); err != nil {
		bad("interval", "%v", err)
	}
	if err := s.Quiet.Validate(); err != nil {
		bad("quiet", "%v", err)
	}
	if err := s.Expire.Validate(); err != nil {
		bad("expire", "%v", err)
	}
	if s.Digest != nil && !s.Digest.Quiet.IsZero() {
		bad("digest", "quiet hours are those of the subscription; set quiet there")
	}
	if n := utf8.RuneCountInString(s.Channel); n > maxChannelLength || strings.ContainsFunc(s.Channel, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }) {
		bad("channel", `%.50q is not a channel; write its ID such as C0123456789, or its name such as "#legal"`, s.Channel)
	}
	if s.NewItems && !s.Wants(Added) {
		bad("new_items", "an item that came was added, and events ask only for what was removed; remove events, or new_items")
	}
	switch {
	case s.NewItems && s.Near != "":
		bad("near", "with new_items only items that came are reported, and near is about those that stay; remove one of the two")
	case s.Near != "" && s.Keywords == nil:
		bad("near", "it is about keywords, and without keywords every change is reported; name keywords, or remove near")
	}
	if len(s.Sinks) == 0 {
		bad("sinks", "at least one sink is required")
	}
	if _, err := s.Patterns(); err != nil {
		errs = append(errs, err)
	}
	if s.Language != "" {
		if _, err := language.Parse(s.Language); err != nil {
			bad("language", "%q is not a language tag; write one such as en or pt-BR", s.Language)
		}
	}
	if s.Digest != nil {
		if err := s.Digest.Validate(); err != nil {
			bad("digest", "%v", err)
		}
	}
	checkTags(s.Tags, bad)
	s.checkValue(bad)
	if err := s.MinChange.Validate(); err != nil {
		bad("min_change", "%v", err)
	}
	if s.Follow != nil {
		s.Follow.validate(bad)
		if s.Sitemap && s.Follow.Depth != 0 {
			bad("follow.depth", "the pages that a sitemap lists are watched, and no links of these pages; remove depth")
		}
		if s.Interval == Never {
			bad("follow", "links are found in pages that are fetched; set an interval other than never")
		}
	}
	if s.Items && slices.ContainsFunc(s.Select, func(sel Selector) bool { return sel.Lines != "" || sel.Regexp != "" }) {
		bad("items", "items are those of a feed or of an array in JSON, and lines: and re: select no items; remove items, or these selectors")
	}
	switch {
	case s.Expect == "":
	case s.Value != nil:
		bad("expect", "what is absent has no value; remove expect, or watch the text without value")
	case s.Sitemap:
		bad("expect", "a sitemap that is absent lists no pages; remove expect")
	}
	if s.Sitemap && s.Items {
		bad("items", "a sitemap lists pages and is no feed; subscribe to the feed by its url")
	}
	if s.Sitemap && s.Interval == Never {
		bad("sitemap", "the pages of a sitemap are found when it is fetched; set an interval other than never")
	}
	return errors.Join(errs...)
}

// Wants reports whether the client is notified of e.
func (s Subscription) Wants(e Event) bool { return len(s.Events) == 0 || slices.Contains(s.Events, e) }

// Collected returns how notifications are collected: as Digest says, and in the hours of Quiet. Nil
// means that each is delivered at once.
func (s Subscription) Collected() *Digest {
	if s.Quiet.IsZero() {
		return s.Digest
	}
	d := Digest{Max: maxDigestItems}
	if s.Digest != nil {
		d = *s.Digest
	}
	d.Quiet = s.Quiet
	return &d
}

// Bounds of a Digest.
const (
	minDigestEvery     = Duration(time.Second)
	maxDigestWait      = Duration(31 * 24 * time.Hour)
	defaultDigestItems = 100
	maxDigestItems     = 1000
)

// Digest says how long notifications of a subscription are collected, for each of its receivers,
// before they are delivered as one. Either Every or Cron is set.
type Digest struct {
	// Every is the time from the first notification to the delivery: 1 second to 31 days.
	Every Duration `json:"every,omitempty"`
	// Cron says when the digest is delivered: minute, hour, day of the month, month and day of the
	// week, then the name of a time zone (UTC if there is none), such as
	// "0 9 * * 1-5 Europe/Berlin". A notification waits for at most 31 days.
	Cron Cron `json:"cron,omitempty"`
	// Max is the largest number of notifications in a digest, up to 1000. 0 means 100. A full
	// digest is delivered at once.
	Max int `json:"max,omitempty"`
	// Quiet are hours in which no digest is delivered. With Quiet alone, notifications are collected
	// in these hours only. It comes from Subscription.Quiet.
	Quiet Quiet `json:"quiet,omitzero"`
}

// ParseDigest reads a Digest without Max from a duration such as 1h, or from a line as in
// Digest.Cron. It does not call Validate.
func ParseDigest(s string) (Digest, error) {
	fields := strings.Fields(s)
	if len(fields) > 1 {
		return Digest{Cron: Cron(strings.Join(fields, " "))}, nil
	}
	every, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || every <= 0 {
		return Digest{}, fmt.Errorf(`%q is neither a duration such as 30m or 24h nor a cron line with a time zone such as "0 9 * * 1-5 Europe/Berlin"`, s)
	}
	return Digest{Every: Duration(every)}, nil
}

// String returns d in words, such as "every 1h0m0s" or "at 0 9 * * 1-5 Europe/Berlin".
func (d Digest) String() string {
	if d.Cron != "" {
		return "at " + string(d.Cron)
	}
	return "every " + d.Every.String()
}

// Items returns the largest number of notifications in a digest.
func (d Digest) Items() int {
	if d.Max <= 0 {
		return defaultDigestItems
	}
	return min(d.Max, maxDigestItems)
}

// Validate returns why d cannot be used, or nil.
func (d Digest) Validate() error {
	switch {
	case d.Every != 0 && d.Cron != "":
		return errors.New("name a duration or a cron line, not both")
	case d.Cron == "" && (d.Every < minDigestEvery || d.Every > maxDigestWait):
		return fmt.Errorf("%v is not between %v and %v", d.Every, minDigestEvery, maxDigestWait)
	case d.Max < 0 || d.Max > maxDigestItems:
		return fmt.Errorf("max: %d is not between 1 and %d", d.Max, maxDigestItems)
	case d.Cron == "":
		return nil
	}
	return d.Cron.Validate()
}

// Collects reports whether a notification that comes at t is collected.
func (d Digest) Collects(t time.Time) bool {
	return d.Every != 0 || d.Cron != "" || d.Quiet.End(t).After(t)
}

// End returns when a digest whose first notification came at start is delivered. It is start where
// d is invalid, for example because this machine does not know the time zone.
func (d Digest) End(start time.Time) time.Time {
	latest := start.Add(time.Duration(min(max(d.Every, 0), maxDigestWait)))
	if d.Cron != "" {
		if d.Cron.Validate() != nil {
			return start
		}
		latest = start.Add(time.Duration(maxDigestWait))
		if next := d.Cron.Next(start); !next.IsZero() && next.Before(latest) {
			latest = next
		}
	}
	return d.Quiet.End(latest)
}

// Duration is a time.Duration that is text in JSON, such as "10m0s".
type Duration time.Duration

// String returns d as text, such as "10m0s".
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns d as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what String returns.
func (d *Duration) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	v, err := ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration; write one such as 30s, 10m, 24h or 30d", s)
	}
	*d = Duration(v)
	return nil
}

// ParseDuration is time.ParseDuration, except that s may begin with a number of days of 24 hours, such as 30d or
// 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	days, rest, ok := strings.Cut(s, "d")
	if n, err := strconv.ParseUint(days, 10, 16); ok && err == nil {
		d, err := time.ParseDuration(cmp.Or(rest, "0s"))
		if err != nil || d < 0 || strings.HasPrefix(rest, "+") {
			return 0, fmt.Errorf("%q is not a duration", s)
		}
		return d + time.Duration(n)*24*time.Hour, nil
	}
	return time.ParseDuration(s)
}
