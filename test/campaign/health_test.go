//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// eventMail returns the nth mail to the owner, about the event what.
func eventMail(n int, what, about string) mail {
	e := healthEvent{ID: fmt.Sprint("event", n), Event: what}
	if client, ok := strings.CutPrefix(about, "hook-"); ok {
		e.Receiver = &struct {
			Sink string `json:"sink"`
		}{"hook-" + client}
	} else {
		e.URL = "http://127.0.0.1:1/page/" + about
	}
	id := fmt.Sprint("id", n)
	m := mail{id: id, notification: notification{ID: id, Status: what, URL: e.URL, Type: "health", Health: &e}}
	m.body, _ = json.Marshal(m.notification) // every field is encodable
	return m
}

// ownerMails are mails about events, written "about:event".
func ownerMails(events ...string) (ms []mail) {
	for n, s := range events {
		about, what, _ := strings.Cut(s, ":")
		ms = append(ms, eventMail(n, what, about))
	}
	return ms
}

// pagesGivenUp has 7 pages, of which page 5 was given up so many times. Page 6 has no client but the guest.
func pagesGivenUp(n int) []pageHistory {
	pages := make([]pageHistory, 7)
	pages[5].expiries = make([]expiry, n)
	return pages
}

func TestHealthIsJudged(t *testing.T) {
	left := subscriptionHistory{guestClient: {6: {{cancelledAt: time.Unix(1, 0)}, {knownAtVersion: 1}}}}
	for name, c := range map[string]struct {
		e           evidence
		lost, wrong int
	}{
		"nothing":                          {evidence{pages: pagesGivenUp(0)}, 0, 0},
		"failing and back, twice":          {evidence{pages: pagesGivenUp(0), health: ownerMails("2:failing", "2:recovered", "2:failing", "2:recovered")}, 0, 0},
		"two pages":                        {evidence{pages: pagesGivenUp(0), health: ownerMails("2:failing", "3:failing", "3:recovered", "2:recovered")}, 0, 0},
		"failing twice":                    {evidence{pages: pagesGivenUp(0), health: ownerMails("2:failing", "2:failing", "2:recovered")}, 0, 1},
		"recovered twice":                  {evidence{pages: pagesGivenUp(0), health: ownerMails("2:failing", "2:recovered", "2:recovered")}, 0, 1},
		"recovered from nothing":           {evidence{pages: pagesGivenUp(0), health: ownerMails("2:recovered")}, 0, 1},
		"not recovered":                    {evidence{pages: pagesGivenUp(0), health: ownerMails("2:failing")}, 1, 0},
		"given up":                         {evidence{pages: pagesGivenUp(1), health: ownerMails("5:failing", "5:expired")}, 0, 0},
		"given up and begun anew":          {evidence{pages: pagesGivenUp(2), health: ownerMails("5:failing", "5:expired", "5:failing", "5:expired")}, 0, 0},
		"given up unheard":                 {evidence{pages: pagesGivenUp(1), health: ownerMails("5:failing")}, 1, 0},
		"given up too often":               {evidence{pages: pagesGivenUp(1), health: ownerMails("5:failing", "5:expired", "5:failing", "5:expired")}, 0, 1},
		"given up twice at once":           {evidence{pages: pagesGivenUp(2), health: ownerMails("5:failing", "5:expired", "5:expired")}, 0, 1},
		"given up out of the blue":         {evidence{pages: pagesGivenUp(1), health: ownerMails("5:expired")}, 0, 1},
		"a page that was left":             {evidence{pages: pagesGivenUp(0), subscriptions: left, health: ownerMails("6:failing", "6:failing", "6:recovered")}, 0, 0},
		"a page that was left once":        {evidence{pages: pagesGivenUp(0), subscriptions: left, health: ownerMails("6:failing", "6:failing", "6:failing")}, 0, 1},
		"a page that does not exist":       {evidence{pages: pagesGivenUp(0), health: ownerMails("9:failing")}, 0, 1},
		"an event that cannot happen":      {evidence{pages: pagesGivenUp(0), health: ownerMails("2:selector_gone")}, 0, 1},
		"a receiver":                       {evidence{health: ownerMails("hook-ann:receiver_failing", "hook-ann:receiver_recovered", "hook-bob:receiver_failing", "hook-bob:receiver_recovered")}, 0, 0},
		"a receiver that fails twice":      {evidence{health: ownerMails("hook-ann:receiver_failing", "hook-ann:receiver_failing", "hook-ann:receiver_recovered")}, 0, 1},
		"a receiver that was well":         {evidence{health: ownerMails("hook-ann:receiver_recovered")}, 0, 1},
		"a receiver that never came back":  {evidence{health: ownerMails("hook-ann:receiver_failing")}, 1, 0},
		"a receiver that is given up":      {evidence{health: ownerMails("hook-ann:receiver_failing", "hook-ann:receiver_expired")}, 0, 1},
		"the guest's, with what it left":   {evidence{subscriptions: left, health: ownerMails("hook-guest:receiver_failing", "hook-guest:receiver_failing")}, 0, 0},
		"the guest's, once too often":      {evidence{subscriptions: left, health: ownerMails("hook-guest:receiver_failing", "hook-guest:receiver_failing", "hook-guest:receiver_failing")}, 0, 1},
		"the owner's own":                  {evidence{health: ownerMails("hook-owner:receiver_failing")}, 0, 1},
		"dead letters with mails between":  {evidence{mails: map[string][]mail{pickyClient: {{}}}, health: ownerMails("hook-picky:dead_letter", "hook-picky:dead_letter")}, 0, 1 /* the mail itself */},
		"dead letters of one failure":      {evidence{health: ownerMails("hook-picky:dead_letter", "hook-picky:dead_letter")}, 0, 1},
		"a dead letter of another":         {evidence{health: ownerMails("hook-ann:dead_letter")}, 0, 1},
		"an event of the process":          {evidence{health: []mail{{id: "id", notification: notification{ID: "id", Type: "health", Status: "overdue", Health: &healthEvent{ID: "e", Event: "overdue"}}}}}, 0, 1},
		"what is no event":                 {evidence{health: []mail{{id: "id", notification: notification{ID: "id", Type: "notification"}}}}, 0, 1},
		"an event under two notifications": {evidence{pages: pagesGivenUp(0), health: []mail{eventMail(1, failing, "2"), underOtherID(eventMail(1, failing, "2")), eventMail(2, recovered, "2")}}, 0, 1},
		"a repeat":                         {evidence{pages: pagesGivenUp(0), kills: 1, health: []mail{eventMail(1, failing, "2"), eventMail(1, failing, "2"), eventMail(2, recovered, "2")}}, 0, 0},
		"a repeat with other content":      {evidence{pages: pagesGivenUp(0), kills: 1, health: []mail{eventMail(1, failing, "2"), eventMail(1, recovered, "2"), eventMail(2, recovered, "2")}}, 0, 1},
	} {
		if v := judge(c.e); v.lost != c.lost || v.wrong != c.wrong {
			t.Errorf("%s: got lost=%d wrong=%d, want %d and %d: %q", name, v.lost, v.wrong, c.lost, c.wrong, v.details)
		}
	}
}

// underOtherID returns m under another ID.
func underOtherID(m mail) mail {
	m.id, m.notification.ID = m.id+"again", m.notification.ID+"again"
	return m
}

func TestHealthIsCounted(t *testing.T) {
	v := judge(evidence{pages: pagesGivenUp(0), health: ownerMails("2:failing", "2:recovered", "3:failing", "3:recovered", "hook-ann:receiver_failing", "hook-ann:receiver_recovered")})
	if v.events[failing] != 2 || v.events[recovered] != 2 || v.events[receiverFailing] != 1 || len(v.events) != 4 {
		t.Errorf("got %v", v.events)
	}
}

// TestWhatIsStillAwaitedIsLost has nothing to say of what arrived.
func TestWhatIsStillAwaitedIsLost(t *testing.T) {
	if v := judge(evidence{timedOut: []string{"page 3: that it was given up"}}); v.lost != 1 || !strings.Contains(v.details[0], "page 3") {
		t.Errorf("got lost=%d: %q", v.lost, v.details)
	}
}
