package httpsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"

	"github.com/vokter/vokter/pipeline"
)

// body is a decoded body of bounded size whose errors are classified.
type body struct {
	ctx  context.Context
	host string
	raw  io.ReadCloser
	src  io.Reader
	gz   *gzip.Reader // nil where the body is not compressed
	left int64
	max  int64
	err  error
}

// gunzips holds decompressors with their buffers, which are worth keeping.
var gunzips = sync.Pool{New: func() any { return new(gzip.Reader) }}

// newBody wraps the body of resp; it does not close it where it fails.
func newBody(ctx context.Context, resp *http.Response, maxBytes int64, host string) (io.ReadCloser, error) {
	b := &body{ctx: ctx, host: host, raw: resp.Body, src: resp.Body, left: maxBytes, max: maxBytes}
	if resp.StatusCode == http.StatusNotModified {
		return b, nil
	}
	switch enc := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		if resp.ContentLength > maxBytes {
			return nil, b.tooLarge()
		}
	case "gzip", "x-gzip":
		b.gz = gunzips.Get().(*gzip.Reader)
		// A stream of empty members inflates to nothing, so the input is bounded too.
		err := b.gz.Reset(&bounded{r: resp.Body, left: maxBytes + 64<<10, over: b.tooLarge()})
		b.src = b.gz
		if errors.Is(err, io.EOF) { // nothing at all
			b.release()
			b.src = http.NoBody
		} else if err != nil {
			b.release()
			return nil, b.failure(err)
		}
	default:
		return nil, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("the page is encoded as %.40q, which was not asked for", enc)}
	}
	return b, nil
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one more, to tell the limit from the end
	}
	n, err := b.src.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), b.tooLarge()
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.failure(err)
	}
	b.err = err
	return n, err
}

// Close ends the body. Reading from it afterwards fails.
func (b *body) Close() error {
	b.err = errors.New("read from a closed body")
	b.release()
	return b.raw.Close()
}

func (b *body) release() {
	if b.gz != nil {
		_ = b.gz.Reset(http.NoBody) // lets go of the response; says EOF
		gunzips.Put(b.gz)
		b.gz, b.src = nil, nil
	}
}

func (b *body) failure(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	if corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page's compression is damaged", Err: err}
	}
	return classify(b.ctx, err, b.host)
}

func (b *body) tooLarge() error {
	return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page is larger than " + size(b.max)}
}

// bounded fails with over where more than left bytes come.
type bounded struct {
	r    io.Reader
	left int64
	over error
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.over
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	return n, err
}

func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
