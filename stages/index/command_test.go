package index

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// send handles a command as another program may write it, and returns the answer if it was
// refused.
func (d *desk) send(key, typ, body string) *pipeline.Health {
	d.Helper()
	d.handle(flow.Message{ID: "foreign", Source: "/crm", Topic: flow.TopicDocuments, Key: key, Type: typ, Body: []byte(body)})
	for _, m := range d.out {
		if m.Type == flow.TypeHealth {
			h, err := flow.HealthFrom(m)
			if err != nil {
				d.Fatal(err)
			}
			return &h
		}
	}
	return nil
}

func TestRefusalsAnswerWhoeverSentTheCommand(t *testing.T) {
	const good = `{"subscription":{"url":"` + page + `","keywords":["k"],"sinks":["s"]}}`
	d := newDesk(t, Config{})
	if h := d.send(page, flow.TypeSubscribe, good); h != nil {
		t.Fatalf("refused: %+v", h)
	}
	h := d.send(page, flow.TypeSubscribe, good)
	want := &pipeline.Health{
		ID: flow.HealthID(pipeline.HealthRefused, "foreign", 0), Event: pipeline.HealthRefused, Time: d.now, URL: page,
		Command: "foreign", Code: flow.CodeConflict, Client: "default", Reason: page + ` is already being watched for client "default"`,
	}
	if !reflect.DeepEqual(h, want) {
		t.Errorf("got %+v, want %+v", h, want)
	}
	if m := d.out[0]; m.Key != page || m.ID != want.ID || len(d.out) != 1 {
		t.Errorf("got %+v, want the event alone, under its page", d.out)
	}
	for name, c := range map[string]struct {
		key, typ, body string
		code           int
		client, reason string
	}{
		"nothing to cancel":  {page, flow.TypeCancel, `{"url":"` + page + `","client":"c"}`, flow.CodeNotFound, "c", `client "c"`},
		"nothing to resume":  {page, flow.TypeResume, `{"url":"` + page + `"}`, flow.CodeNotFound, "", "no subscription to this page is expired or paused"},
		"a late end":         {page, flow.TypePause, `{"url":"` + page + `","until":"9999-12-31T23:00:00-05:00"}`, flow.CodeFormat, "default", "in the year 10000"},
		"a misspelt option":  {page, flow.TypeSubscribe, strings.Replace(good, "keywords", "keyword", 1), flow.CodeFormat, "default", `unknown field "keyword"`},
		"two objects":        {page, flow.TypeSubscribe, good + good, flow.CodeFormat, "", "there is more behind"},
		"no body":            {page, flow.TypeSubscribe, "", flow.CodeFormat, "", "cannot be read"},
		"no JSON":            {page, flow.TypeCancel, "url=x", flow.CodeFormat, "", "cannot be read"},
		"an unknown match":   {page, flow.TypeSubscribe, strings.Replace(good, `"sinks"`, `"client":"c","match":"words","sinks"`, 1), flow.CodeFormat, "c", "write phrase or terms"},
		"the key of another": {page + "b", flow.TypeSubscribe, good, flow.CodeURL, "default", `must be its canonical URL "` + page + `"`},
		"no key":             {"", flow.TypeCancel, `{"url":"` + page + `"}`, flow.CodeURL, "default", `not ""`},
		"not canonical":      {"HTTPS://example.com/a", flow.TypeCancel, `{"url":"` + page + `"}`, flow.CodeURL, "default", `not "HTTPS://example.com/a"`},
	} {
		h := d.send(c.key, c.typ, c.body)
		if h == nil || h.Event != pipeline.HealthRefused || h.Code != c.code || h.Client != c.client || !strings.Contains(h.Reason, c.reason) {
			t.Errorf("%s: got %+v, want code %d for client %q with %q", name, h, c.code, c.client, c.reason)
		}
	}
	if got := len(d.store.Names(page)); got == 0 {
		t.Error("the page's state went")
	}
	for _, key := range []string{"", page + "b", "HTTPS://example.com/a"} {
		if names := d.store.Names(key); len(names) != 0 {
			t.Errorf("key %q has the state %q", key, names)
		}
	}
}

func TestWhatACommandLeavesOutIsFilledIn(t *testing.T) {
	d := newDesk(t, Config{})
	d.send(page, flow.TypeSubscribe, `{"subscription":{"url":"`+page+`","keywords":["k"],"sinks":["s"],"stem":true}}`)
	i := slices.IndexFunc(d.out, func(m flow.Message) bool { return m.Type == flow.TypeStamp })
	if i < 0 {
		t.Fatalf("got %v, want a stamp", d.types())
	}
	s := body[flow.Stamped](d, d.out[i])
	want := pipeline.Subscription{URL: page, Keywords: []string{"k"}, Sinks: []string{"s"}, Stem: true}.WithDefaults()
	if s.Origin != flow.OriginAPI || !reflect.DeepEqual(s.Subscription, want) {
		t.Errorf("got %q and %+v, want %q and %+v", s.Origin, s.Subscription, flow.OriginAPI, want)
	}
}

func TestSubscriptionsThatThisProgramCannotServeAreRefused(t *testing.T) {
	var asked pipeline.Subscription
	d := newDesk(t, Config{Acceptable: func(s pipeline.Subscription) error {
		asked = s
		return errors.Join(&pipeline.FieldError{Field: "sinks", Reason: `no sink is named "s"`})
	}})
	h := d.send(page, flow.TypeSubscribe, `{"subscription":{"url":"`+page+`","keywords":["k"],"sinks":["s"]}}`)
	if h == nil || h.Code != flow.CodeFormat || h.Reason != `sinks: no sink is named "s"` || asked.Client != "default" {
		t.Errorf("got %+v for %+v", h, asked)
	}
	d.command(flow.TypeApply, flow.ApplyCommand{URL: page, Origin: "yaml",
		Subscriptions: []pipeline.Subscription{{URL: page, Keywords: []string{"k"}, Sinks: []string{"s"}}}})
	if !slices.Equal(d.codes, []int{flow.CodeFormat, 0}) {
		t.Errorf("got codes %v, want the list of a file, which was checked, accepted", d.codes)
	}
}

// TestUnknownTypes: whoever may send commands may claim to be this program.
func TestUnknownTypes(t *testing.T) {
	for _, source := range []string{"", "/crm"} {
		m := flow.Message{ID: "m", Topic: flow.TopicDocuments, Source: source, Key: page, Type: "vokter.subscibe.v1", Position: "S/documents/0/1"}
		d := newDesk(t, Config{})
		err := d.stage.Process(t.Context(), d.store.Begin(), m)
		if got, _ := failure.ClassOf(err); err == nil || got != failure.ClassPermanent {
			t.Errorf("source %q: got %v of class %v, want a permanent error", source, err, got)
		}
	}
}
