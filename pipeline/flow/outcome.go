package flow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// Request asks fetch to check a page. One request is at most one GET.
type Request struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	// Check is the number that the page's owner gave to this check. Nonce tells this request
	// from one under the same number whose owner lost the page, and with it what it had not
	// committed.
	Check uint64 `json:"check"`
	Nonce string `json:"nonce,omitempty"`
	// ETag and LastModified are validators to send; both are empty for a full fetch.
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	// BodyHash is the hash of the body that stands; an equal body is "unchanged" against it.
	// Empty for a full fetch.
	BodyHash string `json:"body_hash,omitempty"`
	// Documents are the views of the page to read, at least one.
	Documents []RequestDocument `json:"documents"`
	// Rebase asks fetch to read this earlier body of the page too, by today's rules.
	Rebase *Body `json:"rebase,omitempty"`
	// KeepBody asks for the body also where it holds no new text.
	KeepBody bool `json:"keep_body,omitempty"`
	// Failures is how many checks in a row failed before this one.
	Failures int `json:"failures,omitempty"`
	// NotAfter is until when the fetch must have begun; a later one is dropped, since its
	// owner will have asked again.
	NotAfter time.Time `json:"not_after"`
}

// Body is the body of a page as it was read, kept so that its texts can be made anew by
// other rules. One that is larger than MaxStoredBody when packed is not kept.
type Body struct {
	URL             string `json:"url"`
	ContentType     string `json:"content_type"`
	ContentLanguage string `json:"content_language,omitempty"`
	// Packed is the body as a Reader gets it (Raw.Body), packed with PackBody.
	Packed []byte `json:"packed,omitempty"`
}

// MaxStoredBody is the size of the largest packed body that is kept, in bytes.
const MaxStoredBody = 256 << 10

// RequestDocument is one document of a page that is to be read.
type RequestDocument struct {
	ID   string        `json:"id"`
	View pipeline.View `json:"view"`
	// TextHash is the hash of the text that stands; an equal text need not be sent.
	TextHash string `json:"text_hash,omitempty"`
}

// Message returns r as a message on TopicRequests, asked at the time at.
func (r Request) Message(at time.Time) Message {
	r.NotAfter = r.NotAfter.Round(0).UTC()
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("pipeline: request: %v", err)) // every field is encodable
	}
	return Message{
		ID:    DeriveID("request", r.Page, r.Incarnation, strconv.FormatUint(r.Check, 10)),
		Topic: TopicRequests, Key: pageurl.Host(r.Page), Type: TypeRequest, Subject: r.Page, Time: at,
		Header: map[string]string{headerContent: "application/json"}, Body: b, value: requested{r, b},
	}
}

// requested is a request and the body that says the same.
type requested struct {
	Request
	body []byte
}

// RequestFrom is the inverse of Request.Message. What it returns must not be changed.
func RequestFrom(m Message) (Request, error) {
	if v, ok := m.value.(requested); ok && len(m.Body) == len(v.body) && &m.Body[0] == &v.body[0] {
		return v.Request, nil
	}
	var r Request
	if err := json.Unmarshal(m.Body, &r); err != nil {
		return r, failure.Permanent(fmt.Errorf("request %s: %w", m.ID, err))
	}
	return r, nil
}

// What a check found.
const (
	OutcomeRead      = "read"      // the text of a document
	OutcomeUnchanged = "unchanged" // nothing new, against a hash
	OutcomeFailed    = "failed"
)

// Outcome is what one check found. A failed or unchanged check of a page is one
// Outcome with Parts 0; one that read it is one Outcome for each document of the
// request, Part 0 to Parts-1, published together.
type Outcome struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	Check       uint64 `json:"check"`
	Nonce       string `json:"nonce,omitempty"` // of the request
	Part        int    `json:"part,omitempty"`
	Parts       int    `json:"parts,omitempty"`
	// Document is which document this part is about; empty with Parts 0.
	Document string    `json:"document,omitempty"`
	Kind     string    `json:"kind"`
	Time     time.Time `json:"time"`
	// Against is the hash that Kind "unchanged" compares with: of the body with Parts 0,
	// of the document's text otherwise.
	Against string `json:"against,omitempty"`
	// Class and Reason say why Kind is "failed"; RetryAfter is the host's wish.
	Class      string        `json:"class,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	// Offline says that the failure says nothing about the page: nothing else could be
	// reached either.
	Offline bool `json:"offline,omitempty"`
	// Status is the HTTP status, 0 if there was none; Bytes the size of the decoded body;
	// Took how long the fetch lasted.
	Status int           `json:"status,omitempty"`
	Bytes  int64         `json:"bytes,omitempty"`
	Took   time.Duration `json:"took,omitempty"`
	// BodyHash, ETag and LastModified describe the body that was read. LastModified is
	// empty where it is not to be trusted as a validator.
	BodyHash     string `json:"body_hash,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	// Title, Language (declared, a BCP 47 tag), TextHash and Extractor describe the text.
	Title     string `json:"title,omitempty"`
	Language  string `json:"language,omitempty"`
	TextHash  string `json:"text_hash,omitempty"`
	Extractor string `json:"extractor,omitempty"`
	// Packed is the text's Content packed with PackText. It travels as the message's body.
	Packed []byte `json:"-"`
	// Body is the body that was read: on the last part only, and only where a part is read,
	// or Request.KeepBody asks for it, and it is small enough to be kept. It travels behind
	// Packed.
	Body *Body `json:"-"`
	// Rebased is the text that Request.Rebase gives by today's rules, in answer to it. It
	// travels behind Body.
	Rebased *Rebased `json:"-"`
}

// Rebased is the text of a document made anew from an earlier body.
type Rebased struct {
	TextHash  string `json:"text_hash"`
	Title     string `json:"title,omitempty"`
	Extractor string `json:"extractor"`
	// Packed is its Content packed with PackText.
	Packed []byte `json:"packed,omitempty"`
	// Failed says why there is none; then the document gets a new baseline.
	Failed string `json:"failed,omitempty"`
}

const headerOutcome = "vokter_outcome"

// attribute is the header that carries o.
func (o Outcome) attribute() (name, value string) {
	h, err := json.Marshal(outcomeHeader{o, o.frames()})
	if err != nil {
		panic(fmt.Sprintf("pipeline: outcome: %v", err)) // every field is encodable
	}
	return headerOutcome, string(h)
}

// Message returns o as a message on TopicDocuments. In the same process it is not encoded.
func (o Outcome) Message() Message {
	o.Time = o.Time.Round(0).UTC()
	o, body := o.joined()
	return Message{
		ID:    DeriveID("outcome", o.Page, o.Incarnation, strconv.FormatUint(o.Check, 10), strconv.Itoa(o.Part), o.BodyHash, o.Kind),
		Topic: TopicDocuments, Key: o.Page, Type: TypeOutcome, Subject: o.Page, Time: o.Time,
		Header: map[string]string{}, Body: body, value: o,
	}
}

// OutcomeFrom is the inverse of Outcome.Message.
func OutcomeFrom(m Message) (Outcome, error) {
	header, ok := m.Header[headerOutcome]
	var h outcomeHeader
	if o, made := m.value.(Outcome); made && !ok {
		h = outcomeHeader{o, o.frames()}
	} else if err := json.Unmarshal([]byte(header), &h); err != nil {
		return Outcome{}, failure.Permanent(fmt.Errorf("outcome %s: %w", m.ID, err))
	}
	o, err := h.cut(m.Body)
	if err = cmp.Or(err, CheckTime(o.Time)); err != nil {
		return Outcome{}, failure.Permanent(fmt.Errorf("outcome %s: %w", m.ID, err))
	}
	return o, nil
}

// outcomeHeader is an outcome as its header carries it. Frames tells what the message's body
// holds; without it the body is Packed alone.
type outcomeHeader struct {
	Outcome
	Frames *frames `json:"frames,omitempty"`
}

// frames say how the body of an outcome's message is divided, in bytes: Packed, then what
// Body and Rebased hold packed. Those are named here without that.
type frames struct {
	Packed      int      `json:"packed"`
	Body        *Body    `json:"body,omitempty"`
	BodySize    int      `json:"body_size,omitempty"`
	Rebased     *Rebased `json:"rebased,omitempty"`
	RebasedSize int      `json:"rebased_size,omitempty"`
}

// frames returns how o's message is divided, or nil where its body is Packed alone.
func (o Outcome) frames() *frames {
	if o.Body == nil && o.Rebased == nil {
		return nil
	}
	f := &frames{Packed: len(o.Packed)}
	if o.Body != nil {
		b := *o.Body
		f.Body, f.BodySize, b.Packed = &b, len(b.Packed), nil
	}
	if o.Rebased != nil {
		r := *o.Rebased
		f.Rebased, f.RebasedSize, r.Packed = &r, len(r.Packed), nil
	}
	return f
}

// joined returns the body of o's message, and o with all that it holds packed in there.
func (o Outcome) joined() (Outcome, []byte) {
	f := o.frames()
	if f == nil {
		return o, o.Packed
	}
	body := make([]byte, 0, f.Packed+f.BodySize+f.RebasedSize)
	body = append(body, o.Packed...)
	if o.Body != nil {
		body = append(body, o.Body.Packed...)
	}
	if o.Rebased != nil {
		body = append(body, o.Rebased.Packed...)
	}
	o, err := outcomeHeader{o, f}.cut(body)
	if err != nil {
		panic("pipeline: " + err.Error()) // the sizes were just added up
	}
	return o, body
}

var errFrames = errors.New("its body is not as long as its header says")

// cut returns the outcome with what body holds. It shares body's memory.
func (h outcomeHeader) cut(body []byte) (Outcome, error) {
	o, f := h.Outcome, h.Frames
	if f == nil {
		o.Packed = body
		return o, nil
	}
	rest, bad := body, false
	take := func(n int) []byte {
		if bad = bad || n < 0 || n > len(rest); bad || n == 0 {
			return nil
		}
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	o.Packed, o.Body, o.Rebased = take(f.Packed), f.Body, f.Rebased
	bodyPacked, rebasedPacked := take(f.BodySize), take(f.RebasedSize)
	if o.Body != nil {
		o.Body.Packed = bodyPacked
	}
	if o.Rebased != nil {
		o.Rebased.Packed = rebasedPacked
	}
	if bad || len(rest) > 0 {
		return Outcome{}, errFrames
	}
	return o, nil
}
