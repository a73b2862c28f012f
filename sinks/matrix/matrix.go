package matrix

import (
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
)

// Matrix sends notifications to one room. It is safe for concurrent use.
type Matrix struct {
	endpoint   *outbound.Endpoint
	homeserver *url.URL
	header     http.Header
	room, kind string
	template   render.Template
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
	MsgType  string   `json:"msgtype"`
	Body     string   `json:"body"`
	Format   string   `json:"format,omitempty"`
	HTML     string   `json:"formatted_body,omitempty"`
	Mentions struct{} `json:"m.mentions"`
	Ours     ours     `json:"io.vokter.notification"`
}

// ours tells a program of whoever reads along which notification it is.
type ours struct {
	ID string `json:"id"`
}

// Deliver sends n, or plain text where the homeserver refuses that. It follows no redirects,
// and reads no more than 128 KB of the answer.
func (s *Matrix) Deliver(ctx context.Context, n pipeline.Notification) error {
	if strings.Trim(n.ID, ".") == "" { // it becomes a part of a path
		return pipeline.Permanent(errors.New("the notification has no ID"))
	}
	m := render.MessageOf(n, budget)
	formatted := markup(m)
	if text, ok := s.template.RenderFor(ctx, n, render.HTML); ok {
		if len(text) > maxHTML {
			pipeline.AttemptFrom(ctx).Degraded(fmt.Sprintf("the template makes %d bytes, and a message may have %d", len(text), maxHTML))
		} else {
			formatted = text
		}
	}
	c := content{
		MsgType: s.kind, Body: render.Cut(m.Plain(), maxPlain, render.Bytes), Ours: ours{n.ID},
		Format: "org.matrix.custom.html", HTML: formatted,
	}
	plain := c
	plain.Format, plain.HTML = "", ""
	u := s.inRoom("send/m.room.message", url.PathEscape(n.ID))
	send := func(ctx context.Context, body []byte) error {
		a, err := s.endpoint.Do(ctx, http.MethodPut, u, s.header, body)
		if err != nil {
			return err
		}
		return s.verdict(a)
	}
	return outbound.Insist(ctx, send, outbound.JSON(c), func() []byte { return outbound.JSON(plain) })
}

// inRoom is the URL of what belongs to the room.
func (s *Matrix) inRoom(path ...string) *url.URL {
	return s.homeserver.JoinPath("_matrix/client/v3/rooms", url.PathEscape(s.room)).JoinPath(path...)
}

// denied says what the homeserver refuses by its errors that somebody has to mend.
var denied = map[string]string{
	"M_UNKNOWN_TOKEN": outbound.TokenRefused, "M_MISSING_TOKEN": outbound.TokenRefused,
	"M_USER_DEACTIVATED": "the account is deactivated", "M_GUEST_ACCESS_FORBIDDEN": "guests may not write to the room",
}

// outside matches what homeservers say of an account that is not in the room. There is no code
// for that: "User @bot:example.org not in room !x:example.org", or "You aren't a member of the room".
var outside = regexp.MustCompile(`(?i)not in (the )?room|not a member|aren't a member|not joined`)

// answer is what a homeserver says.
type answer struct {
	EventID    string  `json:"event_id"`
	Code       string  `json:"errcode"`
	Error      string  `json:"error"`
	RetryAfter float64 `json:"retry_after_ms"`
}

// verdict reads what the homeserver answered to a message: the ID of the event, or what is wrong.
func (s *Matrix) verdict(a *outbound.Answer) error {
	said := outbound.Read[answer](a.Body)
	if a.Err() != nil {
		return s.refusal(a, said)
	}
	if strings.HasPrefix(said.EventID, "$") {
		return nil
	}
	return s.because(a.Without("the ID of an event"), said)
}

// refusal is the error of a, whose status is not 2xx.
func (s *Matrix) refusal(a *outbound.Answer, said answer) error {
	err := a.Err()
	switch {
	case said.Code == "M_LIMIT_EXCEEDED":
		err = outbound.Limit(err, a, said.RetryAfter/1000)
	case a.Status < 500 && said.Code == "M_FORBIDDEN":
		what, advice := "the account may not do that in the room", "give the account a power level in "+s.room+" with which it may send messages"
		if outside.MatchString(said.Error) {
			what, advice = "the account is not in the room", "invite the account to "+s.room+" and let it join there"
		}
		return &outbound.Advised{Err: s.because(a.Denied(what), said), Advice: advice}
	case a.Status < 500 && denied[said.Code] != "":
		err = a.Denied(denied[said.Code])
	case a.Status == http.StatusNotFound && said.Code == "M_NOT_FOUND": // there is no such room
		err = pipeline.Gone(err)
	}
	return s.because(err, said)
}

// because adds to err what the homeserver said.
func (s *Matrix) because(err error, said answer) error {
	if said.Code != "" {
		said.Error = said.Code + ": " + said.Error
	}
	return s.endpoint.Because(err, said.Error)
}
