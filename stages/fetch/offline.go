package fetch

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

const (
	// offlineHosts is how many hosts must fail one after the other for the process to be
	// offline.
	offlineHosts = 3
	// deadFor is the number of failed checks in a row after which a page says nothing about the
	// network.
	deadFor = 3
	// maxHosts is how many hosts are remembered.
	maxHosts = 1 << 16
	// maxNamed is how many pages an event names.
	maxNamed = 5
)

// result is what an outcome says about the network.
type result int

const (
	neutral  result = iota // nothing
	answered               // it is open
	failing                // it may be closed
)

// resultOf returns what the outcomes of one check say. With TLS, a page that is gone or unreadable
// came from its host. With plain http it may be the answer of a captive portal or a proxy.
func resultOf(outcomes []flow.Outcome) result {
	r := neutral
	for _, o := range outcomes {
		if o.Kind != flow.OutcomeFailed {
			return answered
		}
		switch o.Class {
		case pipeline.FailSelectorGone, pipeline.FailEmpty, pipeline.FailBusy:
			return answered
		case pipeline.FailStatus, pipeline.FailType, pipeline.FailUnreadable, pipeline.FailTooLarge, pipeline.FailRedirect, pipeline.FailLogin:
			if strings.HasPrefix(o.Page, "https:") {
				return answered
			}
			r = failing
		case pipeline.FailAddress, pipeline.FailURL, pipeline.FailRobots:
		default:
			r = failing
		}
	}
	return r
}

// tracker decides from the results of checks whether the process is offline. Its state is not stored.
// It is safe for concurrent use.
//
// A run is a sequence of failing hosts without an answer in between. The process is offline if a run
// has at least three hosts, and either two of them answered at their check before or no known host
// answers now. It is not offline while at least as many fetches are open whose hosts may answer. The
// first answer ends it.
type tracker struct {
	mu    sync.Mutex
	hosts map[string]*known
	// count is how many hosts have an answer or a failure as their last result, and down
	// how many of them a failure. pending is how many fetches are under way to hosts that
	// are not known to fail.
	count, down, pending int
	run                  run
	offline              bool
}

// known is the state of one host.
type known struct {
	last     result
	inFlight int
	run      uint64 // the number of the run that it last belonged to
}

// run is the present run.
type run struct {
	number uint64
	hosts  int
	// fresh is how many of its hosts answered before it, and alive how many had failed less than
	// deadFor times.
	fresh, alive int
	since        time.Time // of its first failure
	pages        []string  // some of them
}

func newTracker() *tracker {
	return &tracker{hosts: make(map[string]*known), run: run{number: 1}}
}

// goOffline makes the process offline until a host answers.
func (t *tracker) goOffline() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offline = true
}

// begin records that a fetch from host begins. Each begin is followed by one end.
func (t *tracker) begin(host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[host]
	if h == nil {
		t.forget()
		h = &known{}
		t.hosts[host] = h
	}
	h.inFlight++
	if h.last != failing {
		t.pending++
	}
}

// forget removes a host if there are too many.
func (t *tracker) forget() {
	if len(t.hosts) < maxHosts {
		return
	}
	for name, h := range t.hosts { // any will do
		if h.inFlight == 0 {
			t.learn(h, neutral)
			delete(t.hosts, name)
			return
		}
	}
}

// end records the result of a check of req, and reports whether the process is offline now.
func (t *tracker) end(host string, req flow.Request, r result, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[host]
	h.inFlight--
	if h.last != failing {
		t.pending--
	}
	switch r {
	case answered:
		t.learn(h, answered)
		t.run = run{number: t.run.number + 1}
		t.offline = false
	case failing:
		t.join(h, req, now)
		t.learn(h, failing)
		t.offline = t.offline || t.closed()
	case neutral:
		if h.last == neutral && h.inFlight == 0 {
			delete(t.hosts, host)
		}
	}
	return t.offline
}

// learn sets the last result of h.
func (t *tracker) learn(h *known, r result) {
	t.tally(h, -1)
	h.last = r
	t.tally(h, 1)
}

// tally adds n times h to the counters.
func (t *tracker) tally(h *known, n int) {
	switch h.last {
	case failing:
		t.count += n
		t.down += n
	case answered:
		t.count += n
		t.pending += n * h.inFlight
	default:
		t.pending += n * h.inFlight
	}
}

// join adds h, whose check of req failed, to the run.
func (t *tracker) join(h *known, req flow.Request, now time.Time) {
	if h.run == t.run.number {
		return
	}
	h.run = t.run.number
	if t.run.hosts++; t.run.hosts == 1 {
		t.run.since = now
	}
	if h.last == answered || h.last == neutral && req.Failures == 0 && stood(req) {
		t.run.fresh++
	}
	if req.Failures < deadFor {
		t.run.alive++
	}
	if len(t.run.pages) < maxNamed {
		t.run.pages = append(t.run.pages, req.Page)
	}
}

// closed reports whether the run shows that the network is down.
func (t *tracker) closed() bool {
	return t.run.hosts >= offlineHosts && t.pending < t.run.hosts &&
		(t.run.fresh >= 2 || t.down == t.count && t.run.alive > 0)
}

// stood reports whether the page of req was read before.
func stood(req flow.Request) bool {
	return req.BodyHash != "" || slices.ContainsFunc(req.Documents, func(d flow.RequestDocument) bool { return d.TextHash != "" })
}

// state returns whether the process is offline, and the present run, which must not be changed.
func (t *tracker) state() (offline bool, r run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r = t.run
	r.pages = r.pages[:len(r.pages):len(r.pages)]
	return t.offline, r
}

// health publishes the health events offline and online.
type health struct {
	tracker *tracker
	life    string // names this process in IDs
	told    atomic.Bool

	mu    sync.Mutex // held while it is told
	n     uint64     // of the last event
	since time.Time  // when what was last told to be offline began
}

// newHealth starts offline if since, when an earlier process went offline, is not zero.
func newHealth(since time.Time) *health {
	h := &health{tracker: newTracker(), life: rand.Text()}
	if !since.IsZero() {
		h.takeOver(since)
	}
	return h
}

// takeOver starts offline, as an earlier process was from since on.
func (h *health) takeOver(since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told.Load() {
		return
	}
	h.tracker.goOffline()
	h.since = since
	h.told.Store(true)
}

// TakeOver has the effect of Config.OfflineSince, if that is known only later: when this process gains
// the lane of one that was offline.
func (s *Stage) TakeOver(since time.Time) { s.health.takeOver(since) }

// tracked reports whether the check of j says anything about the network: a page without a
// host, or one that is not fetched, does not.
func tracked(j *job) bool { return j.busy == nil && j.host.name != j.req.Page }

// weigh ends the check of j and marks the outcomes that do not count because the process is offline.
// It publishes a change of that state first.
func (s *Stage) weigh(ctx context.Context, j *job, outcomes []flow.Outcome) {
	r := resultOf(outcomes)
	offline := s.health.tracker.end(j.host.name, j.req, r, s.cfg.Now())
	for i := range outcomes {
		outcomes[i].Offline = offline && r == failing
	}
	if offline != s.health.told.Load() {
		s.announce(ctx)
	}
}

// announce publishes whether the process is offline, if that changed. An event that cannot be
// published is tried again with the next check.
func (s *Stage) announce(ctx context.Context) {
	h := s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	offline, run := h.tracker.state()
	if offline == h.told.Load() {
		return
	}
	e := pipeline.Health{Event: pipeline.HealthOnline, Time: s.cfg.Now(), Since: h.since, Reason: "a host answers again"}
	if offline {
		e.Event, e.Since, e.Count, e.URLs = pipeline.HealthOffline, run.since, run.hosts, run.pages
		e.Reason = fmt.Sprintf("%d hosts failed one after the other, and no other answered", run.hosts)
	}
	e.ID = flow.HealthID(e.Event, h.life, h.n+1)
	if err := s.cfg.Publisher.Publish(ctx, flow.HealthMessage(e)); err != nil {
		if ctx.Err() == nil {
			s.cfg.Logger.Error("a health event could not be published; it is tried again with the next check", "event", e.Event, "err", err)
		}
		return
	}
	h.n++
	h.since = run.since
	h.told.Store(offline)
	if offline {
		s.cfg.Logger.Warn("offline: nothing counts against pages until a host answers", "hosts", run.hosts, "pages", run.pages)
	} else {
		s.cfg.Logger.Info("online again", "offline_since", e.Since)
	}
}
