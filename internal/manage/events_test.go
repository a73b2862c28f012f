package manage

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2/sse"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestEvents streams a change and notifications to a caller who may see all, and to one who may
// not see those of other clients.
func TestEvents(t *testing.T) {
	notification := func(c string) flow.Observation {
		return flow.Observation{Kind: flow.KindNotification, Page: "https://example.com/", Document: "D", Addressed: &flow.Addressed{
			Receiver: pipeline.Receiver{Sink: "hook"}, Notification: pipeline.Notification{ID: "N", URL: "https://example.com/", Client: c},
		}}
	}
	happened := []flow.Observation{
		{Kind: flow.KindCheck, Page: "https://example.com/"},
		{Kind: flow.KindChange, Page: "https://example.com/", Document: "D", ID: "C", N: 7, Time: someTime},
		{Kind: flow.KindChange, Page: "https://example.com/other", Document: "D", N: 8},
		notification("b"), notification("a"),
	}
	for name, c := range map[string]struct {
		token  string
		filter client.EventFilter
		want   string
	}{
		"all":              {aToken, client.EventFilter{}, "change 7, change 8, for b, for a"},
		"one page":         {aToken, client.EventFilter{URL: "HTTPS://example.com"}, "change 7, for b, for a"},
		"one client":       {aToken, client.EventFilter{Client: "a"}, "for a"},
		"only changes":     {aToken, client.EventFilter{Type: "change", URL: "https://example.com/"}, "change 7"},
		"a token of a":     {"of a", client.EventFilter{}, "change 7, change 8, for a"},
		"a token of other": {"of other", client.EventFilter{Type: "notification"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{observer: make(chan flow.Observer, 1), listing: inspect.Listing{Pages: []inspect.Page{{Documents: []inspect.Document{{ID: "D"}}}}}}
			base := serveURL(t, newAPIOf(t, f, config.API{Tokens: []config.Token{
				{Name: "a", Hash: config.HashToken("of a"), Scopes: []config.Scope{config.ScopeRead}, Clients: []string{"a"}},
				{Name: "other", Hash: config.HashToken("of other"), Scopes: []config.Scope{config.ScopeRead}, Clients: []string{"other", "end"}},
			}}))
			go func() {
				o := <-f.observer
				for _, ob := range happened {
					o(ob)
				}
				end := notification("end")
				if c.token == "of a" || c.filter.Client == "a" {
					end = notification("a")
					end.Addressed.Notification.ID = "end"
				}
				if c.filter.Type == "change" {
					end = flow.Observation{Kind: flow.KindChange, Page: "https://example.com/", Document: "D", ID: "end"}
				}
				end.ID = "end"
				if end.Addressed != nil {
					end.Addressed.Notification.ID = "end"
				}
				o(end)
			}()
			got := client.New(base, c.token)
			defer got.Close()
			var seen []string
			err := got.Events(t.Context(), c.filter, func(event any) error {
				switch e := event.(type) {
				case client.ChangeEvent:
					if e.ID == "end" {
						return errBroken
					}
					seen = append(seen, "change "+string(rune('0'+e.Version)))
				case client.NotificationEvent:
					if e.Notification.ID == "end" {
						return errBroken
					}
					seen = append(seen, "for "+e.Notification.Client)
				}
				return nil
			})
			if !errors.Is(err, errBroken) || strings.Join(seen, ", ") != c.want {
				t.Errorf("got %q, %v, want %q", seen, err, c.want)
			}
		})
	}
}

// TestSlowReader: whoever does not read gets a last word and is dropped, and holds nobody up.
func TestSlowReader(t *testing.T) {
	f := &fake{observer: make(chan flow.Observer, 1)}
	a := newAPIOf(t, f, config.API{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := &stuck{header: make(http.Header), began: make(chan struct{}), release: make(chan struct{})}
	r := httptest.NewRequest(http.MethodGet, client.Prefix+"/events", nil).WithContext(ctx)
	r.Host = "127.0.0.1"
	r.Header.Set("Authorization", "Bearer "+aToken)
	ended := make(chan struct{})
	go func() {
		a.ServeHTTP(w, r)
		close(ended)
	}()
	<-w.began
	o := <-f.observer
	for i := range eventBuffer + 2 {
		o(flow.Observation{Kind: flow.KindChange, Page: "https://example.com/", N: i})
	}
	close(w.release)
	<-ended
	if said := w.body.String(); !strings.Contains(said, "event: dropped") || ctx.Err() != nil {
		t.Errorf("got %s, %v", said, ctx.Err())
	}
}

// stuck is a connection whose peer reads nothing until it is released.
type stuck struct {
	header  http.Header
	body    strings.Builder
	began   chan struct{}
	release chan struct{}
	once    bool
}

func (s *stuck) Header() http.Header { return s.header }
func (s *stuck) WriteHeader(int)     {}
func (s *stuck) Flush()              {}
func (s *stuck) Write(b []byte) (int, error) {
	if !s.once {
		s.once = true
		close(s.began)
		<-s.release
	}
	return s.body.Write(b)
}

// SetWriteDeadline is for http.ResponseController.
func (s *stuck) SetWriteDeadline(time.Time) error { return nil }

// TestStreamsAreFew: streams of events leave connections for other requests.
func TestStreamsAreFew(t *testing.T) {
	a := newAPIOf(t, &fake{}, config.API{})
	for range maxStreams {
		a.api.streamSlots <- struct{}{}
	}
	if status, header, body := send(t, "GET", serveURL(t, a)+client.Prefix+"/events", "", nil); status != 503 || header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", status, body)
	}
}

// TestRevokedTokensEndStreams changes one of two tokens while both have a stream.
func TestRevokedTokensEndStreams(t *testing.T) {
	tokens := []config.Token{
		{Name: "a", Hash: config.HashToken("of a"), Scopes: []config.Scope{config.ScopeRead}, Clients: []string{"a"}},
		{Name: "b", Hash: config.HashToken("of b"), Scopes: []config.Scope{config.ScopeRead}, Clients: []string{"b"}},
	}
	access := new(Access)
	if err := access.Configure(config.API{Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
	callers := access.current.Load().callers
	tokens[0].Clients = []string{"c"}
	if err := access.Configure(config.API{Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
	if !callers[0].isRevoked() || callers[1].isRevoked() {
		t.Errorf("revoked: %v, %v; want only the token that was changed", callers[0].isRevoked(), callers[1].isRevoked())
	}
	f := &fake{observer: make(chan flow.Observer, 1)}
	a := newAPIOf(t, f, config.API{})
	var said []string
	send := func(m sse.Message) error {
		said = append(said, fmt.Sprintf("%T", m.Data))
		return nil
	}
	a.api.streamEvents(context.WithValue(t.Context(), callerKey{}, callers[0]), &EventsInput{}, send)
	if want := []string{"client.PingEvent", "client.DroppedEvent"}; !slices.Equal(said, want) {
		t.Errorf("the stream of a revoked token says %v, want %v", said, want)
	}
}
