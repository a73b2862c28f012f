package rest

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/sinks/webhook"
)

// maxClientURL is the length of the longest client URL, which is the name of a client.
const maxClientURL = 1000

// subscribeExample is a request of subscribe. Its fields keep this order.
type subscribeExample struct {
	DocumentURL   string   `json:"documentUrl"`
	ClientURL     string   `json:"clientUrl"`
	Keywords      []string `json:"keywords"`
	Interval      int      `json:"interval"`
	IgnoreAdded   bool     `json:"ignoreAdded"`
	IgnoreRemoved bool     `json:"ignoreRemoved"`
}

var exampleRequest = subscribeExample{
	DocumentURL: "http://www.example.com", ClientURL: "http://your.site/client-rest-api",
	Keywords: []string{"argus", "argus panoptes"}, Interval: 600,
}

// fields are the fields of a body. Their names are case-sensitive, unlike those of a struct that
// encoding/json decodes.
type fields map[string]json.RawMessage

// readFields reads a body, which must be one JSON object.
func readFields(r io.Reader) (fields, error) {
	var f fields
	in := json.NewDecoder(r)
	if err := in.Decode(&f); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, errors.New("the body is null")
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return f, nil
}

// decode decodes the field name into v. It leaves v alone where the field is missing or null.
func (f fields) decode(name string, v any) error {
	raw, ok := f[name]
	if !ok {
		return nil
	}
	return json.Unmarshal(raw, v)
}

// toSubscription returns the subscription that f asks for, or the first thing that is wrong with it,
// in the order of the first server.
func (f fields) toSubscription() (pipeline.Subscription, *answer) {
	var (
		document, client, receiver *string
		keywords                   []*string
		added, removed             bool
	)
	interval := int64(pipeline.DefaultInterval / pipeline.Duration(time.Second))
	err := errors.Join(f.decode("documentUrl", &document), f.decode("clientUrl", &client), f.decode("receiverUrl", &receiver),
		f.decode("keywords", &keywords), f.decode("interval", &interval), f.decode("ignoreAdded", &added), f.decode("ignoreRemoved", &removed))
	if err != nil || interval <= 0 || interval > math.MaxInt32 {
		return pipeline.Subscription{}, &badFormat
	}
	if client == nil {
		client = receiver
	}
	s := pipeline.Subscription{
		Interval: pipeline.Every(time.Duration(interval) * time.Second),
		Expire:   pipeline.Expire{Retry: -1}, // a timeout ends the subscription, as its clients expect
	}
	if s.Keywords, err = validKeywords(keywords); err != nil {
		s.Keywords = nil
	}
	switch {
	case !isURL(document):
		return s, &badDocument
	case !isClientURL(client):
		return s, &badClient
	case len(s.Keywords) == 0:
		return s, &noKeyword
	case added && removed:
		return s, &noEvent
	case added:
		s.Events = []pipeline.Event{pipeline.Removed}
	case removed:
		s.Events = []pipeline.Event{pipeline.Added}
	}
	s.URL, s.Client, s.Sinks = *document, *client, []string{*client}
	return s, nil
}

// cancelTarget returns the page and the client that f names. A client that is not a URL was not made by
// this API, so it cannot be cancelled here.
func (f fields) cancelTarget() (page, client string, bad *answer) {
	var document, name, response *string
	err := errors.Join(f.decode("documentUrl", &document), f.decode("clientUrl", &name), f.decode("responseUrl", &response))
	if err != nil {
		return "", "", &badFormat
	}
	if name == nil {
		name = response
	}
	if !isURL(document) || !isClientURL(name) {
		return "", "", &notWatched
	}
	return *document, *name, nil
}

// isURL reports whether s is an HTTP URL that the first server accepted, without a user name, which
// logs and lists would show.
func isURL(s *string) bool {
	if s == nil || pageurl.Check(*s, "http", "https") != nil {
		return false
	}
	u, err := url.Parse(*s)
	return err == nil && !aboveRoot(u.Path)
}

// aboveRoot reports whether a path leads above its root, such as /a/../../b.
func aboveRoot(path string) bool {
	depth := 0
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

// isClientURL reports whether s is the URL of a client.
func isClientURL(s *string) bool { return isURL(s) && len(*s) <= maxClientURL && !hasBlank(*s) }

// validKeywords returns the keywords that have words, each once. It fails where one of them is too
// long.
func validKeywords(all []*string) ([]string, error) {
	seen := make(map[string]bool)
	var valid []string
	for _, k := range all {
		if k == nil || seen[*k] || len(text.Tokens(*k)) == 0 {
			continue
		}
		if err := text.ValidKeyword(*k); err != nil {
			return nil, err
		}
		seen[*k] = true
		valid = append(valid, *k)
	}
	return valid, nil
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(outbound.JSON(body))
}

// maxCachedSinks is how many sinks are kept. A sink that is not kept is made again for the next
// notification.
const maxCachedSinks = 10_000

// Receivers makes a webhook sink for each client URL. The URL is the name of the sink, so that
// every process and every later start makes the same sink without a record of it.
type Receivers struct {
	config webhook.Config
	mu     sync.Mutex
	sinks  map[string]pipeline.Sink
}

// NewReceivers returns the receivers whose webhooks have the settings of c, except for URL. They
// share connections. It fails where c is invalid.
func NewReceivers(c webhook.Config) (*Receivers, error) {
	if c.Client == nil {
		c.Client = outbound.NewClient(outbound.Config{Allow: c.Allow})
	}
	r := &Receivers{config: c, sinks: make(map[string]pipeline.Sink)}
	_, err := r.buildSink("http://localhost/")
	return r, err
}

// SinkOf returns the sink of name if that is the URL of a client, and otherwise nil. It is safe for
// concurrent use.
func (r *Receivers) SinkOf(name string) pipeline.Sink {
	if !isClientURL(&name) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.sinks[name]; ok {
		return s
	}
	s, err := r.buildSink(name)
	if err != nil {
		return nil
	}
	if len(r.sinks) >= maxCachedSinks {
		for other := range r.sinks {
			delete(r.sinks, other)
			break
		}
	}
	r.sinks[name] = s
	return s
}

func (r *Receivers) buildSink(url string) (pipeline.Sink, error) {
	c := r.config
	c.URL = registry.NewSecret(url)
	w, err := webhook.New(c)
	if err != nil {
		return nil, err // not w: a nil *webhook.Webhook is not a nil Sink
	}
	return w, nil
}

// hasBlank reports whether s has a blank or a control character, which no sink's name has.
func hasBlank(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) })
}
