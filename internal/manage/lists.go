package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// maxListBody is the largest body of a list of subscriptions, in bytes: 200,000 of a usual size.
const maxListBody = 64 << 20

// listTimeout is how long a list may take. The Router itself fails earlier if nothing of it goes on.
const listTimeout = 10 * time.Minute

// isList reports whether r has a list of subscriptions as its body.
func isList(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Path == client.Prefix+"/subscriptions"
}

func (a *api) addLists() {
	type listInput struct {
		Origin  string `query:"origin" required:"true" doc:"The name of the list: at most 64 letters, digits, dots, hyphens and underscores."`
		DryRun  bool   `query:"dry_run" doc:"Changes nothing; the response says what would change."`
		RawBody []byte `contentType:"application/json"`
	}
	r := route{
		method: http.MethodPut, path: "/subscriptions", id: "apply-subscriptions", scope: config.ScopeWrite, timeout: listTimeout,
		summary: "Makes a list all subscriptions of an origin",
		description: "What is new is added, what differs is changed without a new baseline, and what an earlier list of this origin had and this one lacks is " +
			"cancelled; an empty list cancels all. Subscriptions of other origins stay. One that cannot be taken is refused alone, with the reason in the " +
			"response, and of its client none of the list to its page is cancelled. A token with clients applies the list to these clients only. The body " +
			"has at most 64 MiB. Listed, these subscriptions have the origin api/NAME.",
	}
	op := r.operation()
	op.SkipValidateBody = true // each entry is validated alone
	huma.Register(a.API, op, func(ctx context.Context, in *listInput) (*body[flow.ApplyReport], error) {
		out, err := withTimeout(ctx, a, r, in, func(ctx context.Context, in *listInput) (flow.ApplyReport, error) {
			l := vokter.SubscriptionList{Origin: in.Origin, DryRun: in.DryRun, Clients: callerOf(ctx).Clients, Refused: make(map[int]error)}
			if err := a.readList(ctx, in.RawBody, &l); err != nil {
				return flow.ApplyReport{}, err
			}
			return a.applyWithin(ctx, callerOf(ctx), l)
		})
		return &body[flow.ApplyReport]{out}, err
	})
	entry := a.OpenAPI().Components.Schemas.Schema(subscriptionType, true, "")
	a.OpenAPI().Paths[op.Path].Put.RequestBody.Content[mediaJSON].Schema = &huma.Schema{Type: huma.TypeArray, Items: entry}
}

// readList reads the entries of a list into l, and refuses those that the caller may not make.
func (a *api) readList(ctx context.Context, body []byte, l *vokter.SubscriptionList) error {
	d := json.NewDecoder(bytes.NewReader(body))
	malformed := func(err error) error {
		if err == nil {
			err = errors.New("it is no list")
		}
		return huma.Error400BadRequest(fmt.Sprintf("the body is no JSON list of subscriptions: %v; write [{...}, {...}]", err))
	}
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return malformed(err)
	}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return malformed(err)
		}
		s, err := a.readEntry(raw)
		if err == nil {
			err = entryError(a.checkMaySubscribe(callerOf(ctx), s.WithDefaults(), ""))
		}
		if err != nil {
			l.Refused[len(l.Subscriptions)] = err
		}
		l.Subscriptions = append(l.Subscriptions, s)
	}
	if _, err := d.Token(); err != nil {
		return malformed(err)
	}
	if d.More() {
		return malformed(errors.New("there is more behind the list"))
	}
	return nil
}

// readEntry reads one entry of a list. With an error it returns what says which subscription it is.
func (a *api) readEntry(raw []byte) (s pipeline.Subscription, err error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return s, err
	}
	fields, _ := v.(map[string]any)
	s.URL, _ = fields["url"].(string)
	s.Client, _ = fields["client"].(string)
	if name := repeatedField(raw); name != "" {
		return s, fmt.Errorf("%s: is given twice", name)
	}
	schemas, said := a.OpenAPI().Components.Schemas, new(huma.ValidateResult)
	huma.Validate(schemas, schemas.Schema(subscriptionType, true, ""), huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, v, said)
	if len(said.Errors) > 0 {
		return s, entryError(&huma.ErrorModel{Errors: errorDetails(said.Errors)})
	}
	var whole pipeline.Subscription
	if err := unmarshalJSON(raw, &whole); err != nil {
		return s, err
	}
	return whole, nil
}

// errorDetails returns what huma found.
func errorDetails(all []error) (details []*huma.ErrorDetail) {
	for _, err := range all {
		if d, ok := errors.AsType[*huma.ErrorDetail](err); ok {
			details = append(details, d)
		} else {
			details = append(details, &huma.ErrorDetail{Message: err.Error()})
		}
	}
	return details
}

// entryError returns err, or what a problem says about the fields of an entry.
func entryError(err error) error {
	problem, ok := errors.AsType[*huma.ErrorModel](err)
	if !ok || len(problem.Errors) == 0 {
		return err
	}
	var says []string
	for _, e := range problem.Errors {
		says = append(says, strings.TrimPrefix(e.Location+": "+e.Message, ": "))
	}
	return errors.New(strings.Join(says, "; "))
}

// applyWithin applies l for who, and refuses what passes the quota of the token.
func (a *api) applyWithin(ctx context.Context, who *caller, l vokter.SubscriptionList) (flow.ApplyReport, error) {
	if !who.hasSubscriptionQuota() {
		return a.service.ApplyList(ctx, l)
	}
	done, err := who.usage.begin(ctx)
	if err != nil {
		return flow.ApplyReport{}, err
	}
	defer done()
	if err := a.count(ctx, who); err != nil {
		return flow.ApplyReport{}, err
	}
	refuseBeyondQuota(who, l)
	who.usage.counted = time.Time{} // they are counted again for the next subscription
	return a.service.ApplyList(ctx, l)
}

// refuseBeyondQuota adds to l.Refused the entries with which who would pass its quota.
func refuseBeyondQuota(who *caller, l vokter.SubscriptionList) {
	type place struct{ client, document string }
	claims := make([]claim, len(l.Subscriptions))
	listed := make(map[place]bool, len(claims))
	for i, s := range l.Subscriptions {
		claims[i] = newClaim(s.WithDefaults())
		listed[place{claims[i].client, claims[i].document}] = true
	}
	taken := newTotals(nil)
	stand := make(map[place]claim)   // what the list has already
	going := make(map[place][]claim) // what it lacks, by client and page; a refused entry spares it
	for _, c := range who.usage.claims {
		at := place{c.client, c.document}
		switch {
		case c.origin != flow.ListOrigin(l.Origin):
			taken.add(c, 1)
		case listed[at]:
			taken.add(c, 1)
			stand[at] = c
		default:
			going[place{c.client, c.page}] = append(going[place{c.client, c.page}], c)
		}
	}
	spare := func(c claim) {
		at := place{c.client, c.page}
		for _, x := range going[at] {
			taken.add(x, 1)
		}
		delete(going, at)
	}
	for i := range l.Refused {
		spare(claims[i])
	}
	for i, c := range claims {
		if l.Refused[i] != nil {
			continue
		}
		before := taken.figures()
		old, stands := stand[place{c.client, c.document}]
		if stands {
			taken.add(old, -1)
		}
		taken.add(c, 1)
		if err := checkQuota(who, l.Subscriptions[i], before, taken.figures()); err != nil {
			l.Refused[i] = err
			taken.add(c, -1)
			if stands {
				taken.add(old, 1)
			}
			spare(c)
		}
	}
}
