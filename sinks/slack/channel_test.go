package slack

import (
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/slackfake"
)

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
