package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"strings"
	"time"
)

// MaxPushed is the size of the largest page that can be pushed, in bytes, as it comes and in
// UTF-8.
const MaxPushed = 2 * MaxText

// RememberedPushes is how many IDs of pushed pages are remembered for each URL.
const RememberedPushes = 64

// Pushed is a page, or a text, that somebody hands over: nothing is fetched for it.
type Pushed struct {
	// URL names the page: an absolute URL with a host, which need not be there. Required.
	URL string
	// ContentType is what Body is, such as "text/html; charset=utf-8". Required with Body.
	ContentType string
	// ContentLanguage is the language of Body if it is known, as in HTTP's header.
	ContentLanguage string
	// Body is the page as it was read, at most MaxPushed bytes.
	Body []byte
	// Text is plain text in UTF-8, instead of Body; ContentType does not count then.
	Text string
	// ID names what is handed over: a page whose ID is among the last RememberedPushes that
	// came for its URL is dropped. Empty: it is no repeat of any other.
	ID string
	// Time is when the page was read; zero: when it is taken in.
	Time time.Time
	// Header holds further attributes, by lower-case name, such as HeaderTrace.
	Header map[string]string
}

// Emit hands p over. When it returns nil p is durable and the Router's: that is the
// acknowledgement. ErrUnusable means that p is taken too, but its URL can never be that of a
// page: it goes to the dead letters, and is not to be handed over again. After any other error p
// is to be handed over again. Emit blocks while there is no room, until ctx is done. A page that
// cannot be read is taken without an error: it goes to the dead letters as well. Emit
// is safe for concurrent use; pages of one URL are taken in the order of the calls, if each
// waits for the one before.
type Emit func(ctx context.Context, p Pushed) error

// ErrUnusable says that a page that was handed over has a URL that can never be one: it is not
// absolute, is longer than MaxURL, or holds a user name or password.
var ErrUnusable = errors.New("the page can never be used; it is among the dead letters, and need not be handed over again")

// Source brings pages from elsewhere.
type Source interface {
	// Run hands over what it gets until ctx is done, and returns soon after that. What emit
	// did not take with nil must come again, at the latest after a restart of the process, and
	// best under the same Pushed.ID. An error says that the source can do no more for now, as
	// when what it reads from is away: Run is then called again after a pause. Nil ends it.
	Run(ctx context.Context, emit Emit) error
}

// SourceFunc is a function that is a Source.
type SourceFunc func(ctx context.Context, emit Emit) error

// Run calls f.
func (f SourceFunc) Run(ctx context.Context, emit Emit) error { return f(ctx, emit) }

const (
	headerLanguage = "content-language"
	headerPushed   = "vokter_pushed"
)

// Message returns p as a message on TopicIngest, whose key is the page, so that pages of one
// URL stay in order.
func (p Pushed) Message() Message {
	h := make(map[string]string, len(p.Header)+2)
	maps.Copy(h, p.Header)
	body := p.Body
	if p.Text != "" {
		body = []byte(p.Text)
		p.ContentType = "text/plain; charset=utf-8"
	}
	for name, value := range map[string]string{headerContent: p.ContentType, headerLanguage: p.ContentLanguage} {
		if value != "" {
			h[name] = value
		}
	}
	key, err := CanonicalURL(p.URL)
	if err != nil {
		key = p.URL // told when it is read
	}
	return Message{ID: p.ID, Topic: TopicIngest, Key: key, Type: TypePage, Subject: p.URL, Time: p.Time, Header: h, Body: body}
}

// FromIngest returns the message on TopicIngest that any program may have written there: it
// is FromMetadata for that topic. The names of headers count in lower case. Without a type it
// is a TypePage; without an ID it has one that is derived from its position, or where that is
// empty from its subject and body. With an error, which is permanent, comes as much of the
// message as is known.
func FromIngest(meta map[string]string, body []byte, position string) (Message, error) {
	h := make(map[string]string, len(meta)+2)
	for name, value := range meta {
		lower := strings.ToLower(name)
		if _, exact := meta[lower]; name == lower || !exact {
			h[lower] = value
		}
	}
	h[headerType] = cmp.Or(h[headerType], TypePage)
	if h[headerID] == "" && position != "" {
		h[headerID] = DeriveID("ingest", position)
	} else if h[headerID] == "" {
		h[headerID] = DeriveID("ingest", "", h[headerSubject], string(body))
	}
	m, err := FromMetadata(h, body)
	m.Topic, m.Position = TopicIngest, position
	return m, err
}

// PushedFrom returns the page that m, a message on TopicIngest, brings. Its error, which is
// permanent, says what is missing or wrong.
func PushedFrom(m Message) (Pushed, error) {
	p := Pushed{
		URL: m.Subject, ContentType: m.Header[headerContent], ContentLanguage: m.Header[headerLanguage],
		Body: m.Body, ID: m.ID, Time: m.Time,
	}
	if err := p.check(m.Type); err != nil {
		return Pushed{}, Permanent(fmt.Errorf("page %s: %w", m.ID, err))
	}
	return p, nil
}

func (p Pushed) check(kind string) error {
	if kind != TypePage {
		return fmt.Errorf("%s is %q; only %s can be pushed", headerType, kind, TypePage)
	}
	if p.URL == "" {
		return fmt.Errorf("there is no header %s with the page's URL, which is Pushed.URL in Go", headerSubject)
	}
	if err := CheckURL(p.URL); err != nil {
		return fmt.Errorf("%s: %w", headerSubject, err)
	}
	if p.ContentType == "" {
		return fmt.Errorf("there is no header %s, such as text/html or text/plain, which is Pushed.ContentType in Go", headerContent)
	}
	if _, _, err := mime.ParseMediaType(p.ContentType); err != nil {
		return fmt.Errorf("%s %.80q: %w", headerContent, p.ContentType, err)
	}
	if len(bytes.TrimSpace(p.Body)) == 0 {
		return errors.New("the page is empty")
	}
	if len(p.Body) > MaxPushed {
		return fmt.Errorf("the page has %d bytes; at most %d are taken", len(p.Body), MaxPushed)
	}
	return nil
}

// taken is what the header of Taken says.
type taken struct {
	ID              string `json:"id"`
	URL             string `json:"url"`
	ContentType     string `json:"content_type"`
	ContentLanguage string `json:"content_language,omitempty"`
}

// Taken returns p, whose Body is as a Reader gets it (Raw.Body), as a message on
// TopicDocuments, where it is on its way to the owner of its page. Header is left out.
func (p Pushed) Taken() (Message, error) {
	page, err := CanonicalURL(p.URL)
	if err != nil {
		return Message{}, Permanent(err)
	}
	h, err := json.Marshal(taken{p.ID, p.URL, p.ContentType, p.ContentLanguage})
	if err != nil {
		return Message{}, Permanent(err)
	}
	return Message{
		ID: DeriveID("pushed", page, p.ID), Topic: TopicDocuments, Key: page, Type: TypePushed, Subject: page, Time: p.Time,
		Header: map[string]string{headerPushed: string(h)}, Body: zstdEncoder.EncodeAll(p.Body, nil),
	}, nil
}

// TakenFrom is the inverse of Pushed.Taken.
func TakenFrom(m Message) (Pushed, error) {
	var h taken
	if err := json.Unmarshal([]byte(m.Header[headerPushed]), &h); err != nil {
		return Pushed{}, Permanent(fmt.Errorf("pushed page %s: %w", m.ID, err))
	}
	body, err := zstdDecoder.DecodeAll(m.Body, nil)
	if err != nil {
		return Pushed{}, Permanent(fmt.Errorf("pushed page %s: unpacking it: %w", m.ID, err))
	}
	return Pushed{
		URL: h.URL, ContentType: h.ContentType, ContentLanguage: h.ContentLanguage, Body: body, ID: h.ID, Time: m.Time,
	}, nil
}
