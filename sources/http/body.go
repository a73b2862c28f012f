package httpsource

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/vokter/vokter/pipeline"
)

// body is a decoded body of limited size whose errors are classified.
type body struct {
	ctx          context.Context
	host         string
	responseBody io.ReadCloser
	source       io.Reader
	decompressor decompressor   // nil if the body is not compressed
	pool         *sync.Pool     // of decompressor
	limitedInput *limitedReader // what decompressor reads
	bytesLeft    int64
	maxBytes     int64
	err          error
}

// decompressor is a reader of one format that can be used again.
type decompressor interface {
	io.Reader
	Reset(r io.Reader) error
}

// maxWindow limits the memory of a zstd decompressor. RFC 9659 allows servers no larger window.
const maxWindow = 8 << 20

// decompressors are pools of decompressors by content coding. Their large buffers are reused.
var decompressors = map[string]*sync.Pool{
	"gzip": {New: func() any { return &gzipReader{in: bufio.NewReader(nil)} }},
	"br":   {New: func() any { return brotli.NewReader(nil) }},
	"zstd": {New: func() any {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			panic(err) // the options are constant
		}
		return d
	}},
}

// gzipReader reads gzip. A stream may have several members. What stands behind one and is none, such as
// the zeros that some servers append, does not count.
type gzipReader struct {
	in     *bufio.Reader
	member gzip.Reader
}

// Reset makes g read r.
func (g *gzipReader) Reset(r io.Reader) error {
	g.in.Reset(r)
	return g.next()
}

// next begins the next member.
func (g *gzipReader) next() error {
	err := g.member.Reset(g.in)
	g.member.Multistream(false)
	return err
}

// Read reads decompressed data.
func (g *gzipReader) Read(p []byte) (int, error) {
	for {
		n, err := g.member.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			if errors.Is(err, io.EOF) {
				err = nil // the next call looks for another member
			}
			return n, err
		}
		start, err := g.in.Peek(3)
		if err == nil && bytes.Equal(start, gzipMagic) {
			err = g.next()
		} else if err == nil {
			err = io.EOF
		}
		if err != nil {
			return 0, err
		}
	}
}

// acceptEncoding asks for the codings of decompressors.
const acceptEncoding = "gzip, zstd, br"

// otherCodings are codings that exist and are not read.
var otherCodings = []string{"aes128gcm", "bzip2", "compress", "dcb", "dcz", "deflate", "exi", "lz4", "lzma", "pack200-gzip", "snappy", "xz"}

// maxCodings is how many codings of one body are undone.
const maxCodings = 4

// contentCodings returns the codings of a body, in the order in which they were applied, and one that is not known,
// such as "none", "UTF-8" or "aws-chunked".
func contentCodings(header http.Header) (known []string, unknown string) {
	for c := range strings.SplitSeq(strings.Join(header.Values("Content-Encoding"), ","), ",") {
		c = strings.ToLower(strings.TrimSpace(c))
		if plain := strings.TrimPrefix(c, "x-"); decompressors[plain] != nil || slices.Contains(otherCodings, plain) {
			known = append(known, plain)
		} else if c != "identity" {
			unknown = cmp.Or(unknown, c)
		}
	}
	return known, unknown
}

// newBody wraps the body of resp. If it fails it does not close the body.
func newBody(ctx context.Context, resp *http.Response, maxBytes int64, host string) (io.ReadCloser, error) {
	b := &body{ctx: ctx, host: host, responseBody: resp.Body, source: resp.Body, bytesLeft: maxBytes, maxBytes: maxBytes}
	if resp.StatusCode == http.StatusNotModified {
		return b, nil
	}
	codings, unknown := contentCodings(resp.Header)
	if len(codings) == 0 && b.isGzip() {
		codings = []string{"gzip"}
	}
	if len(codings) == 0 {
		if unknown != "" && b.isBinary(resp.Header.Get("Content-Type")) {
			return nil, codingError(unknown, "is not known")
		}
		if resp.ContentLength > maxBytes {
			return nil, b.tooLargeError()
		}
		return b, nil
	}
	for _, c := range codings {
		if decompressors[c] == nil || len(codings) > maxCodings {
			return nil, codingError(strings.Join(codings, ", "), "was not asked for")
		}
	}
	for i, c := range slices.Backward(codings) {
		if i < len(codings)-1 {
			b = &body{ctx: ctx, host: host, responseBody: b, source: b, bytesLeft: maxBytes, maxBytes: maxBytes}
			if c == "gzip" && !b.isGzip() {
				continue // servers say twice what they did once
			}
		}
		if err := b.decompress(decompressors[c]); err != nil {
			b.releaseAll()
			return nil, err
		}
	}
	return b, nil
}

// codingError returns the error of a body in a coding that is not read.
func codingError(coding, why string) error {
	return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("the page is encoded as %.40q, which %s", coding, why)}
}

// decompress makes b what a decompressor of pool makes of its source.
func (b *body) decompress(pool *sync.Pool) error {
	// A stream of empty parts inflates to nothing, so the input is limited too.
	b.limitedInput = &limitedReader{r: b.source, left: b.maxBytes + 64<<10, limitError: b.tooLargeError()}
	b.decompressor, b.pool = pool.Get().(decompressor), pool
	err := b.decompressor.Reset(b.limitedInput)
	b.source = b.decompressor
	if errors.Is(err, io.EOF) { // the body is empty
		b.releaseDecompressor()
		b.source = http.NoBody
	} else if err != nil {
		return b.classifyError(err)
	}
	return nil
}

// releaseAll gives back the decompressors of b and of the bodies that it reads.
func (b *body) releaseAll() {
	for b != nil {
		b.releaseDecompressor()
		b, _ = b.responseBody.(*body)
	}
}

// gzipMagic is how a stream of gzip begins.
var gzipMagic = []byte{0x1f, 0x8b, 8}

// isGzip reports whether the body is compressed though its header does not say so: servers hand out compressed
// files as they are.
func (b *body) isGzip() bool { return bytes.Equal(b.peek(len(gzipMagic)), gzipMagic) }

// isBinary reports whether the body is no text, though it has the type of text, or none. A coding of which nothing is
// known counts then; most of them are no codings.
func (b *body) isBinary(contentType string) bool {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	isText := mediaType == "" || strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "xml") || strings.HasSuffix(mediaType, "json")
	return isText && http.DetectContentType(b.peek(512)) == "application/octet-stream"
}

// peek returns the first n bytes of a body of which nothing was read.
func (b *body) peek(n int) []byte {
	start := make([]byte, n)
	n, _ = io.ReadFull(b.source, start) // an error comes again with the next read
	b.source = io.MultiReader(bytes.NewReader(start[:n]), b.source)
	return start[:n]
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.bytesLeft+1 {
		p = p[:b.bytesLeft+1] // one byte more tells whether the body is longer than the limit
	}
	n, err := b.source.Read(p)
	if int64(n) > b.bytesLeft {
		n, err = int(b.bytesLeft), b.tooLargeError()
	}
	b.bytesLeft -= int64(n)
	if b.limitedInput != nil && !b.limitedInput.hasData && errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF // the body is empty
	}
	if b.bytesLeft < b.maxBytes && isBehindStream(err) {
		err = io.EOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.classifyError(err)
	}
	b.err = err
	return n, err
}

// isBehindStream reports whether err says that something stands behind a stream of brotli or zstd that is
// complete. It does not count, as with gzipReader.
func isBehindStream(err error) bool {
	return errors.Is(err, zstd.ErrMagicMismatch) || err != nil && err.Error() == "brotli: excessive input" // has no name
}

// Close closes the body. Reading from it afterwards fails.
func (b *body) Close() error {
	b.err = errors.New("read from a closed body")
	b.releaseDecompressor()
	return b.responseBody.Close()
}

func (b *body) releaseDecompressor() {
	if b.decompressor != nil {
		_ = b.decompressor.Reset(http.NoBody) // releases the response; always returns EOF
		b.pool.Put(b.decompressor)
		b.decompressor, b.source = nil, nil
	}
}

// classifyError classifies err. An error of the decompressor, if reading its input gave none, means
// that the page is unreadable.
func (b *body) classifyError(err error) error {
	if _, ok := errors.AsType[*pipeline.FetchError](err); ok {
		return err
	}
	if b.limitedInput != nil && b.limitedInput.err == nil && b.ctx.Err() == nil {
		if errors.Is(err, io.ErrUnexpectedEOF) { // a body that ends with its connection may have been cut
			return &pipeline.FetchError{Class: pipeline.FailNetwork, Reason: "the page's compressed data ends too early", Err: err}
		}
		return &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "the page's compression is damaged", Err: err}
	}
	if b.limitedInput != nil && b.limitedInput.err != nil {
		err = b.limitedInput.err
	}
	return classify(b.ctx, err, b.host)
}

func (b *body) tooLargeError() error {
	return &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page is larger than " + formatSize(b.maxBytes)}
}

// limitedReader fails with limitError after left bytes.
type limitedReader struct {
	r          io.Reader
	left       int64
	limitError error
	err        error // what Read returned last, except for the end
	hasData    bool  // Read returned at least one byte
}

func (b *limitedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.err = b.limitError
		return 0, b.limitError
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	b.hasData = b.hasData || n > 0
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

func formatSize(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
