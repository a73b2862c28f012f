package vokter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/text"
	filesource "github.com/vokter/vokter/sources/file"
	httpsource "github.com/vokter/vokter/sources/http"
	"github.com/vokter/vokter/stages/fetch/readers/selector"
)

// Validate returns all that is wrong with c, joined, or nil.
func (c Config) Validate() error {
	return errors.Join(c.validateTransport(), c.validateSubscriptions(), c.validatePages(), c.validatePlugins(), c.validateSources(), c.validateNumbers(), c.validateAccess())
}

// validateWork refuses a configuration with which a Router can do nothing, whatever it is asked for.
func (c Config) validateWork() error {
	given := len(c.Subscriptions)+len(c.Documents)+len(c.Sources)+len(c.Sinks) > 0 || c.SinkOf != nil
	if given || c.Mode != ModeAll || c.Transport != nil || c.dataDirectory() != "" { // what was stored can be looked at
		return nil
	}
	return errors.New("there is nothing to do: give subscriptions, documents or sources, or sinks for later subscriptions")
}

// validateTransport checks where the state is kept, and which part of the work is done.
func (c Config) validateTransport() error {
	var errs []error
	if c.Store != nil && c.Transport != nil {
		errs = append(errs, errors.New("a store and a transport are given, and each would keep the state; give one of them"))
	}
	if c.Store != nil && c.Dir != "" {
		errs = append(errs, errors.New("a store and a directory are given, and the state is kept in one place; give one of them"))
	}
	if c.Mode < ModeAll || c.Mode > ModeCommands {
		errs = append(errs, fmt.Errorf("mode %d does not exist", c.Mode))
	}
	return errors.Join(errs...)
}

func (c Config) validateSubscriptions() error {
	var errs []error
	if flow.MadeAtRunTime(c.Origin) {
		errs = append(errs, fmt.Errorf("origin %q is of subscriptions that are made at run time; choose another", c.Origin))
	}
	type pair struct{ document, client string }
	seen := map[pair]int{}
	languages := text.NewLanguages(slices.DeleteFunc(slices.Clone(c.Stemmers), func(s pipeline.Stemmer) bool { return s == nil })...)
	for i, s := range c.Subscriptions {
		s = s.WithDefaults()
		if err := errors.Join(c.validateSubscription(s), checkStems(s, languages)); err != nil {
			errs = append(errs, fmt.Errorf("subscription %d (%s): %w", i+1, pageurl.Redacted(s.URL), err))
			continue
		}
		page, _ := pageurl.Canonical(s.URL)
		p := pair{flow.DocumentID(page, s.View), s.Client}
		if j, dup := seen[p]; dup {
			errs = append(errs, fmt.Errorf("subscription %d (%s): client %q already watches this document by subscription %d", i+1, s.URL, s.Client, j+1))
		}
		seen[p] = i
	}
	return errors.Join(errs...)
}

// CheckSubscription returns all mistakes in s as joined *pipeline.FieldErrors, or nil. Schemes are
// the URL schemes that can be fetched; a subscription whose Interval is Never may have any other,
// because its page can be pushed. It does not check whether the sinks exist.
func CheckSubscription(s pipeline.Subscription, schemes ...string) error {
	errs := []error{s.Validate()}
	if s.Interval != pipeline.Never && pageurl.Check(s.URL) == nil { // otherwise Validate returns the error
		if err := pageurl.Check(s.URL, schemes...); err != nil {
			errs = append(errs, &pipeline.FieldError{Field: "url", Reason: err.Error()})
		}
	}
	for i, k := range s.Keywords[:min(len(s.Keywords), pipeline.MaxKeywords)] {
		if err := text.ValidKeyword(k); err != nil {
			errs = append(errs, &pipeline.FieldError{Field: fmt.Sprintf("keywords[%d]", i), Reason: err.Error()})
		}
	}
	return errors.Join(append(errs, selector.Validate(s.View))...)
}

// checkStems returns an error if s wants stems of a language of which languages has no stemmer, though there is one.
func checkStems(s pipeline.Subscription, languages *text.Languages) error {
	if !s.Stem || !text.HasStems(s.Language) || languages.Normalizer(s.Language).HasStemmer() {
		return nil
	}
	return &pipeline.FieldError{Field: "stem", Reason: fmt.Sprintf("no stemmer of %q was given; add that of pipeline/text/stemmers, or stemmers.All(), to Config.Stemmers", s.Language)}
}

// schemes returns the URL schemes that a Router of c can fetch.
func (c Config) schemes() []string {
	all := []string{"http", "https", filesource.Scheme}
	for _, f := range c.Fetchers {
		if f != nil { // a nil fetcher is reported by validatePlugins
			all = append(all, f.Schemes()...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// usesBuiltInFiles reports whether the built-in fetcher of files is used: some may be read, and no other
// fetcher does it.
func (c Config) usesBuiltInFiles() bool {
	return len(c.Fetch.Files) > 0 && !c.hasFetcherFor(filesource.Scheme)
}

// hasFetcherFor reports whether one of c.Fetchers fetches pages of scheme.
func (c Config) hasFetcherFor(scheme string) bool {
	return slices.ContainsFunc(c.Fetchers, func(f pipeline.Fetcher) bool { return f != nil && slices.Contains(f.Schemes(), scheme) })
}

// checkFileURL returns why the page of the URL raw, if it is a file's, cannot be read.
func (c Config) checkFileURL(raw string) error {
	page, err := pageurl.Canonical(raw)
	if err != nil || !strings.HasPrefix(page, filesource.Scheme+":") || c.hasFetcherFor(filesource.Scheme) {
		return nil
	}
	return filesource.Check(page, c.Fetch.Files)
}

// validateSubscription checks one subscription, with its defaults, against the fetchers and sinks of c.
func (c Config) validateSubscription(s pipeline.Subscription) error {
	errs := []error{CheckSubscription(s, c.schemes()...)}
	if err := c.checkFileURL(s.URL); err != nil && s.Interval != pipeline.Never {
		errs = append(errs, &pipeline.FieldError{Field: "url", Reason: err.Error()})
	}
	for _, name := range s.Sinks {
		if !c.hasSink(name) {
			errs = append(errs, &pipeline.FieldError{Field: "sinks", Reason: fmt.Sprintf("no sink is named %q", name)})
		}
	}
	if s.Channel != "" {
		if err := registry.TakeChannel(c.Sinks, s.Sinks, s.Channel); err != nil {
			errs = append(errs, &pipeline.FieldError{Field: "channel", Reason: err.Error()})
		}
	}
	return errors.Join(errs...)
}

func (c Config) validateAccess() error {
	if err := httpsource.CheckAccess(c.Access); err != nil {
		return fmt.Errorf("access: %w", err)
	}
	return nil
}

// validateChanges returns why one of the sinks named in where cannot get change records.
func (c Config) validateChanges(where string, names []string) error {
	var errs []error
	for i, name := range names {
		s, ok := c.Sinks[name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%s: no sink is named %q", where, name))
		case slices.Contains(names[:i], name):
			errs = append(errs, fmt.Errorf("%s: %q is listed twice", where, name))
		default:
			if err := registry.TakesChanges(s); err != nil {
				errs = append(errs, fmt.Errorf("%s: sink %q: %w", where, name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// hasSink reports whether a sink is named name.
func (c Config) hasSink(name string) bool {
	_, ok := c.Sinks[name]
	return ok || c.SinkOf != nil && c.SinkOf(name) != nil
}

func (c Config) validatePages() error {
	var errs []error
	seen := map[string]int{}
	for i, d := range c.Documents {
		schemes := c.schemes()
		if d.Interval == pipeline.Never {
			schemes = nil // its page is pushed
		}
		err := pageurl.Check(d.URL, schemes...)
		if err == nil && d.Interval != pipeline.Never {
			err = c.checkFileURL(d.URL)
		}
		page, _ := pageurl.Canonical(d.URL)
		switch j, dup := seen[page]; {
		case err != nil:
			errs = append(errs, fmt.Errorf("document %d: %w", i+1, err))
		case dup:
			errs = append(errs, fmt.Errorf("document %d (%s): it is document %d already; remove one", i+1, d.URL, j+1))
		case d.Retention.validate() != nil:
			errs = append(errs, fmt.Errorf("document %d (%s): %w", i+1, d.URL, d.Retention.validate()))
		case d.Retention.Disk != 0:
			errs = append(errs, fmt.Errorf("document %d (%s): retention.disk holds for all pages together; set it in Config", i+1, d.URL))
		case !d.Keep:
			errs = append(errs, fmt.Errorf("document %d (%s): without Keep it would do nothing; set Keep to true, or remove it", i+1, d.URL))
		default:
			seen[page] = i
		}
		if err := text.CheckLanguage(d.Language); err != nil {
			errs = append(errs, fmt.Errorf("document %d (%s): language: %w", i+1, d.URL, err))
		}
		if !d.Interval.IsZero() && d.Interval != pipeline.Never {
			errs = append(errs, fmt.Errorf("document %d: its interval can only be Never; subscriptions say how often a page is fetched", i+1))
		}
	}
	for _, u := range c.Only {
		if _, err := pageurl.Canonical(u); err != nil {
			errs = append(errs, fmt.Errorf("only: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (c Config) validatePlugins() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Sinks)) {
		s := c.Sinks[name]
		if !validSinkName(name) {
			errs = append(errs, fmt.Errorf("%q cannot be the name of a sink; name it without blanks and control characters", name))
		}
		if s == nil {
			errs = append(errs, fmt.Errorf("sink %q is nil", name))
		} else if v, ok := s.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				errs = append(errs, fmt.Errorf("sink %q: %w", name, err))
			}
		}
	}
	errs = append(errs, c.validateForwarding())
	for _, name := range c.Health {
		if !c.hasSink(name) {
			errs = append(errs, fmt.Errorf("health: no sink is named %q", name))
		}
	}
	errs = append(errs, c.validateChanges("changes", c.Changes))
	if err := c.Expire.toPipeline().Validate(); err != nil {
		errs = append(errs, fmt.Errorf("expire: %w", err))
	}
	for i, d := range c.Documents {
		if err := d.Expire.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("document %d (%s): expire: %w", i+1, d.URL, err))
		}
		errs = append(errs, c.validateChanges(fmt.Sprintf("document %d (%s): changes", i+1, d.URL), d.Changes))
	}
	if slices.Contains(c.Fetchers, nil) || slices.Contains(c.Readers, nil) || slices.Contains(c.Stemmers, nil) {
		errs = append(errs, errors.New("a fetcher, reader or stemmer is nil"))
	}
	stages := []string{flow.GroupFetch, flow.GroupIndex, flow.GroupDiff, flow.GroupMatch, flow.GroupDelivery}
	for _, group := range slices.Sorted(maps.Keys(c.Middleware)) {
		if !slices.Contains(stages, group) {
			errs = append(errs, fmt.Errorf("middleware: %q is no stage; stages are %q", group, stages))
		}
		if slices.ContainsFunc(c.Middleware[group], func(m flow.Middleware) bool { return m == nil }) {
			errs = append(errs, fmt.Errorf("middleware of %q is nil", group))
		}
	}
	if slices.ContainsFunc(c.WatermillMiddleware, func(m message.HandlerMiddleware) bool { return m == nil }) {
		errs = append(errs, errors.New("a Watermill middleware is nil"))
	}
	return errors.Join(errs...)
}

// validateForwarding checks how sinks get their notifications and pass them on to others.
func (c Config) validateForwarding() error {
	var errs []error
	next := make(map[string][]string) // the sinks that a sink passes notifications on to
	for _, name := range slices.Sorted(maps.Keys(c.Delivery.Receivers)) {
		r := c.Delivery.Receivers[name]
		if err := r.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("receiver %q: %w", name, err))
		}
		if !c.hasSink(name) {
			errs = append(errs, fmt.Errorf("receiver %q: no sink has this name", name))
		}
		if r.Fallback != "" {
			next[name] = []string{r.Fallback}
		}
	}
	for name, sink := range c.Sinks {
		if route, ok := registry.RouteOf(sink); ok {
			if _, both := c.Delivery.Receivers[name]; both {
				errs = append(errs, fmt.Errorf("receiver %q: it is a route, which delivers nothing itself; set this at the sinks that it leads to", name))
			}
			next[name] = route.Targets()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(next)) {
		for _, to := range next[name] {
			if !c.hasSink(to) {
				errs = append(errs, fmt.Errorf("sink %q: no sink is named %q", name, to))
			}
		}
		if loop := findLoop(name, next); loop != nil {
			errs = append(errs, &pipeline.FieldError{Field: "sinks." + name, Reason: "it would pass notifications on to itself: " + strings.Join(loop, " to ")})
		}
	}
	return errors.Join(errs...)
}

// findLoop returns the way from name back to itself, or nil if there is none.
func findLoop(name string, next map[string][]string) []string {
	seen := make(map[string]bool)
	var walk func(at string) []string
	walk = func(at string) []string {
		for _, to := range next[at] {
			if to == name {
				return []string{at, to}
			}
			if seen[to] {
				continue
			}
			seen[to] = true
			if rest := walk(to); rest != nil {
				return append([]string{at}, rest...)
			}
		}
		return nil
	}
	return walk(name)
}

// validSinkName reports whether name can be part of a receiver's ID, in which a blank ends it.
func validSinkName(name string) bool {
	return name != "" && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

func (c Config) validateNumbers() error {
	var errs []error
	notNegative := func(name string, negative bool) {
		if negative {
			errs = append(errs, fmt.Errorf("%s must not be negative", name))
		}
	}
	for _, path := range c.Fetch.Files {
		if err := filesource.CheckAllow(path); err != nil {
			errs = append(errs, fmt.Errorf("files of fetch: %w", err))
		}
	}
	if err := flow.CheckSource(c.EventSource); err != nil {
		errs = append(errs, fmt.Errorf("event source: %w", err))
	}
	if err := text.CheckLanguage(c.Language); err != nil {
		errs = append(errs, fmt.Errorf("language: %w", err))
	}
	notNegative("checks", c.Checks < 0)
	notNegative("min free", c.MinFree < 0)
	notNegative("memory", c.Memory < 0)
	notNegative("every", c.Every != nil && *c.Every < 0)
	errs = append(errs, c.Retention.validate())
	notNegative("drain", c.Drain < 0)
	notNegative("a number of fetch", c.Fetch.Timeout < 0 || c.Fetch.MinInterval < 0 || c.Fetch.Concurrency < 0 || c.Fetch.Rate < 0 || c.Fetch.MaxBody < 0)
	notNegative("a delay of delivery", c.Delivery.DeadAfter < 0 || c.Delivery.ExpireAfter < 0 || slices.ContainsFunc(c.Delivery.Retry, func(d time.Duration) bool { return d < 0 }))
	return errors.Join(errs...)
}

func (c Config) validateSources() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		s := c.Sources[name]
		if s == nil {
			errs = append(errs, fmt.Errorf("source %q is nil", name))
		} else if v, ok := s.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				errs = append(errs, fmt.Errorf("source %q: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// validate returns why r cannot be used, or nil.
func (r Retention) validate() error {
	switch {
	case r.Age < 0:
		return fmt.Errorf("retention.age: %v is negative", r.Age)
	case r.Versions != 0 && (r.Versions < 2 || r.Versions > MaxVersions):
		return fmt.Errorf("retention.versions: %d is not between 2, which a difference takes, and %d", r.Versions, MaxVersions)
	case r.Disk < 0 || r.Disk > 1:
		return fmt.Errorf("retention.disk: %v is not a share between 0 and 1", r.Disk)
	}
	return nil
}
