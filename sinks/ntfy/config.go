package ntfy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for an ntfy.
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

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Ntfy, error) {
	var errs []error
	wrong := func(field, reason string) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: reason})
	}
	server, topic, err := split(c.URL.Reveal())
	if err != nil {
		wrong("url", err.Error())
	}
	auth, err := c.authorization()
	if err != nil {
		errs = append(errs, err)
	}
	if server != nil && server.User != nil && auth != "" {
		wrong("url", "it has a user, beside token or username; keep one of them")
	}
	if c.Priority < 0 || c.Priority > 5 {
		wrong("priority", fmt.Sprintf("%d is not between 1 and 5", c.Priority))
	}
	if len(c.Tags) > maxTags {
		wrong("tags", fmt.Sprintf("%d tags are too many; at most %d", len(c.Tags), maxTags))
	}
	for i, tag := range c.Tags {
		if tag == "" || len(tag) > maxTag || strings.ContainsAny(tag, ",\r\n") {
			wrong(fmt.Sprintf("tags[%d]", i), fmt.Sprintf("a tag has 1 to %d characters and no comma", maxTag))
		}
	}
	sender, err := outbound.NewSender(c.Connection)
	errs = append(errs, err)
	text, err := render.CompileTemplate("template", c.Template)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
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
		return wrong("token", "is given beside username or password; keep one of them")
	case c.Username != "" && c.Password.IsZero():
		return wrong("password", "is needed with username")
	case c.Username == "" && !c.Password.IsZero():
		return wrong("username", "is needed with password")
	case !outbound.Token(c.Token.Reveal()):
		return wrong("token", "a token has no blanks and no other such characters")
	case strings.Contains(c.Username, ":"):
		return wrong("username", "a name has no colon, since the password follows behind one")
	case !c.Token.IsZero():
		return "Bearer " + c.Token.Reveal(), nil
	case c.Username != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password.Reveal())), nil
	}
	return "", nil
}

// Register makes the configuration know the kind of sink "ntfy". Its sinks share their
// connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "ntfy", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
