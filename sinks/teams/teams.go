package teams

import (
	"context"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Teams posts notifications to one workflow. It is safe for concurrent use.
type Teams struct {
	endpoint *outbound.Endpoint
	template render.Template
}

var _ pipeline.Sink = (*Teams)(nil)

// Rate is what a workflow may post: Teams takes 100 messages a minute from its connection,
// which other workflows of the same user share.
func (s *Teams) Rate() (perSecond float64, burst int) { return 1, 4 }

// Deliver posts n as a card, or as one of short plain text where Teams refuses that. It
// follows no redirects, and reads no more than 128 KB of the answer.
func (s *Teams) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	blocks := formatted(m)
	if text, ok := s.template.RenderFor(ctx, n, render.Values(m, inert)); ok {
		blocks = lines(render.Cut(text, maxTemplate, written))
	}
	return outbound.Insist(ctx, s.endpoint.Posting(s.verdict), message(n.ID, m.URL, blocks), func() []byte {
		return message(n.ID, m.URL, lines(inert(render.Cut(m.Plain(), maxPlain, render.Bytes))))
	})
}

// verdict reads what the workflow answered. Success is a status: what a workflow says with
// it is up to its owner.
func (s *Teams) verdict(a *outbound.Answer) error {
	err := a.Err()
	if err == nil {
		return nil
	}
	type answer struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	said := outbound.Read[answer](a.Body)
	switch code := said.Error.Code; {
	case code == "WorkflowNotFound", code == notEnabled && strings.Contains(said.Error.Message, "'Deleted'"):
		err = pipeline.Gone(err)
	case code == notEnabled: // it may be turned on again
		err = a.Denied("the workflow is turned off")
	}
	return s.endpoint.Because(err, said.Error.Message)
}

// notEnabled is the code of a workflow that is turned off, or deleted.
const notEnabled = "WorkflowTriggerIsNotEnabled"
