package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// api has the routes of a Service.
type api struct {
	huma.API
	service Service
	process client.Process
	logins  *Logins
	sinks   SinkStore
	// backupSlot holds a token while a backup is sent, and for ever after Close.
	backupSlot chan struct{}
	closeOnce  sync.Once
	// streamSlots holds a token for each stream of events.
	streamSlots chan struct{}
	cursors     cursors
}

// newAPI adds the routes of s to mux.
func newAPI(mux *http.ServeMux, s Service, o Options) *api {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[pipeline.MinChange](), reflect.TypeFor[minChangeSchema]())
	schemas.RegisterTypeAlias(reflect.TypeFor[pipeline.Amount](), reflect.TypeFor[amountSchema]())
	schemas.RegisterTypeAlias(reflect.TypeFor[pipeline.Duration](), reflect.TypeFor[durationSchema]())
	schemas.RegisterTypeAlias(reflect.TypeFor[pipeline.Interval](), reflect.TypeFor[intervalSchema]())
	schemas.RegisterTypeAlias(reflect.TypeFor[pipeline.Expire](), reflect.TypeFor[expireSchema]())
	schemas.RegisterTypeAlias(reflect.TypeFor[pipeline.Quiet](), reflect.TypeFor[quietSchema]())
	describeOptions(schemas)
	input := schemas.Schema(subscriptionType, true, "") // client and keywords have defaults
	input = schemas.SchemaFromRef(input.Ref)
	input.Required = []string{"url", "sinks"}
	input.PrecomputeMessages()
	allowNullFields[pipeline.Subscription](schemas)
	allowNullFields[client.Target](schemas)
	allowNullFields[flow.RetryFilter](schemas)
	allowNullFields[flow.DeadFilter](schemas)
	a := &api{service: s, process: o.Process, logins: o.Logins, sinks: o.Sinks, backupSlot: make(chan struct{}, 1), streamSlots: make(chan struct{}, maxStreams), cursors: newCursors()}
	a.API = humago.New(mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Vokter", Version: "1", Description: "The management API of vokter-stream. Requests and responses are JSON. " +
				"Unknown fields and parameters are errors. Errors are problem details (RFC 9457)."},
			Components: &huma.Components{
				Schemas: schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{bearer: {
					Type: "http", Scheme: "bearer", Description: "A token of the configuration, or the one in the file token of the data directory.",
				}},
			},
		},
		Formats:                      map[string]huma.Format{mediaJSON: jsonFormat, "json": jsonFormat},
		Transformers:                 []huma.Transformer{dropLongValues},
		DefaultFormat:                mediaJSON,
		RejectUnknownQueryParameters: true,
	})
	a.UseMiddleware(a.checkAccess)
	a.addProcess()
	a.addPages()
	a.addHistory()
	a.addSubscriptions()
	a.addLists()
	a.addChangeAndPreview()
	a.addCommands()
	a.addDeliveries()
	a.addBackup()
	a.addLogins()
	a.addSinks()
	a.addEvents()
	requireNonEmptyParameters(a.OpenAPI())
	return a
}

var subscriptionType = reflect.TypeFor[pipeline.Subscription]()

// bearer is the name of the security scheme in the OpenAPI document.
const bearer = "bearer"

const (
	mediaJSON = "application/json"
	mediaTar  = "application/x-tar"
)

// route describes a route.
type route struct {
	method, path, id string
	summary          string
	description      string
	scope            config.Scope
	// timeout is how long the handler may work; 0 means defaultTimeout.
	timeout time.Duration
	// beforeRunning says that the route works before the pipeline does.
	beforeRunning bool
	// allClients says that the route is about all clients, so that a token with Clients cannot use it.
	allClients bool
	// status is the status of a success; 0 means 200, or 204 where there is no body.
	status int
	// responses describes a success that is not JSON.
	responses map[string]*huma.Response
}

// defaultTimeout is how long a handler may work.
const defaultTimeout = 30 * time.Second

// longTimeout is how long a handler may work that writes much.
const longTimeout = 5 * time.Minute

// operation returns r as huma describes it.
func (r route) operation() huma.Operation {
	return huma.Operation{
		Method: r.method, Path: client.Prefix + r.path, OperationID: r.id, Summary: r.summary, Description: r.description,
		Security: []map[string][]string{{bearer: {string(r.scope)}}}, DefaultStatus: r.status, Responses: r.responses,
		Errors:   []int{400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 429, 500, 503},
		Metadata: map[string]any{routeKey: r},
		// The body was read before.
		MaxBodyBytes: -1, BodyReadTimeout: -1,
	}
}

// routeKey is the key under which the metadata of an operation have its route.
const routeKey = "route"

// body is a response with the JSON body T.
type body[T any] struct{ Body T }

// add adds a route whose handler returns a JSON body.
func add[I, O any](a *api, r route, do func(context.Context, *I) (O, error)) {
	huma.Register(a.API, r.operation(), func(ctx context.Context, in *I) (*body[O], error) {
		out, err := withTimeout(ctx, a, r, in, do)
		return &body[O]{out}, err
	})
}

// addNoContent adds a route whose handler returns no body.
func addNoContent[I any](a *api, r route, do func(context.Context, *I) error) {
	huma.Register(a.API, r.operation(), func(ctx context.Context, in *I) (*struct{}, error) {
		_, err := withTimeout(ctx, a, r, in, func(ctx context.Context, in *I) (struct{}, error) { return struct{}{}, do(ctx, in) })
		return nil, err
	})
}

// withTimeout calls do with a bound of time and returns its error as a problem.
func withTimeout[I, O any](ctx context.Context, a *api, r route, input *I, do func(context.Context, *I) (O, error)) (O, error) {
	within := cmp.Or(r.timeout, defaultTimeout)
	late := fmt.Errorf("the request took longer than %v; ask for less, or ask again", within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, late)
	defer cancel()
	out, err := do(ctx, input)
	if err != nil {
		if errors.Is(context.Cause(ctx), late) && (errors.Is(err, late) || errors.Is(err, context.DeadlineExceeded)) {
			return out, unavailableProblem(&huma.ErrorModel{Detail: late.Error()})
		}
		in := "body"
		if r.method == http.MethodGet {
			in = "query"
		}
		return out, a.toProblem(in, err)
	}
	return out, nil
}

// checkAccess refuses requests to routes that the token may not use, or that do not work yet.
func (a *api) checkAccess(c huma.Context, next func(huma.Context)) {
	r, _ := c.Operation().Metadata[routeKey].(route)
	_, w := humago.Unwrap(c)
	who := callerOf(c.Context())
	for _, s := range c.Operation().Security {
		if err := who.checkScopes(s[bearer]); err != nil {
			refuse(w, http.StatusForbidden, "", err.Error())
			return
		}
	}
	if r.allClients && who.Clients != nil {
		refuse(w, http.StatusForbidden, "", fmt.Sprintf("the token %q is for some clients only, and this is about all of them", who.Name))
		return
	}
	if err := a.checkRunning(); err != nil && !r.beforeRunning {
		w.Header().Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, client.ProblemUnavailable, err.Error())
		return
	}
	next(c)
}

// checkRunning returns nil once the pipeline works, and before the reason why it does not: a handler
// would wait.
func (a *api) checkRunning() error {
	select {
	case <-a.service.Running():
		return nil
	default:
		return a.service.Ready()
	}
}

// toProblem returns err as a response. Its fields are in that part of the request: body or query.
func (a *api) toProblem(in string, err error) error {
	var known huma.StatusError
	if errors.As(err, &known) {
		return err
	}
	status, kind := http.StatusInternalServerError, ""
	refused, isRefusal := errors.AsType[*flow.Refusal](err)
	_, isField := errors.AsType[*pipeline.FieldError](err)
	switch {
	case isRefusal && refused.Code == flow.CodeNotFound:
		status, kind = http.StatusNotFound, client.ProblemNotFound
	case isRefusal && refused.Code == flow.CodeConflict:
		status, kind = http.StatusConflict, client.ProblemConflict
	case isRefusal:
		status = http.StatusUnprocessableEntity
	case isField:
		return validationProblem(fieldErrors(in, err)...)
	case errors.Is(err, inspect.ErrElsewhere):
		status, kind = http.StatusMisdirectedRequest, client.ProblemElsewhere
	case errors.Is(err, flow.ErrBusy):
		status, kind = http.StatusServiceUnavailable, client.ProblemBusy
	case a.service.Ready() != nil:
		status, kind = http.StatusServiceUnavailable, client.ProblemUnavailable
	}
	p := &huma.ErrorModel{Type: kind, Title: http.StatusText(status), Status: status, Detail: err.Error()}
	if status == http.StatusServiceUnavailable {
		return unavailableProblem(p)
	}
	return p
}

// unavailableProblem returns p with status 503 and the time after which to ask again.
func unavailableProblem(p *huma.ErrorModel) error {
	p.Status, p.Title = http.StatusServiceUnavailable, http.StatusText(http.StatusServiceUnavailable)
	return huma.ErrorWithHeaders(p, http.Header{"Retry-After": {"5"}})
}

// validationProblem returns a problem about parts of the request.
func validationProblem(fields ...*huma.ErrorDetail) error {
	return &huma.ErrorModel{
		Title: http.StatusText(http.StatusUnprocessableEntity), Status: http.StatusUnprocessableEntity, Detail: "validation failed", Errors: fields,
	}
}

// fieldErrors returns the pipeline.FieldErrors that are joined in err.
func fieldErrors(in string, err error) []*huma.ErrorDetail {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*huma.ErrorDetail
		for _, e := range joined.Unwrap() {
			all = append(all, fieldErrors(in, e)...)
		}
		return all
	}
	if f, ok := errors.AsType[*pipeline.FieldError](err); ok {
		return []*huma.ErrorDetail{{Message: f.Reason, Location: in + "." + f.Field}}
	}
	return []*huma.ErrorDetail{{Message: err.Error(), Location: in}}
}

// checkURL returns a problem if raw is not the URL of a page. Location says where it stands.
func checkURL(location, raw string) error {
	if _, err := pageurl.Canonical(raw); err != nil {
		return validationProblem(&huma.ErrorDetail{Message: err.Error(), Location: location})
	}
	return nil
}
