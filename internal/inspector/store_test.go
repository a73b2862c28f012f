package inspector_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/internal/inspector"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
	"github.com/vokter/vokter/test/txtest"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// store is an [inspector.Store] that the real stages fill, one message after the other. The test
// stands for the web and for the receivers.
type store struct {
	t      *testing.T
	now    time.Time
	groups map[string]*txtest.Store
	stages map[string]flow.Processor // by topic
	tally  *inspect.Tally
	// queue has the messages that are still to be handled.
	queue []flow.Message
	// request is the last request for a page.
	request flow.Request
	// fail is the error of the next attempts to deliver.
	fail error
	// foreign are the keys that another process owns, and owner is its name.
	foreign map[string]bool
	owner   string
	n       int
}

var _ inspector.Store = (*store)(nil)

func newStore(t *testing.T) *store {
	s := &store{t: t, now: start, groups: make(map[string]*txtest.Store), tally: inspect.NewTally(), foreign: make(map[string]bool)}
	for _, g := range groupOf {
		s.groups[g] = txtest.New()
	}
	now := func() time.Time { return s.now }
	changes := match.New(match.Config{Observe: s.tally.Note})
	s.stages = map[string]flow.Processor{
		flow.TopicDocuments:     index.New(index.Config{Expire: pipeline.Expire{Retry: -1}, Now: now, Steady: now, Observe: s.tally.Note}),
		flow.TopicSnapshots:     diff.New(diff.Config{Observe: s.tally.Note}),
		flow.TopicSubscriptions: changes,
		flow.TopicChanges:       changes,
		flow.TopicNotifications: delivery.NewDelivery(delivery.Config{
			Sinks: map[string]pipeline.Sink{"phone": nil}, Now: now, Observe: s.tally.Note,
			Hand: func(a delivery.Attempt) { s.queue = append(s.queue, a.Result(s.fail)) },
		}),
		flow.TopicDead: delivery.NewDeadLetters(delivery.DeadConfig{Now: now, Observe: s.tally.Note}),
	}
	return s
}

// groupOf is the consumer group of each topic.
var groupOf = map[string]string{
	flow.TopicDocuments: flow.GroupIndex, flow.TopicSnapshots: flow.GroupDiff, flow.TopicSubscriptions: flow.GroupMatch,
	flow.TopicChanges: flow.GroupMatch, flow.TopicNotifications: flow.GroupDelivery, flow.TopicDead: flow.GroupDead,
}

func (s *store) State(group, key string) flow.State { return s.groups[group].Begin().State(key) }

func (s *store) States(group, after string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		for _, key := range s.groups[group].Keys() {
			if (after == "" || key > after) && s.Owns(key) && !yield(key, s.State(group, key)) {
				return
			}
		}
	}
}

func (s *store) Owns(key string) bool { return !s.foreign[key] }

func (s *store) Owner(key string) string {
	if s.foreign[key] {
		return s.owner
	}
	return ""
}

// send lets the stages handle m, and all messages that follow from it.
func (s *store) send(m flow.Message) {
	s.t.Helper()
	s.queue = append(s.queue, m)
	for len(s.queue) > 0 {
		m, s.queue = s.queue[0], s.queue[1:]
		s.handle(m)
	}
}

func (s *store) handle(m flow.Message) {
	s.t.Helper()
	if m.Type == flow.TypeRequest {
		var err error
		if s.request, err = flow.RequestFrom(m); err != nil {
			s.t.Fatal(err)
		}
	}
	stage := s.stages[m.Topic]
	if stage == nil {
		return
	}
	s.n++
	m.Position = fmt.Sprintf("S/%s/0/%d", m.Topic, s.n)
	group := s.groups[groupOf[m.Topic]]
	if groupOf[m.Topic] == flow.GroupMatch {
		group.Beside(flow.GroupIndex, s.groups[flow.GroupIndex])
	}
	if err := group.Handle(s.t.Context(), stage, m); err != nil {
		s.t.Fatalf("%s: %v", m.Type, err)
	}
	s.queue = append(group.Take(), s.queue...) // messages that m caused go in front of the older ones
}

// subscribe has client watch a page for keywords.
func (s *store) subscribe(url, client string, keywords ...string) {
	s.t.Helper()
	s.subscribeTo(pipeline.View{}, url, client, keywords...)
}

// subscribeTo has client watch a part of a page for keywords.
func (s *store) subscribeTo(v pipeline.View, url, client string, keywords ...string) {
	s.t.Helper()
	page, err := pageurl.Canonical(url)
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := json.Marshal(flow.SubscribeCommand{Origin: flow.OriginAPI, Subscription: pipeline.Subscription{
		URL: url, Client: client, Tags: []string{"team-" + client}, Keywords: keywords, Sinks: []string{"phone"},
		Events: []pipeline.Event{pipeline.Added, pipeline.Removed}, View: v,
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.send(flow.Message{
		ID: fmt.Sprint("command ", s.n), Topic: flow.TopicDocuments, Key: page, Type: flow.TypeSubscribe, Body: b, Time: s.now,
	})
}

// check lets time pass until the next check of a page is due, so that the last request is for it.
func (s *store) check(page string) {
	s.t.Helper()
	for range 3 { // a wake may move the check a little
		asked := s.request.Check
		if w, ok := s.groups[flow.GroupIndex].Wake(page); ok && w.At.After(s.now) {
			s.now = w.At
		}
		for _, m := range s.groups[flow.GroupIndex].Due(s.now) {
			m.Topic = flow.TopicDocuments
			s.send(m)
		}
		if s.request.Check > asked {
			return
		}
	}
	s.t.Fatalf("%s is not checked again", page)
}

// read answers the last request with a page of this text.
func (s *store) read(content string) {
	s.t.Helper()
	r := s.request
	s.now = s.now.Add(time.Second)
	for i, d := range r.Documents {
		s.send(flow.Outcome{
			Page: r.Page, Incarnation: r.Incarnation, Check: r.Check, Nonce: r.Nonce, Part: i, Parts: len(r.Documents),
			Document: d.ID, Kind: flow.OutcomeRead, Time: s.now, Status: 200, Title: "Shop", Language: "en",
			BodyHash: "body " + text.Hash(content), TextHash: text.Hash(content), Packed: flow.PackText(content),
		}.Message())
	}
}

// answer answers the last request with a failure.
func (s *store) answer(class, reason string) {
	s.t.Helper()
	r := s.request
	s.now = s.now.Add(time.Second)
	s.send(flow.Outcome{
		Page: r.Page, Incarnation: r.Incarnation, Check: r.Check, Nonce: r.Nonce,
		Kind: flow.OutcomeFailed, Time: s.now, Class: class, Reason: reason,
	}.Message())
}

func (s *store) list(f inspect.ListFilter, configured ...string) inspect.Listing {
	s.t.Helper()
	l, err := inspector.List(s.t.Context(), s, f, configured)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *store) explain(url string, f inspect.ExplainFilter) inspect.Explanation {
	s.t.Helper()
	e, err := inspector.Explain(s.t.Context(), s, text.NewLanguages(), url, f)
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}
