package slack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	slackgo "github.com/slack-go/slack"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// eventType is the type of the metadata of messages.
const eventType = flow.TypeNotification

// place is where a message goes, or is: a channel, and the ts of a thread in it.
type place struct{ channel, thread string }

// posted is a message that Slack has.
type posted struct {
	place
	ts string
}

// call posts m to p with chat.postMessage; broadcast shows an answer in the channel too.
func (s *Slack) call(ctx context.Context, m message, p place, broadcast bool) (posted, error) {
	d := &doer{sender: &s.post}
	client := slackgo.New(s.token, slackgo.OptionHTTPClient(d), slackgo.OptionAPIURL(s.api))
	channel, ts, said, err := client.PostMessageWithResponseContext(ctx, p.channel, optionsOf(m, p, broadcast)...)
	switch {
	case d.err != nil:
		return posted{}, d.err
	case d.answer == nil:
		return posted{}, pipeline.Permanent(s.post.Secrets.Wrap("making the request", err))
	case d.answer.Status != http.StatusOK:
		return posted{}, statusError(d.answer, "")
	case err != nil:
		return posted{}, apiError(d.answer)
	case ts == "":
		return posted{}, d.answer.Without("the ts of a message")
	}
	return posted{place{channel, said.ThreadTimestamp}, ts}, nil
}

// optionsOf are the arguments of chat.postMessage.
func optionsOf(m message, p place, broadcast bool) []slackgo.MsgOption {
	options := []slackgo.MsgOption{
		slackgo.MsgOptionText(m.text, false),
		slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl(),
	}
	if !m.markup {
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

// apiError says what an answer 200 means that is an error to slack-go, which loses Slack's
// word for it where it cannot read the rest.
func apiError(a *outbound.Answer) error {
	if word := wordOf(a.Body); word != "" {
		return wordError(a, fmt.Errorf("answered %s", shown(word)), word)
	}
	return a.Without("what Slack says")
}

// doer makes the requests of slack-go through a Sender, which bounds what is read, and
// keeps the answer, of which slack-go loses the status or the wait.
type doer struct {
	sender *outbound.Sender
	answer *outbound.Answer
	err    error
}

// Do makes one request.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
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
