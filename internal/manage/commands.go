package manage

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
)

// targetInput is the body of a command about the subscriptions of a client on a page.
type targetInput struct{ Body client.Target }

// check returns a problem where the target is invalid, or is not the caller's.
func (in *targetInput) check(ctx context.Context, withClient string) error {
	if err := checkURL("body.url", in.Body.URL); err != nil {
		return err
	}
	if in.Body.Client == "" && withClient != "" {
		return invalid(&huma.ErrorDetail{Message: withClient, Location: "body.client"})
	}
	if who := callerOf(ctx); !who.owns(in.Body.Client) {
		return &flow.Refusal{Code: flow.CodeNotFound, Message: "there is no such subscription"}
	}
	return nil
}

func (a *api) addCommands() {
	addSilent(a, route{
		method: http.MethodPost, path: "/cancel", id: "cancel-subscriptions", scope: Write, summary: "Ends the subscriptions of a client on a page",
		description: "Their pending notifications are dropped.",
	}, func(ctx context.Context, in *targetInput) error {
		if err := in.check(ctx, "is missing; name whose subscriptions are to end"); err != nil {
			return err
		}
		return a.service.Cancel(ctx, in.Body.URL, in.Body.Client)
	})
	addSilent(a, route{
		method: http.MethodPost, path: "/resume", id: "resume-subscriptions", scope: Write, summary: "Restarts the expired subscriptions of a client on a page",
		description: "Without a client it restarts those of all clients. The next version of the document is the baseline.",
	}, func(ctx context.Context, in *targetInput) error {
		if err := in.check(ctx, ""); err != nil {
			return err
		}
		return a.service.Resume(ctx, in.Body.URL, in.Body.Client)
	})
}
