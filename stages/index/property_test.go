package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// chaos runs a page that changes under a fetch that answers late, twice, in part or never.
type chaos struct {
	*bench
	rnd      *rand.Rand
	texts    map[string]int // of the page as it is now, by document
	reader   int            // by which rules it is read now
	inflight []flow.Outcome
	done     []flow.Outcome // for repeats
	seen     map[string]flow.Snapshot
	checked  map[string]bool
	numbers  map[string]uint64
	stamp    map[string]uint64
	records  map[string]bool // by incarnation and since: whether it stands
	broken   bool            // the page cannot be reached
	told     map[string]bool // IDs of health events
	ended    map[string]bool // lives of the page that are over
	before   Page            // as the last event found it
	expiries int
	rebased  int
	// baselines are those that followed other versions.
	baselines int
}

var views = []pipeline.View{{}, main, {Confirm: 2}}

func TestChaos(t *testing.T) {
	expiries := 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newChaos(t, seed)
			c.rules.Expire.After = 4
			if seed%2 == 1 { // pages are dormant before they expire
				c.rules.Expire = pipeline.Expire{After: 2, Retry: time.Minute}
			}
			c.run(300, c.step)
			expiries += c.expiries
		})
	}
	if expiries < 25 {
		t.Errorf("%d pages expired, want more to be tried", expiries)
	}
}

// TestChaosOfUpgrades is about pages that live long, while the rules that make their texts
// change.
func TestChaosOfUpgrades(t *testing.T) {
	rebased, baselines := 0, 0
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newChaos(t, seed)
			c.run(300, c.upgrade)
			rebased, baselines = rebased+c.rebased, baselines+c.baselines
		})
	}
	if rebased < 100 || baselines < 100 {
		t.Errorf("%d texts were made anew and %d became baselines, want more to be tried", rebased, baselines)
	}
}

func newChaos(t *testing.T, seed uint64) *chaos {
	return &chaos{
		bench: newBench(t), rnd: rand.New(rand.NewPCG(seed, 7)), texts: make(map[string]int),
		seen: make(map[string]flow.Snapshot), checked: make(map[string]bool),
		numbers: make(map[string]uint64), stamp: make(map[string]uint64), records: make(map[string]bool),
		told: make(map[string]bool), ended: make(map[string]bool),
	}
}

func (c *chaos) run(steps int, step func()) {
	for range steps {
		c.before = c.p
		step()
		c.watch()
		if c.Failed() {
			c.FailNow()
		}
	}
	c.quiet()
}

func (c *chaos) upgrade() {
	view := views[c.rnd.IntN(len(views))]
	switch c.rnd.IntN(12) {
	case 0:
		c.subscribe("c", view)
	case 1:
		if c.rnd.IntN(8) == 0 {
			c.cancel("c")
			return
		}
		c.do(checkNow{})
	case 2, 3:
		c.texts[flow.DocumentID(page, view)] = c.rnd.IntN(3)
		c.do(checkNow{})
	case 4:
		c.reader = c.rnd.IntN(3)
		c.restart(wake{})
	case 5:
		if len(c.inflight) > 0 && c.rnd.IntN(3) == 0 {
			c.inflight = c.inflight[1:] // lost
		}
		c.restart(wake{})
	default:
		c.deliver()
	}
}

func (c *chaos) step() {
	client := fmt.Sprint(c.rnd.IntN(2))
	view := views[c.rnd.IntN(len(views))]
	switch c.rnd.IntN(22) {
	case 21:
		c.reader = c.rnd.IntN(3)
		c.restart(wake{})
	case 0, 1:
		s := sub(client, view)
		s.Sinks = [][]string{{"s"}, {"s", "t"}}[c.rnd.IntN(2)]
		do := subscribe{Origin: "api", Subscription: s}
		name := subscriptionName(flow.DocumentID(page, view), client)
		if e, ok := c.subs[name]; ok {
			do.Existing = &e
		}
		if x, ok := c.gone[name]; ok {
			do.Expired = &x
		}
		c.do(do)
	case 2:
		c.cancel(client)
	case 3:
		c.replace("yaml", c.rnd.IntN(4) == 0, sub("y", view))
	case 4:
		c.replace("yaml", false)
	case 5:
		c.do(checkNow{})
	case 6:
		c.restart(wake{})
	case 7:
		c.now = c.now.Add(time.Duration(c.rnd.Int64N(int64(10 * time.Minute))))
		c.do(wake{})
	case 8, 9:
		c.texts[flow.DocumentID(page, view)] = c.rnd.IntN(3)
		c.do(wake{})
	case 10:
		if len(c.done) > 0 {
			c.do(outcome{Outcome: c.done[c.rnd.IntN(len(c.done))]})
			break
		}
		c.do(wake{})
	case 11:
		if len(c.inflight) > 0 {
			c.inflight = c.inflight[1:] // lost
		}
		c.do(wake{})
	case 12:
		c.resume([]string{"", client}[c.rnd.IntN(2)], []string{"", "s", "t"}[c.rnd.IntN(3)])
	case 13:
		c.expire([]string{"s", "t"}[c.rnd.IntN(2)])
	case 14:
		c.broken = c.rnd.IntN(3) > 0
		c.do(wake{})
	case 15:
		c.now = c.now.Add(-time.Duration(c.rnd.Int64N(int64(time.Hour))))
		c.do(wake{})
	default:
		c.deliver()
	}
}

// deliver brings one answer, mostly the oldest.
func (c *chaos) deliver() {
	if len(c.inflight) == 0 {
		c.now = c.now.Add(time.Minute)
		c.do(wake{})
		return
	}
	i := 0
	if c.rnd.IntN(4) == 0 {
		i = c.rnd.IntN(len(c.inflight))
	}
	o := c.inflight[i]
	c.inflight = append(c.inflight[:i:i], c.inflight[i+1:]...)
	c.done = append(c.done, o)
	c.found(o)
}

func hash(document string, text int) string { return fmt.Sprintf("%s:%d", document[:4], text) }

// read is what the reader of now makes of a text. Some read alike by all rules.
func (c *chaos) read(hash string) string {
	if strings.HasSuffix(hash, ":0") {
		return hash + "@"
	}
	return fmt.Sprintf("%s@%d", hash, c.reader)
}

// said is the text itself, however it was read, and by which rules it was.
func said(hash string) (text, rules string) {
	text, rules, _ = strings.Cut(hash, "@")
	return text, rules
}

// rebase reads the body that is kept as r asks.
func (c *chaos) rebase(document string, r flow.Request) *flow.Rebased {
	if r.Rebase == nil {
		return nil
	}
	for _, h := range strings.Fields(string(r.Rebase.Packed)) {
		if strings.HasPrefix(h, document[:4]) {
			return &flow.Rebased{TextHash: c.read(h), Extractor: fmt.Sprint("r/", c.reader)}
		}
	}
	return &flow.Rebased{Failed: "it is not there"}
}

// fetch answers what a asks for as the page is now.
func (c *chaos) fetch(a requestCheck, honest bool) {
	r := a.Request
	if a.Rebase {
		r.Rebase = c.body
	}
	base := flow.Outcome{Page: r.Page, Incarnation: r.Incarnation, Check: r.Check, Nonce: r.Nonce, Time: c.now}
	body := ""
	for _, v := range views {
		id := flow.DocumentID(page, v)
		body += hash(id, c.texts[id]) + " "
	}
	fail := func(class string) flow.Outcome {
		o := base
		o.Kind, o.Class = flow.OutcomeFailed, class
		return o
	}
	if !honest && (c.broken || c.rnd.IntN(8) == 0) {
		o := fail(pipeline.FailTimeout)
		o.Offline = c.rnd.IntN(8) == 0
		c.inflight = append(c.inflight, o)
		return
	}
	if r.BodyHash == body {
		base.Kind, base.Against = flow.OutcomeUnchanged, body
		c.inflight = append(c.inflight, base)
		return
	}
	kept := &flow.Body{Packed: []byte(body)}
	if c.rnd.IntN(4) == 0 {
		kept = nil // it is too large
	}
	for i, d := range r.Documents {
		o := base
		o.Kind, o.TextHash, o.Extractor = flow.OutcomeRead, c.read(hash(d.ID, c.texts[d.ID])), fmt.Sprint("r/", c.reader)
		if o.TextHash == d.TextHash {
			o.Kind, o.Against = flow.OutcomeUnchanged, d.TextHash
		} else {
			o.Rebased = c.rebase(d.ID, r)
		}
		if !honest && c.rnd.IntN(8) == 0 {
			o = fail(pipeline.FailSelectorGone)
		}
		if i == len(r.Documents)-1 {
			o.Body = kept
		}
		o.Document, o.Part, o.Parts, o.BodyHash = d.ID, i, len(r.Documents), body
		c.inflight = append(c.inflight, o)
	}
}

// watch holds the outputs of the last event to what must always be true.
func (c *chaos) watch() {
	c.Helper()
	if n := len(all[requestCheck](c.out)); n > 1 {
		c.Fatalf("%d requests at once", n)
	}
	for _, o := range c.out {
		switch o := o.(type) {
		case requestCheck:
			if c.p.Open == nil || o.Request.Check != c.p.Check {
				c.Errorf("asked for %d, and %+v is outstanding", o.Request.Check, c.p.Open)
			}
			c.fetch(o, false)
		case checkDone:
			k := fmt.Sprint(c.before.Incarnation, " ", c.before.Check)
			if c.checked[k] {
				c.Errorf("check %s counted twice", k)
			}
			c.checked[k] = true
		case rebase:
			c.remade(o)
		case newVersion:
			c.version(o.Snapshot)
		case stamp:
			c.stamped(o.Stamped)
		case healthEvent:
			if c.told[o.ID] || o.URL != page || o.Time.IsZero() {
				c.Errorf("got %+v, told before: %v", o.Health, c.told[o.ID])
			}
			c.told[o.ID] = true
		case pageEnded:
			if o.Incarnation != "" && c.ended[o.Incarnation] {
				c.Errorf("got %+v, ended before", o)
			}
			c.ended[o.Incarnation] = true
			if o.Expiry != nil {
				c.expiries++
			}
		}
	}
	c.counted()
	if c.p.Incarnation != "" && len(c.out) > 0 && len(all[wakeAt](c.out)) != 1 {
		c.Errorf("got outputs %+v without one wake", c.out)
	}
}

// counted holds the page to the records that there are.
func (c *chaos) counted() {
	c.Helper()
	p, n := &c.p, 0
	standing := make(map[string]int)
	for name, s := range c.subs {
		standing[s.Document]++
		if _, both := c.gone[name]; both {
			c.Errorf("%s stands and is expired", name)
		}
	}
	for _, d := range p.Documents {
		if d.Subscriptions != standing[d.ID] {
			c.Errorf("got %+v, want %d subscriptions", d, standing[d.ID])
		}
		n += d.Subscriptions
	}
	asked := 0
	for _, i := range p.Intervals {
		asked += i.N
	}
	if n != len(c.subs) || asked != n || p.Expired != len(c.gone) {
		c.Errorf("got %d subscriptions, %d intervals and %d expired; want %d and %d", n, asked, p.Expired, len(c.subs), len(c.gone))
	}
	origins := make(map[string]int)
	for _, s := range c.subs {
		origins[s.Origin]++
	}
	for _, x := range c.gone {
		origins[x.Origin]++
	}
	counted := make(map[string]int)
	for _, o := range p.Origins {
		counted[o.Name] = o.N
	}
	if !maps.Equal(counted, origins) {
		c.Errorf("got %v subscriptions by their origins, want %v", counted, origins)
	}
	for name, x := range c.gone {
		if x.End != flow.EndExpired && x.End != flow.EndReceiver || x.Until == flow.Forever || x.Time.IsZero() {
			c.Errorf("%s: got %+v listed", name, x)
		}
	}
	switch {
	case p.Incarnation != "":
	case !reflect.DeepEqual(*p, Page{URL: p.URL, Expired: p.Expired, Unreachable: p.Unreachable, Expiry: p.Expiry, Origins: p.Origins, Progress: Progress{Records: p.Records, Quiet: p.Quiet}}):
		c.Errorf("got %+v of a page that nobody watches", *p)
	case p.URL != "" && p.Expired == 0 && (p.Expiry == nil || len(p.Expiry.Keep) == 0):
		c.Errorf("got %+v kept for nothing", *p)
	}
}

func (c *chaos) version(s flow.Snapshot) {
	c.Helper()
	k := s.Incarnation + s.Document
	if s.Previous == 0 && c.numbers[k] > 0 {
		c.baselines++
	}
	// What is told is a change of the page, never one of the rules.
	old, oldRules := said(c.seen[k].TextHash)
	if now, rules := said(s.TextHash); s.Previous != 0 && (old == now || oldRules != "" && rules != "" && oldRules != rules) {
		c.Errorf("got %+v behind %+v", s, c.seen[k])
	}
	if s.N != c.numbers[k]+1 {
		c.Errorf("version %d follows %d", s.N, c.numbers[k])
	}
	c.numbers[k] = s.N
	last := c.seen[k]
	if s.Previous != 0 && (s.Previous != s.N-1 || last.TextHash == s.TextHash) {
		c.Errorf("got %+v behind %+v", s, last)
	}
	if s.Check < last.Check {
		c.Errorf("got %+v, older than %+v", s, last)
	}
	c.seen[k] = s
}

func (c *chaos) stamped(s flow.Stamped) {
	c.Helper()
	if s.Stamp != c.stamp[s.PageIncarnation]+1 {
		c.Errorf("stamp %d follows %d", s.Stamp, c.stamp[s.PageIncarnation])
	}
	c.stamp[s.PageIncarnation] = s.Stamp
	record := fmt.Sprint(s.PageIncarnation, s.Incarnation, s.From)
	stands, known := c.records[record]
	ends := s.Until != flow.Forever
	if s.Tell != "" && !ends { // it is repeated
		if !known || !stands || s.Dormant.IsZero() == (s.Tell == pipeline.StatusTimeout) {
			c.Errorf("got %+v of a record that is known %v and stands %v", s, known, stands)
		}
		return
	}
	if known == !ends || stands != ends || s.From > s.Until {
		c.Errorf("got %+v of a record that is known %v and stands %v", s, known, stands)
	}
	c.records[record] = !ends
	if n := c.numbers[s.PageIncarnation+s.Document]; (ends && s.Until != n) || (!ends && s.From != n) {
		c.Errorf("got %+v while version %d stands", s, n)
	}
}

// remade holds a text that was made anew to the one whose place it takes.
func (c *chaos) remade(r rebase) {
	c.Helper()
	c.rebased++
	k := c.p.Incarnation + r.Document
	s := c.seen[k]
	old, _ := said(s.TextHash)
	if now, _ := said(r.Text.TextHash); r.N != s.N || now != old {
		c.Errorf("got %+v in the place of %+v", r, s)
	}
	s.TextHash = r.Text.TextHash
	c.seen[k] = s
}

// quiet lets an honest fetch answer until the page rests, which then must be as it is.
func (c *chaos) quiet() {
	for range 3 {
		c.inflight = nil
		c.do(checkNow{})
		c.restart(wake{})
		for rounds := 0; ; rounds++ {
			as := all[requestCheck](c.out)
			for _, a := range as {
				c.fetch(a, true)
			}
			if len(c.inflight) == 0 {
				break
			}
			o := c.inflight[0]
			c.inflight = c.inflight[1:]
			c.found(o)
			if rounds > 20 {
				c.Fatal("the page does not come to rest")
			}
		}
	}
	for _, d := range c.p.Documents {
		if got, _ := said(d.TextHash); got != hash(d.ID, c.texts[d.ID]) {
			c.Errorf("got text %s standing, want %s", got, hash(d.ID, c.texts[d.ID]))
		}
	}
}
