package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Properties of a notification by which a sink can group.
const (
	GroupByHost     = "host"     // the host and port of the page
	GroupByURL      = "url"      // the page
	GroupByClient   = "client"   // the client
	GroupByKeyword  = "keyword"  // the keywords that were found
	GroupBySeverity = "severity" // the severity of the subscription
)

// Grouping lists the properties of Receiving.GroupBy.
func Grouping() []string {
	return []string{GroupByClient, GroupByHost, GroupByKeyword, GroupBySeverity, GroupByURL}
}

// Bounds and default of Receiving.
const (
	MinGroupWait     = time.Second
	MaxGroupWait     = 24 * time.Hour
	DefaultGroupWait = time.Minute
	MaxFallbackAfter = 72 * time.Hour
)

// Receiving says how a sink gets its notifications, whichever subscriptions they are of. The zero
// Receiving delivers each at once.
type Receiving struct {
	// GroupBy collects the notifications that have the same values of these properties, and
	// delivers them as one notification of the type digest. The properties are the GroupBy
	// constants. Notifications for different channels are never in one group.
	GroupBy []string
	// GroupWait is the time from the first notification of a group to its delivery, between
	// MinGroupWait and MaxGroupWait. 0 means DefaultGroupWait if GroupBy is set.
	GroupWait time.Duration
	// Quiet are hours of the day in which the sink gets no notifications of changes. They are
	// collected and delivered at the end of these hours, as one for each group, or as one
	// altogether without GroupBy.
	Quiet Quiet
	// Fallback is the name of the sink that gets the notifications when this one has failed for
	// FallbackAfter, and those that this one refuses. Empty means none.
	Fallback      string
	FallbackAfter time.Duration
	// Paused holds all notifications for the sink back until it is not paused any more.
	Paused bool
}

// Validate returns all that is wrong with r as joined FieldErrors, or nil.
func (r Receiving) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, &FieldError{field, fmt.Sprintf(format, args...)})
	}
	for i, by := range r.GroupBy {
		switch {
		case !slices.Contains(Grouping(), by):
			bad(fmt.Sprintf("group_by[%d]", i), "%q cannot be grouped by; choose from %s", by, strings.Join(Grouping(), ", "))
		case slices.Contains(r.GroupBy[:i], by):
			bad(fmt.Sprintf("group_by[%d]", i), "%q is listed twice", by)
		}
	}
	switch {
	case r.GroupWait != 0 && len(r.GroupBy) == 0:
		bad("group_wait", "it needs group_by, which says what is grouped")
	case r.GroupWait != 0 && (r.GroupWait < MinGroupWait || r.GroupWait > MaxGroupWait):
		bad("group_wait", "%s is not between %s and %s", r.GroupWait, MinGroupWait, MaxGroupWait)
	}
	if err := r.Quiet.Validate(); err != nil {
		bad("quiet", "%v", err)
	}
	switch {
	case r.Fallback == "" && r.FallbackAfter != 0:
		bad("fallback.to", "name the sink that gets the notifications")
	case r.Fallback != "" && (r.FallbackAfter < time.Second || r.FallbackAfter > MaxFallbackAfter):
		bad("fallback.after", "%s is not between 1s and %s", r.FallbackAfter, MaxFallbackAfter)
	}
	return errors.Join(errs...)
}

// Digest returns how the notifications of a group are collected.
func (r Receiving) Digest() Digest {
	d := Digest{Max: maxDigestItems, Quiet: r.Quiet}
	if len(r.GroupBy) > 0 {
		d.Every = Duration(cmp.Or(r.GroupWait, DefaultGroupWait))
	}
	return d
}

// Group returns the key of the group that n belongs to. ok is false if n is not of a change of a
// page, such as a health event or a timeout: these are delivered at once.
func (r Receiving) Group(n Notification) (key []string, ok bool) {
	if n.Type != NotificationType || n.Status != StatusOK {
		return nil, false
	}
	key = append(key, n.Channel)
	for _, by := range r.GroupBy {
		switch by {
		case GroupByHost:
			key = append(key, HostOf(n.URL))
		case GroupByURL:
			key = append(key, n.URL)
		case GroupByClient:
			key = append(key, n.Client)
		case GroupBySeverity:
			key = append(key, n.Severity)
		case GroupByKeyword:
			key = append(key, strings.Join(n.Keywords(), "\x00"))
		}
	}
	return key, true
}

// Keywords returns the keywords of n in alphabetical order, each once.
func (n Notification) Keywords() []string {
	var all []string
	for _, d := range n.Diffs {
		if d.Keyword != "" {
			all = append(all, d.Keyword)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// HostOf returns the host of a URL in lower case, with the port that it names. It is empty for a
// file and for a URL that cannot be read.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}
