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

// resumedMeanwhile is a Service that lists an expired subscription, which another command resumes before
// Resume is called.
type resumedMeanwhile struct{ manage.Service }

func (resumedMeanwhile) Pages(context.Context, inspect.ListFilter) ([]inspect.Page, string, error) {
	s := inspect.Subscription{Subscription: pipeline.Subscription{Client: "legal"}, State: inspect.StateExpired}
	return []inspect.Page{{Subscriptions: []inspect.Subscription{s}}}, "", nil
}

func (resumedMeanwhile) Receivers(context.Context, inspect.ListFilter) ([]inspect.Receiver, error) {
	return nil, nil
}

func (resumedMeanwhile) Resume(context.Context, string, string) error {
	return &flow.Refusal{Code: flow.CodeNotFound, Message: "nothing is expired or paused"}
}

func (resumedMeanwhile) Running() <-chan struct{} {
	running := make(chan struct{})
	close(running)
	return running
}

func (resumedMeanwhile) Ready() error { return nil }

// TestResumeOfWhatWasResumed advises to name a client only who named another one.
func TestResumeOfWhatWasResumed(t *testing.T) {
	own, err := manage.Own(resumedMeanwhile{})
	if err != nil {
		t.Fatal(err)
	}
	for client, want := range map[string]string{
		"":    "nothing is expired or paused",
		"ops": `name a client that has one with --client: "legal"`,
	} {
		if err := resumePage(t.Context(), process{Client: own}, "https://example.com/", client); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("client %q: got %v, want %s", client, err, want)
		}
	}
}
