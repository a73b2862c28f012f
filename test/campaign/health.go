//go:build unix

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ownerClient is the client that receives health events.
const ownerClient = "owner"

// healthEvent is the documented body of a health event, as far as it matters here.
type healthEvent struct {
	ID       string `json:"id"`
	Event    string `json:"event"`
	URL      string `json:"url"`
	Receiver *struct {
		Sink string `json:"sink"`
	} `json:"receiver"`
}

// The events that happen in a campaign. Nothing else may be told: no receiver is given up,
// no check is late, and there are too few hosts to be offline.
const (
	failing           = "failing"
	recovered         = "recovered"
	expired           = "expired"
	receiverFailing   = "receiver_failing"
	receiverRecovered = "receiver_recovered"
	deadLetter        = "dead_letter"
)

// healthEvents holds the health events of the owner, each once and in order of first arrival: those of
// pages by number, those of receivers by client.
type healthEvents struct {
	pages     map[int][]string
	receivers map[string][]string
}

// readHealth reads the health events.
func (v *verdict) readHealth(mails []mail) healthEvents {
	w := healthEvents{map[int][]string{}, map[string][]string{}}
	bodies := map[string][]byte{}
	under := map[string]string{} // the notification of each event
	for _, m := range mails {
		e := m.notification.Health
		if m.id == "" || m.id != m.notification.ID || m.notification.Type != "health" ||
			e == nil || e.ID == "" || e.Event != m.notification.Status {
			v.addWrong("health: not an event: %s %s", m.id, m.body)
			continue
		}
		if before, seen := bodies[m.id]; seen {
			if !bytes.Equal(before, m.body) {
				v.addWrong("health: ID %s came with two bodies: %s and %s", m.id, before, m.body)
			}
			continue
		}
		bodies[m.id] = m.body
		if other, seen := under[e.ID]; seen {
			v.addWrong("health: event %s (%s) came as %s and as %s", e.ID, e.Event, other, m.id)
			continue
		}
		under[e.ID] = m.id
		page := pagePattern.FindStringSubmatch(e.URL)
		switch {
		case e.Receiver != nil:
			client := strings.TrimPrefix(e.Receiver.Sink, "hook-")
			w.receivers[client] = append(w.receivers[client], e.Event)
		case page != nil:
			n, _ := strconv.Atoi(page[1])
			w.pages[n] = append(w.pages[n], e.Event)
		default:
			v.addWrong("health: nothing of this kind can have happened: %s", m.body)
		}
	}
	return w
}

// judgeHealth judges the health events.
func (v *verdict) judgeHealth(e evidence) {
	w := v.readHealth(e.health)
	v.events = map[string]int{}
	for _, of := range []map[string][]string{byName(w.pages), w.receivers} {
		for _, events := range of {
			for _, event := range events {
				v.events[event]++
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(w.pages)) {
		if n >= len(e.pages) {
			v.addWrong("health: there is no page %d", n)
			continue
		}
		lives := 1 + endedPeriods(e.subscriptions[guestClient][n])
		if !isGuestOnly(n) {
			lives = 1 // others never leave it
		}
		v.judgePage(n, w.pages[n], len(e.pages[n].expiries), lives)
	}
	for _, client := range slices.Sorted(maps.Keys(w.receivers)) {
		v.judgeReceiver(client, w.receivers[client], e)
	}
	for _, what := range w.missing(e) {
		v.addLost("health: %s", what)
	}
}

func byName(pages map[int][]string) map[string][]string {
	named := map[string][]string{}
	for n, events := range pages {
		named[fmt.Sprint(n)] = events
	}
	return named
}

// endedPeriods is how many of ps were asked to end.
func endedPeriods(ps []*subscriptionPeriod) (n int) {
	for _, p := range ps {
		if !p.isOpen() {
			n++
		}
	}
	return n
}

// judgePage judges the events of a page that was given up dooms times and had lives incarnations. Each of them begins
// well, and ends without an event when the last client leaves.
func (v *verdict) judgePage(n int, events []string, dooms, lives int) {
	last := ""
	for _, event := range events {
		switch {
		case event == failing && last == failing && lives > 1:
			lives--
		case event == failing && last != failing, event == recovered && last == failing:
		case event == expired && last == failing && dooms > 0:
			dooms--
		default:
			v.addWrong("health: page %d: %q after %q (of %v)", n, event, last, events)
		}
		last = event
	}
}

// judgeReceiver judges the events of a receiver.
func (v *verdict) judgeReceiver(client string, events []string, e evidence) {
	last := ""
	dropped := 0 // what was pending of it may have gone without a word, and that it failed with it
	for _, ps := range e.subscriptions[client] {
		dropped += endedPeriods(ps)
	}
	dead := 0
	for _, event := range events {
		switch {
		case client == pickyClient && event == deadLetter:
			dead++
			continue
		case client == ownerClient, !slices.Contains(clients, client):
		case event == receiverFailing && last == receiverFailing && dropped > 0:
			dropped--
			continue
		case event == receiverFailing && last != receiverFailing, event == receiverRecovered && last == receiverFailing:
			last = event
			continue
		}
		v.addWrong("health: receiver of %s: %q after %q (of %v)", client, event, last, events)
	}
	if most := 1 + len(e.mails[client]); dead > most {
		v.addWrong("health: receiver of %s: %d times that something was given up, and it took only %d between", client, dead, most-1)
	}
}

// missing lists the events that the owner must have got and did not. Nothing fails any
// more but the pages that were given up.
func (w healthEvents) missing(e evidence) (missing []string) {
	for n, h := range e.pages {
		events := w.pages[n]
		given := 0
		for _, event := range events {
			if event == expired {
				given++
			}
		}
		if given < len(h.expiries) {
			missing = append(missing, fmt.Sprintf("page %d: %q came %d times, want %d (%v)", n, expired, given, len(h.expiries), events))
		} else if len(events) > 0 && events[len(events)-1] == failing && !isGuestOnly(n) {
			missing = append(missing, fmt.Sprintf("page %d: no %q after the last of %v", n, recovered, events))
		}
	}
	for _, client := range clients {
		events := slices.DeleteFunc(slices.Clone(w.receivers[client]), func(event string) bool { return event == deadLetter })
		if n := len(events); client != guestClient && n > 0 && events[n-1] == receiverFailing {
			missing = append(missing, fmt.Sprintf("receiver of %s: no %q after the last of %v", client, receiverRecovered, events))
		}
	}
	return missing
}
