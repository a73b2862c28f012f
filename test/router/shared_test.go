package router_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/stages/index"
)

// testLanes is how many lanes the Routers of these tests share. The local transport gives
// lane i to the subscription i modulo their number, in the order in which they came.
const testLanes = 2

// member is what one of several processes sees of a transport: the states of the lanes that
// it owns. The transport outlives it.
type member struct {
	*local.Transport
	name   string
	owned  [testLanes]atomic.Bool
	gained chan struct{}
	// counts are of what was published, by type.
	mu     sync.Mutex
	counts map[string]int
}

func newMember(t *local.Transport, name string) *member {
	return &member{Transport: t, name: name, gained: make(chan struct{}, 1), counts: make(map[string]int)}
}

// own makes lanes those of m, all others those of somebody else.
func (m *member) own(lanes ...int) {
	for i := range m.owned {
		m.owned[i].Store(slices.Contains(lanes, i))
	}
	select {
	case m.gained <- struct{}{}:
	default:
	}
}

func testLane(key string) int { return int(xxhash.Sum64String(key) % testLanes) }

// Owns is true for receivers: whoever is given their messages has their lane.
func (m *member) Owns(key string) bool {
	return !strings.Contains(key, "://") || m.owned[testLane(key)].Load()
}

func (m *member) Gained() <-chan struct{} { return m.gained }

func (m *member) Gauges() []flow.Gauge {
	owned := 0.0
	for i := range m.owned {
		if m.owned[i].Load() {
			owned++
		}
	}
	return []flow.Gauge{{Name: flow.GaugeLanes, Value: testLanes}, {Name: flow.GaugeLanesOwned, Value: owned}}
}

func (m *member) String() string { return "shared by " + m.name }
func (m *member) Close() error   { return nil }

func (m *member) States(group, after string) iter.Seq2[string, flow.State] {
	return func(yield func(string, flow.State) bool) {
		for key, st := range m.Transport.States(group, after) {
			if m.Owns(key) && !yield(key, st) {
				return
			}
		}
	}
}

func (m *member) Publish(ctx context.Context, ms ...flow.Message) error {
	m.mu.Lock()
	for _, msg := range ms {
		m.counts[msg.Type]++
	}
	m.mu.Unlock()
	return m.Transport.Publish(ctx, ms...)
}

// published returns how many messages of typ were published.
func (m *member) published(typ string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[typ]
}

func (m *member) Tail(ctx context.Context, topic string) (<-chan flow.Message, error) {
	in, err := m.Subscriber("tail "+m.name).Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make(chan flow.Message)
	go func() {
		defer close(out)
		for msg := range in {
			tx, _ := flow.TxFrom(msg.Context())
			if got, err := tx.Message(); err == nil {
				select {
				case out <- got:
				case <-ctx.Done():
				}
			}
			msg.Ack()
		}
	}()
	return out, nil
}

// sharedTransport returns a transport for several members.
func sharedTransport(t *testing.T) *local.Transport {
	t.Helper()
	transport, err := local.Open(local.Config{Lanes: testLanes, Topics: vokter.Topology()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return transport
}

// countingFetcher serves pages that never change, and counts how often each is fetched.
type countingFetcher struct {
	mu   sync.Mutex
	gets map[string]int
}

func (*countingFetcher) Schemes() []string { return []string{"https"} }

func (c *countingFetcher) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gets == nil {
		c.gets = make(map[string]int)
	}
	c.gets[r.URL]++
	return pipeline.Response{URL: r.URL, Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
		Body: io.NopCloser(strings.NewReader("<p>calm</p>"))}, nil
}

// fetched returns how often each page was fetched.
func (c *countingFetcher) fetched() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.gets)
}

// laneOfURLs returns n pages in each lane.
func laneOfURLs(n int) (pages [testLanes][]string) {
	for i := 0; len(pages[0]) < n || len(pages[1]) < n; i++ {
		page := fmt.Sprintf("https://p%d.example/", i)
		if l := testLane(page); len(pages[l]) < n {
			pages[l] = append(pages[l], page)
		}
	}
	return pages
}

// subscribeAll returns a subscription to each page.
func subscribeAll(pages ...string) (all []pipeline.Subscription) {
	for _, p := range pages {
		all = append(all, pipeline.Subscription{URL: p, Keywords: []string{"k"}, Sinks: []string{"box"}})
	}
	return all
}

// storedSubscriptions returns the subscriptions that index keeps, by page.
func storedSubscriptions(t *testing.T, transport *local.Transport) []string {
	t.Helper()
	var pages []string
	for page, st := range transport.States(flow.GroupIndex, "") {
		subs, err := index.Subscriptions(st)
		if err != nil {
			t.Fatal(err)
		}
		for range subs {
			pages = append(pages, page)
		}
	}
	slices.Sort(pages)
	return pages
}

// TestPagesOfLanesThatAreGained starts with no lane, gains one and then the other, and
// is given other subscriptions between.
func TestPagesOfLanesThatAreGained(t *testing.T) {
	transport, pages, web := sharedTransport(t), laneOfURLs(4), &countingFetcher{}
	m := newMember(transport, "a")
	cfg := vokter.Config{
		Transport: m, Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetchers: []pipeline.Fetcher{web},
		Subscriptions: subscribeAll(append(pages[0][:3:3], pages[1][:3]...)...),
	}
	r, err := vokter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(t.Context()) }()
	settled := func(want ...string) {
		t.Helper()
		slices.Sort(want)
		waitFor(t, "the pages of the lane", func() bool { return slices.Equal(storedSubscriptions(t, transport), want) && transport.Idle() })
	}

	m.own(0)
	<-r.Running()
	settled(pages[0][:3]...)
	if n := m.published(flow.TypeApply); n != 3 {
		t.Errorf("%d lists were published for the three pages of one lane", n)
	}
	waitFor(t, "3 fetched pages", func() bool { return len(web.fetched()) == 3 })

	// The last page of each lane comes, the first goes.
	cfg.Subscriptions = subscribeAll(append(pages[0][1:4:4], pages[1][1:4]...)...)
	if _, err := r.Reload(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	settled(pages[0][1:4]...)
	if n := m.published(flow.TypeApply); n != 3+2 {
		t.Errorf("%d lists were published, then for one page that came and one that went", n)
	}

	m.own(0, 1)
	settled(append(pages[0][1:4:4], pages[1][1:4]...)...)
	if n := m.published(flow.TypeApply); n != 3+2+6 {
		t.Errorf("%d lists were published, at last for the six pages of two lanes", n)
	}
	waitFor(t, "7 fetched pages", func() bool { return len(web.fetched()) == 7 })
	for page, n := range web.fetched() {
		if n != 1 {
			t.Errorf("%s was fetched %d times", page, n)
		}
	}
	r.Finish()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestForcedChecksOfLanesThatAreGained has every page checked at once when its lane is gained:
// not again when others are. A process without lanes has nothing to wait for.
func TestForcedChecksOfLanesThatAreGained(t *testing.T) {
	transport, pages, web := sharedTransport(t), laneOfURLs(2), &countingFetcher{}
	hourly := time.Hour
	cfg := vokter.Config{
		Transport: newMember(transport, "before"), Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetchers: []pipeline.Fetcher{web},
		Subscriptions: subscribeAll(append(pages[0], pages[1]...)...), Checks: 1,
	}
	cfg.Transport.(*member).own()
	runToEnd(t, cfg)
	if got := web.fetched(); len(got) != 0 {
		t.Errorf("a process without lanes fetched %v", got)
	}
	cfg.Transport = newMember(transport, "first")
	cfg.Transport.(*member).own(0, 1)
	runToEnd(t, cfg)

	m := newMember(transport, "second")
	cfg.Transport, cfg.Checks, cfg.Every = m, 0, &hourly
	m.own(0)
	_, stop := startRouter(t, cfg)
	defer stop()
	asked := func(lists, checks int) {
		t.Helper()
		waitFor(t, "the lists of subscriptions", func() bool { return m.published(flow.TypeApply) == lists && transport.Idle() })
		if n := m.published(flow.TypeCheckNow); n != checks {
			t.Errorf("%d checks were asked for with %d lists, want %d", n, lists, checks)
		}
	}
	asked(2, 2)
	m.own(0, 1)
	asked(2+4, 2+2)
	m.own(1)
	asked(2+4+2, 4)
	m.own(0, 1)
	asked(2+4+2+4, 4+2)
}

// TestTwoRoutersShareLanes gives each of two Routers a lane, and commands to the one that
// does not own the page.
func TestTwoRoutersShareLanes(t *testing.T) {
	transport, pages := sharedTransport(t), laneOfURLs(2)
	var routers []*vokter.Router
	var members []*member
	for i, name := range []string{"a", "b"} {
		m := newMember(transport, name)
		m.own([]int{0, 1}[i:]...)
		r, stop := startRouter(t, vokter.Config{Transport: m, Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetchers: []pipeline.Fetcher{&countingFetcher{}}})
		defer stop()
		routers, members = append(routers, r), append(members, m)
	}
	members[0].own(0)
	for i, r := range routers {
		page := pages[1-i][0]
		s := subscribeAll(page)[0]
		if err := r.Subscribe(t.Context(), s); err != nil {
			t.Errorf("Subscribe to a page of the other: %v", err)
		}
		want := flow.Refusal{Code: flow.CodeConflict, Message: page + ` is already being watched for client "default"`}
		err := r.Subscribe(t.Context(), s)
		if got, ok := errors.AsType[*flow.Refusal](err); !ok || *got != want {
			t.Errorf("Subscribe again: got %v, want %v", err, want)
		}
		if err := r.Cancel(t.Context(), page, ""); err != nil {
			t.Errorf("Cancel at the other: %v", err)
		}
		if err := r.Subscribe(t.Context(), s); err != nil {
			t.Errorf("Subscribe to what was cancelled: %v", err)
		}
	}

	// Whoever owns the receiver tells the pages of both.
	e := pipeline.Health{ID: "gone", Event: pipeline.HealthReceiverExpired, Receiver: &pipeline.Receiver{Sink: "box"}, Reason: "gone"}
	if err := transport.Publish(t.Context(), flow.HealthMessage(e)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all pages to be gone", func() bool { return transport.Idle() && len(storedSubscriptions(t, transport)) == 0 })
}

// TestOfflineIsTakenOverWithItsLane has a process go offline and end. Whoever gains the lane
// that knows of it tells when a host answers.
func TestOfflineIsTakenOverWithItsLane(t *testing.T) {
	transport, pages, ops := sharedTransport(t), laneOfURLs(1), newMailbox()
	cfg := vokter.Config{
		Sinks: map[string]pipeline.Sink{"box": newMailbox(), "ops": ops}, Health: []string{"ops"}, Fetchers: []pipeline.Fetcher{&countingFetcher{}},
		Subscriptions: subscribeAll(pages[0][0], pages[1][0]),
	}
	m := newMember(transport, "first")
	m.own()
	cfg.Transport = m
	_, stop := startRouter(t, cfg)
	e := pipeline.Health{ID: "offline", Event: pipeline.HealthOffline, Time: time.Now()}
	if err := transport.Publish(t.Context(), flow.HealthMessage(e)); err != nil {
		t.Fatal(err)
	}
	<-ops.arrived
	stop()

	m = newMember(transport, "second")
	m.own()
	cfg.Transport = m
	_, stop = startRouter(t, cfg)
	defer stop()
	ops.take()
	m.own(0, 1)
	<-ops.arrived
	if got := eventsSentTo(ops, pipeline.HealthOnline); len(got) != 1 || !got[0].Health.Since.Equal(e.Time) {
		t.Errorf("told %+v, want that it is online again", got)
	}
}
