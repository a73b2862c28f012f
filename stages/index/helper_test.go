package index

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/txtest"
)

const page = "https://example.com/a"

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

var whole = flow.DocumentID(page, pipeline.View{})

// bench applies events to one page, each a second after the other.
type bench struct {
	*testing.T
	p      Page
	now    time.Time
	rules  rules
	budget *int
	lost   bool
	n      int
	subs   map[string]flow.Stamped // the standing ones, by name
	gone   map[string]ExpiredSubscription
	body   *flow.Body // that is kept
	out    []output
	// replacements are what the stage finds of the next outcomes.
	replacements map[string]string
}

func newBench(t *testing.T) *bench {
	return &bench{
		T: t, now: t0, subs: make(map[string]flow.Stamped), gone: make(map[string]ExpiredSubscription),
		rules: rules{Expire: pipeline.Expire{Retry: -1}, MinInterval: 10 * time.Second, FetchTimeout: 30 * time.Second, Keep: retention{Versions: 3}},
	}
}

// do applies one event and returns its outputs.
func (b *bench) do(a action) []output {
	b.Helper()
	b.now = b.now.Add(time.Second)
	b.n++
	before := b.p
	stored, err := encodePage(before)
	if err != nil {
		b.Fatal(err)
	}
	next, out := apply(&before, event{
		URL: page, Now: b.now, Position: fmt.Sprintf("S/%d", b.n), Rules: b.rules, Budget: b.budget, Lost: b.lost, Nonce: fmt.Sprint(b.n), Do: a,
	})
	b.p, b.out = *next, out
	for _, o := range b.out {
		switch o := o.(type) {
		case stamp:
			name := subscriptionName(o.Document, o.Subscription.Client)
			if o.Until == flow.Forever {
				b.subs[name] = o.Stamped
			} else {
				delete(b.subs, name)
			}
		case storeExpired:
			b.gone[subscriptionName(o.Document, o.Subscription.Client)] = o.ExpiredSubscription
		case deleteExpired:
			delete(b.gone, subscriptionsName+o.Name)
		case keepBody:
			b.body = &o.Body
		case dropBody:
			b.body = nil
		case deleteState:
			b.body = nil
			if o.All && len(b.gone) > 0 {
				b.Errorf("%T cleared what expired: %+v", a, b.gone)
			}
		}
	}
	if again, err := encodePage(before); err != nil || !bytes.Equal(again, stored) {
		b.Errorf("%T changed the page it was given (%v)", a, err)
	}
	after, err := encodePage(b.p)
	if err != nil {
		b.Fatal(err)
	}
	if len(b.out) == 0 && !bytes.Equal(after, stored) {
		b.Errorf("%T changed the page without outputs", a)
	}
	read, err := decodePage(after)
	if err != nil || !reflect.DeepEqual(normal(read), normal(b.p)) {
		b.Errorf("stored %+v, read %+v (%v)", b.p, read, err)
	}
	b.p = read // as every event may find it
	return b.out
}

// restart applies an event as a new process would.
func (b *bench) restart(a action) []output {
	b.Helper()
	b.lost = true
	defer func() { b.lost = false }()
	return b.do(a)
}

// encodePage returns p as it is stored, the rest and then the progress.
func encodePage(p Page) ([]byte, error) {
	rest, err := encode(p)
	if err != nil {
		return nil, err
	}
	progress, err := encodeProgress(p.Progress, xxhash.Sum64(rest))
	return slices.Concat([]byte{byte(len(rest) >> 8), byte(len(rest))}, rest, progress), err
}

// decodePage reverses encodePage.
func decodePage(b []byte) (Page, error) {
	tx := txtest.New().Begin().State(page)
	n := int(b[0])<<8 | int(b[1])
	if err := errors.Join(tx.Set(pageName, b[2:2+n]), tx.Set(progressName, b[2+n:])); err != nil {
		return Page{}, err
	}
	return Load(tx)
}

// normal is p with empty lists as nil, as they are stored.
func normal(p Page) Page {
	if len(p.Keep) == 0 {
		p.Keep = nil
	}
	if len(p.Intervals) == 0 {
		p.Intervals = nil
	}
	if len(p.Origins) == 0 {
		p.Origins = nil
	}
	if len(p.Documents) == 0 {
		p.Documents = nil
	}
	if len(p.Gone) == 0 {
		p.Gone = nil
	}
	if len(p.Unreachable) == 0 {
		p.Unreachable = nil
	}
	if len(p.Unasked) == 0 {
		p.Unasked = nil
	}
	if e := p.Expiry; e != nil && len(e.Keep) == 0 {
		p.Expiry = &Expiry{Time: e.Time, Class: e.Class, Reason: e.Reason, Failures: e.Failures}
	}
	return p
}

// all returns the outputs of one kind.
func all[T output](out []output) []T {
	var ts []T
	for _, o := range out {
		if t, ok := o.(T); ok {
			ts = append(ts, t)
		}
	}
	return ts
}

// one returns the only output of a kind.
func one[T output](b *bench) T {
	b.Helper()
	ts := all[T](b.out)
	if len(ts) != 1 {
		b.Fatalf("got outputs %+v, want one %T", b.out, *new(T))
	}
	return ts[0]
}

func none[T output](b *bench) {
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
	do := subscribe{Origin: "api", Subscription: s}
	if e, ok := b.subs[subscriptionName(flow.DocumentID(page, view), client)]; ok {
		do.Existing = &e
	}
	if x, ok := b.gone[subscriptionName(flow.DocumentID(page, view), client)]; ok {
		do.Expired = &x
	}
	b.do(do)
}

// standing returns the standing subscriptions, of one client if it is set, in order.
func (b *bench) standing(client string) []flow.Stamped {
	var es []flow.Stamped
	for _, name := range slices.Sorted(maps.Keys(b.subs)) {
		if e := b.subs[name]; client == "" || e.Subscription.Client == client {
			es = append(es, e)
		}
	}
	return es
}

// expired returns the expired subscriptions, of one client if it is set, in order.
func (b *bench) expired(client string) []ExpiredSubscription {
	var xs []ExpiredSubscription
	for _, name := range slices.Sorted(maps.Keys(b.gone)) {
		if x := b.gone[name]; client == "" || x.Subscription.Client == client {
			xs = append(xs, x)
		}
	}
	return xs
}

func (b *bench) cancel(client string) {
	b.Helper()
	b.do(cancel{Client: client, Existing: b.standing(client), Expired: b.expired(client)})
}

func (b *bench) pause(client string) {
	b.Helper()
	b.do(pause{Client: client, Existing: b.standing(client), Expired: b.expired(client)})
}

func (b *bench) resume(client, receiver string) {
	b.Helper()
	b.do(resume{Client: client, Receiver: receiver, Expired: b.expired("")})
}

func (b *bench) expire(receiver string) {
	b.Helper()
	b.do(expire{Receiver: receiver, Reason: "gone", Existing: b.standing("")})
}

func (b *bench) replace(origin string, keep bool, list ...pipeline.Subscription) {
	b.Helper()
	b.do(replace{Origin: origin, Keep: keep, Subscriptions: list, Existing: b.standing(""), Expired: b.expired("")})
}

// found brings an outcome, with what the stage reads for it.
func (b *bench) found(o flow.Outcome) []output {
	b.Helper()
	do := outcome{Outcome: o, Replacements: b.replacements}
	if b.p.tellsClients(o, b.rules) {
		do.Existing = b.standing("")
	}
	return b.do(do)
}

// outcome returns an outcome of the outstanding check.
func (b *bench) outcome(kind string) flow.Outcome {
	o := flow.Outcome{Page: page, Incarnation: b.p.Incarnation, Check: b.p.Check, Kind: kind, Time: b.now}
	if b.p.Open != nil {
		o.Nonce = b.p.Open.Nonce
	}
	return o
}

// text answers the outstanding check with a text for one of parts documents.
func (b *bench) text(document, text string, part, parts int) []output {
	b.Helper()
	o := b.outcome(flow.OutcomeRead)
	o.Document, o.Part, o.Parts, o.TextHash, o.BodyHash, o.ETag = document, part, parts, "text:"+text, "body:"+text, "etag:"+text
	o.Packed = []byte(text)
	return b.found(o)
}

func (b *bench) read(text string) []output {
	b.Helper()
	return b.text(whole, text, 0, 1)
}

func (b *bench) unchanged() []output {
	b.Helper()
	o := b.outcome(flow.OutcomeUnchanged)
	o.Against = b.p.BodyHash
	return b.found(o)
}

func (b *bench) failed(class string) []output {
	b.Helper()
	o := b.outcome(flow.OutcomeFailed)
	o.Class, o.Reason = class, "why"
	return b.found(o)
}

// due lets time pass until the page's wake and delivers it.
func (b *bench) due() flow.Request {
	b.Helper()
	for range 3 {
		ws := all[wakeAt](b.out)
		if len(ws) == 0 {
			b.Fatalf("no wake in %+v", b.out)
		}
		b.now = latest(b.now, ws[len(ws)-1].Time.Add(-time.Second))
		b.do(wake{})
		if as := all[requestCheck](b.out); len(as) == 1 {
			return as[0].Request
		}
	}
	b.Fatalf("no request came of the wakes; last %+v", b.out)
	return flow.Request{}
}
