package gotify

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// defaultPriority makes a sound. That of an application is 0 until somebody changes it.
const defaultPriority = 5

// Config is what stands in the configuration for a gotify.
type Config struct {
	// URL is the server, such as https://gotify.example.com, with the path under which it is
	// where it has one. Required.
	URL registry.Secret `yaml:"url"`
	// Token is that of the application, such as AWTpRwsk0bnC5Ji. Required.
	Token registry.Secret `yaml:"token"`
	// Priority is from 1 to 10. Gotify's app makes a sound from 4 on, and comes to the front
	// from 8 on. Default: 5.
	Priority int `yaml:"priority"`
	// Template is what a message says below its title, in place of the built-in layout: plain
	// text, cut at 16,000 characters.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Gotify, error) {
	var errs []error
	wrong := func(field, reason string) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: reason})
	}
	u, err := outbound.ParseURL(c.URL.Reveal(), "https://gotify.example.com")
	if err != nil {
		wrong("url", err.Error())
	}
	token := c.Token.Reveal()
	switch {
	case token == "":
		wrong("token", "a token is needed: that of an application, from the page Apps of Gotify")
	case !outbound.Token(token):
		wrong("token", "a token has no blanks and no other such characters")
	}
	if c.Priority < 0 || c.Priority > 10 {
		wrong("priority", fmt.Sprintf("%d is not between 1 and 10", c.Priority))
	}
	sender, err := outbound.NewSender(c.Connection)
	errs = append(errs, err)
	text, err := render.CompileTemplate("template", c.Template)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Gotify{
		endpoint: outbound.NewEndpoint(u, sender, token), url: u.JoinPath("message"), header: http.Header{"X-Gotify-Key": {token}},
		priority: cmp.Or(c.Priority, defaultPriority), template: text,
	}, nil
}

// Register makes the configuration know the kind of sink "gotify". Its sinks share their
// connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "gotify", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
