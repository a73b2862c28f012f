package slackapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// request is what a person in Slack asks for.
type request struct {
	// Channel and ChannelName name the channel, User the person.
	Channel, ChannelName, User string
	// ResponseURL takes the answer.
	ResponseURL string
	// description says what is asked for, for the log. run carries it out and returns the answer; nil
	// means that there is nothing to do.
	description string
	run         func(ctx context.Context, s Service, a app) string
}

// muteDuration is how long the button mutes.
const muteDuration = 24 * time.Hour

// parseRequest reads the body of a request that came at the time now: the form of a command, or of a button,
// whose field payload is JSON.
func parseRequest(body []byte, now time.Time) (*request, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errors.New("the body is no form")
	}
	if form.Has("payload") {
		return parseButton(form.Get("payload"), now)
	}
	if form.Get("command") == "" {
		return &request{}, nil // Slack asks whether the address works
	}
	k := &request{Channel: form.Get("channel_id"), ChannelName: form.Get("channel_name"), User: form.Get("user_id"), ResponseURL: form.Get("response_url")}
	k.description = form.Get("text")
	k.setCommand(strings.Fields(k.description), now)
	return k, nil
}

// buttonPayload is the part of the JSON of a pressed button that matters here.
type buttonPayload struct {
	Type string `json:"type"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	Channel struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"channel"`
	ResponseURL string `json:"response_url"`
	Actions     []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
	} `json:"actions"`
}

// parseButton reads the JSON of a pressed button.
func parseButton(text string, now time.Time) (*request, error) {
	var p buttonPayload
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, errors.New("the payload is no JSON")
	}
	if p.Type != "block_actions" || len(p.Actions) == 0 {
		return &request{}, nil
	}
	k := &request{Channel: p.Channel.ID, ChannelName: p.Channel.Name, User: p.User.ID, ResponseURL: p.ResponseURL}
	action := p.Actions[0]
	var target registry.ActionTarget
	switch action.ID {
	case registry.ActionMute, registry.ActionCancel:
		if err := json.Unmarshal([]byte(action.Value), &target); err != nil || target.URL == "" {
			return nil, errors.New("the button names no subscription")
		}
		k.description = action.ID + " " + target.URL
		k.setButtonAction(action.ID, target, now)
	}
	return k, nil
}

// setButtonAction sets what a button does to the subscriptions of its target, if they notify the channel.
func (k *request) setButtonAction(action string, t registry.ActionTarget, now time.Time) {
	k.run = func(ctx context.Context, s Service, a app) string {
		if refusal := k.checkMayAct(ctx, s, a, t); refusal != "" {
			return refusal
		}
		if action == registry.ActionCancel {
			return resultText(s.Cancel(ctx, t.URL, t.Client), "Cancelled: %s is not watched any more for this channel.", t.URL)
		}
		return pause(ctx, s, t.URL, t.Client, now.Add(muteDuration))
	}
}

// checkMayAct returns why the channel may not act on the subscriptions of t, or "". All of the client on
// the page must notify it, since commands apply to all of them.
func (k *request) checkMayAct(ctx context.Context, s Service, a app, t registry.ActionTarget) string {
	pages, _, err := s.Pages(ctx, inspect.ListFilter{URL: t.URL, Client: t.Client})
	if err != nil {
		return "That did not work: " + err.Error()
	}
	n := 0
	for _, p := range pages {
		for _, sub := range p.Subscriptions {
			if n++; !a.notifies(sub.Subscription, k.Channel, k.ChannelName) {
				return "Refused: this subscription does not notify this channel alone. Use the channel that it notifies, or the web page."
			}
		}
	}
	if n == 0 {
		return "There is no such subscription any more."
	}
	return ""
}

const usage = "Write `/vokter watch URL WORD` to be notified here when the word or phrase is added to the page or removed from it; without a word, of every change. " +
	"`/vokter pause URL 24h`, `/vokter resume URL` and `/vokter cancel URL` act on what this channel watches; without a time a pause lasts until you resume it. " +
	"`/vokter list` lists what the channel watches."

// setCommand sets what the words behind /vokter do. Subscriptions of a channel have a client of their
// own.
func (k *request) setCommand(words []string, now time.Time) {
	client := "slack-" + k.Channel
	verb, target := "", ""
	if len(words) > 0 {
		verb = strings.ToLower(words[0])
	}
	if len(words) > 1 {
		target = plainURL(words[1])
	}
	k.run = func(ctx context.Context, s Service, a app) string {
		if verb == "list" {
			return listPages(ctx, s, client)
		}
		if target == "" {
			return usage
		}
		switch verb {
		case "watch":
			sub := pipeline.Subscription{URL: target, Client: client, Sinks: []string{a.name}, Channel: k.Channel}
			if len(words) > 2 {
				sub.Keywords = []string{strings.Join(words[2:], " ")}
			}
			what := "every change"
			if len(sub.Keywords) > 0 {
				what = fmt.Sprintf("%q", sub.Keywords[0])
			}
			return resultText(s.Subscribe(ctx, sub), "Watching %s for %s. Invite the bot to this channel if it is not in it yet.", target, what)
		case "cancel":
			return resultText(s.Cancel(ctx, target, client), "Cancelled: %s is not watched any more for this channel.", target)
		case "pause":
			var until time.Time
			if len(words) > 2 {
				length, err := config.ParseDuration(words[2])
				if err != nil {
					return fmt.Sprintf("%v. An example is `/vokter pause %s 24h`; without a time a pause lasts until you resume it.", err, target)
				}
				until = now.Add(length)
			}
			return pause(ctx, s, target, client, until)
		case "resume":
			return k.resume(ctx, s, a, target)
		}
		return usage
	}
}

// pause pauses the subscriptions of client on page until the time until, or until a resume if that is
// zero, and says so.
func pause(ctx context.Context, s Service, page, client string, until time.Time) string {
	until = until.UTC().Truncate(time.Second)
	err := s.Pause(ctx, page, client, until)
	if until.IsZero() {
		return resultText(err, "Paused: changes of %s notify nobody here until you write `/vokter resume %s`.", page, page)
	}
	return resultText(err, "Paused until %s: changes of %s notify nobody here before that, unless you write `/vokter resume %s`.",
		until.Format("2006-01-02 15:04 UTC"), page, page)
}

// resume restarts what this channel watches on a page, whichever client it is of: a button may have
// paused it.
func (k *request) resume(ctx context.Context, s Service, a app, page string) string {
	pages, _, err := s.Pages(ctx, inspect.ListFilter{URL: page})
	if err != nil {
		return "That did not work: " + err.Error()
	}
	for _, p := range pages {
		for _, sub := range p.Subscriptions {
			if sub.State == inspect.StatePaused && a.notifies(sub.Subscription, k.Channel, k.ChannelName) {
				client := sub.WithDefaults().Client
				if refusal := k.checkMayAct(ctx, s, a, registry.ActionTarget{URL: page, Client: client}); refusal != "" {
					return refusal
				}
				return resultText(s.Resume(ctx, page, client), "Resumed: %s is watched again.", page)
			}
		}
	}
	return "Nothing that notifies this channel is paused there."
}

// maxListed bounds the pages in an answer.
const maxListed = 30

// listPages lists the pages that a client watches.
func listPages(ctx context.Context, s Service, client string) string {
	pages, _, err := s.Pages(ctx, inspect.ListFilter{Clients: []string{client}, Limit: maxListed})
	if err != nil {
		return "That did not work: " + err.Error()
	}
	if len(pages) == 0 {
		return "This channel watches nothing by `/vokter watch`."
	}
	var lines []string
	for _, p := range pages {
		lines = append(lines, "• "+p.URL+" ("+p.State+")")
	}
	return strings.Join(lines, "\n")
}

// resultText returns the answer: what was done, or err.
func resultText(err error, format string, args ...any) string {
	if err != nil {
		return "That did not work: " + err.Error()
	}
	return fmt.Sprintf(format, args...)
}

// plainURL returns a URL that Slack may have written as <URL|text>.
func plainURL(s string) string {
	if rest, ok := strings.CutPrefix(s, "<"); ok {
		s, _, _ = strings.Cut(strings.TrimSuffix(rest, ">"), "|")
	}
	return strings.ReplaceAll(s, "&amp;", "&")
}

// maxRemembered bounds the requests that are remembered. Only requests with a valid signature count.
const maxRemembered = 10_000

var (
	errRepeated    = errors.New("the request was received before; Slack sends each request once")
	errBeforeStart = errors.New("the request was signed before this process started, and perhaps carried out by the one before; do it again")
	errTooMany     = errors.New("too many requests within a few minutes; try again later")
)

// replayGuard remembers the signatures of requests for as long as they are valid, so that nobody who
// recorded a request can repeat it.
type replayGuard struct {
	start time.Time

	mu      sync.Mutex
	expires map[string]time.Time // by signature: when it becomes too old to be accepted
}

// newReplayGuard returns the replayGuard of a process that started at start.
func newReplayGuard(start time.Time) *replayGuard {
	return &replayGuard{start: start, expires: make(map[string]time.Time)}
}

// add remembers a valid signature that was made at the time signed. It fails if that is known already.
func (s *replayGuard) add(signature string, signed, now time.Time) error {
	if signed.Before(s.start.Truncate(time.Second)) {
		return errBeforeStart
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.expires[signature]; ok {
		return errRepeated
	}
	if len(s.expires) >= maxRemembered {
		for old, end := range s.expires {
			if end.Before(now) {
				delete(s.expires, old)
			}
		}
		if len(s.expires) >= maxRemembered {
			return errTooMany
		}
	}
	s.expires[signature] = signed.Add(maxSignatureAge)
	return nil
}

// remove forgets a signature whose request was not carried out.
func (s *replayGuard) remove(signature string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.expires, signature)
}
