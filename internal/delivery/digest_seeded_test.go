package delivery

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

var seeds = flag.Int("seeds", 15, "how many seeds TestSeededDigests tries")

// digestSimulation drives a deliveryFixture with random items, crashes and lost transactions, and checks
// the results.
type digestSimulation struct {
	*deliveryFixture
	seed uint64
	r    *rand.Rand
	// sent are the items of each subscription in their order; cancelled ones get no more.
	sent         map[string][]string
	all          []flow.Message
	incarnations [3]int
	cancelled    map[string]bool
	// arrivals are the items as they came first, by ID.
	arrivals map[string]arrival
	// digests are the notifications that were tried, by ID; delivered are the items in the order in
	// which they were tried first, by subscription.
	digests   map[string]pipeline.Notification
	delivered map[string][]string
}

// arrival is an item's digest, nil for none, and the time at which it came.
type arrival struct {
	digest *pipeline.Digest
	at     time.Time
}

// longestTick is how far the clock moves at most before what is due is looked at.
const longestTick = 25 * time.Minute

// TestSeededDigests checks that each item is in one digest and in order, and that a digest never
// changes and is neither too large nor too late.
func TestSeededDigests(t *testing.T) {
	merged, crashed := 0, 0
	for seed := range uint64(*seeds) {
		c := &digestSimulation{
			deliveryFixture: newDeliveryFixture(t), seed: seed, r: rand.New(rand.NewPCG(seed, 3)), sent: make(map[string][]string), cancelled: make(map[string]bool),
			arrivals: make(map[string]arrival), digests: make(map[string]pipeline.Notification), delivered: make(map[string][]string),
		}
		for range 200 {
			crashed += c.step()
		}
		for range 400 {
			c.endAttempt(nil)
			c.tick(15 * time.Minute)
			c.checkAttempt()
		}
		c.checkDelivered()
		for _, d := range c.digests {
			merged += len(d.Items) / 2
		}
	}
	if merged < *seeds || crashed < *seeds {
		t.Errorf("%d digests of several items, %d crashes: the test tests little", merged, crashed)
	}
}

// digestSettings are those of the three subscriptions.
var digestSettings = []*pipeline.Digest{{Every: pipeline.Duration(time.Hour), Max: 4}, {Cron: "*/20 * * * * Europe/Berlin"}, nil}

func (c *digestSimulation) subscription(i int) string {
	return fmt.Sprintf("s%d/%d", i, c.incarnations[i])
}

func (c *digestSimulation) step() (crashed int) {
	i := c.r.IntN(3)
	switch n := c.r.IntN(100); {
	case n < 35:
		sub, id := c.subscription(i), fmt.Sprintf("n%d", len(c.all))
		d := digestSettings[i]
		if c.r.IntN(10) == 0 {
			d = digestSettings[c.r.IntN(3)]
		}
		c.all = append(c.all, c.item(sub, id, d, c.r.IntN(3)))
		c.sent[sub] = append(c.sent[sub], id)
		c.arrivals[id] = arrival{d, c.now}
		c.handleLossy(c.all[len(c.all)-1])
	case n < 40 && len(c.all) > 0:
		c.handleLossy(c.all[c.r.IntN(len(c.all))])
	case n < 43:
		sub := c.subscription(i)
		c.incarnations[i]++
		c.cancelled[sub] = true
		c.handleLossy(withdrawal("r", sub))
	case n < 60:
		c.endAttempt(errors.New("plain"))
	case n < 75:
		c.endAttempt(nil)
	case n < 95:
		c.now = c.now.Add(time.Duration(c.r.Int64N(int64(longestTick))))
		for _, m := range c.store.Due(c.now) {
			c.handleLossy(m)
		}
	default:
		c.attempts = nil
		c.start()
		c.checkAttempt()
		return 1
	}
	return 0
}

// handleLossy handles m, now and then after a transaction that is lost.
func (c *digestSimulation) handleLossy(m flow.Message) {
	for c.r.IntN(4) == 0 {
		if err := c.d.Process(c.Context(), c.store.Begin(), m); err != nil {
			c.Fatalf("seed %d: %v", c.seed, err)
		}
	}
	c.handle(m)
	c.checkAttempt()
}

// checkAttempt looks at the attempt that has begun, if one has.
func (c *digestSimulation) checkAttempt() {
	if len(c.attempts) == 0 {
		return
	}
	n := c.attempts[len(c.attempts)-1].Notifications[0]
	before, again := c.digests[n.ID]
	if again && !reflect.DeepEqual(before, n) {
		c.Fatalf("seed %d: %s was %+v and is %+v", c.seed, n.ID, before, n)
	}
	if !again {
		c.checkFirstAttempt(n)
	}
	c.digests[n.ID] = n
}

// endAttempt ends the attempt under way, if there is one.
func (c *digestSimulation) endAttempt(err error) {
	if len(c.attempts) == 0 {
		return
	}
	a := c.attempts[len(c.attempts)-1]
	c.attempts = nil
	c.handleLossy(a.Result(err))
}

// checkFirstAttempt checks the first attempt of a notification.
func (c *digestSimulation) checkFirstAttempt(n pipeline.Notification) {
	ids := strings.Fields(strings.Trim(itemsOf(n), "[]"))
	of := ""
	for sub, sent := range c.sent {
		if slices.Contains(sent, ids[0]) {
			of = sub
		}
	}
	diffs := 0
	for _, i := range n.Items {
		diffs += i.Diffs
	}
	if n.Type == pipeline.NotificationTypeDigest {
		if len(n.Diffs) != diffs {
			c.Fatalf("seed %d: %d diffs in %+v", c.seed, diffs, n)
		}
		c.checkDeadline(ids)
	}
	if c.cancelled[of] {
		c.Fatalf("seed %d: %s is tried after %s was cancelled", c.seed, itemsOf(n), of)
	}
	c.delivered[of] = append(c.delivered[of], ids...)
}

// checkDeadline checks that a digest of these items ends as each of them wanted when it came.
func (c *digestSimulation) checkDeadline(ids []string) {
	frozen, ok, err := state{c.store.Begin().State("r")}.record(ids[0])
	if err != nil || !ok || frozen.State != recordDigested {
		c.Fatalf("seed %d: %s is known as %+v, %v, %v", c.seed, ids[0], frozen, ok, err)
	}
	for i, id := range ids {
		d := c.arrivals[id].digest
		if i+1 < len(ids) && i+1 >= d.Items() {
			c.Fatalf("seed %d: %v goes on behind %s, which wanted %d items at most", c.seed, ids, id, d.Items())
		}
		end := later(d.End(c.arrivals[ids[0]].at), c.arrivals[id].at) // a digest that was changed may end as it comes
		if frozen.Time.After(end.Add(longestTick)) {
			c.Fatalf("seed %d: %v ended at %s, but %s wanted it at %s", c.seed, ids, frozen.Time, id, end)
		}
	}
}

// checkDelivered compares what was delivered with what was sent, when all is over.
func (c *digestSimulation) checkDelivered() {
	for sub, sent := range c.sent {
		told := c.delivered[sub]
		if c.cancelled[sub] {
			sent = sent[:min(len(told), len(sent))]
		}
		if !slices.Equal(told, sent) {
			c.Errorf("seed %d: %s was told %v, want %v", c.seed, sub, told, sent)
		}
	}
	if due, parked := c.d.Backlog(0); due+parked != 0 {
		c.Errorf("seed %d: the backlog is %d+%d", c.seed, due, parked)
	}
	for range 20 { // what is remembered is forgotten
		c.tick(60 * 24 * time.Hour)
	}
	if keys := c.store.Keys(); len(keys) > 0 {
		c.Errorf("seed %d: there is still %v", c.seed, c.store.Names(keys[0]))
	}
}
