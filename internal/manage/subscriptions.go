package manage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// subscribe adds s. It reports created false and no error where the client has the same
// subscription already.
func (a *api) subscribe(ctx context.Context, s pipeline.Subscription) (created bool, err error) {
	err = a.service.Subscribe(ctx, s)
	refused, ok := errors.AsType[*flow.Refusal](err)
	if !ok || refused.Code != flow.CodeConflict {
		return err == nil, err
	}
	s = s.WithDefaults()
	pages, _, failed := a.service.Pages(ctx, inspect.ListFilter{URL: s.URL, Client: s.Client})
	if failed != nil {
		return false, failed
	}
	for _, p := range pages {
		if slices.ContainsFunc(p.Subscriptions, func(x inspect.Subscription) bool { return equalSubscriptions(x.Subscription, s) }) {
			return false, nil
		}
	}
	return false, err
}

// equalSubscriptions reports whether two subscriptions with their defaults are equal.
func equalSubscriptions(a, b pipeline.Subscription) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (a *api) addSubscriptions() {
	type listInput struct {
		Part
		OptionalPage
		Client string `query:"client" doc:"Only subscriptions of this client."`
		Tag    string `query:"tag" doc:"Only subscriptions with this tag."`
		State  string `query:"state" enum:"active,paused,expired" doc:"Only subscriptions in this state."`
		Origin string `query:"origin" doc:"Only subscriptions that were made this way: yaml by the configuration, api at run time."`
	}
	add(a, route{
		method: http.MethodGet, path: "/subscriptions", id: "list-subscriptions", scope: config.ScopeRead, summary: "Lists subscriptions with their state and origin",
		description: "They are in the order of their pages and clients.",
	}, func(ctx context.Context, in *listInput) (client.Subscriptions, error) {
		f := inspect.ListFilter{URL: in.URL, Client: in.Client, Tag: in.Tag, Clients: callerOf(ctx).Clients}
		return a.listSubscriptions(ctx, in.Part, f, func(s inspect.Subscription) bool {
			return (in.State == "" || s.State == in.State) && (in.Origin == "" || s.Origin == in.Origin)
		})
	})

	type subscribeInput struct{ Body pipeline.Subscription }
	type subscribeOutput struct {
		Status int
		Body   client.Target
	}
	r := route{
		method: http.MethodPost, path: "/subscriptions", id: "subscribe", scope: config.ScopeWrite, summary: "Adds a subscription", status: http.StatusCreated,
		description: "The current version of the document is the baseline. A client has one subscription to a document: to add the same one again is answered with 200 " +
			"and changes nothing, to add a different one with 409. Without client it is the client default.",
		responses: map[string]*huma.Response{"200": {Description: "The client has this subscription already.", Content: map[string]*huma.MediaType{
			mediaJSON: {Schema: &huma.Schema{Ref: "#/components/schemas/Target"}},
		}}},
	}
	huma.Register(a.API, r.operation(), func(ctx context.Context, in *subscribeInput) (*subscribeOutput, error) {
		s := in.Body.WithDefaults()
		if err := a.checkMaySubscribe(callerOf(ctx), s, "body."); err != nil {
			return nil, err
		}
		created, err := withTimeout(ctx, a, r, in, func(ctx context.Context, _ *subscribeInput) (created bool, err error) {
			err = a.subscribeWithin(ctx, callerOf(ctx), s, "", func() (err error) {
				created, err = a.subscribe(ctx, s)
				return err
			})
			return created, err
		})
		if err != nil {
			return nil, err
		}
		out := &subscribeOutput{http.StatusOK, client.Target{URL: s.URL, Client: s.Client}}
		if created {
			out.Status = http.StatusCreated
		}
		return out, nil
	})
}

// addChangeAndPreview adds the routes that replace and try a subscription.
func (a *api) addChangeAndPreview() {
	type changeInput struct{ Body client.Changed }
	addNoContent(a, route{
		method: http.MethodPost, path: "/subscriptions/change", id: "change-subscription", scope: config.ScopeWrite, summary: "Replaces a subscription",
		description: "Where the new subscription watches the same document, there is no new baseline and the stored versions stay. A subscription of the " +
			"configuration is changed there: 409.",
	}, func(ctx context.Context, in *changeInput) error {
		s := in.Body.Subscription.WithDefaults()
		if err := a.checkMaySubscribe(callerOf(ctx), s, "body.subscription."); err != nil {
			return err
		}
		return a.subscribeWithin(ctx, callerOf(ctx), s, in.Body.Document, func() error { return a.service.Change(ctx, in.Body.Document, s) })
	})
	type previewInput struct{ Body client.PreviewRequest }
	add(a, route{
		method: http.MethodPost, path: "/preview", id: "preview-subscription", scope: config.ScopeWrite, timeout: longTimeout,
		summary:     "Fetches a page once and returns the text that a subscription would watch",
		description: "Nothing is stored, and the subscription may name any sinks. The places of its keywords are bytes of the text. At most 4 pages are fetched at once.",
	}, func(ctx context.Context, in *previewInput) (inspect.Preview, error) {
		who := callerOf(ctx)
		if err := a.checkAccessOf(who, in.Body.Subscription.URL, who.Clients, "body.subscription."); err != nil {
			return inspect.Preview{}, err
		}
		if !who.previews.acquire() {
			return inspect.Preview{}, tooManyAtOnce(who, who.Quota.Previews, "previews", "previews")
		}
		defer who.previews.release()
		p, err := a.service.Preview(ctx, in.Body.Subscription, in.Body.Source)
		if failed, ok := errors.AsType[*pipeline.FetchError](err); ok {
			return p, &huma.ErrorModel{Title: http.StatusText(http.StatusUnprocessableEntity), Status: http.StatusUnprocessableEntity, Detail: inspect.WithAccessAdvice(failed.Reason)}
		}
		return p, err
	})
}

// checkMaySubscribe returns a problem where who may not make the subscription s, which stands at location.
func (a *api) checkMaySubscribe(who *caller, s pipeline.Subscription, location string) error {
	if !who.mayUseClient(s.Client) {
		return validationProblem(&huma.ErrorDetail{Message: fmt.Sprintf("the token %q may not subscribe for this client", who.Name), Location: location + "client"})
	}
	if i := slices.IndexFunc(s.Sinks, func(sink string) bool { return !who.mayUseSink(sink) }); i >= 0 {
		return validationProblem(&huma.ErrorDetail{Message: fmt.Sprintf("the token %q may not use this sink", who.Name), Location: fmt.Sprintf("%ssinks[%d]", location, i)})
	}
	return a.checkAccessOf(who, s.URL, []string{s.Client}, location)
}

// checkAccessOf returns a problem where page is fetched with credentials that who may not use for any of clients.
func (a *api) checkAccessOf(who *caller, page string, clients []string, location string) error {
	if who.Clients == nil {
		return nil
	}
	named, ok := a.service.AccessClients(page)
	if !ok || slices.ContainsFunc(clients, func(c string) bool { return slices.Contains(named, c) }) {
		return nil
	}
	return validationProblem(&huma.ErrorDetail{
		Message:  fmt.Sprintf("the page is fetched with credentials that the token %q may not use; ask the operator to add the client to clients of the access entry", who.Name),
		Location: location + "url",
	})
}

// subscriptionKey orders subscriptions by page, client and document.
func subscriptionKey(page string, s inspect.Subscription) string {
	return page + "\x00" + s.Client + "\x00" + s.Document + "\x00" + s.FollowedFrom
}

// listSubscriptions returns a part of the subscriptions of the pages that f selects, as far as keep
// does.
func (a *api) listSubscriptions(ctx context.Context, p Part, f inspect.ListFilter, keep func(inspect.Subscription) bool) (out client.Subscriptions, err error) {
	out.Subscriptions = []client.Subscription{}
	after, err := a.cursors.open(ctx, "subscriptions", p.Cursor)
	if err != nil {
		return out, err
	}
	if page, _, ok := strings.Cut(after, "\x00"); ok {
		// The last page may have more. Its key is the least one that is not behind the key before it.
		only := f
		only.URL = page
		if out.Subscriptions, err = a.appendSubscriptionsOfPage(ctx, only, out.Subscriptions, after, keep); err != nil {
			return out, err
		}
		f.After = page
	}
	if f.URL != "" && f.After != "" {
		f.Limit = -1 // that page is done
	}
	for f.Limit >= 0 && len(out.Subscriptions) <= p.Limit {
		f.Limit = p.Limit + 1
		pages, next, err := a.service.Pages(ctx, f)
		if err != nil {
			return out, err
		}
		for _, page := range pages {
			out.Subscriptions = appendSubscriptions(out.Subscriptions, page, "", keep)
		}
		if f.After = next; next == "" {
			break
		}
	}
	if len(out.Subscriptions) > p.Limit {
		out.Subscriptions = out.Subscriptions[:p.Limit]
		last := out.Subscriptions[p.Limit-1]
		out.Next = a.cursors.seal(ctx, "subscriptions", subscriptionKey(last.Page, last.Subscription))
	}
	return out, nil
}

// appendSubscriptionsOfPage appends the subscriptions of the page f.URL that are behind after.
func (a *api) appendSubscriptionsOfPage(ctx context.Context, f inspect.ListFilter, to []client.Subscription, after string, keep func(inspect.Subscription) bool) ([]client.Subscription, error) {
	pages, _, err := a.service.Pages(ctx, f)
	if err != nil && !errors.Is(err, inspect.ErrElsewhere) { // it moved to another process since
		return to, err
	}
	for _, page := range pages {
		to = appendSubscriptions(to, page, after, keep)
	}
	return to, nil
}

// appendSubscriptions appends the subscriptions of page that are behind after, in order.
func appendSubscriptions(to []client.Subscription, page inspect.Page, after string, keep func(inspect.Subscription) bool) []client.Subscription {
	first := len(to)
	for _, s := range page.Subscriptions {
		if subscriptionKey(page.URL, s) > after && keep(s) {
			to = append(to, client.Subscription{Page: page.URL, Subscription: s})
		}
	}
	slices.SortFunc(to[first:], func(a, b client.Subscription) int {
		return cmp.Compare(subscriptionKey(a.Page, a.Subscription), subscriptionKey(b.Page, b.Subscription))
	})
	return to
}
