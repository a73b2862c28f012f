//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/IBM/sarama"
)

// topicState is what the public topics say: what changed, and who is subscribed.
type topicState struct {
	mu              sync.Mutex
	endedPartitions int // partitions of changes and pages that were read to the end
	incarnations    map[string]*incarnation
	textsInChanges  map[int]map[int]bool
	active          map[clientPage]bool
	table           *table
	wrong           []string
}

type clientPage struct {
	client string
	page   int
}

// incarnation is one incarnation of a document: the version that it is at, and which text that is.
type incarnation struct{ version, text int }

func newTopicState() *topicState {
	return &topicState{incarnations: map[string]*incarnation{}, textsInChanges: map[int]map[int]bool{}, active: map[clientPage]bool{}, table: newTable()}
}

// change is the documented body of a change, as far as it matters here.
type change struct {
	URL         string `json:"url"`
	Document    string `json:"document"`
	Incarnation string `json:"incarnation"`
	Version     int    `json:"version"`
	Previous    int    `json:"previous"`
	Groups      []struct {
		Differences []struct {
			Event string `json:"event"`
			Text  string `json:"text"`
		} `json:"differences"`
	} `json:"groups"`
}

// addChange checks and adds a record of the topic changes. The versions of each incarnation of a
// document are 2, 3, 4 …, and each one's text is the one that the next one takes away.
func (s *topicState) addChange(m *sarama.ConsumerMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if header(m, endHeader) != "" {
		s.endedPartitions++
	}
	if header(m, "ce_type") != "vokter.change.v1" {
		return
	}
	var c change
	bad := func(format string, args ...any) {
		s.wrong = append(s.wrong, fmt.Sprintf("changes %d/%d, %s: %s", m.Partition, m.Offset, c.URL, fmt.Sprintf(format, args...)))
	}
	if err := json.Unmarshal(m.Value, &c); err != nil {
		bad("%v", err)
		return
	}
	key := c.Document + " " + c.Incarnation
	l := s.incarnations[key]
	if l == nil {
		l = &incarnation{version: 1}
		s.incarnations[key] = l
	}
	from, to := c.texts()
	page := pagePattern.FindStringSubmatch(c.URL)
	switch {
	case c.Version != l.version+1 || c.Previous != l.version:
		bad("version %d after %d comes behind version %d of %s", c.Version, c.Previous, l.version, key)
	case page == nil, from == 0, to <= from:
		bad("it goes from text %d to %d: %s", from, to, m.Value)
	case l.text != 0 && from != l.text:
		bad("version %d takes text %d away, and version %d of %s was text %d", c.Version, from, l.version, key, l.text)
	}
	*l = incarnation{c.Version, to}
	if page != nil {
		n, _ := strconv.Atoi(page[1])
		if s.textsInChanges[n] == nil {
			s.textsInChanges[n] = map[int]bool{}
		}
		s.textsInChanges[n][to] = true
	}
}

// texts are the versions of the text that c names; 0 where it names none.
func (c change) texts() (from, to int) {
	for _, g := range c.Groups {
		for _, d := range g.Differences {
			if v := markerPattern.FindStringSubmatch(d.Text); v != nil {
				n, _ := strconv.Atoi(v[1])
				if d.Event == "added" {
					to = n
				} else {
					from = n
				}
			}
		}
	}
	return from, to
}

// addSubscription adds a record of the topic subscriptions.
func (s *topicState) addSubscription(m *sarama.ConsumerMessage) {
	var r struct {
		Page         string `json:"page"`
		End          string `json:"end"`
		Until        uint64 `json:"until"`
		Subscription struct {
			Client string `json:"client"`
		} `json:"subscription"`
	}
	page := pagePattern.FindStringSubmatch(string(m.Key))
	if !strings.HasPrefix(header(m, "ce_type"), "vokter.subscription.") || page == nil || json.Unmarshal(m.Value, &r) != nil {
		return
	}
	const forever = 1<<53 - 1
	n, _ := strconv.Atoi(page[1])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active[clientPage{r.Subscription.Client, n}] = r.Until == forever
}

// isActive reports whether a subscription is active, by the records that were read so far.
func (s *topicState) isActive(client string, page int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[clientPage{client, page}]
}

// endedCount returns how many partitions of changes and pages were read to their end.
func (s *topicState) endedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.endedPartitions
}

// judge adds to v what was wrong. Of pages that are watched all the time every text that was
// known to be held must be in a change.
func (s *topicState) judge(v *verdict, pages []pageHistory) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.wrong {
		v.addWrong("%s", w)
	}
	for n, h := range pages {
		for _, text := range slices.Sorted(maps.Keys(h.accepted)) {
			if !isGuestOnly(n) && !canExpire(n) && text > 1 && !s.textsInChanges[n][text] {
				v.addLost("page %d: text %d was taken, and no change tells it", n, text)
			}
		}
	}
}
