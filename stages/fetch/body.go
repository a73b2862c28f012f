package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

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
