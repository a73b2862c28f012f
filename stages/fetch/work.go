package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/stages/fetch/readers/html"
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
	base, known := baseOutcome(j.req, p)
	if known {
		releaseBody(p.Body)
		return []flow.Outcome{base}
	}
	p.Body = shrinkBody(p.Body)
	readers := s.cfg.Readers.snapshot()
	f, err := findFormat(j.req, p, readers)
	if err != nil {
		return []flow.Outcome{unreadableOutcome(base, err)}
	}
	if int64(len(p.Body)) > s.cfg.MaxBody { // it is a sitemap
		f.reader = sitemapOnlyEntry(tooLargeError(s.cfg.MaxBody, p.Status))
	}
	outcomes := s.readCarefully(ctx, base, j.req, p, func(ctx context.Context) []flow.Outcome {
		return s.readInTurn(ctx, f.reader, func(ctx context.Context) []flow.Outcome {
			return readInFormat(ctx, base, j.req, p, f, readers)
		}, failed)
	})
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

// readCarefully calls read, which reads p, once there is memory for it. If processes died while they read the page as
// it is now, the check fails instead.
func (s *Stage) readCarefully(ctx context.Context, base flow.Outcome, req flow.Request, p Page, read func(context.Context) []flow.Outcome) (outcomes []flow.Outcome) {
	if n := int64(len(p.Body)); n >= minLargeRead {
		free, err := s.cfg.Memory.Take(ctx, n*memoryPerByte)
		if err != nil {
			return nil // ctx is done
		}
		defer free()
	}
	settings, err := json.Marshal(req.Documents)
	if err != nil {
		return []flow.Outcome{unreadableOutcome(base, err)} // cannot happen: they came in JSON
	}
	key := strings.Join([]string{req.Page, base.BodyHash, string(settings)}, "\x00")
	if err := s.cfg.Reading(ctx, key, func() { outcomes = read(ctx) }); err != nil {
		return []flow.Outcome{unreadableOutcome(base, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: err.Error()})}
	}
	return outcomes
}

// fetchPage fetches the page of req with its body. A body that is not small takes large first. If firstByte is not 0,
// it bounds the wait for the answer of a page that is not read in the browser.
func (s *Stage) fetchPage(ctx context.Context, req flow.Request, large *bodySlot, firstByte time.Duration) (p Page, err error) {
	scheme, _, _ := strings.Cut(req.Page, ":")
	f := s.fetchers[scheme]
	if f == nil {
		return Page{}, noFetcherError(scheme)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Logger.Error("fetching a page panicked", "page", req.Page, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	r := pipeline.FetchRequest{URL: req.Page, ETag: req.ETag, LastModified: req.LastModified, Access: req.Access}
	if req.Robots || s.cfg.Robots {
		r.Redirect = s.robots.checkAllowed
	}
	most := s.cfg.MaxBody
	if wantsSitemap(req) {
		most = max(most, html.MaxSitemap)
		r.MaxBody = most
	}
	if scheme != "http" && scheme != "https" {
		firstByte = 0
	}
	resp, err := fetchWithin(ctx, f, r, firstByte)
	if err != nil {
		return Page{}, addTimeLimit(ctx, err, s.cfg.Timeout)
	}
	defer resp.Body.Close()
	p = Page{URL: resp.URL, Status: resp.Status, Header: resp.Header, Access: resp.Access}
	if len(resp.Screenshot) <= pipeline.MaxScreenshot {
		p.Screenshot = resp.Screenshot
	}
	if resp.Status == http.StatusNotModified {
		return p, nil
	}
	p.Body, err = readAll(io.LimitReader(resp.Body, most+1), s.smallBodyLimit, func() error { return large.acquire(ctx) })
	if int64(len(p.Body)) > most {
		return p, tooLargeError(most, resp.Status)
	}
	return p, addTimeLimit(ctx, err, s.cfg.Timeout)
}

// errSlowHost ends the wait for an answer.
var errSlowHost = &pipeline.FetchError{Class: pipeline.FailTimeout, Reason: fmt.Sprintf("the host did not answer within %v, nor its last request in time", slowAnswer)}

// fetchWithin calls f. If firstByte is not 0 and passes before the answer begins, it returns errSlowHost.
func fetchWithin(ctx context.Context, f pipeline.Fetcher, r pipeline.FetchRequest, firstByte time.Duration) (pipeline.Response, error) {
	if firstByte == 0 {
		return f.Fetch(ctx, r)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(firstByte, func() { cancel(errSlowHost) })
	resp, err := f.Fetch(ctx, r)
	if !timer.Stop() && errors.Is(context.Cause(ctx), errSlowHost) {
		if err == nil {
			resp.Body.Close()
		}
		return pipeline.Response{}, errSlowHost
	}
	if err != nil {
		cancel(nil)
	}
	return resp, err
}

// tooLargeError is the error of a body that is larger than most bytes.
func tooLargeError(most int64, status int) error {
	return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the body is larger than %d bytes", most), Status: status}
}

// The memory of bodies that are not kept is used again, if it is between these sizes, in bytes.
const (
	minPooledBuffer = 64 << 10
	maxPooledBuffer = 1 << 20
)

var bufferPool sync.Pool // of *bytes.Buffer

// readAll reads r to its end. It calls more before it reads more than small bytes. What it returns can
// be given to release.
func readAll(r io.Reader, small int64, more func() error) ([]byte, error) {
	b, ok := bufferPool.Get().(*bytes.Buffer)
	if !ok {
		b = bytes.NewBuffer(make([]byte, 0, minPooledBuffer))
	}
	b.Reset()
	n, err := b.ReadFrom(io.LimitReader(r, small+1))
	if err == nil && n > small {
		if err = more(); err == nil {
			_, err = b.ReadFrom(r)
		}
	}
	return b.Bytes(), err
}

// releaseBody takes the memory of a body that is no longer used.
func releaseBody(body []byte) {
	if n := cap(body); n >= minPooledBuffer && n <= maxPooledBuffer {
		bufferPool.Put(bytes.NewBuffer(body))
	}
}

// shrinkBody returns body in memory of its size where its buffer is much larger. Others need not wait for the
// garbage collector to use that buffer again.
func shrinkBody(body []byte) []byte {
	if cap(body) < 2*len(body) {
		return body
	}
	fitted := bytes.Clone(body)
	releaseBody(body)
	return fitted
}

// addTimeLimit adds the limit to the reason of a timeout, unless a Fetcher ended the fetch before that limit.
func addTimeLimit(ctx context.Context, err error, limit time.Duration) error {
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok && e.Class == pipeline.FailTimeout && ctx.Err() != nil {
		c := *e
		c.Reason += fmt.Sprintf(" (%v)", limit)
		return &c
	}
	return err
}

// maxBodyMemory bounds the bytes of all small bodies that are being fetched or wait to be read, those
// of all large ones, and those of all large sitemaps.
const maxBodyMemory = 256 << 20

// smallBodyLimit returns the size, in bytes, up to which a body never waits for memory, so that slow hosts
// with large pages delay only large pages.
func smallBodyLimit(inFlight int) int64 { return max(maxBodyMemory/int64(inFlight), minPooledBuffer) }

// bodySlot is the right to read a large body. There are as many slots as largest bodies fit into
// maxBodyMemory. A body takes one slot for its largest size: bodies that asked for more while they
// grow could wait for each other.
type bodySlot struct {
	semaphore        chan struct{} // holds one for each that is taken
	acquired, waited bool
}

func newBodySemaphore(maxBody int64) chan struct{} {
	return make(chan struct{}, max(maxBodyMemory/maxBody, 1))
}

// acquire waits until a slot is free or ctx ends.
func (p *bodySlot) acquire(ctx context.Context) error {
	select {
	case p.semaphore <- struct{}{}:
		p.acquired = true
		return nil
	default:
		p.waited = true
	}
	select {
	case p.semaphore <- struct{}{}:
		p.acquired = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release gives the slot back, if it was acquired.
func (p *bodySlot) release() {
	if p.acquired {
		<-p.semaphore
	}
}
