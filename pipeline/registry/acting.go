package registry

import (
	"context"

	"github.com/vokter/vokter/pipeline"
)

// ActingSink is a Sink in whose messages people can act, such as by the buttons of Slack.
type ActingSink interface {
	pipeline.Sink
	// SigningSecret returns the secret that signs the requests of people. It is empty where nobody
	// can act.
	SigningSecret() string
	// Home returns the channel of subscriptions that name none.
	Home() string
	// Answer shows text to the person whose request named url. The text is shown as it is.
	Answer(ctx context.Context, url, text string) error
}

// ActingOf returns s, or the first of the sinks that it wraps, that is an ActingSink; ok is false
// where none is.
func ActingOf(s pipeline.Sink) (a ActingSink, ok bool) { return findWrapped[ActingSink](s) }

// IDs of the buttons of a notification.
const (
	ActionMute   = "vokter_mute"
	ActionCancel = "vokter_cancel"
	ActionOpen   = "vokter_open" // a link, which does nothing here
)

// ActionTarget is the value of a button: the subscriptions of a client on a page.
type ActionTarget struct {
	// URL is the page.
	URL string `json:"url"`
	// Client is whose subscriptions are meant.
	Client string `json:"client"`
}
