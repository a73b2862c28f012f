package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
)

// foreign is the ce_source of the commands of another program.
const foreign = "https://crm.example.com/"

// world is a Router, pages that it watches, and all that passes
// through its topics.
type world struct {
	*testing.T
	transport flow.Transport
	router    *vokter.Router
	site      *httptest.Server
	ops       *box

	mu      sync.Mutex
	pages   map[string]string // HTML by path; empty: an error
	all     []flow.Message
	changed chan struct{} // closed with the next message
}

// box is a sink that counts what it gets by status.
type box struct {
	mu  sync.Mutex
	got map[string]int
}

func (b *box) Deliver(_ context.Context, n pipeline.Notification) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.got == nil {
		b.got = make(map[string]int)
	}
	b.got[n.Status]++
	return nil
}

func (b *box) count(status string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got[status]
}

// newWorld returns a world on the local transport.
func newWorld(t *testing.T) *world {
	t.Helper()
	topics := vokter.Topology()
	for _, name := range watched {
		topic := topics[name]
		topic.Groups = append(topic.Groups, contractGroup)
		topics[name] = topic
	}
	transport, err := local.Open(local.Config{Topics: topics})
	if err != nil {
		t.Fatal(err)
	}
	return newWorldOn(t, transport, watched)
}

// contractGroup reads the topics that are watched.
const contractGroup = "contract"

var watched = []string{
	flow.TopicChanges, flow.TopicNotifications, flow.TopicHealth, flow.TopicDead,
	flow.TopicDocuments, flow.TopicSubscriptions, flow.TopicCurrent,
}

// newWorldOn returns a world that notes what passes through some topics.
func newWorldOn(t *testing.T, transport flow.Transport, topics []string) *world {
	t.Helper()
	w := &world{T: t, transport: transport, ops: &box{}, pages: make(map[string]string), changed: make(chan struct{})}
	w.site = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		if w.pages[r.URL.Path] == "" {
			rw.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(rw, w.pages[r.URL.Path])
	}))
	t.Cleanup(w.site.Close)
	fails := func(err error) pipeline.Sink {
		return pipeline.SinkFunc(func(context.Context, pipeline.Notification) error { return err })
	}
	var err error
	w.router, err = vokter.New(vokter.Config{
		Transport: w.transport,
		Sinks: map[string]pipeline.Sink{
			"box": &box{}, "ops": w.ops,
			"picky": fails(failure.Permanent(fmt.Errorf("not this one"))), "gone": fails(failure.Gone(fmt.Errorf("no such inbox"))),
		},
		Health: []string{"ops"},
		Fetch: vokter.FetchConfig{
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, MinInterval: time.Millisecond, Concurrency: 8, Rate: 1000,
		},
		Expire: vokter.ExpireConfig{After: 4, Retry: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range topics {
		w.router.Handle(contractGroup, name, flow.ProcessorFunc(w.note))
	}
	return w
}

// note remembers a message.
func (w *world) note(_ context.Context, _ flow.Tx, m flow.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, m)
	close(w.changed)
	w.changed = make(chan struct{})
	return nil
}

func (w *world) messages() []flow.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func (w *world) url(path string) string { return w.site.URL + path }

func (w *world) set(path, html string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pages[path] = html
}

// run starts the Router; stop ends it.
func (w *world) run() (stop func() error) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.router.Run(ctx) }()
	select {
	case <-w.router.Running():
	case err := <-ended:
		w.Fatalf("Run: %v", err)
	}
	return func() error {
		cancel()
		return <-ended
	}
}

// send publishes a command as another program does: with no more than it must.
func (w *world) send(id, key, typ, body string) {
	w.Helper()
	m := flow.Message{ID: id, Source: foreign, Topic: flow.TopicDocuments, Key: key, Type: typ, Body: []byte(body)}
	if body != "" {
		m.Header = map[string]string{"content-type": "application/json"}
	}
	if err := w.transport.Publish(w.Context(), m); err != nil {
		w.Fatal(err)
	}
}

// decided fails the test where a command was refused. One that was not decided in time is
// carried out later: what comes of it is waited for.
func (w *world) decided(err error) {
	w.Helper()
	if err != nil && !errors.Is(err, flow.ErrBusy) {
		w.Fatal(err)
	}
}

// patience is how long something may take to come, on a machine with much else to do.
const patience = time.Minute

// awaitNumber returns message number n that is, from 1 on; what says what it is.
func (w *world) awaitNumber(n int, what string, is func(flow.Message) bool) flow.Message {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		w.mu.Lock()
		all, changed := w.all, w.changed
		w.mu.Unlock()
		left := n
		for _, m := range all {
			if is(m) {
				left--
			}
			if left == 0 {
				return m
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			w.Fatalf("%s did not come", what)
		}
	}
}

// await returns the first message that is.
func (w *world) await(what string, is func(flow.Message) bool) flow.Message {
	w.Helper()
	return w.awaitNumber(1, what, is)
}

func (w *world) awaitStamp(page, client string) {
	w.Helper()
	w.await("the stamp of "+client, func(m flow.Message) bool {
		var s flow.Stamped
		return m.Type == flow.TypeStamp && json.Unmarshal(m.Body, &s) == nil && s.Page == page && s.Subscription.Client == client
	})
}

func (w *world) awaitHealth(what string, is func(pipeline.Health) bool) (h pipeline.Health) {
	w.Helper()
	w.await(what, func(m flow.Message) bool {
		var err error
		h, err = flow.HealthFrom(m)
		return m.Type == flow.TypeHealth && err == nil && is(h)
	})
	return h
}

func (w *world) awaitRefusal(id string) pipeline.Health {
	w.Helper()
	return w.awaitHealth("the refusal of "+id, func(h pipeline.Health) bool { return h.Event == pipeline.HealthRefused && h.Command == id })
}

// awaitCount waits for n messages of a type about a page.
func (w *world) awaitCount(typ, page string, n int) {
	w.Helper()
	w.awaitNumber(n, fmt.Sprintf("message %d of type %s about %s", n, typ, page), func(m flow.Message) bool {
		return m.Type == typ && m.Key == page
	})
}

// healths are the events of a kind.
func (w *world) healths(event pipeline.HealthEvent) (all []pipeline.Health) {
	w.Helper()
	for _, m := range w.messages() {
		if m.Type != flow.TypeHealth {
			continue
		}
		h, err := flow.HealthFrom(m)
		if err != nil {
			w.Fatal(err)
		}
		if h.Event == event {
			all = append(all, h)
		}
	}
	return all
}
