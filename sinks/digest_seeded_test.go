package sinks

import (
	"errors"
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

// collector drives a deliveryFixture with random items, crashes and lost transactions, and checks the results.
type collector struct {
	*deliveryFixture
	seed uint64
	r    *rand.Rand
	// sent are the items of each subscription in their order; cancelled ones are told no more.
	sent      map[string][]string
	all       []flow.Message
	lives     [3]int
	cancelled map[string]bool
	// came are the items as they came first, by ID.
	came map[string]arrival
	// digests are the notifications that were tried, by ID; told are the items in the order in
	// which they were tried first, by subscription.
	digests map[string]pipeline.Notification
	told    map[string][]string
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
		c := &collector{
			deliveryFixture: newDeliveryFixture(t), seed: seed, r: rand.New(rand.NewPCG(seed, 3)), sent: make(map[string][]string), cancelled: make(map[string]bool),
			came: make(map[string]arrival), digests: make(map[string]pipeline.Notification), told: make(map[string][]string),
		}
		for range 200 {
			crashed += c.step()
		}
		for range 400 {
			c.end(nil)
			c.tick(15 * time.Minute)
			c.look()
		}
		c.check()
		for _, d := range c.digests {
			merged += len(d.Items) / 2
		}
	}
	if merged < *seeds || crashed < *seeds {
		t.Errorf("%d digests of several items, %d crashes: the test tests little", merged, crashed)
	}
}

// wanted are those of the three subscriptions.
var wanted = []*pipeline.Digest{{Every: pipeline.Duration(time.Hour), Max: 4}, {Cron: "*/20 * * * * Europe/Berlin"}, nil}

func (c *collector) subscription(i int) string { return fmt.Sprintf("s%d/%d", i, c.lives[i]) }

func (c *collector) step() (crashed int) {
	i := c.r.IntN(3)
	switch n := c.r.IntN(100); {
	case n < 35:
		sub, id := c.subscription(i), fmt.Sprintf("n%d", len(c.all))
		d := wanted[i]
		if c.r.IntN(10) == 0 {
			d = wanted[c.r.IntN(3)]
		}
		c.all = append(c.all, c.item(sub, id, d, c.r.IntN(3)))
		c.sent[sub] = append(c.sent[sub], id)
		c.came[id] = arrival{d, c.now}
		c.one(c.all[len(c.all)-1])
	case n < 40 && len(c.all) > 0:
		c.one(c.all[c.r.IntN(len(c.all))])
	case n < 43:
		sub := c.subscription(i)
		c.lives[i]++
		c.cancelled[sub] = true
		c.one(withdrawal("r", sub))
	case n < 60:
		c.end(errors.New("plain"))
	case n < 75:
		c.end(nil)
	case n < 95:
		c.now = c.now.Add(time.Duration(c.r.Int64N(int64(longestTick))))
		for _, m := range c.store.Due(c.now) {
			c.one(m)
		}
	default:
		c.tried = nil
		c.start()
		c.look()
		return 1
	}
	return 0
}

// one handles m, now and then in a transaction that is lost first.
func (c *collector) one(m flow.Message) {
	for c.r.IntN(4) == 0 {
		if err := c.d.Process(c.Context(), c.store.Begin(), m); err != nil {
			c.Fatalf("seed %d: %v", c.seed, err)
		}
	}
	c.handle(m)
	c.look()
}

// look looks at the attempt that has begun, if one has.
func (c *collector) look() {
	if len(c.tried) == 0 {
		return
	}
	n := c.tried[len(c.tried)-1].Notifications[0]
	before, again := c.digests[n.ID]
	if again && !reflect.DeepEqual(before, n) {
		c.Fatalf("seed %d: %s was %+v and is %+v", c.seed, n.ID, before, n)
	}
	if !again {
		c.first(n)
	}
	c.digests[n.ID] = n
}

// end ends the attempt under way, if there is one.
func (c *collector) end(err error) {
	if len(c.tried) == 0 {
		return
	}
	a := c.tried[len(c.tried)-1]
	c.tried = nil
	c.one(a.Result(err))
}

// first holds the first attempt of a notification against what it has to be.
func (c *collector) first(n pipeline.Notification) {
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
		c.inTime(ids)
	}
	if c.cancelled[of] {
		c.Fatalf("seed %d: %s is tried after %s was cancelled", c.seed, itemsOf(n), of)
	}
	c.told[of] = append(c.told[of], ids...)
}

// inTime holds a digest of these items against what each of them wanted when it came.
func (c *collector) inTime(ids []string) {
	frozen, ok, err := state{c.store.Begin().State("r")}.record(ids[0])
	if err != nil || !ok || frozen.State != recordDigested {
		c.Fatalf("seed %d: %s is known as %+v, %v, %v", c.seed, ids[0], frozen, ok, err)
	}
	for i, id := range ids {
		d := c.came[id].digest
		if i+1 < len(ids) && i+1 >= d.Items() {
			c.Fatalf("seed %d: %v goes on behind %s, which wanted %d items at most", c.seed, ids, id, d.Items())
		}
		end := later(d.End(c.came[ids[0]].at), c.came[id].at) // a digest that was changed may end as it comes
		if frozen.Time.After(end.Add(longestTick)) {
			c.Fatalf("seed %d: %v ended at %s, but %s wanted it at %s", c.seed, ids, frozen.Time, id, end)
		}
	}
}

// check compares what was told, when all is over.
func (c *collector) check() {
	for sub, sent := range c.sent {
		told := c.told[sub]
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
