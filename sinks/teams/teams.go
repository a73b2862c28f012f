// Package teams is the sink that posts notifications to a channel or chat of Microsoft
// Teams through a workflow.
//
// In Teams open the menu of the channel or chat, Workflows, and add "Send webhook alerts to
// a channel" (or "to a chat"); it ends with a URL, which is a secret: whoever has it can
// post. The workflow belongs to the user who made it and ends with that account unless it
// has further owners. The connectors that came before workflows are retired.
//
// A message is an Adaptive Card: what was found, the title of the page, each difference with
// the keyword bold and removed text struck, and a button that opens the page. A card has at
// most 28 KB; what does not fit is counted as "and n more". The text of a page stands where
// Teams reads no Markdown, and no message can mention anybody.
//
// A notification counts as delivered once the workflow has accepted it with a status from
// 200 to 299, usually 202. What becomes of it then only the run history of the workflow
// tells: a workflow that cannot post to its channel fails there. The ID of the notification
// is the id of the card's first element, for workflows that look for repetitions.
package teams

import (
	"context"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
)

// Config is the configuration of a Teams sink.
type Config struct {
	// WebhookURL is the URL of a workflow that begins with "When a Teams webhook request is
	// received", such as https://prod-01.westeurope.logic.azure.com/workflows/.... Required.
	WebhookURL registry.Secret `yaml:"webhook_url"`
	// Template is the template of a card, instead of the built-in layout: plain text of one or
	// more lines, cut at about 20,000 bytes. The button that opens the page stays.
	Template registry.Template `yaml:"template"`
	registry.Connection
}

// New returns the sink of c, or all mistakes in c as joined *pipeline.FieldErrors.
func New(c Config) (*Teams, error) {
	var bad outbound.Mistakes
	u := bad.URL("webhook_url", c.WebhookURL, "https://prod-01.westeurope.logic.azure.com/workflows/...")
	sender, text := bad.Sender(c.Connection), bad.Template("template", c.Template)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return &Teams{outbound.NewEndpoint(u, sender).StatusDecides(), text}, nil
}

// Register registers the kind of sink "teams" with r. Its sinks share connections.
func Register(r *registry.Registry) {
	outbound.Register(r, "teams", func(c *Config) *registry.Connection { return &c.Connection }, New)
}

// Teams posts notifications to one workflow. It is safe for concurrent use.
type Teams struct {
	endpoint *outbound.Endpoint
	template render.Template
}

var _ pipeline.Sink = (*Teams)(nil)

// Rate is what a workflow may post: Teams takes 100 messages a minute from its connection,
// which other workflows of the same user share.
func (s *Teams) Rate() (perSecond float64, burst int) { return 1, 4 }

// Host returns the host that messages are sent to, with its port.
func (s *Teams) Host() string { return s.endpoint.Host() }

// Deliver posts n as a card, or as one of short plain text where Teams refuses that. It
// follows no redirects, and reads no more than 128 KB of the answer.
func (s *Teams) Deliver(ctx context.Context, n pipeline.Notification) error {
	m := render.MessageOf(n, budget)
	blocks := formatBlocks(m)
	if text, ok := s.template.RenderFor(ctx, n, render.Values(m, breakExpressions)); ok {
		blocks = textBlocks(render.Cut(text, maxTemplate, encodedBlocksLen))
	}
	return outbound.Insist(ctx, s.endpoint.Posting(s.classify), encodeMessage(n.ID, m.URL, blocks), func() []byte {
		return encodeMessage(n.ID, m.URL, textBlocks(breakExpressions(render.Cut(m.Plain(), maxPlain, render.Bytes))))
	})
}

// classify classifies the answer of the workflow. Only the status counts for success, since the
// owner of the workflow chooses the body.
func (s *Teams) classify(a *outbound.Answer) error {
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
	case code == "WorkflowNotFound", code == codeNotEnabled && strings.Contains(said.Error.Message, "'Deleted'"):
		err = failure.Gone(err)
	case code == codeNotEnabled: // it may be turned on again
		err = a.Denied("the workflow is turned off")
	}
	return s.endpoint.Because(err, said.Error.Message)
}

// codeNotEnabled is the code of a workflow that is turned off, or deleted.
const codeNotEnabled = "WorkflowTriggerIsNotEnabled"
