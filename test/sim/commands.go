package sim

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

var clients = []string{"ann", "bob", "cy", "dee"}

// origins are who sends lists of subscriptions.
var origins = []string{"yaml", "go", "api", "api/list"}

// sendRandomCommand sends one command about one page.
func (w *world) sendRandomCommand() {
	s := pick(w.rng, w.sites)
	if w.rng.IntN(16) == 0 { // everybody leaves
		for _, c := range clients {
			w.sendCommand(s, flow.TypeCancel, flow.CancelCommand{URL: s.url, Client: c})
		}
		for _, o := range origins {
			w.sendCommand(s, flow.TypeApply, flow.ApplyCommand{URL: s.url, Origin: o})
		}
		return
	}
	switch w.rng.IntN(13) {
	case 12:
		c := flow.PauseCommand{URL: pick(w.rng, s.spellings), Client: pick(w.rng, clients)}
		if w.rng.IntN(2) == 0 {
			c.Until = w.now.Add(pick(w.rng, []time.Duration{time.Minute, 10 * time.Minute, 3 * time.Hour}))
		}
		w.sendCommand(s, flow.TypePause, c)
	case 0, 1:
		w.sendCommand(s, flow.TypeCancel, flow.CancelCommand{URL: pick(w.rng, s.spellings), Client: pick(w.rng, clients)})
	case 2, 3, 4:
		origin := pick(w.rng, origins)
		a := flow.ApplyCommand{URL: s.url, Origin: origin, Keep: w.rng.IntN(6) == 0, Resume: w.rng.IntN(6) == 0}
		if w.rng.IntN(2) == 0 {
			a.Client = pick(w.rng, clients)
		}
		seen := make(map[string]bool)
		for range w.rng.IntN(4) {
			sub := w.randomSubscription(s)
			if a.Client != "" {
				sub.Client = a.Client
			}
			if pair := sub.Client + documentID(s, sub); !seen[pair] {
				seen[pair] = true
				a.Subscriptions = append(a.Subscriptions, sub)
			}
		}
		s.lastApply = &a
		w.sendCommand(s, flow.TypeApply, a)
	case 5:
		w.sendCommand(s, flow.TypeCheckNow, nil)
	case 6:
		c := flow.ResumeCommand{URL: pick(w.rng, s.spellings)}
		if w.rng.IntN(2) == 0 {
			c.Client = pick(w.rng, clients)
		}
		w.sendCommand(s, flow.TypeResume, c)
	case 7:
		w.resendList(s)
	case 8: // two programs at once
		first, second := w.randomSubscription(s), w.randomSubscription(s)
		for !reflect.DeepEqual(second.View, first.View) {
			second = w.randomSubscription(s)
		}
		second.URL, second.Client = first.URL, first.Client
		w.sendCommand(s, flow.TypeSubscribe, flow.SubscribeCommand{Subscription: first, Origin: "api"})
		if w.rng.IntN(3) == 0 {
			w.sendCommand(s, flow.TypeCancel, flow.CancelCommand{URL: first.URL, Client: first.Client})
		}
		w.sendCommand(s, flow.TypeSubscribe, flow.SubscribeCommand{Subscription: second, Origin: "api"})
	default:
		sub := w.randomSubscription(s)
		w.sendCommand(s, flow.TypeSubscribe, flow.SubscribeCommand{Subscription: sub, Origin: "api"})
		if sub.Follow == nil {
			return
		}
		for _, other := range w.sites { // the client wants the same of pages that this one links to
			if slices.Contains(s.current.links, other.url) && w.rng.IntN(2) == 0 {
				sub.URL = other.url
				w.sendCommand(other, flow.TypeSubscribe, flow.SubscribeCommand{Subscription: sub, Origin: "api"})
			}
		}
	}
}

// resendList sends the last list of subscriptions once more, as a process that starts does,
// with one of them left out or all the same.
func (w *world) resendList(s *site) {
	if s.lastApply == nil {
		return
	}
	a := *s.lastApply
	a.Resume = false
	if n := len(a.Subscriptions); n > 0 && w.rng.IntN(3) == 0 {
		a.Subscriptions = a.Subscriptions[:n-1]
	}
	w.sendCommand(s, flow.TypeApply, a)
}

// requestReplay asks for the dead letters of a sink to be delivered again.
func (w *world) requestReplay(sink string, filter flow.DeadFilter) {
	b, err := json.Marshal(flow.ReplayCommand{Filter: filter})
	if err != nil {
		panic(fmt.Sprintf("sim: replay: %v", err)) // every field is encodable
	}
	w.replayCount++
	w.tracef("replay %s %s", sink, b)
	w.publish(flow.Message{
		ID:    flow.DeriveID("replay", strconv.FormatUint(w.cfg.Seed, 10), strconv.Itoa(w.replayCount)),
		Topic: flow.TopicDead, Key: sink, Type: flow.TypeReplay, Time: w.now, Body: b,
	})
}

func documentID(s *site, sub pipeline.Subscription) string {
	return flow.DocumentOf(s.url, sub)
}

// sendCommand publishes a command in the page's own order.
func (w *world) sendCommand(s *site, kind string, body any) {
	w.commandCount++
	w.stats.Commands++
	m := flow.Message{
		ID:    flow.DeriveID("command", strconv.FormatUint(w.cfg.Seed, 10), strconv.Itoa(w.commandCount)),
		Topic: flow.TopicDocuments, Key: s.url, Type: kind, Subject: s.url, Time: w.now,
	}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			panic(fmt.Sprintf("sim: command: %v", err)) // every field is encodable
		}
		m.Body = b
	}
	w.tracef("%s %s %s", kind, s.url, m.Body)
	w.publish(m)
	if w.chance(20) { // whoever sent it did not hear that it arrived
		w.publish(m)
	}
}

// intervals are how often subscriptions want pages to be checked.
var intervals = []pipeline.Interval{
	pipeline.Every(10 * time.Second), pipeline.Every(time.Minute), pipeline.Every(5 * time.Minute), pipeline.Every(20 * time.Minute),
	{Cron: "*/10 * * * *"}, {Cron: "0 */2 * * * Europe/Berlin"},
}

// randomSubscription returns one with options of all kinds.
func (w *world) randomSubscription(s *site) pipeline.Subscription {
	r := w.rng
	once := func(n int) bool { return r.IntN(n) == 0 }
	if w.followsLinks && w.lastSubscription.Client != "" && once(2) { // the same of another page
		sub := w.lastSubscription
		sub.URL = pick(r, s.spellings)
		return sub
	}
	sub := pipeline.Subscription{
		URL: pick(r, s.spellings), Client: pick(r, clients), View: pick(r, views),
		Interval: pick(r, intervals),
		Stem:     once(4), FilterStopwords: once(4), MatchCase: once(2), IgnoreDiacritics: once(4), Moved: once(4),
	}
	if once(6) {
		sub.Expire = pick(r, []pipeline.Expire{{After: 3}, {Retry: -1}, {After: 7, Retry: time.Hour}, {After: -1}})
	}
	n := 1 + r.IntN(5)
	if once(10) {
		n = 40
	}
	for range n {
		if k := pick(r, keywords); !slices.Contains(sub.Keywords, k) {
			sub.Keywords = append(sub.Keywords, k)
		}
	}
	if once(5) { // every change
		sub.Keywords = nil
	}
	names := sinkNames
	if w.isCrowded() {
		names = []string{"flaky", pickySink}
	}
	for range 1 + r.IntN(2) {
		if k := pick(r, names); !slices.Contains(sub.Sinks, k) {
			sub.Sinks = append(sub.Sinks, k)
		}
	}
	if once(2) && !w.isCrowded() {
		d := pick(r, digestSettings)
		sub.Digest = &d
	}
	if once(3) && !w.isCrowded() {
		sub.Quiet = pick(r, quietHours)
	}
	if w.followsLinks && once(3) {
		all := false
		sub.Follow = &pipeline.Follow{
			Depth: r.IntN(4), MaxPages: pick(r, []int{0, 0, 1, 2, 3}), SameHost: pick(r, []*bool{nil, &all, &all}),
			Include: pick(r, [][]string{nil, nil, {"n=[124]"}}), Exclude: pick(r, [][]string{nil, nil, {"n=3$"}}),
		}
	}
	sub.Events = pick(r, [][]pipeline.Event{nil, {pipeline.Added}, {pipeline.Removed}, {pipeline.Added, pipeline.Removed}})
	if len(sub.Keywords) > 0 && sub.Value == nil {
		sub.Near = pick(r, []string{"", "", pipeline.NearBlock, pipeline.NearRow})
	}
	sub.Match = pick(r, []string{"", "", pipeline.MatchPhrase, pipeline.MatchTerms})
	sub.MinChange = pick(r, []pipeline.MinChange{{}, {}, {}, {}, {Tokens: 3}, {Share: 500}})
	sub.Language = pick(r, []string{"", "", "en", "en-GB"})
	if once(2) {
		n := r.IntN(120)
		sub.SnippetOffset = &n
	}
	if sub.Value != nil {
		setCondition(r, &sub)
	}
	w.lastSubscription = sub
	return sub
}
