// Package chat holds what the sinks for chat programs share: one URL to post JSON to, how
// a refused layout gives way to plain text, and Markdown in which the text of a page is
// never markup.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/guard"
	"github.com/vokter/vokter/internal/layout"
	"github.com/vokter/vokter/internal/post"
	"github.com/vokter/vokter/pipeline"
)

// Endpoint is the URL that a sink posts to. It is safe for concurrent use.
type Endpoint struct {
	url  *url.URL
	post post.Sender
}

// minSegment is the length from which a segment of a path is taken for a token.
const minSegment = 16

// NewEndpoint returns the endpoint u, which sender reaches. The body of an answer decides
// whether a notification is delivered, unless StatusDecides is called. Its errors tell neither
// secrets nor what of u only the receiver should see.
func NewEndpoint(u *url.URL, sender post.Sender, secrets ...string) *Endpoint {
	e := &Endpoint{url: u, post: sender}
	e.post.BodyDecides = true
	e.post.Secrets.AddURL(u)
	e.post.Secrets.Add(secrets...)
	for segment := range strings.SplitSeq(u.Path, "/") {
		if len(segment) >= minSegment {
			e.post.Secrets.Add(segment)
		}
	}
	for _, values := range u.Query() {
		e.post.Secrets.Add(values...)
	}
	return e
}

// StatusDecides is for receivers whose body says no more of a success than its status.
func (e *Endpoint) StatusDecides() *Endpoint {
	e.post.BodyDecides = false
	return e
}

// Posting returns what posts a body to e and says what verdict makes of the answer.
func (e *Endpoint) Posting(verdict func(*post.Answer) error) func(context.Context, []byte) error {
	return func(ctx context.Context, body []byte) error {
		a, err := e.Do(ctx, http.MethodPost, e.url, nil, body)
		if err != nil {
			return err
		}
		return verdict(a)
	}
}

// maxReason bounds what a receiver may say in an error, in runes.
const maxReason = 200

// Because adds to err, which keeps its class, the reason that the receiver gave.
func (e *Endpoint) Because(err error, reason string) error {
	if reason = e.post.Secrets.Clean(layout.Clean(reason)); err == nil || reason == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, layout.Short(reason, maxReason))
}

// Limit marks err as a limit of the receiver, which is asked again after as many seconds as the
// body of a says, or when its header says where that is later; at most a day.
func Limit(err error, a *post.Answer, seconds float64) error {
	return a.Limit(err, time.Duration(max(0, min(seconds, guard.MaxRetryAfter.Seconds()))*float64(time.Second)))
}

// Insist sends rich, and what plain returns where the receiver refuses that: a layout must
// not cost a notification.
func Insist(ctx context.Context, send func(context.Context, []byte) error, rich []byte, plain func() []byte) error {
	err := send(ctx, rich)
	if class, _ := pipeline.ClassOf(err); class != pipeline.ClassRefused {
		return err
	}
	if again := send(ctx, plain()); again != nil {
		return again
	}
	pipeline.AttemptFrom(ctx).Degraded("delivered as plain text, since its layout was refused: " + err.Error())
	return nil
}

// JSON returns v, all of whose fields can be encoded, as JSON without escapes for HTML.
func JSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("chat: %v", err)) // every field is encodable
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
