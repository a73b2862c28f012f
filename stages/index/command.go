package index

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
)

// decodeCommand decodes a command and loads the subscriptions that it is about. An invalid command
// results in a refusal; an error comes from the store. acceptable is that of Config.
func decodeCommand(st flow.State, p *Page, m flow.Message, acceptable func(pipeline.Subscription) error) (action, *flow.Refusal, error) {
	switch m.Type {
	case flow.TypeSubscribe:
		var c flow.SubscribeCommand
		if err := decodeStrict(m.Body, &c); err != nil {
			return nil, malformedCommand(err), nil
		}
		return subscribeCommand(st, p, m.Key, c, acceptable)
	case flow.TypeApply:
		var c flow.ApplyCommand
		if err := json.Unmarshal(m.Body, &c); err != nil {
			return nil, malformedCommand(err), nil
		}
		return applyCommand(st, p, m.Key, c, acceptable)
	case flow.TypeFollow:
		return followCommand(st, p, m.Key, m)
	case flow.TypeResume:
		var c flow.ResumeCommand
		if err := decodeStrict(m.Body, &c); err != nil {
			return nil, malformedCommand(err), nil
		}
		return resumeCommand(st, p, m.Key, c)
	case flow.TypePause:
		var c flow.PauseCommand
		if err := decodeStrict(m.Body, &c); err != nil {
			return nil, malformedCommand(err), nil
		}
		return pauseCommand(st, p, m.Key, c)
	case flow.TypeExpire:
		var c flow.ExpireCommand
		if err := json.Unmarshal(m.Body, &c); err != nil {
			return nil, malformedCommand(err), nil
		}
		return expireCommand(st, m.Key, c)
	default:
		var c flow.CancelCommand
		if err := decodeStrict(m.Body, &c); err != nil {
			return nil, malformedCommand(err), nil
		}
		return cancelCommand(st, p, m.Key, c)
	}
}

// decodeStrict decodes the body of a command that API clients may send. An unknown field is an error:
// it may be a misspelt option.
func decodeStrict(body []byte, command any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(command); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more behind its JSON value")
	}
	return nil
}

func malformedCommand(err error) *flow.Refusal {
	return &flow.Refusal{Code: flow.CodeFormat, Message: fmt.Sprintf("the command cannot be read: %v", err)}
}

func subscribeCommand(st flow.State, p *Page, page string, c flow.SubscribeCommand, acceptable func(pipeline.Subscription) error) (action, *flow.Refusal, error) {
	s := c.Subscription.WithDefaults()
	if r := checkSubscription(page, s); r != nil {
		return nil, r, nil
	}
	if err := acceptable(s); err != nil {
		return nil, &flow.Refusal{Code: refusalCode(err), Message: err.Error()}, nil
	}
	document := flow.DocumentID(page, s.View)
	existing, err := subscription(st, document, s.Client)
	if err != nil {
		return nil, nil, err
	}
	do := subscribe{Origin: cmp.Or(c.Origin, flow.OriginAPI), Subscription: s, Existing: existing}
	if p.Expired > 0 {
		do.Expired, err = getValue[ExpiredSubscription](st, expiredName(document, s.Client))
	}
	return do, nil, err
}

func applyCommand(st flow.State, p *Page, page string, c flow.ApplyCommand, acceptable func(pipeline.Subscription) error) (action, *flow.Refusal, error) {
	if r := checkURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	do := replace{Origin: c.Origin, Client: c.Client, Keep: c.Keep, KeepInterval: c.KeepInterval, Language: c.Language, Expire: c.Expire, Retention: retention{c.KeepVersions, time.Duration(c.KeepFor)}, Resume: c.Resume,
		Spared: c.Spared, Digest: c.Digest, Reply: c.Reply, DryRun: c.DryRun, Refused: make(map[int]error)}
	if c.KeepOnly { // with none at hand, none is replaced
		return do, nil, nil
	}
	seen := make(map[string]bool, len(c.Subscriptions))
	for _, s := range c.Subscriptions {
		s.Client = cmp.Or(s.Client, c.Client)
		s = s.WithDefaults()
		if r := checkSubscription(page, s); r != nil {
			return nil, r, nil
		}
		if c.Client != "" && s.Client != c.Client {
			return nil, &flow.Refusal{Code: flow.CodeFormat, Message: fmt.Sprintf("client: %q in a list of client %q", s.Client, c.Client)}, nil
		}
		name := subscriptionName(flow.DocumentID(page, s.View), s.Client)
		if seen[name] {
			return nil, conflictRefusal(s), nil
		}
		seen[name] = true
		if c.Reply { // another process checked it
			if err := acceptable(s); err != nil {
				do.Refused[len(do.Subscriptions)] = err
			}
		}
		do.Subscriptions = append(do.Subscriptions, s)
	}
	var err error
	if do.Existing, err = loadSubscriptions(st, p, c.Client); err != nil {
		return nil, nil, err
	}
	do.Expired, err = loadExpired(st, p, c.Client)
	return do, nil, err
}

func cancelCommand(st flow.State, p *Page, page string, c flow.CancelCommand) (action, *flow.Refusal, error) {
	if r := checkURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	client := pipeline.Subscription{Client: c.Client}.WithDefaults().Client
	es, err := loadSubscriptions(st, p, client)
	if err != nil {
		return nil, nil, err
	}
	xs, err := loadExpired(st, p, client)
	if err != nil {
		return nil, nil, err
	}
	if c.Sink != "" {
		es = slices.DeleteFunc(es, func(s flow.Stamped) bool { return !deliversOnlyTo(c.Sink, s) })
		xs = slices.DeleteFunc(xs, func(x ExpiredSubscription) bool { return !deliversOnlyTo(c.Sink, x.Stamped) })
	}
	do := cancel{Client: client, Existing: es}
	for _, x := range xs {
		if x.Followed == nil {
			do.Expired = append(do.Expired, x)
		} else {
			do.Root = x.Followed.Root
		}
	}
	if len(es)+len(do.Expired) == 0 && p.Followed > 0 {
		all, err := Subscriptions(st)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range all {
			if s.Followed != nil && s.Subscription.Client == client {
				do.Root = s.Followed.Root
			}
		}
	}
	return do, nil, nil
}

// deliversOnlyTo reports whether s was made at run time and is delivered to sink alone.
func deliversOnlyTo(sink string, s flow.Stamped) bool {
	return s.Origin == flow.OriginAPI && slices.Equal(s.Subscription.Sinks, []string{sink})
}

func pauseCommand(st flow.State, p *Page, page string, c flow.PauseCommand) (action, *flow.Refusal, error) {
	if r := checkURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	if err := flow.CheckTime(c.Until); err != nil {
		return nil, &flow.Refusal{Code: flow.CodeFormat, Message: "until: " + err.Error()}, nil
	}
	client := pipeline.Subscription{Client: c.Client}.WithDefaults().Client
	es, err := loadSubscriptions(st, p, client)
	if err != nil {
		return nil, nil, err
	}
	xs, err := loadExpired(st, p, client)
	return pause{Client: client, Until: c.Until.UTC().Round(0), Existing: es, Expired: xs}, nil, err
}

func resumeCommand(st flow.State, p *Page, page string, c flow.ResumeCommand) (action, *flow.Refusal, error) {
	if r := checkURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	xs, err := loadExpired(st, p, "")
	return resume{Client: c.Client, Receiver: c.Receiver, Due: c.Due, Expired: xs}, nil, err
}

func expireCommand(st flow.State, page string, c flow.ExpireCommand) (action, *flow.Refusal, error) {
	if r := checkURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	es, err := Subscriptions(st)
	return expire{Receiver: c.Receiver, Reason: c.Reason, Existing: es}, nil, err
}

// loadSubscriptions returns the current subscriptions of the page, or of one client.
func loadSubscriptions(st flow.State, p *Page, client string) ([]flow.Stamped, error) {
	if client == "" && len(p.Documents) > 0 {
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

// loadExpired returns the expired subscriptions of the page, or of one client.
func loadExpired(st flow.State, p *Page, client string) ([]ExpiredSubscription, error) {
	if p.Expired == 0 {
		return nil, nil
	}
	xs, err := Expired(st)
	if client != "" {
		xs = slices.DeleteFunc(xs, func(x ExpiredSubscription) bool { return x.Subscription.Client != client })
	}
	return xs, err
}

// checkURL returns a refusal if raw, the URL in a command, is not that of page.
func checkURL(page, raw string) *flow.Refusal {
	url, err := pageurl.Canonical(raw)
	if err != nil {
		return &flow.Refusal{Code: flow.CodeURL, Message: "url: " + err.Error()}
	}
	if url != page {
		return &flow.Refusal{Code: flow.CodeURL, Message: fmt.Sprintf("url: the key of a command about %s must be its canonical URL %q, not %q", pageurl.Redacted(raw), pageurl.Redacted(url), pageurl.Redacted(page))}
	}
	return nil
}

func conflictRefusal(s pipeline.Subscription) *flow.Refusal {
	return &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("%s is already being watched for client %q", s.URL, s.Client)}
}

// checkSubscription returns a refusal if s is not a valid subscription to page.
func checkSubscription(page string, s pipeline.Subscription) *flow.Refusal {
	if err := s.Validate(); err != nil {
		return &flow.Refusal{Code: refusalCode(err), Message: err.Error()}
	}
	if r := checkURL(page, s.URL); r != nil {
		return r
	}
	for _, k := range s.Keywords {
		if err := text.ValidKeyword(k); err != nil {
			return &flow.Refusal{Code: flow.CodeKeywords, Message: "keywords: " + err.Error()}
		}
	}
	return nil
}

// isAwaited reports whether the sender of m may wait for the decision. This module itself sends
// the other commands, and does not wait.
func isAwaited(m flow.Message) bool {
	switch m.Type {
	case flow.TypeSubscribe, flow.TypeCancel, flow.TypePause, flow.TypeResume:
		return true
	}
	return false
}

// wantsReply reports whether m is an ApplyCommand whose sender waits for the decision.
func wantsReply(m flow.Message) bool {
	var c struct{ Reply bool }
	return m.Type == flow.TypeApply && json.Unmarshal(m.Body, &c) == nil && c.Reply
}

// refusedEvent is the event that answers the refused command m.
func refusedEvent(m flow.Message, r *flow.Refusal, at time.Time) pipeline.Health {
	h := pipeline.Health{
		ID: flow.HealthID(pipeline.HealthRefused, m.ID, 0), Event: pipeline.HealthRefused, Time: at,
		Command: m.ID, Code: r.Code, Reason: r.Message, Client: clientOf(m),
	}
	if page, err := pageurl.Canonical(m.Key); err == nil {
		h.URL = page
	}
	return h
}

// clientOf returns the client of the command m, or "" if m cannot be decoded.
func clientOf(m flow.Message) string {
	var c struct {
		Client       string
		Subscription struct{ Client string }
	}
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return ""
	}
	client := cmp.Or(c.Client, c.Subscription.Client)
	if m.Type == flow.TypeResume {
		return client // of all clients where it is empty
	}
	return pipeline.Subscription{Client: client}.WithDefaults().Client
}

// refusalCode is the smallest code among the errors that Validate joined, so that a specific code
// takes precedence over CodeFormat.
func refusalCode(err error) int {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		code := flow.CodeFormat
		for _, e := range joined.Unwrap() {
			code = min(code, refusalCode(e))
		}
		return code
	}
	field, _ := errors.AsType[*pipeline.FieldError](err)
	if field == nil {
		return flow.CodeFormat
	}
	switch name, _, _ := strings.Cut(field.Field, "["); name {
	case "url":
		return flow.CodeURL
	case "keywords":
		return flow.CodeKeywords
	case "events":
		return flow.CodeEvents
	}
	return flow.CodeFormat
}

// refusals are the pages of which this process refused an ApplyCommand. It is safe for
// concurrent use.
type refusals struct {
	mu    sync.Mutex
	pages map[string]bool
}

func (r *refusals) add(page string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pages == nil {
		r.pages = make(map[string]bool)
	}
	r.pages[page] = true
}

// TakeRefused returns the pages of which an ApplyCommand was refused since the last call. The
// caller sends their commands again: what stood in their way may be gone.
func (s *Stage) TakeRefused() map[string]bool {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	pages := s.refusals.pages
	s.refusals.pages = nil
	return pages
}
