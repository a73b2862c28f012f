// Package kafka is the transport for more than one machine: the topics are those of a Kafka
// cluster, and processes with the same Config share the work.
//
// A lane is partition p of every topic. One process at a time owns it, through the consumer
// group on the topic "lanes", and handles all groups' messages of it. What they write to
// their state, what they publish and where they stand in their topics goes into one Kafka
// transaction, many messages at a time: state and positions as records of the compacted topic
// "state", of which the process keeps a copy in Pebble. Who gets a lane fences its earlier
// owner and brings the copy up to date before the first message.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/mill"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/pipeline/store"
)

var _ flow.Transport = (*Transport)(nil)

// Transport carries messages between the stages of several processes. It is safe for
// concurrent use. Start begins its work.
type Transport struct {
	cfg     Config
	log     *slog.Logger
	base    *sarama.Config
	grace   time.Duration
	bare    bool // Watermill's messages need no metadata
	onFatal func(error)

	// What follows is set by Start, before ready.
	lanes    int
	lineage  string
	cache    *store.DB
	room     *store.Room // nil where the disk is not watched
	free     func()      // gives the cache back
	client   sarama.Client
	admin    sarama.ClusterAdmin
	plain    sarama.SyncProducer
	together *together
	restorer sarama.Consumer
	group    sarama.ConsumerGroup
	// stopConsuming ends the use of group.
	stopConsuming context.CancelFunc
	owned         []slot
	ready         atomic.Bool
	// transact publishes what a lane commits; benchmarks have others.
	transact func(p sarama.SyncProducer, stateTopic string, ms []*sarama.ProducerMessage) error
	// transactFor and answeredFor are how long that may take; tests have less patience.
	transactFor, answeredFor time.Duration

	// ctx is done when Close begins, life when all that was acknowledged is committed.
	ctx, life   context.Context
	cancel, die context.CancelFunc
	ended       sync.Once
	failed      error // of Close

	making   chan struct{} // holds a token while a topic is made
	mu       sync.Mutex
	assigned map[int]bool
	member   string // the ID of this process in the consumer group; empty before the first assignment
	topics   map[string]flow.Topic
	info     admin.Info
	inboxes  map[consumer][]*inbox
	readers  map[string]*groupReader
	restores map[int]*restoration
	gained   chan struct{}
	away     outage
	clock    mill.Clock

	openMu sync.Mutex // held while a reader is made, for which brokers are waited for

	subsMu sync.Mutex
	subs   map[consumer][]*subscription

	headMu sync.Mutex
	heads  map[topicLane]int64

	hintMu     sync.Mutex
	hints      []output
	hintSignal chan struct{}
	hinted     chan struct{}
	watched    chan struct{}

	sending  atomic.Int64
	activity atomic.Uint64
	counts   counts
}

// New returns a Transport for c, or all that is wrong with c. Nothing is asked of the brokers
// before Start.
func New(c Config) (*Transport, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	base, err := c.cluster().Sarama()
	if err != nil {
		return nil, err
	}
	t := &Transport{
		cfg: c, log: c.Logger, base: base, grace: defaultGrace, topics: make(map[string]flow.Topic), transact: transact, transactFor: transactFor, answeredFor: answeredFor,
		inboxes: make(map[consumer][]*inbox), readers: make(map[string]*groupReader), restores: make(map[int]*restoration),
		making: make(chan struct{}, 1), gained: make(chan struct{}, 1), subs: make(map[consumer][]*subscription), heads: make(map[topicLane]int64),
		hintSignal: make(chan struct{}, 1), hinted: make(chan struct{}), watched: make(chan struct{}),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.life, t.die = context.WithCancel(context.Background())
	return t, nil
}

// defaultGrace is how long a closing subscription lets handlers finish.
const defaultGrace = 5 * time.Second

// Start connects and makes this process one of those that share the lanes. It waits for
// brokers until ctx is done, whose cause it then returns; Ready tells meanwhile what it waits
// for. It fails where the brokers refuse this process, and where a topic is not as it must
// be; these errors say what to do.
func (t *Transport) Start(ctx context.Context, w flow.Wiring) error {
	t.wire(w)
	if err := t.connect(ctx); err != nil {
		return err
	}
	if err := t.openCache(); err != nil {
		return err
	}
	c, err := t.cfg.admin().ProducerConfig()
	if err != nil {
		return err
	}
	if t.plain, err = patiently(ctx, t, func() (sarama.SyncProducer, error) { return client.NewProducer(t.cfg.Brokers, c) }); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	t.together = &together{t: t}
	if t.restorer, err = patiently(ctx, t, func() (sarama.Consumer, error) { return sarama.NewConsumer(t.cfg.Brokers, t.base) }); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	t.owned = make([]slot, t.lanes)
	go t.hintLoop()
	go t.watch()
	t.ready.Store(true)
	return t.join(ctx)
}

// Open is New and Start for those who have no Router: with Config.Topics, and ctx as long as
// brokers are waited for.
func Open(ctx context.Context, c Config) (*Transport, error) {
	t, err := New(c)
	if err != nil {
		return nil, err
	}
	err = t.Start(ctx, flow.Wiring{Topics: c.Topics, Dir: c.Dir, Now: c.Now, Logger: c.Logger, OnBroken: c.OnBroken, MinFree: c.MinFree})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// String says where the messages are, for logs.
func (t *Transport) String() string {
	return fmt.Sprintf("Kafka at %s, topics %s*", strings.Join(t.cfg.Brokers, ","), t.cfg.Prefix)
}

// wire takes over what w says.
func (t *Transport) wire(w flow.Wiring) {
	if w.Dir != "" {
		t.cfg.Dir = filepath.Join(w.Dir, "kafka")
	}
	if w.Now != nil {
		t.cfg.Now = w.Now
	}
	if w.Logger != nil {
		t.cfg.Logger, t.log = w.Logger, w.Logger
	}
	if w.OnBroken != nil {
		t.cfg.OnBroken = w.OnBroken
	}
	if w.Grace > 0 {
		t.grace = w.Grace
	}
	t.cfg.MinFree, t.onFatal, t.bare = w.MinFree, w.OnFatal, w.Bare
	for name, topic := range w.Topics {
		t.topics[name] = topic
	}
}

// connect waits for brokers and makes and checks the topics.
func (t *Transport) connect(ctx context.Context) error {
	conn, err := t.cfg.admin().Connect(ctx, t.topics, t.waiting)
	t.client, t.admin, t.info = conn.Client, conn.Admin, conn.Topics
	if err != nil {
		return err
	}
	t.lanes, t.lineage = t.info.Lanes, t.info.IDs[t.cfg.Prefix+admin.TopicState]
	return nil
}

// memTable is how much of what was written last the copy of the state keeps in memory: with
// less, a restore sorts the same records again and again, and takes twice as long.
const memTable = 64 << 20

// openCache opens the copy of the state. One of other topics, or of another number of lanes,
// is refused by checkKnown once its lanes are read.
func (t *Transport) openCache() error {
	t.room = store.NewRoom(t.cfg.Dir, t.cfg.MinFree, nil, t.log)
	if err := t.room.Opens(); err != nil {
		return err
	}
	db, err := store.Open(store.Options{Dir: t.cfg.Dir, Lanes: t.lanes, MemTable: memTable, Logger: t.log, OnFatal: t.onFatal})
	if err != nil {
		return err
	}
	t.cache = db
	if db.Lanes() != t.lanes {
		return fmt.Errorf("kafka: the copy of the state in %s has %d lanes and the topics have %d: remove that directory, it is made again from the topics",
			t.cfg.Dir, db.Lanes(), t.lanes)
	}
	user := store.User{Broken: t.broken}
	if t.room != nil {
		user.DiskFull = t.room.DiskFull
	}
	if t.free, err = db.Enter(user); err != nil {
		return err
	}
	t.room.Start()
	return nil
}

// Close stops all consumers, commits what was acknowledged, and leaves the group. What was
// not acknowledged comes again, to whoever owns its lane then. It is safe to call twice.
func (t *Transport) Close() error {
	t.ended.Do(func() { t.failed = t.close() })
	return t.failed
}

func (t *Transport) close() error {
	t.cancel()
	t.subsMu.Lock()
	var ends []func()
	for _, subs := range t.subs {
		for _, s := range subs {
			ends = append(ends, s.close)
		}
	}
	t.subsMu.Unlock()
	mill.EndAll(ends)
	var errs []error
	if t.group != nil {
		t.leave()
	}
	t.die()
	if t.ready.Load() {
		<-t.hinted
		<-t.watched
	}
	for _, r := range t.takeReaders() {
		errs = append(errs, r.close())
	}
	if t.restorer != nil {
		errs = append(errs, t.restorer.Close())
	}
	if t.together != nil {
		errs = append(errs, client.Within(commitFor, t.together.close))
	}
	if t.plain != nil {
		errs = append(errs, client.Within(commitFor, t.plain.Close))
	}
	if t.admin != nil {
		errs = append(errs, t.admin.Close()) // and its client
	} else if t.client != nil {
		errs = append(errs, t.client.Close())
	}
	if t.free != nil {
		t.free()
	}
	if t.cache != nil {
		errs = append(errs, t.cache.Close())
	}
	t.room.Stop() // only now, since commits may wait for it
	return errors.Join(errs...)
}

// transact publishes ms, outputs and state, in one transaction of p.
func transact(p sarama.SyncProducer, _ string, ms []*sarama.ProducerMessage) error {
	return client.Transact(p, ms)
}
