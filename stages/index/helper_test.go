package index

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

const page = "https://example.com/a"

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

var whole = pipeline.DocumentID(page, pipeline.View{})

// bench applies events to one page, each a second after the other.
type bench struct {
	*testing.T
	p      Page
	now    time.Time
	rules  Rules
	budget *int
	lost   bool
	n      int
	subs   map[string]pipeline.Stamped // the standing ones, by name
	out    []Output
}

func newBench(t *testing.T) *bench {
	return &bench{
		T: t, now: t0, subs: make(map[string]pipeline.Stamped),
		rules: Rules{MinInterval: 10 * time.Second, FetchTimeout: 30 * time.Second, Keep: 3},
	}
}

// do applies one event and returns its outputs.
func (b *bench) do(a Action) []Output {
	b.Helper()
	b.now = b.now.Add(time.Second)
	b.n++
	before := b.p
	stored, err := encode(before)
	if err != nil {
		b.Fatal(err)
	}
	b.p, b.out = Apply(b.p, Event{
		URL: page, Now: b.now, Position: fmt.Sprintf("pos%d", b.n), Rules: b.rules, Budget: b.budget, Lost: b.lost, Do: a,
	})
	for _, s := range all[Stamp](b.out) {
		name := subscriptionName(s.Document, s.Subscription.Client)
		if s.Until == pipeline.Forever {
			b.subs[name] = s.Stamped
		} else {
			delete(b.subs, name)
		}
	}
	if again, err := encode(before); err != nil || !bytes.Equal(again, stored) {
		b.Errorf("%T changed the page it was given (%v)", a, err)
	}
	after, err := encode(b.p)
	if err != nil {
		b.Fatal(err)
	}
	if len(b.out) == 0 && !bytes.Equal(after, stored) {
		b.Errorf("%T changed the page without outputs", a)
	}
	var read Page
	if err := decode(after, &read); err != nil || !reflect.DeepEqual(normal(read), normal(b.p)) {
		b.Errorf("stored %+v, read %+v (%v)", b.p, read, err)
	}
	return b.out
}

// restart applies an event as a new process would.
func (b *bench) restart(a Action) []Output {
	b.Helper()
	b.lost = true
	defer func() { b.lost = false }()
	return b.do(a)
}

// normal is p with empty lists as nil, as they are stored.
func normal(p Page) Page {
	if len(p.Keep) == 0 {
		p.Keep = nil
	}
	if len(p.Intervals) == 0 {
		p.Intervals = nil
	}
	if len(p.Documents) == 0 {
		p.Documents = nil
	}
	if len(p.Gone) == 0 {
		p.Gone = nil
	}
	return p
}

// all returns the outputs of one kind.
func all[T Output](out []Output) []T {
	var ts []T
	for _, o := range out {
		if t, ok := o.(T); ok {
			ts = append(ts, t)
		}
	}
	return ts
}

// one returns the only output of a kind.
func one[T Output](b *bench) T {
	b.Helper()
	ts := all[T](b.out)
	if len(ts) != 1 {
		b.Fatalf("got outputs %+v, want one %T", b.out, *new(T))
	}
	return ts[0]
}

func none[T Output](b *bench) {
	b.Helper()
	if ts := all[T](b.out); len(ts) != 0 {
		b.Fatalf("got %+v, want none", ts)
	}
}

func sub(client string, view pipeline.View) pipeline.Subscription {
	return pipeline.Subscription{URL: page, Client: client, Keywords: []string{"k"}, Sinks: []string{"s"}, View: view}.WithDefaults()
}

func (b *bench) subscribe(client string, view pipeline.View) {
	b.Helper()
	s := sub(client, view)
	do := Subscribe{Origin: "api", Subscription: s}
	if e, ok := b.subs[subscriptionName(pipeline.DocumentID(page, view), client)]; ok {
		do.Existing = &e
	}
	b.do(do)
}

func (b *bench) cancel(client string) {
	b.Helper()
	var es []pipeline.Stamped
	for _, d := range b.p.Documents {
		if e, ok := b.subs[subscriptionName(d.ID, client)]; ok {
			es = append(es, e)
		}
	}
	b.do(Cancel{Client: client, Existing: es})
}

func (b *bench) replace(origin string, keep bool, list ...pipeline.Subscription) {
	b.Helper()
	var es []pipeline.Stamped
	for _, d := range b.p.Documents {
		for _, e := range b.subs {
			if e.Document == d.ID {
				es = append(es, e)
			}
		}
	}
	b.do(Replace{Origin: origin, Keep: keep, Subscriptions: list, Existing: es})
}

// outcome returns an outcome of the outstanding check.
func (b *bench) outcome(kind string) pipeline.Outcome {
	return pipeline.Outcome{Page: page, Incarnation: b.p.Incarnation, Check: b.p.Check, Kind: kind, Time: b.now}
}

// text answers the outstanding check with a text for one of parts documents.
func (b *bench) text(document, text string, part, parts int) []Output {
	b.Helper()
	o := b.outcome(pipeline.OutcomeRead)
	o.Document, o.Part, o.Parts, o.TextHash, o.BodyHash, o.ETag = document, part, parts, "text:"+text, "body:"+text, "etag:"+text
	o.Packed = []byte(text)
	return b.do(Outcome{Outcome: o})
}

func (b *bench) read(text string) []Output {
	b.Helper()
	return b.text(whole, text, 0, 1)
}

func (b *bench) unchanged() []Output {
	b.Helper()
	o := b.outcome(pipeline.OutcomeUnchanged)
	o.Against = b.p.BodyHash
	return b.do(Outcome{Outcome: o})
}

func (b *bench) failed(class string) []Output {
	b.Helper()
	o := b.outcome(pipeline.OutcomeFailed)
	o.Class, o.Reason = class, "why"
	return b.do(Outcome{Outcome: o})
}

// due lets time pass until the page's wake and delivers it.
func (b *bench) due() pipeline.Request {
	b.Helper()
	for range 3 {
		ws := all[WakeAt](b.out)
		if len(ws) == 0 {
			b.Fatalf("no wake in %+v", b.out)
		}
		b.now = latest(b.now, ws[len(ws)-1].Time.Add(-time.Second))
		b.do(Wake{})
		if as := all[Ask](b.out); len(as) == 1 {
			return as[0].Request
		}
	}
	b.Fatalf("no request came of the wakes; last %+v", b.out)
	return pipeline.Request{}
}
