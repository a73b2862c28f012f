package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

const (
	// recent is for how long something that failed keeps the Transport from being ready, if it
	// does not fail again: longer than it takes to be tried again.
	recent = 15 * time.Second
	// tellAgain is after how long what goes on failing is told again.
	tellAgain = time.Minute
)

// outage is what keeps the Transport from going on. It is told when it begins and ends, not
// each time that it shows.
type outage struct {
	mu sync.Mutex
	// waits is what is waited for, since then: brokers that do not answer, mostly.
	waits error
	since time.Time
	// answers is since when brokers answer; zero while they do not, and before they were asked.
	answers time.Time
	// missing are the rights that the brokers do not give, since deniedAt.
	missing  string
	deniedAt time.Time
	// troubles are what failed and will be tried again, by what it is.
	troubles map[string]*trouble
	// begun is when something was told that is not over; zero: nothing was.
	begun time.Time
}

type trouble struct {
	reason            error
	first, last, told time.Time
}

// outage notes that something failed that will be tried again.
func (t *Transport) outage(what string, err error) {
	o, now := &t.away, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.troubles == nil {
		o.troubles = make(map[string]*trouble)
	}
	tr := o.troubles[what]
	if tr == nil || now.Sub(tr.last) > recent {
		tr = &trouble{first: now}
		o.troubles[what] = tr
	}
	tr.last, tr.reason = now, fmt.Errorf("%s: %s", what, t.cfg.cause(err))
	if o.waits != nil || o.missing != "" || now.Sub(tr.told) < tellAgain || o.told(now) {
		t.log.Debug("kafka: "+what, "error", err)
		return
	}
	tr.told = now
	if o.begun.IsZero() {
		o.begun = now
	}
	t.log.Warn("kafka: "+what, "error", t.cfg.cause(err))
}

// told reports whether another trouble was told just now: one that goes wrong makes others.
// o.mu is held.
func (o *outage) told(now time.Time) bool {
	for _, tr := range o.troubles {
		if now.Sub(tr.told) < recent {
			return true
		}
	}
	return false
}

// waiting notes what is waited for; nil ends it.
func (t *Transport) waiting(reason error) {
	o := &t.away
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits == nil {
		o.since = time.Now()
	}
	o.waits, o.answers = reason, time.Time{}
}

// answered notes that the brokers answer. If they did not, everything that failed did so for
// that; otherwise what did not fail again is over.
func (t *Transport) answered() {
	o, now := &t.away, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for what, tr := range o.troubles {
		if o.waits != nil || now.Sub(tr.last) > recent {
			delete(o.troubles, what)
		}
	}
	o.waits = nil
	if o.answers.IsZero() {
		o.answers = now
	}
	if !o.begun.IsZero() && len(o.troubles) == 0 {
		t.log.Info("kafka: going on", "after", now.Sub(o.begun).Round(100*time.Millisecond))
		o.begun = time.Time{}
	}
}

// answering is for how long brokers answer; 0 where they do not.
func (o *outage) answering(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.answers.IsZero() {
		return 0
	}
	return now.Sub(o.answers)
}

// present returns since when the Transport does not go on, and why; nil where it does.
func (o *outage) present(now time.Time) (since time.Time, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waits != nil {
		return o.since, o.waits
	}
	if err := o.denied(); err != nil {
		return o.deniedAt, err
	}
	for _, tr := range o.troubles {
		if now.Sub(tr.last) <= recent && (reason == nil || tr.first.Before(since)) {
			reason, since = tr.reason, tr.first
		}
	}
	return since, reason
}

// checkRights asks the brokers whether a right is missing: what is denied fails in many ways,
// of which some tell nothing.
func (t *Transport) checkRights() {
	missing, err := client.Do(t.life, func() (string, error) {
		conn, err := sarama.NewClient(t.cfg.Brokers, client.Once(t.base))
		if err != nil {
			return "", err
		}
		defer conn.Close()
		return t.cfg.admin().MissingRights(conn, t.declaredTopics())
	}, nil)
	if err != nil {
		return // the brokers are away; it is asked again
	}
	t.deny(missing)
}

// deny notes which rights are missing, and tells when that changes.
func (t *Transport) deny(missing string) {
	o, now := &t.away, time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch missing {
	case o.missing:
		return
	case "":
		t.log.Info("kafka: the rights are there that were missing", "after", now.Sub(o.deniedAt).Round(100*time.Millisecond))
	default:
		t.log.Warn("kafka: rights are missing; waiting for them", "allow", missing)
	}
	if o.missing == "" {
		o.deniedAt = now
	}
	o.missing = missing
}

// denied says which rights are missing; nil where there are none. o.mu is held.
func (o *outage) denied() error {
	if o.missing == "" {
		return nil
	}
	return fmt.Errorf("rights are missing: allow %s", o.missing)
}

// patiently returns what f returns once the brokers are there for it: one that has just come
// back leads no partition for a moment. It tries until ctx is done, whose cause it then
// returns.
func patiently[T any](ctx context.Context, t *Transport, f func() (T, error)) (T, error) {
	for {
		v, err := f()
		if err == nil || !client.Away(err) {
			return v, err
		}
		t.outage("the brokers do not serve yet; it is tried again", err)
		select {
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-time.After(probeEvery):
		}
	}
}

// probeEvery is how long patiently rests between two attempts.
const probeEvery = 500 * time.Millisecond

// cause returns the reason within err in words.
func (c Config) cause(err error) string {
	switch {
	case errors.Is(err, sarama.ErrFencedInstancedId):
		return fmt.Sprintf("another process has the same instance_id (%s): give each one of its own", c.InstanceID)
	case errors.Is(err, sarama.ErrProducerFenced), errors.Is(err, sarama.ErrInvalidProducerEpoch):
		return "another producer has its transactional ID now"
	case errors.Is(err, sarama.ErrTransactionalIDAuthorizationFailed):
		return fmt.Sprintf("a right is missing: allow Write on the transactional IDs that begin with %s-", c.Group)
	}
	return c.cluster().Cause(err)
}

// watch asks the brokers from time to time whether they are there, and whether the topics
// are those of the start.
func (t *Transport) watch() {
	defer close(t.watched)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var looked time.Time
	for {
		select {
		case <-look.C:
		case <-t.life.Done():
			return
		}
		_, err := client.Do(t.life, func() (struct{}, error) { return struct{}{}, t.cfg.cluster().Ask(t.base) }, nil)
		if err != nil {
			if t.life.Err() == nil {
				t.outage("no broker answers", err)
				t.waiting(t.cfg.cluster().Unanswered(err))
			}
			continue
		}
		t.answered()
		if t.Ready() != nil || time.Since(looked) > topicsEvery {
			t.checkRights()
		}
		if time.Since(looked) > topicsEvery {
			looked = time.Now()
			t.checkTopics()
			if err := t.dropStale(); err != nil {
				t.log.Error("kafka: dropping copies of lanes that other processes own failed", "error", err)
			}
		}
	}
}

// checkTopics stops the Transport where a topic was made anew: positions in it mean nothing.
func (t *Transport) checkTopics() {
	now, err := t.topicsNow()
	if err != nil {
		return // the brokers are away; it is asked again
	}
	if err := admin.CheckKnown(t.known(), now); err != nil {
		t.broken(err)
	}
}

// broken tells that the Transport cannot go on.
func (t *Transport) broken(err error) {
	if t.cfg.OnBroken != nil {
		t.cfg.OnBroken(err)
		return
	}
	t.log.Error("kafka: it cannot go on", "error", err)
}
