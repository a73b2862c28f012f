// Package gotify is the sink that sends notifications to a Gotify server, from where they
// reach its web page and its app for Android.
//
// Make an application in Gotify (Apps, Create Application) and name its token here; it can send
// messages and nothing else. A server in a private network must be permitted by allow.sinks or
// --allow.
//
// The title says what was found, the text below it has the page and one line for each
// difference, and a click opens the page. The text of a page is plain text there, never
// Markdown. A notification counts as delivered once Gotify has answered with the ID of the
// message. The ID of the notification is in its extras, as id of vokter::notification; Gotify
// does not drop what is sent twice.
package gotify

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// defaultPriority makes a sound. The default of an application in Gotify is 0, which makes none.
const defaultPriority = 5

// Config is the configuration of a Gotify sink.
type Config struct {
	// URL is the URL of the server, such as https://gotify.example.com, with its path if it has
	// one. Required.
	URL registry.Secret `yaml:"url"`
	// Token is the token of the application, such as AWTpRwsk0bnC5Ji. Required.
	Token registry.Secret `yaml:"token"`
	// Priority is the priority of the messages, from 1 to 10. Gotify's app makes a sound from 4
	// on, and comes to the front from 8 on. What is critical by the severity of its subscription has at least 8, what is
	// info at most 3. Default: 5.
	Priority int `yaml:"priority"`
	// Template is the template of the text below the title, instead of the built-in layout:
	// plain text, cut at 16,000 characters.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Gotify, error) {
	var bad outbound.Mistakes
	u := bad.URL("url", c.URL, "https://gotify.example.com")
	token := c.Token.Reveal()
	if token == "" {
		bad.Addf("token", "a token is required: that of an application, from the page Apps of Gotify")
	}
	bad.Token("token", c.Token)
	if c.Priority < 0 || c.Priority > 10 {
		bad.Addf("priority", "%d is not between 1 and 10", c.Priority)
	}
	sender, text := bad.Sender(c.Connection), bad.Template("template", c.Template)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return &Gotify{
		endpoint: outbound.NewEndpoint(u, sender, token), url: u.JoinPath("message"), header: http.Header{"X-Gotify-Key": {token}},
		priority: cmp.Or(c.Priority, defaultPriority), template: text,
	}, nil
}

// Register registers the kind of sink "gotify" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "gotify", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// Gotify sends notifications as one application. It is safe for concurrent use.
type Gotify struct {
	endpoint *outbound.Endpoint
	url      *url.URL
	header   http.Header
	priority int
	template render.Template
}

var _ pipeline.Sink = (*Gotify)(nil)

// maxText bounds a message, in runes: some databases of Gotify store at most 64 KB.
const maxText = 16_000

var budget = render.Budget{Total: 12_000, Lines: 40}

// message is the body of a request to Gotify.
type message struct {
	Title    string `json:"title"`
	Message  string `json:"message"`
	Priority int    `json:"priority"`
	Extras   extras `json:"extras"`
}

// extras says how a message is shown, where a tap on it leads, and which notification it is.
type extras struct {
	Display struct {
		ContentType string `json:"contentType"`
	} `json:"client::display"`
	Notification struct {
		Click struct {
			URL string `json:"url"`
		} `json:"click"`
	} `json:"client::notification,omitzero"`
	Vokter struct {
		ID string `json:"id"`
	} `json:"vokter::notification"`
}

// Host returns the host that messages are sent to, with its port.
func (s *Gotify) Host() string { return s.endpoint.Host() }

// Deliver sends n. It follows no redirects, and reads no more than 128 KB of the answer.
func (s *Gotify) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	text, ok := s.template.Render(ctx, n)
	if !ok {
		text = render.Below(m)
	}
	var x extras
	x.Display.ContentType, x.Notification.Click.URL, x.Vokter.ID = "text/plain", m.URL, n.ID
	body := outbound.JSON(message{Title: render.Title(m), Message: render.Cut(text, maxText, render.Runes), Priority: s.priorityOf(n), Extras: x})
	return s.endpoint.Send(ctx, http.MethodPost, s.url, s.header, body, s.classify)
}

// priorityOf returns the priority of n: that of the sink, but at least urgent for what is critical
// and at most silent for what is only for information.
func (s *Gotify) priorityOf(n pipeline.Notification) int {
	const silent, urgent = 3, 8
	switch n.Severity {
	case pipeline.SeverityCritical:
		return max(s.priority, urgent)
	case pipeline.SeverityInfo:
		return min(s.priority, silent)
	}
	return s.priority
}

// classify classifies the answer of Gotify, which has the ID of the message or an error.
func (s *Gotify) classify(a *outbound.Answer) error {
	type answer struct {
		ID          uint64 `json:"id"`
		Code        int    `json:"errorCode"`
		Description string `json:"errorDescription"`
	}
	said := outbound.Read[answer](a.Body)
	err := a.Err()
	switch {
	case err == nil && said.ID != 0:
		return nil
	case err == nil:
		err = a.Without("the ID of a message")
	case said.Code == http.StatusUnauthorized && a.Status == said.Code:
		err = fmt.Errorf("%w: check that it is that of an application", err)
	case said.Code == http.StatusForbidden && a.Status == said.Code:
		err = fmt.Errorf("%w: check that it is that of an application", a.Denied(outbound.TokenRefused))
	}
	return s.endpoint.Because(err, said.Description)
}
