package slack

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/slackfake"
)

// threadFixture is a bot that keeps threads, with a clock and what it noted.
type threadFixture struct {
	t    *testing.T
	fake *slackfake.Slack
	s    *Slack
	now  time.Time
	testAttempt
}

// localConnection reaches the servers of tests.
var localConnection = registry.Connection{Allow: []netip.Prefix{loopback}}

// newSlack returns the sink of c. now is the clock by which threads end and dates in answers are
// read; nil: the system's.
func newSlack(c Config, now func() time.Time) *Slack {
	s, err := New(c)
	if err != nil {
		panic(err)
	}
	if now != nil {
		s.sender.Now = now
	}
	return s
}

func newThreadFixture(t *testing.T) *threadFixture {
	th := &threadFixture{t: t, now: time.Date(2026, 1, 2, 23, 0, 0, 0, time.UTC), testAttempt: testAttempt{document: "doc"}}
	clock := func() time.Time { return th.now }
	th.fake = slackfake.Start(t, clock)
	th.s = newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: "#general", APIURL: th.fake.API(), Thread: true, Connection: localConnection}, clock)
	return th
}

// deliverAfter delivers after d, and returns what was posted.
func (th *threadFixture) deliverAfter(d time.Duration) slackfake.Message {
	th.t.Helper()
	th.now = th.now.Add(d)
	if err := th.s.Deliver(pipeline.WithAttempt(th.t.Context(), &th.testAttempt), sample()); err != nil {
		th.t.Fatal(err)
	}
	all := th.fake.Messages()
	return all[len(all)-1]
}

func TestThreads(t *testing.T) {
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	if root.Thread != "" || root.Channel != "CGENERAL" {
		t.Fatalf("the first message is %+v", root)
	}
	if !strings.Contains(th.note, `"CGENERAL"`) || len(th.note) > pipeline.MaxNote {
		t.Errorf("noted is %s, without the ID that Slack told", th.note)
	}
	first, second := th.deliverAfter(time.Hour), th.deliverAfter(22*time.Hour)
	if first.Thread != root.TS || !first.Broadcast {
		t.Errorf("the first reply is %+v, want one to %s that is shown in the channel", first, root.TS)
	}
	if root.Asked != "#general" || first.Asked != "CGENERAL" {
		t.Errorf("posted to %s, then to %s, want the name, then the ID", root.Asked, first.Asked)
	}
	if second.Thread != root.TS || second.Broadcast {
		t.Errorf("the second reply is %+v, want one to %s alone", second, root.TS)
	}
	if next := th.deliverAfter(time.Hour); next.Thread != "" {
		t.Errorf("after a day it is %+v, want a new thread", next)
	} else if reply := th.deliverAfter(time.Hour); reply.Thread != next.TS || !reply.Broadcast {
		t.Errorf("the reply to that is %+v", reply)
	}
}

// TestThreadsOfOthers: what was noted for another channel, health events, and notes that
// cannot be read begin threads, or have none.
func TestThreadsOfOthers(t *testing.T) {
	th := newThreadFixture(t)
	th.deliverAfter(0)
	th.s.channel = "C2"
	if m := th.deliverAfter(time.Second); m.Thread != "" || m.Channel != "C2" {
		t.Errorf("in another channel it is %+v", m)
	}
	th.note = "{"
	if m := th.deliverAfter(time.Second); m.Thread != "" {
		t.Errorf("after a damaged note it is %+v", m)
	}
	th.document, th.note = "", ""
	if m := th.deliverAfter(time.Second); m.Thread != "" || th.note != "" {
		t.Errorf("without a document it is %+v, noted %q", m, th.note)
	}
	if err := th.s.Deliver(t.Context(), sample()); err != nil {
		t.Errorf("without an attempt: %v", err)
	}
}

// TestDeletedThread: Slack posts an answer to a deleted message at the top level without
// a word; the next thread begins there.
func TestDeletedThread(t *testing.T) {
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	th.fake.Delete(root.TS)
	again := th.deliverAfter(time.Minute)
	if again.Thread != "" {
		t.Fatalf("got %+v", again)
	}
	if m := th.deliverAfter(time.Minute); m.Thread != again.TS {
		t.Errorf("got %+v, want an answer to %s", m, again.TS)
	}
	if got := len(th.fake.Requests()); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
}

// TestLockedThread: a thread that takes no answers is left for a new one, in the same
// attempt. So is one in a channel whose name another one has by now.
func TestLockedThread(t *testing.T) {
	for _, word := range []string{"cannot_reply_to_message", "restricted_action_thread_locked", "thread_not_found", "is_archived", "channel_not_found"} {
		th := newThreadFixture(t)
		th.deliverAfter(0)
		th.fake.Script("#general", slackfake.Answer{Error: word})
		again := th.deliverAfter(time.Minute)
		if again.Thread != "" || len(th.fake.Requests()) != 3 {
			t.Fatalf("%s: got %+v after %d requests", word, again, len(th.fake.Requests()))
		}
		if m := th.deliverAfter(time.Minute); m.Thread != again.TS {
			t.Errorf("%s: got %+v, want an answer to %s", word, m, again.TS)
		}
	}
	// Where the new one fails, the old one is forgotten all the same.
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	th.fake.Lock(root.TS)
	th.fake.Script("#general", slackfake.Answer{Error: "cannot_reply_to_message"}, slackfake.RateLimited("1"))
	if err := th.s.Deliver(pipeline.WithAttempt(t.Context(), &th.testAttempt), sample()); err == nil || th.note != "" {
		t.Errorf("got %v, noted %q", err, th.note)
	}
}

// TestPlainInThread: a message without its layout stays in its thread.
func TestPlainInThread(t *testing.T) {
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	th.fake.Script("#general", slackfake.Answer{Error: "invalid_blocks"})
	if m := th.deliverAfter(time.Minute); m.Thread != root.TS || m.Blocks != nil || len(th.degraded) != 1 {
		t.Errorf("got %+v, degraded for %q", m, th.degraded)
	}
}

// TestChannelOfASubscription: one sink posts to many channels, and one that cannot be posted to does
// not hold up the others.
func TestChannelOfASubscription(t *testing.T) {
	fake := slackfake.Start(t, nil)
	s := newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: "C1", APIURL: fake.API(), Connection: localConnection}, nil)
	for _, channel := range []string{"", "C2", "#legal"} {
		n := sample()
		n.Channel = channel
		if err := s.Deliver(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"C1", "C2", "#legal"} {
		if got := fake.Messages()[i].Asked; got != want {
			t.Errorf("message %d went to %s, want %s", i, got, want)
		}
	}
	for _, word := range []string{"channel_not_found", "not_in_channel", "is_archived"} {
		n := sample()
		n.Channel = "C3"
		fake.Script("C3", slackfake.Answer{Error: word})
		err := s.Deliver(t.Context(), n)
		if class, _ := failure.ClassOf(err); class != failure.ClassPermanent || failure.TellsAtOnce(err) {
			t.Errorf("%s: got %v of class %d, want that of this notification alone", word, err, class)
		}
	}
	n := sample()
	n.Channel = "C3"
	fake.Script("C3", slackfake.Answer{Error: "invalid_auth"})
	if err := s.Deliver(t.Context(), n); !failure.TellsAtOnce(err) {
		t.Errorf("a token that is refused: %v", err)
	}
}

// TestThreadsOfChannels: a thread is one of its channel.
func TestThreadsOfChannels(t *testing.T) {
	th := newThreadFixture(t)
	root := th.deliverAfter(0)
	n := sample()
	n.Channel = "C2"
	if err := th.s.Deliver(pipeline.WithAttempt(t.Context(), &th.testAttempt), n); err != nil {
		t.Fatal(err)
	}
	all := th.fake.Messages()
	if m := all[len(all)-1]; m.Thread != "" || m.Channel != "C2" || m.TS == root.TS {
		t.Errorf("in another channel it is %+v", m)
	}
}

// TestChannelOfAWebhook: a webhook belongs to one channel, and says so.
func TestChannelOfAWebhook(t *testing.T) {
	fake := slackfake.Start(t, nil)
	n := sample()
	n.Channel = "C2"
	var seen testAttempt
	if err := bothKinds(fake, "C1")["webhook"].Deliver(pipeline.WithAttempt(t.Context(), &seen), n); err != nil {
		t.Fatal(err)
	}
	if len(seen.degraded) != 1 {
		t.Errorf("degraded for %q", seen.degraded)
	}
	for way, s := range bothKinds(fake, "C1") {
		if err := s.TakesChannel(); (err == nil) != (way != "webhook") {
			t.Errorf("%s: a subscription with a channel: %v", way, err)
		}
	}
}

// TestButtonsOfANotification: with a signing secret a notification of one page has buttons.
func TestButtonsOfANotification(t *testing.T) {
	fake := slackfake.Start(t, nil)
	fake.Unbound()
	c := Config{Token: registry.NewSecret(slackfake.Token), Channel: "C1", APIURL: fake.API(), Connection: localConnection}
	without := newSlack(c, nil)
	c.SigningSecret = registry.NewSecret("8f742231b10e8888abcd99yyyzzz85a5")
	with := newSlack(c, nil)
	post := func(s *Slack, change func(*pipeline.Notification)) string {
		n := sample()
		n.Link = "https://vokter.example.com/diff?to=2"
		change(&n)
		if err := s.Deliver(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		all := fake.Messages()
		return string(all[len(all)-1].Blocks)
	}
	same := func(*pipeline.Notification) {}
	got := post(with, same)
	for _, want := range []string{`"vokter_mute"`, `"vokter_cancel"`, `"vokter_open"`, `"url":"https://vokter.example.com/diff?to=2"`, `\"client\":\"default\"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in %s", want, got)
		}
	}
	for name, got := range map[string]string{
		"no secret":      post(without, same),
		"a health event": post(with, func(n *pipeline.Notification) { n.Health = &pipeline.Health{Event: pipeline.HealthFailing} }),
		"several pages":  post(with, func(n *pipeline.Notification) { n.URL = "" }),
		"a test":         post(with, func(n *pipeline.Notification) { n.Type = pipeline.NotificationTypeTest }),
		"a long URL":     post(with, func(n *pipeline.Notification) { n.URL += strings.Repeat("x", maxButtonValue) }),
	} {
		if strings.Contains(got, "vokter_mute") {
			t.Errorf("%s has buttons", name)
		}
	}
	if got := post(with, func(n *pipeline.Notification) { n.Link = "" }); strings.Contains(got, "vokter_open") || !strings.Contains(got, "vokter_mute") {
		t.Errorf("without a web page: %s", got)
	}
}

// TestAnswersGoToSlackOnly: a response_url elsewhere is not asked.
func TestAnswersGoToSlackOnly(t *testing.T) {
	fake := slackfake.Start(t, nil)
	s := newSlack(Config{Token: registry.NewSecret(slackfake.Token), Channel: "C1", APIURL: fake.API(), Connection: localConnection}, nil)
	for _, u := range []string{"", "https://evil.example.com/commands/1", "http://127.0.0.1:1/", "%"} {
		if err := s.Answer(t.Context(), u, "x"); err == nil {
			t.Errorf("%q was answered", u)
		}
	}
}
