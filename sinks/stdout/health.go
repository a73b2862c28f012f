package stdout

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/vokter/vokter/pipeline"
)

// maxReason bounds a reason, in runes.
const maxReason = 300

// maxURLs bounds how many pages of an event are listed.
const maxURLs = 5

// meanings say what the events are, to people.
var meanings = map[pipeline.HealthEvent]string{
	pipeline.HealthFailing:           "checks of this page fail",
	pipeline.HealthRecovered:         "it is read again",
	pipeline.HealthOffline:           "no host can be reached; nothing counts until one answers",
	pipeline.HealthOnline:            "a host answers again",
	pipeline.HealthSelectorGone:      "the selector matches nothing, or the text is empty; what was read before stands",
	pipeline.HealthPageReplaced:      "the text shrank to a login wall or an empty shell; what was read before stands",
	pipeline.HealthExpired:           "it failed too often and is not watched any more",
	pipeline.HealthOverdue:           "checks are not made in time",
	pipeline.HealthReceiverFailing:   "the receiver takes nothing at the moment; what is for it waits",
	pipeline.HealthReceiverRecovered: "the receiver takes notifications again",
	pipeline.HealthReceiverExpired:   "the receiver is given up; subscriptions without another one end",
	pipeline.HealthDeadLetter:        "something was given up; replay brings it back",
	pipeline.HealthRebaselined:       "it has a new baseline, since its text is made by other rules",
}

// good are the events after which all is well.
var good = map[pipeline.HealthEvent]bool{
	pipeline.HealthRecovered: true, pipeline.HealthOnline: true, pipeline.HealthReceiverRecovered: true,
}

// health returns the rest of the heading, and what it means.
func (p printer) health(h pipeline.Health) string {
	event := Clean(string(h.Event))
	name, color, sign := strings.ReplaceAll(event, "_", " "), yellow, "!"
	if good[h.Event] {
		color, sign = green, "*"
	}
	head := "  " + p.style(name, color+bold)
	if about := aboutOf(h); about != "" {
		head += "  " + p.style(about, dim)
	}
	text := meanings[h.Event]
	if text == "" {
		text = name
	}
	if f := p.facts(h); f != "" {
		text += " (" + f + ")"
	}
	body := p.note(sign, color, text, h.Reason)
	for i, u := range h.URLs {
		if i == maxURLs {
			body += "    " + p.style(fmt.Sprintf("... and %d more", len(h.URLs)-i), dim) + "\n"
			break
		}
		body += "    " + p.style(short(pageName(u), maxURL), dim) + "\n"
	}
	return head + "\n" + body
}

// facts says how many and since when.
func (p printer) facts(h pipeline.Health) string {
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
		facts = append(facts, "since "+h.Since.In(p.location).Format("2 Jan 15:04:05"))
	}
	s := strings.Join(facts, ", ")
	if good[h.Event] && s != "" {
		s = "before: " + s
	}
	return s
}

// aboutOf is the page or the receiver of h.
func aboutOf(h pipeline.Health) string {
	var parts []string
	if h.Receiver != nil {
		parts = append(parts, "sink "+Clean(h.Receiver.Sink))
		if h.Receiver.Target != "" {
			parts = append(parts, Clean(h.Receiver.Target))
		}
	}
	if h.URL != "" {
		parts = append(parts, pageName(h.URL))
	}
	return short(strings.Join(parts, "  "), maxURL)
}

// note returns text and its reason behind sign, in lines of the terminal's width.
func (p printer) note(sign, color, text, reason string) string {
	if r := short(Clean(reason), maxReason); r != "" {
		text += ": " + r
	}
	body := p.paragraph(text, 0, len(text), 2+utf8.RuneCountInString(sign)+1, func(int) string { return color })
	return "  " + p.style(sign, color) + " " + body + "\n"
}
