package fetch

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// Preview fetches and reads a page once, beside the queue, and returns the outcome for one view of it,
// with the body of the page if that can be stored. Nothing is published or remembered. Robots.txt, the
// bounds of time and size, the rate of the host, and the credentials of the page hold as for a check. It
// waits for its turn at the host, at most for Config.Timeout and not past the deadline of ctx.
func (s *Stage) Preview(ctx context.Context, page string, v pipeline.View) (flow.Outcome, error) {
	name := page
	if u, err := url.Parse(page); err == nil {
		name = u.Host
	}
	if err := s.waitTurn(ctx, pageurl.Host(page)); err != nil {
		return flow.Outcome{}, err
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

// waitTurn waits until a host may be asked.
func (s *Stage) waitTurn(ctx context.Context, host string) error {
	most := s.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(deadline))
	}
	wait, ok := s.queue.reserve(host, most)
	if !ok {
		return &pipeline.FetchError{Class: pipeline.FailBusy, RetryAfter: wait, Reason: fmt.Sprintf("%s may be asked again in %v only, by its rate or because it asked to wait; try again then", host, max(wait.Round(time.Second), time.Second))}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
