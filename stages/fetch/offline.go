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
	// minOfflineHosts is how many hosts must fail one after the other for the process to be
	// offline.
	minOfflineHosts = 3
	// deadPageFailures is the number of failed checks in a row after which a page says nothing about the
	// network.
	deadPageFailures = 3
	// maxTrackedHosts is how many hosts are remembered.
	maxTrackedHosts = 1 << 16
	// maxEventPages is how many pages an event names.
	maxEventPages = 5
)

// networkResult is what an outcome says about the network.
type networkResult int

const (
	resultNeutral  networkResult = iota // nothing
	resultAnswered                      // it is open
	resultFailing                       // it may be closed
)

// networkResultOf returns what the outcomes of one check say. With TLS, a page that is gone or unreadable
// came from its host. With plain http it may be the answer of a captive portal or a proxy.
func networkResultOf(outcomes []flow.Outcome) networkResult {
	r := resultNeutral
	for _, o := range outcomes {
		if o.Kind != flow.OutcomeFailed {
			return resultAnswered
		}
		switch o.Class {
		case pipeline.FailSelectorGone, pipeline.FailEmpty, pipeline.FailBusy:
			return resultAnswered
		case pipeline.FailStatus, pipeline.FailType, pipeline.FailUnreadable, pipeline.FailTooLarge, pipeline.FailRedirect, pipeline.FailLogin:
			if strings.HasPrefix(o.Page, "https:") {
				return resultAnswered
			}
			r = resultFailing
		case pipeline.FailAddress, pipeline.FailURL, pipeline.FailRobots:
		default:
			r = resultFailing
		}
	}
	return r
}

// offlineTracker decides from the results of checks whether the process is offline. Its state is not stored.
// It is safe for concurrent use.
//
// A run is a sequence of failing hosts without an answer in between. The process is offline if a run
// has at least three hosts, and either two of them answered at their check before or no known host
// answers now. It is not offline while at least as many fetches are open whose hosts may answer. The
// first answer ends it.
type offlineTracker struct {
	mu    sync.Mutex
	hosts map[string]*hostState
	// hostsWithResult is how many hosts have an answer or a failure as their last result, and down
	// how many of them a failure. pending is how many fetches are under way to hosts that
	// are not known to fail.
	hostsWithResult, failingHosts, openFetches int
	currentRun                                 failureRun
	offline                                    bool
}

// hostState is the state of one host.
type hostState struct {
	lastResult networkResult
	inFlight   int
	lastRun    uint64 // the number of the run that it last belonged to
}

// failureRun is the present run.
type failureRun struct {
	number uint64
	hosts  int
	// answeredBefore is how many of its hosts answered before it, and notDead how many had failed less
	// than deadPageFailures times.
	answeredBefore, notDead int
	since                   time.Time // of its first failure
	pages                   []string  // some of them
}

func newOfflineTracker() *offlineTracker {
	return &offlineTracker{hosts: make(map[string]*hostState), currentRun: failureRun{number: 1}}
}

// goOffline makes the process offline until a host answers.
func (t *offlineTracker) goOffline() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offline = true
}

// beginFetch records that a fetch from host begins. Each begin is followed by one end.
func (t *offlineTracker) beginFetch(host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[host]
	if h == nil {
		t.evictHost()
		h = &hostState{}
		t.hosts[host] = h
	}
	h.inFlight++
	if h.lastResult != resultFailing {
		t.openFetches++
	}
}

// evictHost removes a host if there are too many.
func (t *offlineTracker) evictHost() {
	if len(t.hosts) < maxTrackedHosts {
		return
	}
	for name, h := range t.hosts { // any will do
		if h.inFlight == 0 {
			t.setResult(h, resultNeutral)
			delete(t.hosts, name)
			return
		}
	}
}

// endFetch records the result of a check of req, and reports whether the process is offline now.
func (t *offlineTracker) endFetch(host string, req flow.Request, r networkResult, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[host]
	h.inFlight--
	if h.lastResult != resultFailing {
		t.openFetches--
	}
	switch r {
	case resultAnswered:
		t.setResult(h, resultAnswered)
		t.currentRun = failureRun{number: t.currentRun.number + 1}
		t.offline = false
	case resultFailing:
		t.addToRun(h, req, now)
		t.setResult(h, resultFailing)
		t.offline = t.offline || t.isNetworkDown()
	case resultNeutral:
		if h.lastResult == resultNeutral && h.inFlight == 0 {
			delete(t.hosts, host)
		}
	}
	return t.offline
}

// setResult sets the last result of h.
func (t *offlineTracker) setResult(h *hostState, r networkResult) {
	t.addToCounters(h, -1)
	h.lastResult = r
	t.addToCounters(h, 1)
}

// addToCounters adds n times h to the counters.
func (t *offlineTracker) addToCounters(h *hostState, n int) {
	switch h.lastResult {
	case resultFailing:
		t.hostsWithResult += n
		t.failingHosts += n
	case resultAnswered:
		t.hostsWithResult += n
		t.openFetches += n * h.inFlight
	default:
		t.openFetches += n * h.inFlight
	}
}

// addToRun adds h, whose check of req failed, to the run.
func (t *offlineTracker) addToRun(h *hostState, req flow.Request, now time.Time) {
	if h.lastRun == t.currentRun.number {
		return
	}
	h.lastRun = t.currentRun.number
	if t.currentRun.hosts++; t.currentRun.hosts == 1 {
		t.currentRun.since = now
	}
	if h.lastResult == resultAnswered || h.lastResult == resultNeutral && req.Failures == 0 && wasReadBefore(req) {
		t.currentRun.answeredBefore++
	}
	if req.Failures < deadPageFailures {
		t.currentRun.notDead++
	}
	if len(t.currentRun.pages) < maxEventPages {
		t.currentRun.pages = append(t.currentRun.pages, req.Page)
	}
}

// isNetworkDown reports whether the run shows that the network is down.
func (t *offlineTracker) isNetworkDown() bool {
	return t.currentRun.hosts >= minOfflineHosts && t.openFetches < t.currentRun.hosts &&
		(t.currentRun.answeredBefore >= 2 || t.failingHosts == t.hostsWithResult && t.currentRun.notDead > 0)
}

// wasReadBefore reports whether the page of req was read before.
func wasReadBefore(req flow.Request) bool {
	return req.BodyHash != "" || slices.ContainsFunc(req.Documents, func(d flow.RequestDocument) bool { return d.TextHash != "" })
}

// state returns whether the process is offline, and the present run, which must not be changed.
func (t *offlineTracker) state() (offline bool, r failureRun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r = t.currentRun
	r.pages = r.pages[:len(r.pages):len(r.pages)]
	return t.offline, r
}

// health publishes the health events offline and online.
type health struct {
	tracker   *offlineTracker
	processID string // names this process in IDs
	announced atomic.Bool

	mu          sync.Mutex // held while an event is published
	eventNumber uint64     // of the last event
	since       time.Time  // when the last offline phase that was announced began
}

// newHealth starts offline if since, when an earlier process went offline, is not zero.
func newHealth(since time.Time) *health {
	h := &health{tracker: newOfflineTracker(), processID: rand.Text()}
	if !since.IsZero() {
		h.takeOver(since)
	}
	return h
}

// takeOver starts offline, as an earlier process was from since on.
func (h *health) takeOver(since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.announced.Load() {
		return
	}
	h.tracker.goOffline()
	h.since = since
	h.announced.Store(true)
}

// TakeOver has the effect of Config.OfflineSince, if that is known only later: when this process gains
// the lane of one that was offline.
func (s *Stage) TakeOver(since time.Time) { s.health.takeOver(since) }

// isTracked reports whether the check of j says anything about the network: a page without a
// host, or one that is not fetched, does not.
func isTracked(j *job) bool { return j.busyError == nil && j.host.name != j.req.Page }

// endTracked ends the check of j and marks the outcomes that do not count because the process is offline.
// It publishes a change of that state first.
func (s *Stage) endTracked(ctx context.Context, j *job, outcomes []flow.Outcome) {
	r := networkResultOf(outcomes)
	offline := s.health.tracker.endFetch(j.host.name, j.req, r, s.cfg.Now())
	for i := range outcomes {
		outcomes[i].Offline = offline && r == resultFailing
	}
	if offline != s.health.announced.Load() {
		s.publishHealth(ctx)
	}
}

// publishHealth publishes whether the process is offline, if that changed. An event that cannot be
// published is tried again with the next check.
func (s *Stage) publishHealth(ctx context.Context) {
	h := s.health
	h.mu.Lock()
	defer h.mu.Unlock()
	offline, run := h.tracker.state()
	if offline == h.announced.Load() {
		return
	}
	e := pipeline.Health{Event: pipeline.HealthOnline, Time: s.cfg.Now(), Since: h.since, Reason: "a host answers again"}
	if offline {
		e.Event, e.Since, e.Count, e.URLs = pipeline.HealthOffline, run.since, run.hosts, run.pages
		e.Reason = fmt.Sprintf("%d hosts failed one after the other, and no other answered", run.hosts)
	}
	e.ID = flow.HealthID(e.Event, h.processID, h.eventNumber+1)
	if err := s.cfg.Publisher.Publish(ctx, flow.HealthMessage(e)); err != nil {
		if ctx.Err() == nil {
			s.cfg.Logger.Error("a health event could not be published; it is tried again with the next check", "event", e.Event, "err", err)
		}
		return
	}
	h.eventNumber++
	h.since = run.since
	h.announced.Store(offline)
	if offline {
		s.cfg.Logger.Warn("offline: nothing counts against pages until a host answers", "hosts", run.hosts, "pages", run.pages)
	} else {
		s.cfg.Logger.Info("online again", "offline_since", e.Since)
	}
}
