package index

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// send handles a command as another program may write it, and returns the answer if it was
// refused.
func (d *desk) send(key, typ, body string) *pipeline.Health {
	d.Helper()
	d.handle(pipeline.Message{ID: "foreign", Source: "/crm", Topic: pipeline.TopicDocuments, Key: key, Type: typ, Body: []byte(body)})
	for _, m := range d.out {
		if m.Type == pipeline.TypeHealth {
			h, err := pipeline.HealthFrom(m)
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
	if h := d.send(page, pipeline.TypeSubscribe, good); h != nil {
		t.Fatalf("refused: %+v", h)
	}
	h := d.send(page, pipeline.TypeSubscribe, good)
	want := &pipeline.Health{
		ID: pipeline.HealthID(pipeline.HealthRefused, "foreign", 0), Event: pipeline.HealthRefused, Time: d.now, URL: page,
		Command: "foreign", Code: CodeConflict, Client: "default", Reason: page + ` is already being watched for client "default"`,
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
		"nothing to cancel":  {page, pipeline.TypeCancel, `{"url":"` + page + `","client":"c"}`, CodeNotFound, "c", `client "c"`},
		"nothing to resume":  {page, pipeline.TypeResume, `{"url":"` + page + `"}`, CodeNotFound, "", "nothing of this page expired"},
		"a misspelt option":  {page, pipeline.TypeSubscribe, strings.Replace(good, "keywords", "keyword", 1), CodeFormat, "default", `unknown field "keyword"`},
		"two objects":        {page, pipeline.TypeSubscribe, good + good, CodeFormat, "", "something follows"},
		"no body":            {page, pipeline.TypeSubscribe, "", CodeFormat, "", "cannot be read"},
		"no JSON":            {page, pipeline.TypeCancel, "url=x", CodeFormat, "", "cannot be read"},
		"an unknown match":   {page, pipeline.TypeSubscribe, strings.Replace(good, `"sinks"`, `"client":"c","match":"words","sinks"`, 1), CodeFormat, "c", "neither phrase nor terms"},
		"the key of another": {page + "b", pipeline.TypeSubscribe, good, CodeURL, "default", `is to be "` + page + `"`},
		"no key":             {"", pipeline.TypeCancel, `{"url":"` + page + `"}`, CodeURL, "default", `not ""`},
		"not canonical":      {"HTTPS://example.com/a", pipeline.TypeCancel, `{"url":"` + page + `"}`, CodeURL, "default", `not "HTTPS://example.com/a"`},
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
	d.send(page, pipeline.TypeSubscribe, `{"subscription":{"url":"`+page+`","keywords":["k"],"sinks":["s"],"stem":true}}`)
	i := slices.IndexFunc(d.out, func(m pipeline.Message) bool { return m.Type == pipeline.TypeStamp })
	if i < 0 {
		t.Fatalf("got %v, want a stamp", d.types())
	}
	s := body[pipeline.Stamped](d, d.out[i])
	want := pipeline.Subscription{URL: page, Keywords: []string{"k"}, Sinks: []string{"s"}, Stem: true}.WithDefaults()
	if s.Origin != pipeline.OriginAPI || !reflect.DeepEqual(s.Subscription, want) {
		t.Errorf("got %q and %+v, want %q and %+v", s.Origin, s.Subscription, pipeline.OriginAPI, want)
	}
}

func TestSubscriptionsThatThisProgramCannotServeAreRefused(t *testing.T) {
	var asked pipeline.Subscription
	d := newDesk(t, Config{Acceptable: func(s pipeline.Subscription) error {
		asked = s
		return errors.Join(&pipeline.FieldError{Field: "sinks", Reason: `no sink is named "s"`})
	}})
	h := d.send(page, pipeline.TypeSubscribe, `{"subscription":{"url":"`+page+`","keywords":["k"],"sinks":["s"]}}`)
	if h == nil || h.Code != CodeFormat || h.Reason != `sinks: no sink is named "s"` || asked.Client != "default" {
		t.Errorf("got %+v for %+v", h, asked)
	}
	d.command(pipeline.TypeApply, pipeline.ApplyCommand{URL: page, Origin: "yaml",
		Subscriptions: []pipeline.Subscription{{URL: page, Keywords: []string{"k"}, Sinks: []string{"s"}}}})
	if !slices.Equal(d.codes, []int{CodeFormat, 0}) {
		t.Errorf("got codes %v, want the list of a file, which was checked, accepted", d.codes)
	}
}

func TestUnknownTypes(t *testing.T) {
	for source, want := range map[string]pipeline.Class{"": pipeline.ClassBroken, "/crm": pipeline.ClassPermanent} {
		m := pipeline.Message{ID: "m", Source: source, Key: page, Type: "vokter.subscibe.v1", Position: "S/documents/0/1"}
		d := newDesk(t, Config{})
		err := d.stage.Process(t.Context(), d.store.Begin(), m)
		if got, _ := pipeline.ClassOf(err); err == nil || got != want {
			t.Errorf("source %q: got %v of class %v, want class %v", source, err, got, want)
		}
	}
}
