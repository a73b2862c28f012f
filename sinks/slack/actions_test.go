package slack

import (
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/slackfake"
)

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
