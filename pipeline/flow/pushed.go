package flow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pageurl"
)

const (
	headerLanguage = "content-language"
	headerPushed   = "vokter_pushed"
)

// PushedMessage returns p as a message on TopicIngest. Its key is the canonical URL, so that pages
// of one URL stay in order.
func PushedMessage(p pipeline.Pushed) Message {
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
	key, err := pageurl.Canonical(p.URL)
	if err != nil {
		key = p.URL // PushedFrom reports the error
	}
	return Message{ID: p.ID, Topic: TopicIngest, Key: key, Type: TypePage, Subject: p.URL, Time: p.Time, Trace: h[HeaderTrace], Header: h, Body: body}
}

// FromIngest is FromMetadata for TopicIngest, where any program may write. It reads the names of
// headers in any case. A message without a type is a TypePage. A message without an ID gets one that
// is derived from its position or, if that is empty, from its subject and body. A permanent error
// comes together with the fields that could be read.
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

// PushedFrom returns the page in m, a message on TopicIngest. Its permanent error says what is
// missing or wrong.
func PushedFrom(m Message) (pipeline.Pushed, error) {
	p := pipeline.Pushed{
		URL: m.Subject, ContentType: m.Header[headerContent], ContentLanguage: m.Header[headerLanguage],
		Body: m.Body, ID: m.ID, Time: m.Time,
	}
	if err := checkPushed(p, m.Type); err != nil {
		return pipeline.Pushed{}, failure.Permanent(fmt.Errorf("page %s: %w", m.ID, err))
	}
	return p, nil
}

func checkPushed(p pipeline.Pushed, kind string) error {
	if kind != TypePage {
		return fmt.Errorf("%s is %q; only %s can be pushed", headerType, kind, TypePage)
	}
	if p.URL == "" {
		return fmt.Errorf("there is no header %s with the page's URL, which is Pushed.URL in Go", headerSubject)
	}
	if err := pageurl.Check(p.URL); err != nil {
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
	if len(p.Body) > pipeline.MaxPushed {
		return fmt.Errorf("the page has %d bytes; at most %d are taken", len(p.Body), pipeline.MaxPushed)
	}
	return nil
}

// pushedHeader is the value of the header headerPushed.
type pushedHeader struct {
	ID              string `json:"id"`
	URL             string `json:"url"`
	ContentType     string `json:"content_type"`
	ContentLanguage string `json:"content_language,omitempty"`
}

// TakenMessage returns p as a message on TopicDocuments, without p.Header. p.Body is as in
// pipeline.Raw. The body of the message is packed as by PackBody.
func TakenMessage(p pipeline.Pushed) (Message, error) {
	page, err := pageurl.Canonical(p.URL)
	if err != nil {
		return Message{}, failure.Permanent(err)
	}
	h, err := json.Marshal(pushedHeader{p.ID, p.URL, p.ContentType, p.ContentLanguage})
	if err != nil {
		return Message{}, failure.Permanent(err)
	}
	return Message{
		ID: DeriveID("pushed", page, p.ID), Topic: TopicDocuments, Key: page, Type: TypePushed, Subject: page, Time: p.Time,
		Header: map[string]string{headerPushed: string(h)}, Body: packBytes(p.Body),
	}, nil
}

// TakenFrom is the inverse of TakenMessage.
func TakenFrom(m Message) (pipeline.Pushed, error) {
	var h pushedHeader
	if err := json.Unmarshal([]byte(m.Header[headerPushed]), &h); err != nil {
		return pipeline.Pushed{}, failure.Permanent(fmt.Errorf("pushed page %s: %w", m.ID, err))
	}
	body, err := zstdDecoder.DecodeAll(m.Body, nil)
	if err != nil {
		return pipeline.Pushed{}, failure.Permanent(fmt.Errorf("pushed page %s: unpacking it: %w", m.ID, err))
	}
	return pipeline.Pushed{
		URL: h.URL, ContentType: h.ContentType, ContentLanguage: h.ContentLanguage, Body: body, ID: h.ID, Time: m.Time,
	}, nil
}
