package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// Pauses before another attempt to take a lane.
const (
	minTakePause = 250 * time.Millisecond
	maxTakePause = 5 * time.Second
	// fencedPause is how long a fenced owner waits for a rebalance that gives its lane to another
	// process, before it takes the lane back.
	fencedPause = 3 * time.Second
)

// laneSlot holds the lease of a lane.
type laneSlot struct {
	// mu is also held while the copy of the lane is written, which may wait for the disk.
	mu sync.Mutex
	// lease is the current one, also while its state is restored; nil while another process owns
	// the lane.
	lease *lease
	// working is lease once it handles messages. It can be read without mu.
	working atomic.Pointer[lease]
	// restoring is how far the state is restored; nil if it is not being restored.
	restoring atomic.Pointer[restoreProgress]
	// epoch is the number of leases so far, the epoch of the lane.
	epoch atomic.Uint64
}

// joinGroup enters the consumer group in which processes share the lanes.
func (t *Transport) joinGroup(ctx context.Context) error {
	c, err := t.cfg.groupConfig()
	if err != nil {
		return err
	}
	t.group, err = retryWhileAway(ctx, t, func() (sarama.ConsumerGroup, error) {
		return sarama.NewConsumerGroup(t.cfg.Brokers, t.cfg.Group, c)
	})
	if err != nil {
		return fmt.Errorf("kafka: joining the consumer group %s: %w", t.cfg.Group, err)
	}
	consuming, stopConsuming := context.WithCancel(t.workCtx)
	t.onClose(func() error { t.leaveGroup(stopConsuming); return nil })
	go t.consumeGroup(consuming)
	go func() {
		for err := range t.group.Errors() { // closed by Close of the group
			t.reportGroupError(err)
		}
	}()
	return nil
}

// groupConfig returns the Sarama configuration of the consumer group.
func (c Config) groupConfig() (*sarama.Config, error) {
	conf, err := c.clusterConfig().Group(c.SessionTimeout)
	if err != nil {
		return nil, err
	}
	conf.ClientID = memberClientID()
	conf.Consumer.Group.InstanceId = c.InstanceID
	return conf, nil
}

// consumeGroup keeps this process a member of the consumer group until ctx is done. Consume
// returns after each rebalance, and with an error when the brokers are unreachable.
func (t *Transport) consumeGroup(ctx context.Context) {
	for ctx.Err() == nil {
		err := t.group.Consume(ctx, []string{t.cfg.Prefix + admin.TopicLanes}, groupHandler{t})
		if err == nil {
			continue
		}
		t.reportGroupError(err)
		_ = client.Sleep(ctx, reopenPause) // the loop ends with ctx
	}
}

// reportGroupError reports an error of the consumer group, except while the Transport is closing:
// leaving the group interrupts its requests.
func (t *Transport) reportGroupError(err error) {
	if t.ctx.Err() != nil {
		return
	}
	if c, ok := errors.AsType[*sarama.ConsumerError](err); ok {
		err = c.Err // without the topic, which holds no messages
	}
	t.reportFailure("the consumer group failed; retrying", err)
}

var errLeaveTimeout = errors.New("kafka: the brokers did not end the membership in time")

// leaveGroup leaves the consumer group, and returns when this process owns no lane any more or
// leaveTimeout is over. Sarama asks the brokers only once, and not while it takes part in a
// rebalance: leaveGroup then asks again by itself, since the brokers otherwise count this process
// as a member until its session times out.
func (t *Transport) leaveGroup(stopConsuming func()) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), leaveTimeout, errLeaveTimeout)
	defer cancel()
	closing, stop := context.WithTimeoutCause(ctx, closeGroupTimeout, errLeaveTimeout)
	defer stop()
	stopConsuming()
	err := client.Run(closing, t.group.Close)
	t.mu.Lock()
	member := t.memberID
	t.mu.Unlock()
	if member == "" || t.cfg.InstanceID != "" { // an instance stays a member on purpose
		return
	}
	for err != nil {
		if err = client.Run(ctx, func() error { return t.removeMember(member) }); ctx.Err() != nil || !client.Away(err) {
			break
		}
		_ = client.Sleep(ctx, minTakePause) // the next attempt fails when ctx is done
	}
	if err != nil {
		t.log.Warn("kafka: leaving the consumer group failed; other processes get the lanes of this one when its session has timed out",
			"error", t.cfg.cause(err), "session_timeout", t.cfg.SessionTimeout)
	}
}

// removeMember asks the brokers to remove member from the consumer group.
func (t *Transport) removeMember(member string) error {
	if err := t.client.RefreshCoordinator(t.cfg.Group); err != nil {
		return err
	}
	coordinator, err := t.client.Coordinator(t.cfg.Group)
	if err != nil {
		return err
	}
	answer, err := coordinator.LeaveGroup(&sarama.LeaveGroupRequest{
		Version: 4, GroupId: t.cfg.Group, Members: []sarama.MemberIdentity{{MemberId: member}},
	})
	if err != nil {
		return err
	}
	switch answer.Err {
	case sarama.ErrNoError, sarama.ErrUnknownMemberId: // it left before
		return nil
	}
	return answer.Err
}

// groupHandler holds the lanes that the consumer group assigns to this process. The partitions of the
// group's topic stand for the lanes; the topic has no messages.
type groupHandler struct{ transport *Transport }

var _ sarama.ConsumerGroupHandler = groupHandler{}

// Setup records which lanes are assigned to this process, and begins to report how far they are.
func (c groupHandler) Setup(s sarama.ConsumerGroupSession) error {
	lanes := s.Claims()[c.transport.cfg.Prefix+admin.TopicLanes]
	c.transport.log.Info("lanes were assigned", "lanes", len(lanes), "of", c.transport.lanes, "generation", s.GenerationID())
	c.transport.setAssigned(s.MemberID(), lanes)
	go c.transport.reportOffsets(s)
	return nil
}

// Cleanup has nothing to do: ConsumeClaim gives its lane up before it returns.
func (c groupHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim owns one lane until the session ends.
func (c groupHandler) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	return c.transport.holdLane(s.Context(), int(claim.Partition()))
}

// holdLane owns lane until ctx is done. After a failed transaction it begins a new lease, which
// finds out whether the transaction was committed.
func (t *Transport) holdLane(ctx context.Context, lane int) error {
	for pause := minTakePause; ; pause = min(2*pause, maxTakePause) {
		n, err := t.takeLane(ctx, lane)
		what := "taking a lane failed; retrying"
		if err == nil {
			began := time.Now()
			err = n.serve(ctx)
			what = "a transaction failed; its messages are handled again"
			if time.Since(began) > logInterval {
				pause = minTakePause
			}
		}
		if ctx.Err() != nil || t.ctx.Err() != nil {
			return nil
		}
		t.counters.failedTxns.Add(1)
		wait := pause
		switch class, _ := failure.ClassOf(err); {
		case class == failure.ClassBroken:
			t.reportBroken(err)
		case isFenced(err):
			t.log.Info("another process took the lane, or the brokers aborted its transaction", "lane", lane, "error", t.cfg.cause(err))
			wait = fencedPause
		default:
			t.reportFailure(what, err)
		}
		if client.Sleep(ctx, wait) != nil {
			return nil
		}
	}
}

// isFenced reports whether err means that another producer has fenced the one of the lane.
func isFenced(err error) bool {
	return errors.Is(err, sarama.ErrProducerFenced) || errors.Is(err, sarama.ErrInvalidProducerEpoch) ||
		errors.Is(err, sarama.ErrInvalidProducerIDMapping)
}

// setAssigned records the lanes that the group assigned to this process, whose ID in the group is member.
func (t *Transport) setAssigned(member string, lanes []int32) {
	t.mu.Lock()
	t.memberID = member
	t.assigned = make(map[int]bool, len(lanes))
	for _, l := range lanes {
		t.assigned[int(l)] = true
	}
	t.mu.Unlock()
	t.signalGained()
}

// signalGained signals Gained once all assigned lanes work.
func (t *Transport) signalGained() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for lane := range t.assigned {
		if t.lease(lane) == nil {
			return
		}
	}
	engine.Notify(t.gained)
}

// setLease makes n the lease of its lane. Writes of earlier leases are refused from then on.
func (t *Transport) setLease(n *lease) {
	s := &t.slots[n.lane]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = n
	s.working.Store(nil)
	s.epoch.Add(1)
}

// markWorking marks n, whose state is restored, as working.
func (t *Transport) markWorking(n *lease) {
	s := &t.slots[n.lane]
	s.mu.Lock()
	if s.lease == n {
		s.working.Store(n)
	}
	s.mu.Unlock()
	t.signalGained()
}

// dropLease ends n: its lane has no lease then, unless it has a later one.
func (t *Transport) dropLease(n *lease) {
	s := &t.slots[n.lane]
	s.mu.Lock()
	present := s.lease == n
	if present {
		s.lease = nil
		s.working.Store(nil)
	}
	s.mu.Unlock()
	if present {
		t.clearInboxes(n.lane)
	}
}

// lease returns the working lease of lane, or nil. It does not block.
func (t *Transport) lease(lane int) *lease { return t.slots[lane].working.Load() }

// Owns reports whether this process handles the messages of key now.
func (t *Transport) Owns(key string) bool {
	return t.ready.Load() && t.lease(client.PartitionOf(key, t.lanes)) != nil
}

// Epoch returns how many times this process has taken the lane of key, including after failed
// transactions. Messages that were posted before the last time are lost.
func (t *Transport) Epoch(key string) uint64 {
	if !t.ready.Load() {
		return 0
	}
	return t.slots[client.PartitionOf(key, t.lanes)].epoch.Load()
}

// Gained signals that all lanes that are assigned to this process are restored and working; none
// may be assigned. Signals that nobody has received yet are merged into one.
func (t *Transport) Gained() <-chan struct{} { return t.gained }
