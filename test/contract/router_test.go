package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// headersOf is the schema of the headers of a type.
func headersOf(t *testing.T, typ string) *jsonschema.Schema {
	t.Helper()
	if commands[typ] {
		return compile(t, "command-headers.json")
	}
	return compile(t, "headers.json")
}

// public reports whether m is described in docs/asyncapi.yaml.
func public(m flow.Message) bool { return bodies[m.Type] != nil || m.Type == flow.TypeCheckNow }

// tombstone reports whether m says that a document ended.
func tombstone(m flow.Message) bool { return m.Type == flow.TypeCurrent && len(m.Body) == 0 }

// TestWhatARunningRouterPublishes is as the schemas say, and reads as CloudEvents.
func TestWhatARunningRouterPublishes(t *testing.T) {
	w := newWorld(t)
	w.live()
	all := schemas(t)
	seen := make(map[string]int)
	for _, m := range w.messages() {
		if !public(m) {
			continue
		}
		seen[m.Type]++
		if tombstone(m) {
			seen["tombstone"]++
		}
		if s := all[m.Type]; s != nil && !tombstone(m) {
			if err := s.Validate(instance(t, m.Body)); err != nil {
				t.Errorf("%s %s: %v\n%s", m.Type, m.ID, err, m.Body)
			}
		}
		if err := headersOf(t, m.Type).Validate(headers(m.Metadata())); err != nil {
			t.Errorf("%s %s: %v in %v", m.Type, m.ID, err, m.Metadata())
		}
		if want := keyOf(t, m); m.Key != want {
			t.Errorf("%s %s: key %q, want %q", m.Type, m.ID, m.Key, want)
		}
		readsAsCloudEvent(t, record(m), m)
	}
	if seen["tombstone"] == 0 {
		t.Errorf("no document ended: %v", seen)
	}
	for typ := range bodies {
		if seen[typ] == 0 {
			t.Errorf("nothing of the type %s was published: %v", typ, seen)
		}
	}
	for _, event := range []pipeline.HealthEvent{
		pipeline.HealthFailing, pipeline.HealthExpired, pipeline.HealthReceiverExpired, pipeline.HealthDeadLetter, pipeline.HealthRefused,
	} {
		if len(w.healths(event)) == 0 {
			t.Errorf("nothing was told of %s", event)
		}
	}
}

// TestWhatSinksSend: a CloudEvent of a sink is as the schema says that its header names.
func TestWhatSinksSend(t *testing.T) {
	w := newWorld(t)
	w.live()
	types := make(map[string]int)
	for _, m := range w.messages() {
		if m.Type != flow.TypeAddressed {
			continue
		}
		var a flow.Addressed
		if err := json.Unmarshal(m.Body, &a); err != nil {
			t.Fatal(err)
		}
		e, err := flow.CloudEvent(a.Notification)
		if err != nil {
			t.Fatal(err)
		}
		types[e.Type+" "+a.Notification.Type]++
		file, ok := strings.CutPrefix(e.Metadata()["ce_dataschema"], schemaID)
		if !ok || file != e.Type+".json" {
			t.Errorf("%s: the schema is %q", e.Type, e.Metadata()["ce_dataschema"])
			continue
		}
		if err := compile(t, file).Validate(instance(t, e.Body)); err != nil {
			t.Errorf("%s: %v\n%s", e.Type, err, e.Body)
		}
		if err := headersOf(t, e.Type).Validate(headers(e.Metadata())); err != nil {
			t.Errorf("%s: %v in %v", e.Type, err, e.Metadata())
		}
	}
	for _, kind := range []string{flow.TypeNotification + " " + pipeline.NotificationType, flow.TypeNotification + " " + pipeline.NotificationTypeHealth} {
		if types[kind] == 0 {
			t.Errorf("no %s was sent: %v", kind, types)
		}
	}
}

// keyOf is the key that the documentation promises for m.
func keyOf(t *testing.T, m flow.Message) string {
	t.Helper()
	var body struct {
		Page         string
		Document     string
		URL          string
		Receiver     *pipeline.Receiver
		Subscription json.RawMessage
		Addressed    *flow.Addressed
	}
	if m.Topic == flow.TopicDocuments || m.Type == flow.TypeReplay || tombstone(m) {
		return m.Key // whoever sends it chooses it, or nothing else names the document
	}
	if err := json.Unmarshal(m.Body, &body); err != nil {
		t.Fatal(err)
	}
	switch m.Type {
	case flow.TypeChange, flow.TypeOutage, flow.TypeEnded:
		return body.Page
	case flow.TypeCurrent:
		return body.Document
	case flow.TypeDeadLetter:
		if body.Addressed == nil {
			return m.Key // that of the message
		}
		return body.Addressed.Receiver.Sink
	}
	switch {
	case body.Receiver != nil:
		return body.Receiver.Sink
	case body.URL != "":
		return body.URL
	}
	return flow.HealthKey
}

// TestCommandsOfOthers are carried out or refused, and never stop anything.
func TestCommandsOfOthers(t *testing.T) {
	w := newWorld(t)
	stop := w.run()
	page := w.url("/a")
	subscribe := func(client, sink string) string {
		return fmt.Sprintf(`{"subscription":{"url":%q,"client":%q,"keywords":["stock"],"sinks":[%q]}}`, page, client, sink)
	}
	w.send("s1", page, flow.TypeSubscribe, subscribe("crm", "box"))
	w.awaitStamp(page, "crm")
	for id, c := range map[string]struct {
		key, typ, body string
		code           int
	}{
		"again":          {page, flow.TypeSubscribe, subscribe("crm", "box"), 5},
		"no such sink":   {page, flow.TypeSubscribe, subscribe("other", "nowhere"), 6},
		"no selector":    {page, flow.TypeSubscribe, fmt.Sprintf(`{"subscription":{"url":%q,"keywords":["k"],"sinks":["box"],"select":[{"css":"p["}]}}`, page), 6},
		"no keyword":     {page, flow.TypeSubscribe, fmt.Sprintf(`{"subscription":{"url":%q,"keywords":[],"sinks":["box"]}}`, page), 3},
		"no URL":         {page, flow.TypeSubscribe, `{"subscription":{"url":"example","keywords":["k"],"sinks":["box"]}}`, 1},
		"no key":         {"", flow.TypeSubscribe, subscribe("other", "box"), 1},
		"key of another": {page + "b", flow.TypeSubscribe, subscribe("other", "box"), 1},
		"no JSON":        {page, flow.TypeSubscribe, "subscribe me", 6},
		"nobody":         {page, flow.TypeCancel, fmt.Sprintf(`{"url":%q,"client":"nobody"}`, page), 7},
		"not expired":    {page, flow.TypeResume, fmt.Sprintf(`{"url":%q}`, page), 7},
	} {
		w.send(id, c.key, c.typ, c.body)
		h := w.awaitRefusal(id)
		if h.Code != c.code || h.Reason == "" {
			t.Errorf("%s: refused with %d (%s), want %d", id, h.Code, h.Reason, c.code)
		}
	}
	w.send("u", page, "vokter.subscibe.v1", subscribe("other", "box"))
	dead := w.await("the command of an unknown type among the dead letters", func(m flow.Message) bool { return m.Type == flow.TypeDeadLetter })
	var d flow.DeadLetter
	if err := json.Unmarshal(dead.Body, &d); err != nil || d.Group != flow.GroupIndex || d.Headers["ce_id"] != "u" || d.Headers["ce_source"] != foreign {
		t.Errorf("dead letter %+v, %v", d, err)
	}
	w.send("", page, "", "no headers")
	w.send("", page, "", "no headers")
	second := w.awaitNumber(3, "the second message without headers among the dead letters", func(m flow.Message) bool { return m.Type == flow.TypeDeadLetter })
	if first := w.awaitNumber(2, "the first", func(m flow.Message) bool { return m.Type == flow.TypeDeadLetter }); first.ID == second.ID || second.Key != page {
		t.Errorf("dead letters %s and %s of %s, want two of %s", first.ID, second.ID, second.Key, page)
	}
	w.send("c1", page, flow.TypeCancel, fmt.Sprintf(`{"url":%q,"client":"crm"}`, page))
	w.await("the withdrawal", func(m flow.Message) bool { return m.Type == flow.TypeWithdraw })
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := w.ops.count(string(pipeline.HealthRefused)); got != 0 {
		t.Errorf("the sink for health events was told of %d refusals", got)
	}
	for _, h := range w.healths(pipeline.HealthRefused) {
		if h.Command == "s1" || h.Command == "c1" {
			t.Errorf("refused: %+v", h)
		}
	}
}
