package matrix

import (
	"cmp"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is what stands in the configuration for a matrix.
type Config struct {
	// Homeserver is the URL of the account's homeserver, such as https://matrix.example.org:
	// where clients reach it, which need not be what follows the colon in the account's name.
	// Required.
	Homeserver registry.Secret `yaml:"homeserver"`
	// Room is the ID of the room, such as "!QtykxKocfZaZOUrTwp:matrix.org": not its address,
	// which begins with "#". Required.
	Room string `yaml:"room"`
	// Token is the access token of the account. Required.
	Token registry.Secret `yaml:"token"`
	// AllowUnencrypted permits a room that is encrypted. Every message is sent without encryption,
	// so the homeserver can read it, and apps show a warning beside it. `sink test` and `lint
	// --connect` refuse such a room without this. Default: false.
	AllowUnencrypted bool `yaml:"allow_unencrypted"`
	// MsgType is m.notice or m.text. With the rules that apps have from the beginning, only
	// m.text makes a sound. Default: m.notice.
	MsgType string `yaml:"msgtype"`
	// Template is what a message says, in place of the built-in layout: HTML, of at most
	// 24,000 bytes. The values in it are escaped. Who reads plain text gets the built-in one.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// The kinds of messages.
const (
	msgNotice = "m.notice"
	msgText   = "m.text"
)

// rooms is what an ID of a room looks like; those of newer versions have no server in them.
var rooms = regexp.MustCompile(`^![!-.0-~]{1,254}$`)

// New returns the sink of c, or the joined *pipeline.FieldErrors that say what is wrong.
func New(c Config) (*Matrix, error) {
	var errs []error
	wrong := func(field, reason string) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: reason})
	}
	u, err := outbound.ParseURL(c.Homeserver.Reveal(), "https://matrix.example.org")
	if err != nil {
		wrong("homeserver", err.Error())
	} else if u.User != nil {
		wrong("homeserver", "it can have no user, since the token logs in")
	}
	switch {
	case strings.HasPrefix(c.Room, "#"):
		wrong("room", "this is an address; write the ID of the room, which begins with \"!\"")
	case !rooms.MatchString(c.Room):
		wrong("room", "write the ID of a room, such as \"!QtykxKocfZaZOUrTwp:matrix.org\"")
	}
	token := c.Token.Reveal()
	switch {
	case token == "":
		wrong("token", "the access token of an account is needed")
	case !outbound.Token(token):
		wrong("token", "a token has no blanks and no other such characters")
	}
	kind := cmp.Or(c.MsgType, msgNotice)
	if kind != msgNotice && kind != msgText {
		wrong("msgtype", "it is m.notice or m.text")
	}
	sender, err := outbound.NewSender(c.Connection)
	errs = append(errs, err)
	text, err := render.CompileTemplate("template", c.Template)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Matrix{
		endpoint: outbound.NewEndpoint(u, sender, token), homeserver: u, room: c.Room, kind: kind, allowUnencrypted: c.AllowUnencrypted,
		header: http.Header{"Authorization": {"Bearer " + token}}, template: text,
	}, nil
}

// Register makes the configuration know the kind of sink "matrix". Its sinks share their
// connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "matrix", func(c *Config) *registry.Connection { return &c.Connection }, New)
}
