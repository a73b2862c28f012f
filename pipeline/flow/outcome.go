package flow

import (
	"bytes"
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

// Request asks the stage fetch to check a page. One request is at most one GET.
type Request struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	// Check is the number that index gave to this check. Nonce distinguishes this request from one
	// with the same number that another process made and did not commit before it lost the lane.
	Check uint64 `json:"check"`
	Nonce string `json:"nonce,omitempty"`
	// ETag and LastModified are for a conditional request; both are empty for a full fetch.
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	// Access is Response.Access of the last body.
	Access string `json:"access,omitempty"`
	// BodyHash is the hash of the last body. An equal body gives OutcomeUnchanged. It is empty for a
	// full fetch.
	BodyHash string `json:"body_hash,omitempty"`
	// Documents are the views of the page to read, at least one.
	Documents []RequestDocument `json:"documents"`
	// Rebase is an earlier body of the page that fetch reads as well, with the present rules.
	Rebase *Body `json:"rebase,omitempty"`
	// KeepBody asks for the body even if it has no new text.
	KeepBody bool `json:"keep_body,omitempty"`
	// Packed is the body of a pushed page, packed as by PackBody: its message carries it so. It is nil
	// for a page that is fetched.
	Packed []byte `json:"-"`
	// Links asks for the links of the page.
	Links bool `json:"links,omitempty"`
	// Robots says that the page is watched only because others link to it, so robots.txt of its host
	// must allow the fetch.
	Robots bool `json:"robots,omitempty"`
	// Failures is the number of checks in a row that failed before this one.
	Failures int `json:"failures,omitempty"`
	// NotAfter is when the request expires. A fetch that has not begun by then is dropped, because
	// index will have sent another request.
	NotAfter time.Time `json:"not_after"`
}

// Body is the stored body of a page, from which its texts can be extracted again with other rules.
// A body that is larger than MaxStoredBody when packed is not stored.
type Body struct {
	URL             string `json:"url"`
	ContentType     string `json:"content_type"`
	ContentLanguage string `json:"content_language,omitempty"`
	// Packed is the body as a Reader gets it (Raw.Body), packed with PackBody.
	Packed []byte `json:"packed,omitempty"`
}

// MaxStoredBody is the largest size of a packed body that is stored, in bytes.
const MaxStoredBody = 256 << 10

// RequestDocument is one document of a page to read.
type RequestDocument struct {
	ID   string        `json:"id"`
	View pipeline.View `json:"view"`
	// TextHash is the hash of the last text. An equal text is not sent.
	TextHash string `json:"text_hash,omitempty"`
}

// Message returns r as a message on TopicRequests with the time at. Its body is made by
// Message.Encoded, because most requests do not leave the process.
func (r Request) Message(at time.Time) Message {
	r.NotAfter = r.NotAfter.Round(0).UTC()
	return Message{
		ID:    DeriveID("request", r.Page, r.Incarnation, strconv.FormatUint(r.Check, 10)),
		Topic: TopicRequests, Key: pageurl.Host(r.Page), Type: TypeRequest, Subject: r.Page, Time: at,
		decoded: r,
	}
}

// encodeHeader returns the header of a message whose body is r.
func (Request) encodeHeader() (name, value string) { return headerContent, "application/json" }

// RequestFrom is the inverse of Request.Message. The caller must not change the request.
func RequestFrom(m Message) (Request, error) {
	if r, ok := m.decoded.(Request); ok && m.Body == nil {
		return r, nil
	}
	return decode[Request](m, "request")
}

// Values of Outcome.Kind: what a check found.
const (
	OutcomeRead      = "read"      // the text of a document
	OutcomeUnchanged = "unchanged" // the hash of Against
	OutcomeFailed    = "failed"
)

// Outcome is the result of a check. If the page could not be read, or is unchanged, there is one
// Outcome, with Parts 0. Otherwise there is one Outcome for each document of the request, Part 0 to
// Parts-1, all published together.
type Outcome struct {
	Page        string `json:"page"`
	Incarnation string `json:"incarnation"`
	Check       uint64 `json:"check"`
	Nonce       string `json:"nonce,omitempty"` // of the request
	Part        int    `json:"part,omitempty"`
	Parts       int    `json:"parts,omitempty"`
	// Document is the ID of the document of this part; it is empty with Parts 0.
	Document string    `json:"document,omitempty"`
	Kind     string    `json:"kind"`
	Time     time.Time `json:"time"`
	// Against is the hash that OutcomeUnchanged found again: of the body with Parts 0, otherwise of
	// the text of the document.
	Against string `json:"against,omitempty"`
	// Class and Reason say why Kind is OutcomeFailed. RetryAfter is how long the host asked to wait.
	Class      string        `json:"class,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	RetryAfter time.Duration `json:"retry_after,omitempty"`
	// Offline says that no other host could be reached either, so that the failure does not count
	// for the page.
	Offline bool `json:"offline,omitempty"`
	// Status is the HTTP status, 0 if there was none; Bytes the size of the decoded body;
	// Took how long the fetch lasted.
	Status int           `json:"status,omitempty"`
	Bytes  int64         `json:"bytes,omitempty"`
	Took   time.Duration `json:"took,omitempty"`
	// BodyHash, ETag, LastModified and Access describe the body. LastModified is empty where it cannot
	// be trusted for a conditional request. Access is Response.Access.
	BodyHash     string `json:"body_hash,omitempty"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	Access       string `json:"access,omitempty"`
	// Title, Language (declared, a BCP 47 tag), TextHash and Extractor describe the text;
	// ContentType is the media type by which it was read.
	Title    string `json:"title,omitempty"`
	Language string `json:"language,omitempty"`
	// PageLanguage is the language detected in the text of the whole page, if the text is a selected
	// part of it that is too short for its own language to be detected.
	PageLanguage string `json:"page_language,omitempty"`
	ContentType  string `json:"content_type,omitempty"`
	TextHash     string `json:"text_hash,omitempty"`
	Extractor    string `json:"extractor,omitempty"`
	// Passed is what the reader passed over: Text.Passed.
	Passed []string `json:"passed,omitempty"`
	// Items are the keys of the items in the text of a document with View.Items: for each 8 bytes of
	// the hash of its identity, in unpadded URL-safe base64.
	Items []string `json:"items,omitempty"`
	// Packed is the Content of the text, packed with PackText. It is in the body of the message.
	Packed []byte `json:"-"`
	// Text is that Content, in the process that read it. In any other it is empty.
	Text string `json:"-"`
	// Screenshot is a picture of the page, only if Kind is OutcomeRead. It follows Rebased in the body
	// of the message.
	Screenshot []byte `json:"-"`
	// Body is the body of the page, only on the last part, and only if a part is OutcomeRead or
	// Request.KeepBody is set, and if it is small enough to store. It follows Packed in the body of
	// the message.
	Body *Body `json:"-"`
	// Links are the links of the page, if Request.Links is set and the page was read. They come with
	// the last part.
	Links *Links `json:"links,omitempty"`
	// Rebased is the text of Request.Rebase. It follows Body in the body of the message.
	Rebased *Rebased `json:"-"`
}

// Rebased is the text of a document, extracted from an earlier body with the present rules.
type Rebased struct {
	TextHash  string `json:"text_hash"`
	Title     string `json:"title,omitempty"`
	Extractor string `json:"extractor"`
	// Packed is its Content packed with PackText.
	Packed []byte `json:"packed,omitempty"`
	// Failed says why there is no text. The document then gets a new baseline.
	Failed string `json:"failed,omitempty"`
}

const headerOutcome = "vokter_outcome"

// encodeHeader returns the name and value of the header of o.
func (o Outcome) encodeHeader() (name, value string) {
	h := encode(outcomeHeader{o, o.bodyLayout()})
	return headerOutcome, string(h)
}

// extraMemory returns how much memory o takes beside the body of its message.
func (o Outcome) extraMemory() int { return len(o.Text) }

// Content returns the Content of the text.
func (o Outcome) Content() (string, error) {
	if o.Text != "" {
		return o.Text, nil
	}
	return UnpackText(o.Packed)
}

// Message returns o as a message on TopicDocuments. It is encoded only when it leaves the process.
func (o Outcome) Message() Message {
	o.Time = o.Time.Round(0).UTC()
	o, body := o.joinBody()
	return Message{
		ID:    DeriveID("outcome", o.Page, o.Incarnation, strconv.FormatUint(o.Check, 10), strconv.Itoa(o.Part), o.BodyHash, o.Kind),
		Topic: TopicDocuments, Key: o.Page, Type: TypeOutcome, Subject: o.Page, Time: o.Time,
		Body: body, decoded: o,
	}
}

// OutcomeFrom is the inverse of Outcome.Message.
func OutcomeFrom(m Message) (Outcome, error) {
	h, err := outcomeHeaderOf(m)
	if err != nil {
		return Outcome{}, failure.Permanent(fmt.Errorf("outcome %s: %w", m.ID, err))
	}
	o, err := h.splitBody(m.Body)
	if !bytes.Equal(o.Packed, h.Packed) {
		o.Text = ""
	}
	if err = cmp.Or(err, CheckTime(o.Time)); err != nil {
		return Outcome{}, failure.Permanent(fmt.Errorf("outcome %s: %w", m.ID, err))
	}
	return o, nil
}

func outcomeHeaderOf(m Message) (outcomeHeader, error) {
	header, ok := m.Header[headerOutcome]
	if o, made := m.decoded.(Outcome); made && !ok {
		return outcomeHeader{o, o.bodyLayout()}, nil
	}
	h := new(outcomeHeader)
	err := json.Unmarshal([]byte(header), h)
	return *h, err
}

// outcomeHeader is an outcome in its header. Frames says how the body of the message is divided;
// without it the body is Packed.
type outcomeHeader struct {
	Outcome
	Frames *bodyLayout `json:"frames,omitempty"`
}

// bodyLayout has the sizes of the parts of the body of the message, in bytes: Outcome.Packed,
// Body.Packed, Rebased.Packed and Outcome.Screenshot. Body and Rebased here have no Packed.
type bodyLayout struct {
	Packed      int      `json:"packed"`
	Body        *Body    `json:"body,omitempty"`
	BodySize    int      `json:"body_size,omitempty"`
	Rebased     *Rebased `json:"rebased,omitempty"`
	RebasedSize int      `json:"rebased_size,omitempty"`
	Screenshot  int      `json:"screenshot,omitempty"`
}

// bodyLayout returns the layout of the body of the message, or nil if that is Packed alone.
func (o Outcome) bodyLayout() *bodyLayout {
	if o.Body == nil && o.Rebased == nil && o.Screenshot == nil {
		return nil
	}
	f := &bodyLayout{Packed: len(o.Packed), Screenshot: len(o.Screenshot)}
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

// joinBody returns the body of the message, and o with its packed parts pointing into it.
func (o Outcome) joinBody() (Outcome, []byte) {
	f := o.bodyLayout()
	if f == nil {
		return o, o.Packed
	}
	body := make([]byte, 0, f.Packed+f.BodySize+f.RebasedSize+f.Screenshot)
	body = append(body, o.Packed...)
	if o.Body != nil {
		body = append(body, o.Body.Packed...)
	}
	if o.Rebased != nil {
		body = append(body, o.Rebased.Packed...)
	}
	body = append(body, o.Screenshot...)
	o, err := outcomeHeader{o, f}.splitBody(body)
	if err != nil {
		panic("pipeline: " + err.Error()) // cannot happen: the buffer has the sum of the sizes
	}
	return o, body
}

var errBodyLength = errors.New("its body is not as long as its header says")

// splitBody returns the outcome with its packed parts, which share the memory of body.
func (h outcomeHeader) splitBody(body []byte) (Outcome, error) {
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
	o.Screenshot = take(f.Screenshot)
	if o.Body != nil {
		o.Body.Packed = bodyPacked
	}
	if o.Rebased != nil {
		o.Rebased.Packed = rebasedPacked
	}
	if bad || len(rest) > 0 {
		return Outcome{}, errBodyLength
	}
	return o, nil
}
