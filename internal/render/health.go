package render

import (
	"fmt"
	"strings"

	"github.com/vokter/vokter/pipeline"
)

// maxPages bounds how many pages of an event are listed.
const maxPages = 5

// eventMeanings describe the events for people.
var eventMeanings = map[pipeline.HealthEvent]string{
	pipeline.HealthFailing:           "checks of this page fail",
	pipeline.HealthRecovered:         "it is read again",
	pipeline.HealthOffline:           "no host can be reached; nothing counts until one answers",
	pipeline.HealthOnline:            "a host answers again",
	pipeline.HealthSelectorGone:      "the selector matches nothing, or the text is empty; what was read before stands",
	pipeline.HealthPageReplaced:      "an error page, a login wall or an empty page stands in its place; the last version stays current",
	pipeline.HealthDormant:           "it failed so often that it is checked ever more rarely",
	pipeline.HealthExpired:           "it failed too often and is not watched any more",
	pipeline.HealthOverdue:           "checks are not made in time",
	pipeline.HealthReceiverFailing:   "the receiver takes nothing at the moment; what is for it waits",
	pipeline.HealthReceiverRecovered: "the receiver takes notifications again",
	pipeline.HealthReceiverExpired:   "the receiver is given up; subscriptions without another one end",
	pipeline.HealthReceiverDegraded:  "notifications arrive, but not as the configuration says",
	pipeline.HealthDeadLetter:        "something was given up; replay brings it back",
	pipeline.HealthFollowBounded:     "not all linked pages are watched",
	pipeline.HealthRebaselined:       "it has a new baseline, since its text is made by other rules",
}

// recoveryEvents are the events that end a fault.
var recoveryEvents = map[pipeline.HealthEvent]bool{
	pipeline.HealthRecovered: true, pipeline.HealthOnline: true, pipeline.HealthReceiverRecovered: true,
}

// healthMessage returns the Message of a health event.
func healthMessage(h pipeline.Health, b Budget) Message {
	name := strings.ReplaceAll(Clean(string(h.Event)), "_", " ")
	m := Message{Headline: name, Title: healthSubject(h), URL: safeURL(h.URL), Health: true, Good: recoveryEvents[h.Event], Reason: eventMeanings[h.Event]}
	switch {
	case m.Reason == "":
		m.Reason = name
	case h.Event == pipeline.HealthDeadLetter && h.Receiver == nil:
		m.Reason = "a message could not be handled; it is kept, but cannot be replayed"
	}
	if f := healthFacts(h, b); f != "" {
		m.Reason += " (" + f + ")"
	}
	if why := Short(Clean(h.Reason), maxReason); why != "" {
		m.Reason += ": " + why
	}
	for i, u := range h.URLs {
		if i == maxPages {
			m.Pages = append(m.Pages, Entry{Title: fmt.Sprintf("... and %d more", len(h.URLs)-i)})
			break
		}
		m.Pages = append(m.Pages, Entry{Title: Short(Page(u), maxTitle)})
	}
	return m
}

// healthFacts describes the count and the beginning of a fault.
func healthFacts(h pipeline.Health, b Budget) string {
	var facts []string
	switch {
	case h.Count <= 0:
	case h.Event == pipeline.HealthOverdue:
		facts = append(facts, fmt.Sprintf("pages: %d", h.Count))
	case h.Event == pipeline.HealthOffline:
		facts = append(facts, fmt.Sprintf("hosts: %d", h.Count))
	default:
		facts = append(facts, fmt.Sprintf("failures in a row: %d", h.Count))
	}
	if !h.Since.IsZero() {
		at := h.Since.UTC().Format("2 Jan 15:04:05 MST")
		if b.Location != nil {
			at = h.Since.In(b.Location).Format("2 Jan 15:04:05")
		}
		facts = append(facts, "since "+at)
	}
	s := strings.Join(facts, ", ")
	if recoveryEvents[h.Event] && s != "" {
		s = "before: " + s
	}
	return s
}

// healthSubject returns the page or the receiver of h.
func healthSubject(h pipeline.Health) string {
	var parts []string
	if h.Receiver != nil {
		parts = append(parts, "sink "+Clean(h.Receiver.Sink))
	}
	if h.URL != "" {
		parts = append(parts, Page(h.URL))
	}
	return Short(strings.Join(parts, "  "), maxTitle)
}
