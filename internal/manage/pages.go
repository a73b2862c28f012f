package manage

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// OptionalPage selects a page by its URL, as a parameter that may be missing.
type OptionalPage struct {
	URL string `query:"url" maxLength:"4096" doc:"Only this page."`
}

// Resolve implements huma.Resolver: it refuses a value that is not the URL of a page.
func (p OptionalPage) Resolve(huma.Context) []error { return refuseURL(p.URL) }

// Page selects a page by its URL.
type Page struct {
	URL string `query:"url" required:"true" minLength:"1" maxLength:"4096" doc:"The page."`
}

// Resolve implements huma.Resolver: it refuses a value that is not the URL of a page.
func (p Page) Resolve(huma.Context) []error { return refuseURL(p.URL) }

// refuseURL returns why the parameter url is not the URL of a page. An empty one is for the schema to refuse.
func refuseURL(raw string) []error {
	if _, err := pageurl.Canonical(raw); err != nil && raw != "" {
		return []error{&huma.ErrorDetail{Message: err.Error(), Location: "query.url"}}
	}
	return nil
}

func (a *api) addProcess() {
	add(a, route{
		method: http.MethodGet, path: "/process", id: "get-process", scope: config.ScopeRead, beforeRunning: true,
		summary: "Describes the process", description: "With a transport that processes share it also says which share of the lanes this process has.",
	}, func(ctx context.Context, _ *struct{}) (client.Process, error) {
		p := a.process
		p.Lanes = lanesOf(a.service.Gauges())
		if callerOf(ctx).Clients != nil {
			p.Data = ""
		}
		return p, nil
	})
	huma.Register(a.API, route{
		method: http.MethodGet, path: "/openapi.json", id: "get-openapi", scope: config.ScopeRead, beforeRunning: true, summary: "Describes the API as an OpenAPI 3.1 document",
		responses: map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{mediaJSON: {Schema: &huma.Schema{Type: huma.TypeObject}}}}},
	}.operation(), func(context.Context, *struct{}) (*openAPI, error) {
		b, err := a.openAPIDocument()
		if err != nil {
			return nil, err
		}
		return &openAPI{mediaJSON, b}, nil
	})
}

// openAPI is the response with the document.
type openAPI struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (a *api) addPages() {
	type pagesInput struct {
		Part
		OptionalPage
		Client   string `query:"client" doc:"Only subscriptions of this client, and pages that have one."`
		Tag      string `query:"tag" doc:"Only subscriptions with this tag, and pages that have one."`
		Contains string `query:"contains" maxLength:"4096" doc:"Only pages whose URL contains this text. Case does not count."`
		State    string `query:"state" enum:"active,failing,dormant,paused,expired" doc:"Only pages in this state."`
		Tree     bool   `query:"tree" doc:"Adds the linked pages of subscriptions that follow links."`
	}
	add(a, route{
		method: http.MethodGet, path: "/pages", id: "list-pages", scope: config.ScopeRead,
		summary:     "Lists pages with their state, their next check, documents and subscriptions",
		description: "The pages are in the order of their URLs. A part may have fewer than limit, or none, and still have a next. Where several processes share the pages, each lists its own.",
	}, func(ctx context.Context, in *pagesInput) (p client.Pages, err error) {
		after, err := a.cursors.open(ctx, "pages", in.Cursor)
		if err != nil {
			return p, err
		}
		next := ""
		p.Pages, next, err = a.service.Pages(ctx, inspect.ListFilter{
			URL: in.URL, Client: in.Client, Tag: in.Tag, Contains: in.Contains, State: in.State, Tree: in.Tree,
			Clients: callerOf(ctx).Clients, After: after, Limit: in.Limit,
		})
		p.Next = a.cursors.seal(ctx, "pages", next)
		return p, err
	})

	type explainInput struct {
		Page
		Client  string `query:"client" doc:"Only the subscriptions and notifications of this client."`
		Keyword string `query:"keyword" doc:"Only this keyword."`
	}
	add(a, route{
		method: http.MethodGet, path: "/explain", id: "explain-page", scope: config.ScopeRead,
		summary: "Says what the last checks of a page found, what followed from each, and why keywords did not match",
	}, func(ctx context.Context, in *explainInput) (inspect.Explanation, error) {
		return a.service.Explain(ctx, in.URL, inspect.ExplainFilter{Client: in.Client, Keyword: in.Keyword, Clients: callerOf(ctx).Clients})
	})
}
