package slack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// eventType is the type of the metadata of messages.
const eventType = flow.TypeNotification

// location is where a message goes, or is: a channel, and the ts of a thread in it.
type location struct{ channel, thread string }

// postedMessage is a message that Slack has.
type postedMessage struct {
	location
	ts string
}

// postMessage posts m to p with chat.postMessage; broadcast shows an answer in the channel too.
func (s *Slack) postMessage(ctx context.Context, m message, p location, broadcast bool) (postedMessage, error) {
	d := &senderClient{sender: &s.sender}
	client := slackgo.New(s.token, slackgo.OptionHTTPClient(d), slackgo.OptionAPIURL(s.apiURL))
	channel, ts, said, err := client.PostMessageWithResponseContext(ctx, p.channel, messageOptions(m, p, broadcast)...)
	switch {
	case d.err != nil:
		return postedMessage{}, d.err
	case d.answer == nil:
		return postedMessage{}, failure.Permanent(s.sender.Secrets.Wrap("making the request", err))
	case d.answer.Status != http.StatusOK:
		return postedMessage{}, statusError(d.answer, "")
	case err != nil:
		return postedMessage{}, apiError(d.answer)
	case ts == "":
		return postedMessage{}, d.answer.Without("the ts of a message")
	}
	return postedMessage{location{channel, said.ThreadTimestamp}, ts}, nil
}

// messageOptions are the arguments of chat.postMessage.
func messageOptions(m message, p location, broadcast bool) []slackgo.MsgOption {
	options := []slackgo.MsgOption{
		slackgo.MsgOptionText(m.text, false),
		slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl(),
	}
	if !m.isMrkdwn {
		options = append(options, slackgo.MsgOptionDisableMarkdown())
	}
	if len(m.blocks) > 0 {
		options = append(options, slackgo.MsgOptionBlocks(m.blocks...))
	}
	if m.id != "" {
		options = append(options, slackgo.MsgOptionMetadata(slackgo.SlackMetadata{
			EventType: eventType, EventPayload: map[string]any{"id": m.id},
		}))
	}
	if p.thread != "" {
		options = append(options, slackgo.MsgOptionTS(p.thread))
	}
	if broadcast {
		options = append(options, slackgo.MsgOptionBroadcast())
	}
	return options
}

// apiError is the error for an answer 200 that slack-go reports as one. slack-go loses the error
// code of Slack if it cannot parse the rest.
func apiError(a *outbound.Answer) error {
	if word := errorCodeOf(a.Body); word != "" {
		return codeError(a, fmt.Errorf("answered %s", safeCode(word)), word)
	}
	return a.Without("what Slack says")
}

// senderClient makes the requests of slack-go through a Sender, which bounds what is read, and
// keeps the answer: slack-go loses its status and Retry-After.
type senderClient struct {
	sender *outbound.Sender
	answer *outbound.Answer
	err    error
}

// Do makes one request.
func (d *senderClient) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	d.answer, d.err = d.sender.Do(req.Context(), req.Method, req.URL, req.Header, body)
	if d.err != nil {
		return nil, d.err
	}
	return &http.Response{
		StatusCode: d.answer.Status, Status: http.StatusText(d.answer.Status), Header: d.answer.Header,
		Body: io.NopCloser(bytes.NewReader(d.answer.Body)), Request: req,
	}, nil
}

// maxThreadAge is how long new messages are added to a thread.
const maxThreadAge = 24 * time.Hour

// threadNote is the note about the thread of a document.
type threadNote struct {
	// ConfiguredChannel is the channel as it is configured, Channel the ID that Slack returned for it.
	ConfiguredChannel string `json:"for"`
	Channel           string `json:"channel"`
	TS                string `json:"ts"`
	// Since is when the thread began, in seconds.
	Since int64 `json:"since"`
	// Replied says that there was a reply, which was shown in the channel too.
	Replied bool `json:"replied,omitempty"`
}

// postAsBot posts m to the channel, within the thread of its document if there is one.
func (s *Slack) postAsBot(ctx context.Context, m message) error {
	attempt := pipeline.AttemptFrom(ctx)
	channel := cmp.Or(m.channel, s.channel)
	if !s.thread || attempt.Document() == "" {
		_, err := s.postMessage(ctx, m, location{channel: channel}, false)
		return err
	}
	if t, ok := s.currentThread(attempt, channel); ok {
		err := s.reply(ctx, attempt, m, t)
		_, locked := errors.AsType[*threadError](err)
		// A channel that is gone may have left its name to another one.
		if class, _ := failure.ClassOf(err); !locked && class != failure.ClassGone {
			return err
		}
		attempt.SetNote("")
	}
	p, err := s.postMessage(ctx, m, location{channel: channel}, false)
	if err == nil {
		s.noteThread(attempt, s.newThread(p, channel))
	}
	return err
}

// reply posts m in the thread t. If the first message of t was deleted, Slack posts the reply at
// the top level; that begins a new thread.
func (s *Slack) reply(ctx context.Context, attempt pipeline.Attempt, m message, t threadNote) error {
	p, err := s.postMessage(ctx, m, location{t.Channel, t.TS}, !t.Replied)
	switch {
	case err != nil:
		return err
	case p.thread == "":
		s.noteThread(attempt, s.newThread(p, t.ConfiguredChannel))
	case !t.Replied:
		t.Replied = true
		s.noteThread(attempt, t)
	}
	return nil
}

// newThread returns the note about the thread that begins with p.
func (s *Slack) newThread(p postedMessage, channel string) threadNote {
	return threadNote{ConfiguredChannel: channel, Channel: p.channel, TS: p.ts, Since: s.sender.Now().Unix()}
}

// currentThread returns the noted thread. ok is false if there is none to reply in: it is of another
// channel, or too old.
func (s *Slack) currentThread(attempt pipeline.Attempt, channel string) (t threadNote, ok bool) {
	note := attempt.Note()
	if note == "" || json.Unmarshal([]byte(note), &t) != nil {
		return t, false
	}
	age := s.sender.Now().Sub(time.Unix(t.Since, 0))
	return t, t.ConfiguredChannel == channel && t.Channel != "" && t.TS != "" && age < maxThreadAge
}

func (s *Slack) noteThread(attempt pipeline.Attempt, t threadNote) {
	b, err := json.Marshal(t)
	if err != nil {
		panic("slack: a thread: " + err.Error()) // every field is encodable
	}
	attempt.SetNote(string(b))
}
