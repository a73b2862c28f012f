// Package kafka is the transport for more than one machine. The topics are topics of a Kafka
// cluster, and processes with the same Config share the work.
//
// Lane p is partition p of every topic. The consumer group on the topic "lanes" assigns each
// lane to one process, its owner, which handles the messages of all groups in the lane. The
// state that handlers write, the messages that they publish and the new positions of the groups
// are committed in one Kafka transaction, many messages at a time. State and positions are
// records of the compacted topic "state", of which the owner keeps a copy in Pebble. A new owner
// fences the previous one and updates its copy before it handles the first message.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/cluster"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

var _ flow.Transport = (*Transport)(nil)

// Transport carries messages between the stages of several processes. It is safe for
// concurrent use. Start begins its work.
type Transport struct {
	cfg          Config
	log          *slog.Logger
	saramaConfig *sarama.Config

	// The following fields are set by Start, before ready.
	wiring       flow.Wiring
	chain        *engine.Chain // the one that the topics declare, or nil
	lanes        int
	lineage      string
	schemaIDs    cluster.SchemaIDs
	stateCopy    *store.DB
	room         *store.Room // nil if the disk is not watched
	client       sarama.Client
	admin        sarama.ClusterAdmin
	producer     *client.Producer
	txnPublisher txnPublisher
	group        sarama.ConsumerGroup
	slots        []laneSlot
	ready        atomic.Bool
	// txnTimeout and answeredTxnTimeout are how long a transaction may take; tests shorten them.
	txnTimeout, answeredTxnTimeout time.Duration

	// ctx is done when Close begins, workCtx when all acknowledged messages are committed.
	ctx, workCtx     context.Context
	cancel, stopWork context.CancelFunc
	closeOnce        func() error // close, once
	// closers undo the steps of Start, in order.
	closers []func() error

	creatingTopic chan struct{} // holds a token while a topic is created
	mu            sync.Mutex
	assigned      map[int]bool
	memberID      string // the ID of this process in the consumer group; empty before the first assignment
	topics        map[string]flow.Topic
	topicInfo     admin.Info
	inboxes       map[inboxKey]*engine.Inbox
	consumers     map[string]sarama.Consumer
	gained        chan struct{}
	outage        outage
	clock         engine.Clock

	consumerMu sync.Mutex // held while a consumer is created, which may wait for brokers

	subs engine.Subscriptions

	writtenMu   sync.Mutex
	writtenEnds map[topicLane]int64

	watchDone  chan struct{}
	publishing atomic.Int64 // publications under way
	activity   atomic.Uint64
	counters   counters
}

// New returns a Transport for c, or all mistakes in c. It does not connect to the brokers; Start
// does.
func New(c Config) (*Transport, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	base, err := c.clusterConfig().Sarama()
	if err != nil {
		return nil, err
	}
	t := &Transport{
		cfg: c, log: c.Logger, saramaConfig: base, topics: make(map[string]flow.Topic),
		txnTimeout: txnTimeout, answeredTxnTimeout: answeredTxnTimeout,
		inboxes: make(map[inboxKey]*engine.Inbox), consumers: make(map[string]sarama.Consumer),
		creatingTopic: make(chan struct{}, 1), gained: make(chan struct{}, 1), writtenEnds: make(map[topicLane]int64),
		watchDone: make(chan struct{}),
	}
	t.subs.Open, t.subs.Assign, t.subs.Grace, t.subs.After, t.subs.Closed = t.openConsumer, t.reassign, defaultGrace, handlerGrace, ErrClosed
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.workCtx, t.stopWork = context.WithCancel(context.Background())
	t.closeOnce = sync.OnceValue(t.close)
	t.txnPublisher.transport = t
	return t, nil
}

// defaultGrace is how long a closing subscription lets handlers finish.
const defaultGrace = 5 * time.Second

// Start connects to the brokers and joins the processes that share the lanes. It waits for
// brokers until ctx is done, and then returns the cause; meanwhile Ready says what it waits for.
// It fails if the brokers refuse this process, or if a topic has unsuitable settings; these
// errors say what to do.
func (t *Transport) Start(ctx context.Context, w flow.Wiring) error {
	t.applyWiring(w)
	if err := t.connect(ctx); err != nil {
		return err
	}
	if err := t.registerSchemas(ctx); err != nil {
		return err
	}
	if err := t.openStateCopy(); err != nil {
		return err
	}
	c, err := t.cfg.adminConfig().ProducerConfig()
	if err != nil {
		return err
	}
	if t.producer, err = retryWhileAway(ctx, t, func() (*client.Producer, error) { return client.NewProducer(t.cfg.Brokers, c) }); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	t.onClose(func() error { return client.Within(commitTimeout, t.producer.Close) })
	t.onClose(func() error { return client.Within(commitTimeout, t.txnPublisher.close) })
	t.slots = make([]laneSlot, t.lanes)
	go t.watchBrokers()
	t.onClose(t.stopBackground)
	t.ready.Store(true)
	return t.joinGroup(ctx)
}

// String names the brokers and topics, for logs.
func (t *Transport) String() string {
	return fmt.Sprintf("Kafka at %s, topics %s*", strings.Join(t.cfg.Brokers, ","), t.cfg.Prefix)
}

// source returns the name of the installation, or "".
func (t *Transport) source() string {
	if t.wiring.Source == nil {
		return ""
	}
	return t.wiring.Source()
}

// applyWiring takes over the settings of w.
func (t *Transport) applyWiring(w flow.Wiring) {
	t.wiring = w
	if w.Now != nil {
		t.cfg.Now = w.Now
	}
	if w.Logger != nil {
		t.cfg.Logger, t.log = w.Logger, w.Logger
	}
	if w.Grace > 0 {
		t.subs.Grace = w.Grace
	}
	t.clock.Wall, t.clock.WakeAll, t.clock.Log = t.cfg.Now, t.wakeAll, t.log
	maps.Copy(t.topics, t.cfg.publishedTopics(w.Topics))
	t.chain = engine.ChainOf(w.Topics)
}

// connect waits for brokers, creates missing topics and checks all of them.
func (t *Transport) connect(ctx context.Context) error {
	conn, err := t.cfg.adminConfig().Connect(ctx, t.topics, t.setWaiting)
	t.onClose(conn.Close)
	t.client, t.admin, t.topicInfo = conn.Client, conn.Admin, conn.Topics
	if err != nil {
		return err
	}
	t.lanes, t.lineage = t.topicInfo.Lanes, t.topicInfo.IDs[t.cfg.Prefix+admin.TopicState]
	return nil
}

// registerSchemas registers the schemas of the public records, and waits for the registry.
func (t *Transport) registerSchemas(ctx context.Context) error {
	for waits := false; ; waits = true {
		ids, err := t.cfg.clusterConfig().RegisterSchemas(ctx, flow.PublicTypes)
		if err == nil || errors.Is(err, cluster.ErrRegistry) {
			t.schemaIDs = ids
			t.setWaiting(nil)
			return err
		}
		if t.setWaiting(err); !waits {
			t.log.Warn("kafka: waiting for the schema registry", "reason", err)
		}
		if err := client.Sleep(ctx, retryPause); err != nil {
			return err
		}
	}
}

// memTable is how many bytes of recent writes the copy of the state keeps in memory. With less, a
// restore sorts the same records several times and takes twice as long.
const memTable = 64 << 20

// openStateCopy opens the copy of the state. It refuses a copy with another number of lanes. That the
// copy is of the same topics is checked when a lane is loaded.
func (t *Transport) openStateCopy() error {
	dir := t.wiring.Dir
	if dir != "" {
		dir = filepath.Join(dir, "kafka")
	}
	t.room = store.NewRoom(dir, t.wiring.MinFree, nil, t.log)
	if err := t.room.Opens(); err != nil {
		return err
	}
	t.onClose(func() error { t.room.Stop(); return nil }) // after the cache, whose commits may wait for it
	db, err := store.Open(store.Options{Dir: dir, Lanes: t.lanes, MemTable: memTable, Logger: t.log, OnFatal: t.wiring.OnFatal})
	if err != nil {
		return err
	}
	t.stateCopy = db
	leave, err := db.Enter(store.User{Broken: t.reportBroken, DiskFull: t.room.DiskFull})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	t.onClose(func() error { leave(); return nil }) // after the cache, which asks DiskFull while it closes
	t.onClose(db.Close)
	if db.Lanes() != t.lanes {
		return fmt.Errorf("kafka: the copy of the state in %s has %d lanes and the topics have %d: remove that directory, it is restored from the topics",
			dir, db.Lanes(), t.lanes)
	}
	t.room.Start()
	return nil
}

// Close stops all consumers, commits acknowledged messages and leaves the consumer group. Messages
// that were not acknowledged are delivered again by the next owner of their lane. Close may be
// called twice.
func (t *Transport) Close() error { return t.closeOnce() }

func (t *Transport) close() error {
	t.cancel()
	defer t.stopWork()
	t.subs.Close()
	var errs []error
	for _, f := range slices.Backward(t.closers) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// onClose makes Close call f, before what undoes the earlier steps.
func (t *Transport) onClose(f func() error) { t.closers = append(t.closers, f) }

// stopBackground ends what uses connections in the background.
func (t *Transport) stopBackground() error {
	t.stopWork()
	<-t.watchDone
	return t.closeConsumers()
}
