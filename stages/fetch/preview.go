package fetch

import (
	"context"
	"net/url"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Preview fetches and reads a page once, beside the queue, and returns the outcome for one view of it,
// with the body of the page if that can be stored. Nothing is published or remembered. Robots.txt, the
// bounds of time and size, and the credentials of the page hold as for a check.
func (s *Stage) Preview(ctx context.Context, page string, v pipeline.View) (flow.Outcome, error) {
	name := page
	if u, err := url.Parse(page); err == nil {
		name = u.Host
	}
	outcomes := s.check(ctx, &job{host: &host{name: name}, req: flow.Request{Page: page, Documents: []flow.RequestDocument{{ID: "preview", View: v}}}})
	if err := ctx.Err(); err != nil {
		return flow.Outcome{}, context.Cause(ctx)
	}
	if len(outcomes) == 0 {
		return flow.Outcome{}, &pipeline.FetchError{Class: pipeline.FailBusy, Reason: "too many large pages are being read; try again"}
	}
	o := outcomes[0]
	if o.Kind == flow.OutcomeFailed {
		return flow.Outcome{}, &pipeline.FetchError{Class: o.Class, Reason: o.Reason, Status: o.Status}
	}
	return o, nil
}
