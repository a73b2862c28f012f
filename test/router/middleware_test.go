package router_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

// TestStrangersStopNothing writes to the topics that others may write what no stage can handle.
// The process goes on, and so does one that is started on the same directory; what could not be
// handled is in the dead letters.
func TestStrangersStopNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var log bytes.Buffer
	cfg := pushedConfig(newMailbox(), nil)
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	topics := []string{flow.TopicDocuments, flow.TopicIngest, flow.TopicDead}
	strangers := pipelinetest.Strangers(pushedURL)
	unhandled := 0
	for start := range 2 {
		transport := openTransport(t, dir)
		cfg.Transport = transport
		r, err := vokter.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		stop := startInBackground(t, r)
		if start == 0 {
			publisher := transport.Publisher()
			for _, topic := range topics {
				for _, s := range strangers {
					m := message.NewMessage(s.Name, s.Body)
					m.Metadata.Set(flow.HeaderKey, s.Key)
					for name, value := range s.Headers {
						m.Metadata.Set(name, value)
					}
					if err := publisher.Publish(topic, m); err != nil {
						t.Fatalf("%s: %v", s.Name, err)
					}
					if s.Unhandled {
						unhandled++
					}
				}
			}
			waitFor(t, "an idle transport", func() bool { return transport.Idle() || r.Ready() != nil })
		}
		ingest(t, transport, []byte("<p>fine"), "ce_subject", pushedURL, "content-type", "text/html")
		waitFor(t, "the pushed page", func() bool { return r.Summary().Pushed == 1 || r.Ready() != nil })
		if err := r.Ready(); err != nil {
			t.Fatalf("start %d: %v", start, err)
		}
		letters, err := r.DeadLetters(t.Context(), flow.DeadFilter{Messages: true})
		if err != nil {
			t.Fatal(err)
		}
		found := make(map[string]int)
		for _, d := range letters {
			found[d.Topic]++
			if len(d.Reason) > 8<<10 {
				t.Errorf("the reason of a dead letter has %d bytes", len(d.Reason))
			}
		}
		for _, topic := range topics {
			if n := unhandled / len(topics); found[topic] < n {
				t.Errorf("start %d: %d messages of %s are in the dead letters, want %d at least", start, found[topic], topic, n)
			}
		}
		stop()
	}
	if n := log.Len(); n > 2<<20 {
		t.Errorf("the log has %d bytes: what strangers wrote is quoted whole", n)
	}
	if strings.Contains(log.String(), "panicked") {
		i := strings.Index(log.String(), "panicked")
		t.Errorf("a stage panics over what strangers write: %.1500s", log.String()[i:])
	}
}

// TestHeadersThatAreNotUTF8: what a host says in its headers is kept byte for byte, and can be
// read again.
func TestHeadersThatAreNotUTF8(t *testing.T) {
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("If-None-Match")
		w.Header().Set("ETag", "\"\xff\"")
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Content-Language", "en\xff")
		_, _ = w.Write([]byte("<p>" + strings.Repeat("argus ", len(asked)+1)))
	}))
	t.Cleanup(s.Close)
	m, dir := newMailbox(), t.TempDir()
	cfg := watchConfig(&site{Server: s}, m, dir, "argus")
	for range 3 {
		runToEnd(t, cfg)
	}
	if asked != "\"\xff\"" {
		t.Errorf("the host was asked for %q", asked)
	}
}

func TestPanicGoesToTheDeadLetters(t *testing.T) {
	s, m, dir := newSite(t, "<p>a</p>"), newMailbox(), t.TempDir()
	cfg := watchConfig(s, m, dir, "argus")
	runToEnd(t, cfg)
	s.set("<p>a</p><p>argus</p>")
	var dead []flow.DeadLetter
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.Handle("bad", flow.TopicChanges, flow.ProcessorFunc(func(context.Context, flow.Tx, flow.Message) error {
		panic("a branch with a fault")
	}))
	r.Handle("undertaker", flow.TopicDead, flow.ProcessorFunc(func(_ context.Context, _ flow.Tx, msg flow.Message) error {
		var d flow.DeadLetter
		if err := json.Unmarshal(msg.Body, &d); err != nil {
			return failure.Permanent(err)
		}
		dead = append(dead, d)
		return nil
	}))
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(dead) != 1 || dead[0].Group != "bad" || !strings.Contains(dead[0].Reason, "a branch with a fault") {
		t.Errorf("dead letters %+v, want the change with the panic as reason", dead)
	}
	if got := m.take(); len(got) != 1 {
		t.Errorf("got %+v: a branch must not disturb the stages", got)
	}
}
