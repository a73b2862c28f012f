package fetch

import (
	"bytes"
	"context"
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

// work carries out j and publishes its outcomes, unless ctx ends first.
func (s *Stage) work(ctx context.Context, j *job) {
	var pause time.Duration
	defer func() { s.queue.done(j, pause) }()
	if tracked(j) {
		s.health.tracker.begin(j.host.name)
	}
	var attributes []attribute.KeyValue
	if s.cfg.Tracer.On() {
		attributes = []attribute.KeyValue{attribute.String("vokter.page", pageurl.Redacted(j.req.Page))}
	}
	traced, trace, end := s.cfg.Tracer.Start(ctx, "check", j.trace, attributes...)
	outcomes := s.check(traced, j)
	end(failureOf(outcomes))
	if ctx.Err() != nil {
		outcomes = nil
	}
	if tracked(j) {
		s.weigh(ctx, j, outcomes)
	}
	if len(outcomes) == 0 {
		return
	}
	ms := make([]flow.Message, len(outcomes))
	for i, o := range outcomes {
		ms[i] = o.Message()
		ms[i].Trace = trace
	}
	if o := outcomes[0]; o.Class == pipeline.FailBusy && j.busy == nil {
		pause = o.RetryAfter
	}
	if err := s.send(ctx, outcomes, ms); err != nil && ctx.Err() == nil {
		s.cfg.Logger.Error("the outcome of a check was lost; the page will be asked for again", "host", j.host.name, "err", err)
	}
}

// send passes the outcomes of a check, in the messages ms, on to the owner of the page.
func (s *Stage) send(ctx context.Context, outcomes []flow.Outcome, ms []flow.Message) error {
	if s.cfg.Poster == nil || slices.ContainsFunc(outcomes, logged) || !s.cfg.Owned(outcomes[0].Page) {
		return s.publisher(outcomes).Publish(ctx, ms...)
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

// logged reports whether o must go through the log: it has news, or is too large to wait in memory.
func logged(o flow.Outcome) bool {
	return o.Kind != flow.OutcomeUnchanged || o.Body != nil || o.Links != nil
}

// failureOf returns the failure of a check as an error, or nil.
func failureOf(outcomes []flow.Outcome) error {
	if len(outcomes) == 0 || outcomes[0].Kind != flow.OutcomeFailed {
		return nil
	}
	return fmt.Errorf("%s: %s", outcomes[0].Class, outcomes[0].Reason)
}

// publisher returns where outcomes go. A new text must not be lost, since the page may have changed
// again at the next check. An outcome without news may be lost: the next check repeats it.
func (s *Stage) publisher(outcomes []flow.Outcome) flow.Publisher {
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
	if j.busy != nil {
		return []flow.Outcome{failed(j.busy)}
	}
	if j.req.Robots || s.cfg.Robots {
		if err := s.robots.allow(ctx, j.req.Page); err != nil {
			return []flow.Outcome{failed(err)}
		}
	}
	large := &place{of: s.places}
	if wantsSitemap(j.req) {
		large.of = s.sitemaps
	}
	defer large.leave()
	p, err := s.get(ctx, j.req, large)
	if err != nil && large.waited && ctx.Err() == nil {
		s.cfg.Logger.Warn("too many large pages are being fetched or read; one was dropped and will be asked for again", "host", j.host.name, "err", err)
		return nil // it had to wait for us, which says nothing about its page
	}
	if err != nil {
		return []flow.Outcome{failed(err)}
	}
	p.Time, p.Took = start, s.cfg.Now().Sub(start)
	base, known := look(j.req, p)
	if known {
		release(p.Body)
		return []flow.Outcome{base}
	}
	p.Body = fit(p.Body)
	readers := s.cfg.Readers.snapshot()
	f, err := formatOf(j.req, p, readers)
	if err != nil {
		return []flow.Outcome{unread(base, err)}
	}
	if int64(len(p.Body)) > s.cfg.MaxBody { // it is a sitemap
		f.reader = without(tooLarge(s.cfg.MaxBody, p.Status))
	}
	return s.inTurn(ctx, f.reader, func(ctx context.Context) []flow.Outcome {
		return readAs(ctx, base, j.req, p, f, readers)
	}, failed)
}

// get fetches the page of req with its body. A body that is not small takes large first.
func (s *Stage) get(ctx context.Context, req flow.Request, large *place) (p Page, err error) {
	scheme, _, _ := strings.Cut(req.Page, ":")
	f := s.fetchers[scheme]
	if f == nil {
		return Page{}, noSource(scheme)
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
		r.Redirect = s.robots.allow
	}
	most := s.cfg.MaxBody
	if wantsSitemap(req) {
		most = max(most, html.MaxSitemap)
		r.MaxBody = most
	}
	resp, err := f.Fetch(ctx, r)
	if err != nil {
		return Page{}, within(ctx, err, s.cfg.Timeout)
	}
	defer resp.Body.Close()
	p = Page{URL: resp.URL, Status: resp.Status, Header: resp.Header, Access: resp.Access}
	if len(resp.Screenshot) <= pipeline.MaxScreenshot {
		p.Screenshot = resp.Screenshot
	}
	if resp.Status == http.StatusNotModified {
		return p, nil
	}
	p.Body, err = readAll(io.LimitReader(resp.Body, most+1), s.small, func() error { return large.take(ctx) })
	if int64(len(p.Body)) > most {
		return p, tooLarge(most, resp.Status)
	}
	return p, within(ctx, err, s.cfg.Timeout)
}

func tooLarge(most int64, status int) error {
	return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the body is larger than %d bytes", most), Status: status}
}

// The memory of bodies that are not kept is used again, if it is between these sizes, in bytes.
const (
	minBuffer = 64 << 10
	maxBuffer = 1 << 20
)

var buffers sync.Pool // of *bytes.Buffer

// readAll reads r to its end. It calls more before it reads more than small bytes. What it returns can
// be given to release.
func readAll(r io.Reader, small int64, more func() error) ([]byte, error) {
	b, ok := buffers.Get().(*bytes.Buffer)
	if !ok {
		b = bytes.NewBuffer(make([]byte, 0, minBuffer))
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

// release takes the memory of a body that is no longer used.
func release(body []byte) {
	if n := cap(body); n >= minBuffer && n <= maxBuffer {
		buffers.Put(bytes.NewBuffer(body))
	}
}

// fit returns body in memory of its size where its buffer is much larger. Others need not wait for the
// garbage collector to use that buffer again.
func fit(body []byte) []byte {
	if cap(body) < 2*len(body) {
		return body
	}
	fitted := bytes.Clone(body)
	release(body)
	return fitted
}

// within adds the limit to the reason of a timeout, unless a Fetcher ended the fetch before that limit.
func within(ctx context.Context, err error, limit time.Duration) error {
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok && e.Class == pipeline.FailTimeout && ctx.Err() != nil {
		c := *e
		c.Reason += fmt.Sprintf(" (%v)", limit)
		return &c
	}
	return err
}

// bodyMemory bounds the bytes of all small bodies that are being fetched or wait to be read, those
// of all large ones, and those of all large sitemaps.
const bodyMemory = 256 << 20

// smallBody returns the size, in bytes, up to which a body never waits for memory, so that slow hosts
// with large pages delay only large pages.
func smallBody(inFlight int) int64 { return max(bodyMemory/int64(inFlight), minBuffer) }

// place is the right to read a large body. There are as many places as largest bodies fit into
// bodyMemory. A body takes one place for its largest size: bodies that asked for more while they grow
// could wait for each other.
type place struct {
	of            chan struct{} // holds one for each that is taken
	taken, waited bool
}

func newPlaces(maxBody int64) chan struct{} { return make(chan struct{}, max(bodyMemory/maxBody, 1)) }

// take waits until there is a place or ctx ends.
func (p *place) take(ctx context.Context) error {
	select {
	case p.of <- struct{}{}:
		p.taken = true
		return nil
	default:
		p.waited = true
	}
	select {
	case p.of <- struct{}{}:
		p.taken = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives the place back, if it was taken.
func (p *place) leave() {
	if p.taken {
		<-p.of
	}
}
