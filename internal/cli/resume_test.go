package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// resumedMeanwhile is a Manager that lists an expired subscription, which another command resumes before
// Resume is called.
type resumedMeanwhile struct{ manage.Manager }

func (resumedMeanwhile) List(context.Context, inspect.ListFilter) (inspect.Listing, error) {
	s := inspect.Subscription{Subscription: pipeline.Subscription{Client: "legal"}, State: inspect.StateExpired}
	return inspect.Listing{Pages: []inspect.Page{{Subscriptions: []inspect.Subscription{s}}}}, nil
}

func (resumedMeanwhile) Resume(context.Context, string, string) error {
	return &flow.Refusal{Code: flow.CodeNotFound, Message: "nothing is expired or paused"}
}

// TestResumeOfWhatWasResumed advises to name a client only who named another one.
func TestResumeOfWhatWasResumed(t *testing.T) {
	for client, want := range map[string]string{
		"":    "nothing is expired or paused",
		"ops": `name a client that has one with --client: "legal"`,
	} {
		if err := new(app).resumePage(t.Context(), resumedMeanwhile{}, "https://example.com/", client); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("client %q: got %v, want %s", client, err, want)
		}
	}
}
