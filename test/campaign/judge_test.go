//go:build unix

package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/IBM/sarama"
)

func TestWhatNeverHappened(t *testing.T) {
	all := []string{"health_failing", "health_recovered", "outages", "moods", "dooms", "jumps", "reloads", "replays", "backups"}
	for _, c := range []struct {
		kills        int
		did, without []string
		want         []string
	}{
		{kills: 19},
		{kills: 20, want: all[:2]},
		{kills: 25, want: all[:2]},
		{kills: 26, want: all},
		{kills: 26, did: all},
		{kills: 300, did: all[1:], want: all[:1]},
		{kills: 26, did: all[:8], want: all[8:]},
		{kills: 26, without: []string{"expiry", "jumps", "reloads", "replays", "backups"}, want: all[:4]},
		{kills: 26, without: []string{"outages"}, want: all}, // which cannot be left out
	} {
		var did counters
		did.addN("kills", c.kills)
		for _, what := range c.did {
			did.add(what)
		}
		if got := did.missing(c.without); !slices.Equal(got, c.want) {
			t.Errorf("%d kills, without %q: got %q missing, want %q", c.kills, c.without, got, c.want)
		}
	}
}

// copies are n mails with the same content.
func copies(n int, id string) (ms []mail) {
	for range n {
		ms = append(ms, mail{id: id})
	}
	return ms
}

func TestRepeatsAreBounded(t *testing.T) {
	many := map[string][]mail{}
	for n := range 11 {
		many["ann"] = append(many["ann"], copies(2, fmt.Sprint("id", n))...)
	}
	denied := func(n int) map[string]map[string]int { return map[string]map[string]int{"ann": {"a": n}} }
	for name, c := range map[string]struct {
		e              evidence
		repeats, wrong int
	}{
		"none":                         {evidence{mails: map[string][]mail{"ann": {{id: "a"}, {id: "b"}}}}, 0, 0},
		"one without a kill":           {evidence{mails: map[string][]mail{"ann": copies(2, "a")}}, 1, 2}, // of its ID, and in all
		"one with a kill":              {evidence{kills: 1, mails: map[string][]mail{"ann": copies(2, "a")}}, 1, 0},
		"more than kills":              {evidence{kills: 2, mails: map[string][]mail{"ann": copies(4, "a")}}, 3, 1},
		"denied by the receiver":       {evidence{denied: denied(3), mails: map[string][]mail{"ann": copies(4, "a")}}, 3, 0},
		"denied less often":            {evidence{denied: denied(2), mails: map[string][]mail{"ann": copies(4, "a")}}, 3, 2},
		"the same ID elsewhere":        {evidence{mails: map[string][]mail{"ann": copies(1, "a"), "bob": copies(1, "a")}}, 0, 0},
		"as many as receivers allow":   {evidence{kills: 6, mails: many}, 11, 0},
		"more than one for each":       {evidence{kills: 5, mails: many}, 11, 1},
		"the owner's without a reason": {evidence{health: copies(2, "a")}, 1, 2},
	} {
		var v verdict
		if v.judgeRepeats(c.e); v.repeats != c.repeats || v.wrong != c.wrong {
			t.Errorf("%s: got repeats=%d wrong=%d, want %d and %d: %q", name, v.repeats, v.wrong, c.repeats, c.wrong, v.details)
		}
	}
}

// changeRecord returns the record of a change of page 2 from one text to another.
func changeRecord(incarnation string, version, from, to int) *sarama.ConsumerMessage {
	mark := func(v int) string { return fmt.Sprintf("marker v%dx one%d two%d three%d", v, v, v, v) }
	return &sarama.ConsumerMessage{
		Headers: []*sarama.RecordHeader{{Key: []byte("ce_type"), Value: []byte("vokter.change.v1")}},
		Value: fmt.Appendf(nil, `{"url": "http://127.0.0.1:1/page/2", "document": "d", "incarnation": %q, "version": %d, "previous": %d,
			"groups": [{"differences": [{"event": "removed", "text": %q}, {"event": "added", "text": %q}]}]}`,
			incarnation, version, version-1, mark(from), mark(to)),
	}
}

func TestVersionsFollowOneAnother(t *testing.T) {
	seen := func(texts ...int) map[int]bool {
		m := map[int]bool{}
		for _, text := range texts {
			m[text] = true
		}
		return m
	}
	for name, c := range map[string]struct {
		records     []*sarama.ConsumerMessage
		accepted    map[int]bool
		wrong, lost int
	}{
		"in order":            {[]*sarama.ConsumerMessage{changeRecord("i", 2, 1, 2), changeRecord("i", 3, 2, 3)}, seen(1, 2, 3), 0, 0},
		"two lives":           {[]*sarama.ConsumerMessage{changeRecord("i", 2, 1, 2), changeRecord("j", 2, 2, 3), changeRecord("j", 3, 3, 4)}, nil, 0, 0},
		"a text was not seen": {[]*sarama.ConsumerMessage{changeRecord("i", 2, 1, 3), changeRecord("i", 3, 3, 7)}, seen(1, 3, 7), 0, 0},
		"twice":               {[]*sarama.ConsumerMessage{changeRecord("i", 2, 1, 2), changeRecord("i", 2, 1, 2)}, nil, 1, 0},
		"a gap":               {[]*sarama.ConsumerMessage{changeRecord("i", 2, 1, 2), changeRecord("i", 4, 2, 3)}, nil, 1, 0},
		"not from the first":  {[]*sarama.ConsumerMessage{changeRecord("i", 3, 2, 3)}, nil, 1, 0},
		"another text":        {[]*sarama.ConsumerMessage{changeRecord("i", 2, 1, 2), changeRecord("i", 3, 3, 4)}, nil, 1, 0},
		"backwards":           {[]*sarama.ConsumerMessage{changeRecord("i", 2, 2, 1)}, nil, 1, 0},
		"a text is missing":   {[]*sarama.ConsumerMessage{changeRecord("i", 2, 1, 2)}, seen(1, 2, 3), 0, 1},
		"no JSON":             {[]*sarama.ConsumerMessage{{Headers: changeRecord("", 2, 1, 2).Headers, Value: []byte("{")}}, nil, 1, 0},
		"another type":        {[]*sarama.ConsumerMessage{{Value: []byte("{")}}, nil, 0, 0},
	} {
		s := newTopicState()
		for _, r := range c.records {
			s.addChange(r)
		}
		var v verdict
		if s.judge(&v, []pageHistory{{}, {}, {accepted: c.accepted}}); v.wrong != c.wrong || v.lost != c.lost {
			t.Errorf("%s: got wrong=%d lost=%d, want %d and %d: %q", name, v.wrong, v.lost, c.wrong, c.lost, v.details)
		}
	}
}

func TestAddresses(t *testing.T) {
	for s, want := range map[string]bool{
		"127.0.0.1:9092": true, "a.example.com:1,b:2": true, "[::1]:9092": true,
		"./broker": false, "broker": false, "/opt/kafka/broker:1": false, "a:9092,": false, "": false,
	} {
		if got := brokerAddresses.MatchString(s); got != want {
			t.Errorf("%q: got %v, want %v", s, got, want)
		}
	}
}
