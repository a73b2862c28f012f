package manage

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
)

// targetInput is the body of a command about the subscriptions of a client on a page.
type targetInput struct{ Body client.Target }

// checkTarget returns a problem where t is invalid, or is not the caller's. withClient says what to do
// where t names no client; it is empty where none is needed.
func checkTarget(ctx context.Context, t client.Target, withClient string) error {
	if err := checkURL("body.url", t.URL); err != nil {
		return err
	}
	if t.Client == "" && withClient != "" {
		return validationProblem(&huma.ErrorDetail{Message: withClient, Location: "body.client"})
	}
	if who := callerOf(ctx); !who.mayUseClient(t.Client) {
		return &flow.Refusal{Code: flow.CodeNotFound, Message: "there is no such subscription"}
	}
	return nil
}

func (a *api) addCommands() {
	addNoContent(a, route{
		method: http.MethodPost, path: "/cancel", id: "cancel-subscriptions", scope: config.ScopeWrite, summary: "Ends the subscriptions of a client on a page",
		description: "Their pending notifications are dropped.",
	}, func(ctx context.Context, in *targetInput) error {
		if err := checkTarget(ctx, in.Body, "is missing; name whose subscriptions are to end"); err != nil {
			return err
		}
		return a.service.Cancel(ctx, in.Body.URL, in.Body.Client)
	})
	type pauseInput struct{ Body client.Pause }
	addNoContent(a, route{
		method: http.MethodPost, path: "/pause", id: "pause-subscriptions", scope: config.ScopeWrite, summary: "Pauses the subscriptions of a client on a page",
		description: "Until they are resumed, or until the given time, changes notify nobody and the page is not checked for them. The time also replaces the end of a pause. The stored versions stay.",
	}, func(ctx context.Context, in *pauseInput) error {
		if err := checkTarget(ctx, in.Body.Target, "is missing; name whose subscriptions are to pause"); err != nil {
			return err
		}
		return a.service.Pause(ctx, in.Body.URL, in.Body.Client, in.Body.Until)
	})
	type checkInput struct{ Body client.PageRef }
	addNoContent(a, route{
		method: http.MethodPost, path: "/check", id: "check-page", scope: config.ScopeWrite, status: http.StatusAccepted, summary: "Checks a page now, whatever its interval",
		description: "The response does not wait for the check; the last checks of /explain show what it found. The waits that the host of the page asked for are kept.",
	}, func(ctx context.Context, in *checkInput) error {
		if err := checkURL("body.url", in.Body.URL); err != nil {
			return err
		}
		if who := callerOf(ctx); who.Clients != nil {
			pages, _, err := a.service.Pages(ctx, inspect.ListFilter{URL: in.Body.URL, Clients: who.Clients})
			if err != nil {
				return err
			}
			if len(pages) == 0 {
				return &flow.Refusal{Code: flow.CodeNotFound, Message: in.Body.URL + " is not watched"}
			}
		}
		return a.service.CheckNow(ctx, in.Body.URL)
	})
	addNoContent(a, route{
		method: http.MethodPost, path: "/resume", id: "resume-subscriptions", scope: config.ScopeWrite, summary: "Restarts the expired and paused subscriptions of a client on a page",
		description: "Without a client it restarts those of all clients. The version that is then current is the baseline.",
	}, func(ctx context.Context, in *targetInput) error {
		if err := checkTarget(ctx, in.Body, ""); err != nil {
			return err
		}
		return a.service.Resume(ctx, in.Body.URL, in.Body.Client)
	})
}
