// Package matrix is the sink that sends notifications to a room of Matrix.
//
// Make an account for it on a homeserver, invite it into the room and let it join there. Messages
// are sent without encryption, so choose a room that is not encrypted: `sink test` and `lint
// --connect` refuse one that is, unless allow_unencrypted permits it. In Element the access
// token of the account is under All settings, Help & About, Advanced; the room's ID, which
// begins with "!", is under Room info, Settings, Advanced. Whoever has the token can do all
// that the account can. A homeserver in a private network has to be permitted by
// allow.sinks or --allow.
//
// A message says in its first line what was found, then links to the page, and shows each
// difference as a quote with the keyword bold and removed text struck; who reads plain text
// gets the same as that. The text of a page is escaped, and no message mentions anybody. By
// default a message is a notice, as those of all bots, with which apps make no sound; see
// msgtype.
//
// Homeservers limit how much an account sends. Synapse lets it send ten messages at once, and
// then one every five seconds, unless its rc_message says otherwise; what is more waits for as
// long as the homeserver asks, and counts as no failure. The homeserver's administrator can lift
// the limit for the account.
//
// A notification counts as delivered once the homeserver has answered with the ID of the
// event. The ID of the notification is that of the transaction, so that homeservers drop what
// is sent twice within about an hour, and is in the event as id of io.vokter.notification.
package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of a Matrix sink.
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
	// Template is the template of a message, instead of the built-in layout: HTML, of at most
	// 24,000 bytes. The values in it are escaped. Plain text clients show the built-in layout.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// The kinds of messages.
const (
	msgNotice = "m.notice"
	msgText   = "m.text"
)

// roomPattern matches the ID of a room. IDs of newer room versions contain no server.
var roomPattern = regexp.MustCompile(`^![!-.0-~]{1,254}$`)

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Matrix, error) {
	var bad outbound.Mistakes
	u := bad.URL("homeserver", c.Homeserver, "https://matrix.example.org")
	if u != nil && u.User != nil {
		bad.Addf("homeserver", "remove the user name from the URL: the token authenticates")
	}
	switch {
	case strings.HasPrefix(c.Room, "#"):
		bad.Addf("room", "this is the address of a room; write its ID, which begins with \"!\"")
	case !roomPattern.MatchString(c.Room):
		bad.Addf("room", "write the ID of a room, such as \"!QtykxKocfZaZOUrTwp:matrix.org\"")
	}
	token := c.Token.Reveal()
	if token == "" {
		bad.Addf("token", "a token is required: the access token of the account")
	}
	bad.Token("token", c.Token)
	kind := cmp.Or(c.MsgType, msgNotice)
	if kind != msgNotice && kind != msgText {
		bad.Addf("msgtype", "%q is neither m.notice nor m.text", kind)
	}
	sender, text := bad.Sender(c.Connection), bad.Template("template", c.Template)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return &Matrix{
		endpoint: outbound.NewEndpoint(u, sender, token), homeserver: u, room: c.Room, msgType: kind, allowUnencrypted: c.AllowUnencrypted,
		header: http.Header{"Authorization": {"Bearer " + token}}, template: text,
	}, nil
}

// Register registers the kind of sink "matrix" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "matrix", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// Matrix sends notifications to one room. It is safe for concurrent use.
type Matrix struct {
	endpoint      *outbound.Endpoint
	homeserver    *url.URL
	header        http.Header
	room, msgType string
	template      render.Template
	// allowUnencrypted permits an encrypted room, in which messages are not encrypted.
	allowUnencrypted bool
}

var (
	_ pipeline.Sink    = (*Matrix)(nil)
	_ pipeline.Checker = (*Matrix)(nil)
)

// Bounds in bytes. An event has at most 65,536, with its HTML, its plain text, and what
// servers add.
const (
	maxHTML  = 24_000
	maxPlain = 16_000
)

var budget = render.Budget{
	Total: 12_000, Lines: 40, LineCost: lineCost,
	Length: func(s string) int { return len(render.HTML(s)) },
}

// content is that of an event m.room.message.
type content struct {
	MsgType  string        `json:"msgtype"`
	Body     string        `json:"body"`
	Format   string        `json:"format,omitempty"`
	HTML     string        `json:"formatted_body,omitempty"`
	Mentions struct{}      `json:"m.mentions"`
	Vokter   vokterContent `json:"io.vokter.notification"`
}

// vokterContent holds the ID of the notification, for programs that read the room.
type vokterContent struct {
	ID string `json:"id"`
}

// Host returns the host that messages are sent to, with its port.
func (s *Matrix) Host() string { return s.endpoint.Host() }

// Deliver sends n, or plain text where the homeserver refuses that. It follows no redirects,
// and reads no more than 128 KB of the answer.
func (s *Matrix) Deliver(ctx context.Context, n pipeline.Notification) error {
	if strings.Trim(n.ID, ".") == "" { // it becomes a part of a path
		return failure.Permanent(errors.New("the notification has no ID"))
	}
	m := render.MessageOf(n, budget)
	formatted := formatHTML(m)
	if text, ok := s.template.RenderFor(ctx, n, render.HTML); ok {
		if len(text) > maxHTML {
			pipeline.AttemptFrom(ctx).Degraded(fmt.Sprintf("the template makes %d bytes, and a message may have %d", len(text), maxHTML))
		} else {
			formatted = text
		}
	}
	c := content{
		MsgType: s.msgType, Body: render.Cut(m.Plain(), maxPlain, render.Bytes), Vokter: vokterContent{n.ID},
		Format: "org.matrix.custom.html", HTML: formatted,
	}
	plain := c
	plain.Format, plain.HTML = "", ""
	u := s.roomURL("send/m.room.message", url.PathEscape(n.ID))
	send := func(ctx context.Context, body []byte) error {
		return s.endpoint.Send(ctx, http.MethodPut, u, s.header, body, s.classify)
	}
	return outbound.Insist(ctx, send, outbound.JSON(c), func() []byte { return outbound.JSON(plain) })
}

// roomURL returns the URL of a resource of the room.
func (s *Matrix) roomURL(path ...string) *url.URL {
	return s.homeserver.JoinPath("_matrix/client/v3/rooms", url.PathEscape(s.room)).JoinPath(path...)
}

// deniedCodes describes the error codes that the operator has to fix.
var deniedCodes = map[string]string{
	"M_UNKNOWN_TOKEN": outbound.TokenRefused, "M_MISSING_TOKEN": outbound.TokenRefused,
	"M_USER_DEACTIVATED": "the account is deactivated", "M_GUEST_ACCESS_FORBIDDEN": "guests may not write to the room",
}

// notInRoomPattern matches the error text for an account that is not in the room. Matrix has no error code
// for that: "User @bot:example.org not in room !x:example.org", or "You aren't a member of the room".
var notInRoomPattern = regexp.MustCompile(`(?i)not in (the )?room|not a member|aren't a member|not joined`)

// answer is the body of a homeserver's answer.
type answer struct {
	EventID    string  `json:"event_id"`
	Code       string  `json:"errcode"`
	Error      string  `json:"error"`
	RetryAfter float64 `json:"retry_after_ms"`
}

// classify classifies the answer to a message, which has the ID of the event or an error.
func (s *Matrix) classify(a *outbound.Answer) error {
	said := outbound.Read[answer](a.Body)
	if a.Err() != nil {
		return s.refusalError(a, said)
	}
	if strings.HasPrefix(said.EventID, "$") {
		return nil
	}
	return s.addReason(a.Without("the ID of an event"), said)
}

// refusalError returns the error for a, whose status is not 2xx.
func (s *Matrix) refusalError(a *outbound.Answer, said answer) error {
	err := a.Err()
	switch {
	case said.Code == "M_LIMIT_EXCEEDED":
		err = outbound.Limit(err, a, said.RetryAfter/1000)
	case a.Status < 500 && said.Code == "M_FORBIDDEN":
		what, advice := "the account may not do that in the room", "give the account a power level in "+s.room+" with which it may send messages"
		if notInRoomPattern.MatchString(said.Error) {
			what, advice = "the account is not in the room", "invite the account to "+s.room+" and let it join there"
		}
		return &outbound.Advised{Err: s.addReason(a.Denied(what), said), Advice: advice}
	case a.Status < 500 && deniedCodes[said.Code] != "":
		err = a.Denied(deniedCodes[said.Code])
	case a.Status == http.StatusNotFound && said.Code == "M_NOT_FOUND": // there is no such room
		err = failure.Gone(err)
	}
	return s.addReason(err, said)
}

// addReason adds the homeserver's error text to err.
func (s *Matrix) addReason(err error, said answer) error {
	if said.Code != "" {
		said.Error = said.Code + ": " + said.Error
	}
	return s.endpoint.Because(err, said.Error)
}

// Check says whether the room can be used: the account is in there, and the room is not
// encrypted, unless that is allowed. It reads the event m.room.encryption of the room's state,
// which an encrypted room has and another one has not.
func (s *Matrix) Check(ctx context.Context) error {
	a, err := s.endpoint.Do(ctx, http.MethodGet, s.roomURL("state/m.room.encryption"), s.header, nil)
	if err != nil {
		return err
	}
	said := outbound.Read[answer](a.Body)
	switch {
	case a.Status == http.StatusNotFound && said.Code == "M_NOT_FOUND":
		return nil
	case a.Err() != nil:
		return s.refusalError(a, said)
	case s.allowUnencrypted:
		return nil
	}
	return &outbound.Advised{
		Err:    errors.New("the room is encrypted, and notifications would be sent to it without encryption"),
		Advice: "write the ID of a room that is not encrypted, or permit this with allow_unencrypted: true",
	}
}

// lineCost is the most bytes that a difference takes in HTML besides its texts.
const lineCost = 120

// formatHTML returns m as HTML. It uses only elements that Matrix allows.
func formatHTML(m render.Message) string {
	var b strings.Builder
	b.WriteString("<p><strong>" + render.HTML(m.Headline) + "</strong>")
	switch {
	case m.URL != "":
		b.WriteString(`<br><a href="` + render.HTML(m.URL) + `">` + render.HTML(m.Title) + "</a>")
	case m.Title != "":
		b.WriteString("<br>" + render.HTML(m.Title))
	}
	b.WriteString("</p>")
	paragraph := func(text string) {
		if text != "" {
			b.WriteString("<p>" + render.HTML(text) + "</p>")
		}
	}
	paragraph(m.Reason)
	for _, l := range m.Lines {
		b.WriteString("<p>" + render.HTML(l.Head()) + "</p><blockquote>")
		for _, s := range render.Looks(l) {
			b.WriteString(formatSpan(s))
		}
		b.WriteString("</blockquote>")
	}
	for _, page := range m.Pages {
		paragraph(page.String())
	}
	paragraph(m.Left())
	if m.Link != "" {
		b.WriteString(`<p><a href="` + render.HTML(m.Link) + `">What changed</a></p>`)
	}
	return b.String()
}

// formatSpan returns s with its marks as HTML.
func formatSpan(s render.Look) string {
	text := render.HTML(s.Text)
	if s.Bold {
		text = "<strong>" + text + "</strong>"
	}
	if s.Struck {
		text = "<del>" + text + "</del>"
	}
	return text
}
