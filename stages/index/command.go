package index

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// command reads a command and the subscriptions that it is about. What is wrong with it
// comes back as a refusal; the error is the store's. Acceptable is that of Config.
func command(st flow.State, p Page, m flow.Message, acceptable func(pipeline.Subscription) error) (Action, *pipeline.Refusal, error) {
	switch m.Type {
	case flow.TypeSubscribe:
		var c flow.SubscribeCommand
		if err := public(m.Body, &c); err != nil {
			return nil, malformed(err), nil
		}
		return subscribeCommand(st, p, m.Key, c, acceptable)
	case flow.TypeApply:
		var c flow.ApplyCommand
		if err := json.Unmarshal(m.Body, &c); err != nil {
			return nil, malformed(err), nil
		}
		return applyCommand(st, p, m.Key, c)
	case flow.TypeResume:
		var c flow.ResumeCommand
		if err := public(m.Body, &c); err != nil {
			return nil, malformed(err), nil
		}
		return resumeCommand(st, p, m.Key, c)
	case flow.TypeExpire:
		var c flow.ExpireCommand
		if err := json.Unmarshal(m.Body, &c); err != nil {
			return nil, malformed(err), nil
		}
		return expireCommand(st, m.Key, c)
	default:
		var c flow.CancelCommand
		if err := public(m.Body, &c); err != nil {
			return nil, malformed(err), nil
		}
		return cancelCommand(st, p, m.Key, c)
	}
}

// public decodes the body of a command that anybody may send. A field that is not known is
// an error: it may be an option with its name misspelt.
func public(body []byte, command any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(command); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows its JSON")
	}
	return nil
}

func malformed(err error) *pipeline.Refusal {
	return &pipeline.Refusal{Code: pipeline.CodeFormat, Message: fmt.Sprintf("the command cannot be read: %v", err)}
}

func subscribeCommand(st flow.State, p Page, page string, c flow.SubscribeCommand, acceptable func(pipeline.Subscription) error) (Action, *pipeline.Refusal, error) {
	s := c.Subscription.WithDefaults()
	if r := refuse(page, s); r != nil {
		return nil, r, nil
	}
	if err := acceptable(s); err != nil {
		return nil, &pipeline.Refusal{Code: codeOf(err), Message: err.Error()}, nil
	}
	document := flow.DocumentID(page, s.View)
	existing, err := subscription(st, document, s.Client)
	if err != nil {
		return nil, nil, err
	}
	do := Subscribe{Origin: cmp.Or(c.Origin, flow.OriginAPI), Subscription: s, Existing: existing}
	if p.Expired > 0 {
		do.Expired, err = expiredSubscription(st, document, s.Client)
	}
	return do, nil, err
}

func applyCommand(st flow.State, p Page, page string, c flow.ApplyCommand) (Action, *pipeline.Refusal, error) {
	if r := refuseURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	do := Replace{Origin: c.Origin, Client: c.Client, Keep: c.Keep, KeepInterval: c.KeepInterval, Resume: c.Resume}
	if c.KeepOnly { // with none at hand, none is replaced
		return do, nil, nil
	}
	seen := make(map[string]bool, len(c.Subscriptions))
	for _, s := range c.Subscriptions {
		if s.Client == "" {
			s.Client = c.Client
		}
		s = s.WithDefaults()
		if r := refuse(page, s); r != nil {
			return nil, r, nil
		}
		if c.Client != "" && s.Client != c.Client {
			return nil, &pipeline.Refusal{Code: pipeline.CodeFormat, Message: fmt.Sprintf("client: %q in a list of client %q", s.Client, c.Client)}, nil
		}
		name := subscriptionName(flow.DocumentID(page, s.View), s.Client)
		if seen[name] {
			return nil, conflict(s), nil
		}
		seen[name] = true
		do.Subscriptions = append(do.Subscriptions, s)
	}
	var err error
	if do.Existing, err = existing(st, p, c.Client); err != nil {
		return nil, nil, err
	}
	do.Expired, err = expired(st, p, c.Client)
	return do, nil, err
}

func cancelCommand(st flow.State, p Page, page string, c flow.CancelCommand) (Action, *pipeline.Refusal, error) {
	if r := refuseURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	client := pipeline.Subscription{Client: c.Client}.WithDefaults().Client
	es, err := existing(st, p, client)
	if err != nil {
		return nil, nil, err
	}
	xs, err := expired(st, p, client)
	return Cancel{Client: client, Existing: es, Expired: xs}, nil, err
}

func resumeCommand(st flow.State, p Page, page string, c flow.ResumeCommand) (Action, *pipeline.Refusal, error) {
	if r := refuseURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	xs, err := expired(st, p, "")
	return Resume{Client: c.Client, Receiver: c.Receiver, Expired: xs}, nil, err
}

func expireCommand(st flow.State, page string, c flow.ExpireCommand) (Action, *pipeline.Refusal, error) {
	if r := refuseURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	es, err := Subscriptions(st)
	return Expire{Receiver: c.Receiver, Reason: c.Reason, Existing: es}, nil, err
}

// existing returns the subscriptions of the page, or of one client.
func existing(st flow.State, p Page, client string) ([]flow.Stamped, error) {
	if client == "" {
		return Subscriptions(st)
	}
	var es []flow.Stamped
	for _, d := range p.Documents {
		e, err := subscription(st, d.ID, client)
		if err != nil {
			return nil, err
		}
		if e != nil {
			es = append(es, *e)
		}
	}
	return es, nil
}

// expired returns the expired subscriptions of the page, or of one client.
func expired(st flow.State, p Page, client string) ([]ExpiredSubscription, error) {
	if p.Expired == 0 {
		return nil, nil
	}
	xs, err := Expired(st)
	if client != "" {
		xs = slices.DeleteFunc(xs, func(x ExpiredSubscription) bool { return x.Subscription.Client != client })
	}
	return xs, err
}

// refuseURL returns what is wrong with the URL of a command for page, or nil.
func refuseURL(page, raw string) *pipeline.Refusal {
	url, err := pipeline.CanonicalURL(raw)
	if err != nil {
		return &pipeline.Refusal{Code: pipeline.CodeURL, Message: "url: " + err.Error()}
	}
	if url != page {
		return &pipeline.Refusal{Code: pipeline.CodeURL, Message: fmt.Sprintf("url: the key of a command about %s is to be %q, its canonical URL, not %q", pipeline.Redacted(raw), pipeline.Redacted(url), pipeline.Redacted(page))}
	}
	return nil
}
