// Package route passes notifications on to other sinks, by rules: who is told depends on the host
// of the page, the client, the keyword, the tags, the severity and the time of day. It delivers nothing
// itself.
//
// The rules are tried in their order. The first one that applies decides, unless it says
// continue. Where none applies, the sinks in to get it. A notification is passed on
// in one transaction, so that no crash loses or doubles it, and a sink that several rules name
// gets it once. Rules apply to each notification; a digest is collected behind them.
//
// A subscription that names a route ends only when its page expires or it is cancelled, not when
// one of the sinks behind the route expires.
package route

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of a route.
type Config struct {
	// To are the names of the sinks that get what no rule applies to. Default: none, and such
	// notifications are dropped.
	To registry.Texts `yaml:"to"`
	// Routes are the rules: a list of entries with when, to and continue.
	Routes []Rule `yaml:"routes"`
}

// Rule says which sinks get which notifications.
type Rule struct {
	// When has the conditions, which must all hold. A rule without it always applies.
	When Conditions `yaml:"when"`
	// To are the names of the sinks that get a notification to which the rule applies. It may be
	// empty: then these notifications are dropped.
	To registry.Texts `yaml:"to"`
	// Continue says that the rules behind this one are tried as well.
	Continue bool `yaml:"continue"`
}

// Conditions are those of a rule. Of each list one entry must fit; an empty one fits everything.
type Conditions struct {
	// Host has hosts of pages, such as shop.example.com or *.example.com.
	Host registry.Texts `yaml:"host"`
	// Client has names of clients. An asterisk stands for any characters but a slash.
	Client registry.Texts `yaml:"client"`
	// Keyword has keywords as subscriptions write them, of which one was found.
	Keyword registry.Texts `yaml:"keyword"`
	// Tag has tags of subscriptions, of which one must have been given.
	Tag registry.Texts `yaml:"tag"`
	// Severity has severities of subscriptions: info, warning or critical.
	Severity registry.Texts `yaml:"severity"`
	// Time has hours of the day, such as 08:00-18:00 Europe/Berlin.
	Time pipeline.Quiet `yaml:"time"`
	// Days has days of the week in the time zone of Time: mon, tue, wed, thu, fri, sat or sun.
	Days registry.Texts `yaml:"days"`
}

// Route is a sink that passes notifications on to other sinks.
type Route struct {
	defaultTo []string
	rules     []Rule
}

var _ pipeline.RoutingSink = (*Route)(nil)

// New returns the route of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Route, error) {
	r := &Route{defaultTo: c.To, rules: c.Routes}
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	if len(r.Targets()) == 0 {
		bad("to", "the route leads nowhere; name a sink here, or in an entry of routes")
	}
	for i, rule := range c.Routes {
		when := fmt.Sprintf("routes[%d].when", i)
		for _, list := range []struct {
			field    string
			patterns []string
		}{{"host", rule.When.Host}, {"client", rule.When.Client}} {
			for _, p := range list.patterns {
				if _, err := path.Match(p, ""); err != nil || p == "" {
					bad(when+"."+list.field, "%q is not a pattern; write a name, with * for any characters", p)
				}
			}
		}
		if err := rule.When.Time.Validate(); err != nil {
			bad(when+".time", "%v", err)
		}
		for _, s := range rule.When.Severity {
			if !slices.Contains(pipeline.Severities(), s) {
				bad(when+".severity", "%q is not a severity; write %s", s, strings.Join(pipeline.Severities(), ", "))
			}
		}
		for _, day := range rule.When.Days {
			if !slices.Contains(days, day) {
				bad(when+".days", "%q is not a day; write %s", day, strings.Join(days, ", "))
			}
		}
		if i < len(c.Routes)-1 && rule.When.isEmpty() && !rule.Continue {
			bad(fmt.Sprintf("routes[%d]", i), "it has no conditions, so that no entry behind it is reached; add when, or continue: true, or put it last")
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Register registers the kind of sink "route" with r.
func Register(r *registry.Registry) {
	registry.AddSink(r, "route", func(c Config, _ registry.Env) (*Route, error) { return New(c) })
}

// Targets returns the names of all sinks that the route may lead to.
func (r *Route) Targets() []string {
	all := slices.Clone(r.defaultTo)
	for _, rule := range r.rules {
		all = append(all, rule.To...)
	}
	return unique(all)
}

// Route returns the names of the sinks that get n at the time at.
func (r *Route) Route(n pipeline.Notification, at time.Time) []string {
	var to []string
	applied := false
	for _, rule := range r.rules {
		if !rule.When.match(n, at) {
			continue
		}
		applied = true
		to = append(to, rule.To...)
		if !rule.Continue {
			return unique(to)
		}
	}
	if !applied {
		to = r.defaultTo
	}
	return unique(to)
}

// Deliver fails: a route delivers nothing itself.
func (r *Route) Deliver(context.Context, pipeline.Notification) error {
	return failure.Permanent(fmt.Errorf("a route delivers nothing itself; test the sinks that it leads to: %s", strings.Join(r.Targets(), ", ")))
}

// unique returns names in their order, each once.
func unique(names []string) []string {
	var all []string
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// days are the days of the week, in the order of time.Weekday.
var days = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// isEmpty reports whether c has no conditions.
func (c Conditions) isEmpty() bool {
	return len(c.Host)+len(c.Client)+len(c.Keyword)+len(c.Tag)+len(c.Severity)+len(c.Days) == 0 && c.Time.IsZero()
}

// match reports whether all conditions hold for n at the time at.
func (c Conditions) match(n pipeline.Notification, at time.Time) bool {
	return anyMatch(c.Host, hostsOf(n), matchPattern) && anyMatch(c.Client, []string{n.Client}, matchPattern) &&
		anyMatch(c.Keyword, n.Keywords(), func(want, is string) bool { return want == is }) &&
		anyMatch(c.Tag, n.Tags, func(want, is string) bool { return want == is }) &&
		(len(c.Severity) == 0 || slices.Contains(c.Severity, n.Severity)) &&
		(c.Time.IsZero() || c.Time.End(at).After(at)) && c.matchDay(at)
}

// anyMatch reports whether one of the wanted fits one of those that there are, or nothing is wanted.
func anyMatch(wanted, are []string, fits func(want, is string) bool) bool {
	return len(wanted) == 0 || slices.ContainsFunc(wanted, func(want string) bool {
		return slices.ContainsFunc(are, func(is string) bool { return fits(want, is) })
	})
}

// hostsOf returns the host of the page of n, with and without its port.
func hostsOf(n pipeline.Notification) []string {
	host := pipeline.HostOf(n.URL)
	name, _, _ := strings.Cut(host, ":")
	return []string{host, name}
}

func matchPattern(pattern, name string) bool {
	ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(name))
	return ok && err == nil
}

// matchDay reports whether at is on one of c.Days, or c has none.
func (c Conditions) matchDay(at time.Time) bool {
	if len(c.Days) == 0 {
		return true
	}
	zone, err := time.LoadLocation(c.Time.Zone) // empty is UTC
	return err == nil && slices.Contains(c.Days, days[at.In(zone).Weekday()])
}
