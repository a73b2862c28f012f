// Package webhook is the sink that posts notifications as JSON to a URL, signed as
// Standard Webhooks 1.0 prescribes (https://www.standardwebhooks.com), and as CloudEvents
// where that is wanted.
//
// Every request is a POST with the headers webhook-id, which is the notification's ID on every
// attempt, webhook-timestamp, which is when the attempt was made, and with a secret
// webhook-signature. What the receiver answers means:
//
//   - 200 to 299: it has the notification.
//   - 400, 413, 414, 415 and 422: it refuses this body. That is tried three times, then it
//     goes to the dead letters, and the next one follows.
//   - 410: it does not exist any more. The receiver is expired, with a health event.
//   - 429: no failure. It is asked again when Retry-After says, or after 30 seconds.
//   - 401 and 403: a failure of which there is a health event at once, since somebody has to mend
//     the token or the secret. What waits is tried again by the schedule.
//   - 300 to 399: a failure. Redirects are not followed; the reason names the host where this
//     one leads.
//   - Anything else, and no answer: it is sent again by the schedule, and later notifications
//     wait. After three failures in a row there is a health event; of a certificate that does
//     not hold there is one at once.
//
// With any failure the header Retry-After, as seconds or a date, says how long nothing more is
// to be sent, for a day at most.
//
// With verify: true a new receiver is asked first whether it is meant:
//
//	POST /in HTTP/1.1
//	Content-Type: application/json
//	webhook-id: verification_IYT5VCGHSK7DBHAE4WPG6ZYXRM
//
//	{"type":"verification","challenge":"IYT5VCGHSK7DBHAE4WPG6ZYXRM"}
//
// It answers with a status from 200 to 299 and IYT5VCGHSK7DBHAE4WPG6ZYXRM alone, as text or as
// {"challenge":"IYT5VCGHSK7DBHAE4WPG6ZYXRM"}. Until it does, that is a failure like others, and
// nothing but the question is sent. A receiver that sends back whatever it gets proves nothing.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Webhook posts notifications to one URL. It is safe for concurrent use.
type Webhook struct {
	url     *url.URL
	keys    []key
	headers http.Header
	bearer  string
	// format is one of the Format constants, mode one of the Mode constants or empty.
	format, mode string
	// body takes the place of format where it is not zero.
	body        render.Body
	contentType string
	success     []int // statuses; none: all 2xx
	idempotent  bool
	verify      bool
	proved      atomic.Bool // the receiver did, in this process
	post        outbound.Sender
}

var _ pipeline.Sink = (*Webhook)(nil)

// Batch says that an attempt delivers what waits, one after the other.
func (w *Webhook) Batch() (notifications, atOnce int) { return 100, 1 }

// Deliver posts n. It follows no redirects, and reads no more than 128 KB of the answer.
func (w *Webhook) Deliver(ctx context.Context, n pipeline.Notification) error {
	if checkValue(n.ID) != nil || strings.Contains(n.ID, ".") { // a dot ends the ID in what is signed
		return pipeline.Permanent(errors.New("the notification's ID is empty, has a dot, or cannot stand in a header"))
	}
	body, h, err := w.encode(ctx, n)
	if err != nil {
		return err
	}
	if w.verify {
		if err := w.prove(ctx); err != nil {
			return err
		}
	}
	answer, err := w.send(ctx, w.post, n.ID, h, body)
	if err != nil {
		return err
	}
	if err := answer.Err(); err != nil || len(w.success) == 0 || slices.Contains(w.success, answer.Status) {
		return err
	}
	return fmt.Errorf("answered %d, which is not in success_status: the receiver did not take it", answer.Status)
}

// send posts body by sender with h, which is that of body alone, under id.
func (w *Webhook) send(ctx context.Context, sender outbound.Sender, id string, h http.Header, body []byte) (*outbound.Answer, error) {
	maps.Copy(h, w.headers)
	at := w.post.Now()
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	if len(w.keys) > 0 {
		h.Set("webhook-signature", signatures(w.keys, id, at, body))
	}
	if w.bearer != "" {
		h.Set("Authorization", "Bearer "+w.bearer)
	}
	if w.idempotent {
		h.Set("Idempotency-Key", quoted(id))
	}
	return sender.Do(ctx, http.MethodPost, w.url, h, body)
}
