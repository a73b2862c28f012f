// Package ntfy is the sink that publishes notifications to a topic of ntfy.sh or of your own
// ntfy server, which delivers them to phones and desktops.
//
// You need not create a topic: subscribe to it in an ntfy app, and give its URL here. On a
// server without access control everybody who knows the topic's name can read and write it, so
// choose a name that is hard to guess. With access control add a token (Account, Access tokens,
// or "ntfy token add"), or the name and password of a user who may write to the topic. A server
// in a private network must be permitted by allow.sinks or --allow.
//
// The title says what was found, the text below it has the page and one line for each
// difference, and a click opens the page. ntfy accepts 4,096 bytes; differences that do not fit
// are counted as "and n more". The text of a page is shown as plain text.
//
// ntfy limits the messages of an address or user: by default 60 requests at once, and then one
// every five seconds (visitor-request-limit-burst and -replenish on your own server); ntfy.sh
// accepts 250 messages a day without a plan. Further notifications wait, which does not count
// as a failure. They are tried again when ntfy says, or after half a minute if it does not, and
// every hour once the messages of the day are used up.
//
// A notification counts as delivered once ntfy has answered with the ID of the message. ntfy
// does not drop a message that is sent twice.
package ntfy

import (
	"cmp"
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
	// URL is the URL of the topic on the server, such as https://ntfy.sh/pages-8KqvTzWf3.
	// Required.
	URL registry.Secret `yaml:"url"`
	// Token is an access token, such as tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2, if the server needs
	// one. Default: none.
	Token registry.Secret `yaml:"token"`
	// Username and Password log in instead of a token. Default: no login.
	Username string `yaml:"username"`
	// Password is the password of Username.
	Password registry.Secret `yaml:"password"`
	// Priority is the priority of the messages, from 1 (no sound) to 5 (a long sound). What
	// is critical by the severity of its subscription has 5, what is info at most 2. Default: the
	// server's, which is 3.
	Priority int `yaml:"priority"`
	// Tags are shown below the message. The name of an emoji, such as eyes, is shown as that
	// emoji before the title. At most 10, of 40 characters each. Default: none.
	Tags []string `yaml:"tags"`
	// Template is the template of the text below the title, instead of the built-in layout:
	// plain text, cut at 4,096 bytes.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

const exampleURL = "https://ntfy.sh/pages-8KqvTzWf3"

// topicPattern matches valid names of topics.
var topicPattern = regexp.MustCompile(`^[-_A-Za-z0-9]{1,64}$`)

// Limits of Config.Tags. ntfy limits only the whole message.
const maxTags, maxTag = 10, 40

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Ntfy, error) {
	var bad outbound.Mistakes
	server, topic, err := splitURL(c.URL.Reveal())
	bad.Add("url", err)
	bad.Unset("token", c.Token)
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

// splitURL returns the server and the topic in raw. Its errors do not quote raw.
func splitURL(raw string) (server *url.URL, topic string, err error) {
	u, err := outbound.ParseURL(raw, exampleURL)
	if err != nil {
		return nil, "", err
	}
	path := strings.TrimSuffix(u.Path, "/")
	at := strings.LastIndexByte(path, '/') + 1
	if topic = path[at:]; !topicPattern.MatchString(topic) || u.RawPath != "" {
		return nil, "", errors.New("the URL must end with a topic of 1 to 64 letters, digits, underscores and hyphens, such as " + exampleURL)
	}
	u.Path = path[:at]
	return u, topic, nil
}

// authorization returns the value of the header Authorization, or "" for none.
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

// maxText is the largest message in bytes; ntfy makes a longer one an attachment. A whole
// request may have twice as many, so bytes are counted as encoded in JSON.
const maxText = 4096

// budget leaves room for the separators of Plain, and for the line "and n more".
var budget = render.Budget{Total: 3900, Lines: 40, LineCost: 6, Length: render.Encoded}

// message is the body of a request to ntfy.
type message struct {
	Topic    string   `json:"topic"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Click    string   `json:"click,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Priority int      `json:"priority,omitempty"`
}

// priorityOf returns the priority of n: that of the sink, but 5 for what is critical and at most 2,
// without a sound, for what is only for information.
func (s *Ntfy) priorityOf(n pipeline.Notification) int {
	const silent, urgent = 2, 5
	switch n.Severity {
	case pipeline.SeverityCritical:
		return urgent
	case pipeline.SeverityInfo:
		return min(cmp.Or(s.priority, silent), silent)
	}
	return s.priority
}

// Host returns the host that messages are sent to, with its port.
func (s *Ntfy) Host() string { return s.endpoint.Host() }

// Deliver publishes n. It follows no redirects, and reads no more than 128 KB of the answer.
func (s *Ntfy) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	text, ok := s.template.Render(ctx, n)
	if !ok {
		text = render.Below(m)
	}
	body := outbound.JSON(message{
		Topic: s.topic, Title: render.Title(m), Message: render.Cut(text, maxText, render.Encoded), Click: m.URL, Tags: s.tags, Priority: s.priorityOf(n),
	})
	return s.endpoint.Send(ctx, http.MethodPost, s.server, s.header, body, s.classify)
}

// Codes of ntfy's errors that say more than the status.
const (
	codeUnauthorized = 40101
	codeForbidden    = 40301
	codeDailyQuota   = 42908
)

// quotaDelay is the pause once the messages of the day are used up, because ntfy does not say
// how long to wait.
const quotaDelay = time.Hour

// classify returns the error in ntfy's answer, or nil if it has the ID of the message.
func (s *Ntfy) classify(a *outbound.Answer) error {
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
		err = a.Limit(err, quotaDelay)
	}
	return s.endpoint.Because(err, said.Error)
}
