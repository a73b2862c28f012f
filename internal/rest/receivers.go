package rest

import (
	"strings"
	"sync"
	"unicode"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/webhook"
)

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
