// Package ntfy is the sink that publishes notifications to a topic of ntfy.sh or of an ntfy
// server of one's own, from where they reach phones and desktops.
//
// A topic needs not be made: subscribe to it in an ntfy app, and name its URL here. On a
// server without access control whoever knows the topic's name can read and write it, so
// choose one that is hard to guess; with access control add a token (Account, Access tokens,
// or "ntfy token add"), or the name and password of a user who may write to the topic. A
// server in a private network has to be permitted by allow.sinks or --allow.
//
// The title says what was found, the text below it has the page and one line for each
// difference, and a click opens the page. ntfy takes 4,096 bytes; what does not fit is counted
// as "and n more". The text of a page is plain text there.
//
// ntfy limits how much one address or user sends: by default 60 requests at once, and then one
// every five seconds (visitor-request-limit-burst and -replenish of a server of one's own);
// ntfy.sh takes 250 messages a day without a plan. What is more waits, and counts as no failure:
// it is tried again when ntfy says, after half a minute where it does not, and each hour once the
// messages of the day are used up.
//
// A notification counts as delivered
// once ntfy has answered with the ID of the message. ntfy does not drop what is sent twice.
package ntfy

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of an ntfy sink.
type Config struct {
	// URL is the server and the topic, such as https://ntfy.sh/pages-8KqvTzWf3. Required.
	URL registry.Secret `yaml:"url"`
	// Token is an access token, such as tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2, where the server asks
	// for one. Default: none.
	Token registry.Secret `yaml:"token"`
	// Username and Password log in in place of a token. Default: nobody logs in.
	Username string `yaml:"username"`
	// Password is that of Username.
	Password registry.Secret `yaml:"password"`
	// Priority is from 1, which makes no sound, to 5, which makes a long one. Default: the
	// server's, which is 3.
	Priority int `yaml:"priority"`
	// Tags stand below the message; those that name an emoji, such as eyes, are shown as it
	// before the title. At most 10, of 40 characters each. Default: none.
	Tags []string `yaml:"tags"`
	// Template is what a message says below its title, in place of the built-in layout: plain
	// text, cut at 4,096 bytes.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

const example = "https://ntfy.sh/pages-8KqvTzWf3"

// topics is ntfy's rule for names of topics.
var topics = regexp.MustCompile(`^[-_A-Za-z0-9]{1,64}$`)

// Bounds of Config.Tags: ntfy bounds the message as a whole.
const maxTags, maxTag = 10, 40

// New returns the sink of c, or joined *pipeline.FieldErrors that name what is wrong.
func New(c Config) (*Ntfy, error) {
	var bad outbound.Mistakes
	server, topic, err := split(c.URL.Reveal())
	bad.Add("url", err)
	bad.Token("token", c.Token)
	auth, err := c.authorization()
	bad.Join(err)
	if server != nil && server.User != nil && auth != "" {
		bad.Addf("url", "it has a user name, and token or username is set too; keep one of them")
	}
	if c.Priority < 0 || c.Priority > 5 {
		bad.Addf("priority", "%d is not between 1 and 5", c.Priority)
	}
	if len(c.Tags) > maxTags {
		bad.Addf("tags", "%d tags are too many; at most %d", len(c.Tags), maxTags)
	}
	for i, tag := range c.Tags {
		if tag == "" || len(tag) > maxTag || strings.ContainsAny(tag, ",\r\n") {
			bad.Addf(fmt.Sprintf("tags[%d]", i), "a tag has 1 to %d characters and no comma", maxTag)
		}
	}
	sender, text := bad.Sender(c.Connection), bad.Template("template", c.Template)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	n := &Ntfy{
		endpoint: outbound.NewEndpoint(server, sender, c.URL.Reveal(), topic, c.Token.Reveal(), c.Password.Reveal(), c.Username+":"+c.Password.Reveal()),
		server:   server, topic: topic, priority: c.Priority, tags: c.Tags, template: text,
	}
	if auth != "" {
		n.header = http.Header{"Authorization": {auth}}
	}
	return n, nil
}

// split returns the server and the topic of raw. Its errors do not quote it.
func split(raw string) (server *url.URL, topic string, err error) {
	u, err := outbound.ParseURL(raw, example)
	if err != nil {
		return nil, "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	at := strings.LastIndexByte(path, '/') + 1
	if topic = path[at:]; !topics.MatchString(topic) || u.RawPath != "" {
		return nil, "", errors.New("the URL must end with a topic, of letters, digits, underscores and hyphens, such as " + example)
	}
	u.Path = path[:at]
	return u, topic, nil
}

// authorization returns the header of that name; empty: none.
func (c Config) authorization() (string, error) {
	wrong := func(field, reason string) (string, error) {
		return "", &pipeline.FieldError{Field: field, Reason: reason}
	}
	switch {
	case !c.Token.IsZero() && (c.Username != "" || !c.Password.IsZero()):
		return wrong("token", "is set together with username or password; keep one of them")
	case c.Username != "" && c.Password.IsZero():
		return wrong("password", "is required with username")
	case c.Username == "" && !c.Password.IsZero():
		return wrong("username", "is required with password")
	case strings.Contains(c.Username, ":"):
		return wrong("username", "a user name has no colon: in basic authentication a colon ends it")
	case !c.Token.IsZero():
		return "Bearer " + c.Token.Reveal(), nil
	case c.Username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password.Reveal())), nil
	}
	return "", nil
}

// Register registers the kind of sink "ntfy" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "ntfy", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// Ntfy publishes notifications to one topic. It is safe for concurrent use.
type Ntfy struct {
	endpoint *outbound.Endpoint
	server   *url.URL
	header   http.Header
	topic    string
	priority int
	tags     []string
	template render.Template
}

var _ pipeline.Sink = (*Ntfy)(nil)

// maxText is how many bytes ntfy takes as a message; a longer one it makes an attachment.
// A whole request may have twice as many, so that they are counted as JSON has them.
const maxText = 4096

// budget leaves room for what Plain puts between the texts, and for the line that counts the
// rest.
var budget = render.Budget{Total: 3900, Lines: 40, LineCost: 6, Length: render.Encoded}

// message is what ntfy takes as JSON.
type message struct {
	Topic    string   `json:"topic"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Click    string   `json:"click,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Priority int      `json:"priority,omitempty"`
}

// Deliver publishes n. It follows no redirects, and reads no more than 128 KB of the answer.
func (s *Ntfy) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	text, ok := s.template.Render(ctx, n)
	if !ok {
		text = render.Below(m)
	}
	body := outbound.JSON(message{
		Topic: s.topic, Title: render.Title(m), Message: render.Cut(text, maxText, render.Encoded), Click: m.URL, Tags: s.tags, Priority: s.priority,
	})
	return s.endpoint.Send(ctx, http.MethodPost, s.server, s.header, body, s.verdict)
}

// The codes of ntfy's errors that say more than their status.
const (
	codeUnauthorized = 40101
	codeForbidden    = 40301
	codeDailyQuota   = 42908
)

// waitQuota is for how long ntfy is left alone once the messages of the day are used up, since it
// does not say for how long.
const waitQuota = time.Hour

// verdict reads what ntfy answered: the ID of the message, or what is wrong.
func (s *Ntfy) verdict(a *outbound.Answer) error {
	type answer struct {
		ID    string `json:"id"`
		Code  int    `json:"code"`
		Error string `json:"error"`
	}
	said := outbound.Read[answer](a.Body)
	err := a.Err()
	switch {
	case err == nil && said.ID != "":
		return nil
	case err == nil:
		return s.endpoint.Because(a.Without("the ID of a message"), said.Error)
	case said.Code == codeUnauthorized:
		err = fmt.Errorf("%w: check it, or the user and password", a.Denied("the token is refused, or the password"))
	case said.Code == codeForbidden:
		err = fmt.Errorf("%w: the token, or the user, may not write to the topic", a.Denied(outbound.AccessRefused))
	case said.Code == codeDailyQuota:
		err = a.Limit(err, waitQuota)
	}
	return s.endpoint.Because(err, said.Error)
}
