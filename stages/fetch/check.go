package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// runJob carries out j and publishes its outcomes, unless ctx ends first.
func (s *Stage) runJob(ctx context.Context, j *job) {
	var pause time.Duration
	answer := answerNone
	defer func() { s.queue.finish(j, pause, answer) }()
	if isTracked(j) {
		s.health.tracker.beginFetch(j.host.name)
	}
	var attributes []attribute.KeyValue
	if s.cfg.Tracer.On() {
		attributes = []attribute.KeyValue{attribute.String("vokter.page", pageurl.Redacted(j.req.Page))}
	}
	traced, trace, end := s.cfg.Tracer.Start(ctx, "check", j.trace, attributes...)
	outcomes := s.check(traced, j)
	end(failureError(outcomes))
	if ctx.Err() != nil {
		outcomes = nil
	}
	if isTracked(j) {
		s.endTracked(ctx, j, outcomes)
	}
	if len(outcomes) == 0 {
		return
	}
	ms := make([]flow.Message, len(outcomes))
	for i, o := range outcomes {
		ms[i] = o.Message()
		ms[i].Trace = trace
	}
	if o := outcomes[0]; j.busyError == nil {
		if answer = answerOf(o); o.Class == pipeline.FailBusy {
			pause = o.RetryAfter
		}
	}
	if err := s.sendOutcomes(ctx, outcomes, ms); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("the outcome of a check was lost; the page will be asked for again", "host", j.host.name, "err", err)
	}
}

// answerOf returns how the host of o answered.
func answerOf(o flow.Outcome) answer {
	switch {
	case o.Class == pipeline.FailTimeout:
		return answerMissing
	case o.Took > slowAnswer:
		return answerSlow
	}
	return answerPrompt
}

// sendOutcomes passes the outcomes of a check, in the messages ms, on to the owner of the page.
func (s *Stage) sendOutcomes(ctx context.Context, outcomes []flow.Outcome, ms []flow.Message) error {
	if s.cfg.Poster == nil || slices.ContainsFunc(outcomes, mustBeLogged) || !s.cfg.Owned(outcomes[0].Page) {
		return s.publisherFor(outcomes).Publish(ctx, ms...)
	}
	for i, m := range ms {
		err := s.cfg.Poster.Post(ctx, m)
		if errors.Is(err, flow.ErrMoved) {
			return s.cfg.Unsynced.Publish(ctx, ms[i:]...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mustBeLogged reports whether o must go through the log: it has news, or is too large to wait in memory.
func mustBeLogged(o flow.Outcome) bool {
	return o.Kind != flow.OutcomeUnchanged || o.Body != nil || o.Links != nil
}

// failureError returns the failure of a check as an error, or nil.
func failureError(outcomes []flow.Outcome) error {
	if len(outcomes) == 0 || outcomes[0].Kind != flow.OutcomeFailed {
		return nil
	}
	return fmt.Errorf("%s: %s", outcomes[0].Class, outcomes[0].Reason)
}

// publisherFor returns where outcomes go. A new text must not be lost, since the page may have changed
// again at the next check. An outcome without news may be lost: the next check repeats it.
func (s *Stage) publisherFor(outcomes []flow.Outcome) flow.Publisher {
	for _, o := range outcomes {
		if o.Kind == flow.OutcomeRead {
			return s.cfg.Publisher
		}
	}
	return s.cfg.Unsynced
}

// check fetches and reads the page of j. Once ctx is done its result means nothing.
func (s *Stage) check(ctx context.Context, j *job) []flow.Outcome {
	start := s.cfg.Now()
	failed := func(err error) flow.Outcome {
		o := Failed(j.req, start, s.cfg.Now().Sub(start), err)
		s.cfg.Logger.Debug("check failed", "host", j.host.name, "class", o.Class, "reason", o.Reason, "err", err)
		return o
	}
	if j.busyError != nil {
		return []flow.Outcome{failed(j.busyError)}
	}
	if j.req.Robots || s.cfg.Robots {
		if err := s.robots.checkAllowed(ctx, j.req.Page); err != nil {
			return []flow.Outcome{failed(err)}
		}
	}
	large := &bodySlot{semaphore: s.bodySemaphore}
	if wantsSitemap(j.req) {
		large.semaphore = s.sitemapSemaphore
	}
	defer large.release()
	p, err := s.fetchPage(ctx, j.req, large, j.firstByte)
	if err != nil && large.waited && ctx.Err() == nil {
		s.cfg.Logger.Warn("too many large pages are being fetched or read; one was dropped and will be asked for again", "host", j.host.name, "err", err)
		return nil // it had to wait for us, which says nothing about its page
	}
	if err != nil {
		return withoutPage(j.req, failed(err))
	}
	p.Time, p.Took = start, s.cfg.Now().Sub(start)
	base, done := p.outcome(j.req)
	if done {
		releaseBody(p.Body)
		return []flow.Outcome{base}
	}
	p.Body = shrinkBody(p.Body)
	src, err := p.open(wantsSitemap(j.req), s.cfg.Readers.snapshot())
	if err != nil {
		return unreadable(base, err)
	}
	if int64(len(p.Body)) > s.cfg.MaxBody { // it is a sitemap
		src.reader = sitemapOnly(tooLargeError(s.cfg.MaxBody, p.Status))
	}
	outcomes := s.readCarefully(ctx, base, j.req, src)
	for _, o := range outcomes {
		s.dropForbiddenLinks(j, o.Links)
	}
	return outcomes
}

// dropForbiddenLinks removes from l, the links of the page of j, those that must not be followed. l may be nil.
func (s *Stage) dropForbiddenLinks(j *job, l *flow.Links) {
	if l == nil {
		return
	}
	kept := 0
	for i, to := range l.URLs {
		if !s.cfg.MayLead(j.req.Page, to) {
			continue
		}
		l.URLs[kept] = to
		if len(l.Modified) > 0 {
			l.Modified[kept] = l.Modified[i]
		}
		kept++
	}
	if dropped := len(l.URLs) - kept; dropped > 0 {
		s.cfg.Logger.Debug("links to pages with credentials are not followed from other pages", "host", j.host.name, "links", dropped)
	}
	l.URLs, l.Modified = l.URLs[:kept], l.Modified[:min(kept, len(l.Modified))]
}

// memoryPerByte is how many bytes of memory it takes to read a page, for each of its bytes. JSON with many small
// values takes about as many, most pages far fewer.
const memoryPerByte = 32

// minLargeRead is the size from which the reading of a page waits for memory, in bytes.
const minLargeRead = 1 << 20

// readCarefully reads src once there is memory for it. If processes died while they read the page as it is now, the check
// fails instead.
func (s *Stage) readCarefully(ctx context.Context, base flow.Outcome, req flow.Request, src source) (outcomes []flow.Outcome) {
	if n := int64(len(src.Body)); n >= minLargeRead {
		free, err := s.cfg.Memory.Take(ctx, n*memoryPerByte)
		if err != nil {
			return nil // ctx is done
		}
		defer free()
	}
	settings, err := json.Marshal(req.Documents)
	if err != nil {
		return unreadable(base, err) // cannot happen: they came in JSON
	}
	key := strings.Join([]string{req.Page, base.BodyHash, string(settings)}, "\x00")
	err = s.cfg.Reading(ctx, key, func() {
		outcomes = s.readInTurn(ctx, base, src.reader, func(ctx context.Context) []flow.Outcome { return src.read(ctx, base, req) })
	})
	if err != nil {
		return unreadable(base, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: err.Error()})
	}
	return outcomes
}

// Read returns the outcomes of p, the answer to req: one for the page if it did not change or cannot be
// read, otherwise one for each of its documents. It depends on its arguments alone, and never panics,
// whatever a reader does. It returns nil if ctx ends first.
func Read(ctx context.Context, req flow.Request, p Page, readers *Readers) []flow.Outcome {
	base, done := p.outcome(req)
	if done {
		return []flow.Outcome{base}
	}
	src, err := p.open(wantsSitemap(req), readers)
	if err != nil {
		return unreadable(base, err)
	}
	return src.read(ctx, base, req)
}
