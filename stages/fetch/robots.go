package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// Bounds of reading robots.txt. RFC 9309 asks for at least 500 KiB, and for no use of a copy that is
// older than a day.
const (
	maxRobots    = 512 << 10
	robotsMaxAge = 24 * time.Hour
	// robotsRetryAfter is when robots.txt is asked for again that could not be reached.
	robotsRetryAfter = 10 * time.Minute
	// robotsAllowAllAfter is for how long robots.txt must be unreachable until everything is allowed.
	robotsAllowAllAfter = 30 * 24 * time.Hour
	// maxRobotsHosts is how many hosts are remembered, and maxRobotsMemory how much memory their rules take.
	maxRobotsHosts  = 4096
	maxRobotsMemory = 32 << 20
)

// robots knows what the robots.txt of hosts allow. It is safe for concurrent use.
type robots struct {
	agent    string                                                                 // the product token, by which robots.txt names this program
	fetchURL func(ctx context.Context, url, page string) (pipeline.Response, error) // page is what url is needed for
	now      func() time.Time
	// timeout is how long a robots.txt may take.
	timeout time.Duration

	mu    sync.Mutex
	hosts map[string]*robotsHost // by scheme, host and port
	size  int                    // of all rules, in bytes
}

// robotsHost is what is known of one host. Its lock is held while robots.txt is fetched, so that
// other fetches of the host wait for it.
type robotsHost struct {
	lock         chan struct{}
	rules        robotsRules
	wasRead      bool      // it was read
	refreshAt    time.Time // when it is asked for again
	failingSince time.Time // since when it cannot be reached; zero if it can
	err          error     // why
	size         int       // of rules, as it is part of robots.size
}

func newRobots(agent string, now func() time.Time, timeout time.Duration, get func(ctx context.Context, url, page string) (pipeline.Response, error)) *robots {
	return &robots{agent: productToken(agent), fetchURL: get, now: now, timeout: timeout, hosts: make(map[string]*robotsHost)}
}

// checkAllowed returns nil if robots.txt of the host allows to fetch page, and otherwise a
// *pipeline.FetchError. As RFC 9309 says, a host without robots.txt allows everything, and one whose
// robots.txt cannot be reached nothing: until it can, the copy that was read last is used, and after
// 30 days everything is allowed.
func (r *robots) checkAllowed(ctx context.Context, page string) error {
	u, err := url.Parse(page)
	if err != nil {
		return &pipeline.FetchError{Class: pipeline.FailURL, Reason: "this is not a URL", Err: err}
	}
	if u.Host == "" { // a file
		return nil
	}
	name := u.Scheme + "://" + u.Host
	h := r.hostEntry(name)
	select {
	case h.lock <- struct{}{}:
		defer func() { <-h.lock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if now := r.now(); !now.Before(h.refreshAt) || h.refreshAt.Sub(now) > robotsMaxAge { // or the clock was set back
		if err := r.refresh(ctx, h, name, page); err != nil {
			return err
		}
	}
	if !h.wasRead {
		if r.now().Sub(h.failingSince) >= robotsAllowAllAfter {
			return nil
		}
		e := pipeline.FetchError{Class: pipeline.FailNetwork, Err: h.err}
		if f, ok := errors.AsType[*pipeline.FetchError](h.err); ok {
			e = *f
		}
		e.Reason = "robots.txt of the host cannot be read, so its pages are not fetched: " + e.Reason
		return &e
	}
	path := u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	if !h.rules.allows(path) {
		return &pipeline.FetchError{Class: pipeline.FailRobots, Reason: fmt.Sprintf("robots.txt of %.200q forbids to fetch this page", u.Host)}
	}
	return nil
}

// hostEntry returns the entry of a host.
func (r *robots) hostEntry(name string) *robotsHost {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h := r.hosts[name]; h != nil {
		return h
	}
	if len(r.hosts) >= maxRobotsHosts {
		for other := range r.hosts { // any will do
			r.evictHost(other)
			break
		}
	}
	h := &robotsHost{lock: make(chan struct{}, 1)}
	r.hosts[name] = h
	return h
}

// evictHost removes a host. r.mu is held.
func (r *robots) evictHost(name string) {
	r.size -= r.hosts[name].size
	delete(r.hosts, name)
}

// setRulesSize notes that the rules of h, the host of that name, take size bytes. It forgets other hosts while
// the rules of all take too much memory.
func (r *robots) setRulesSize(name string, h *robotsHost, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts[name] != h { // it was forgotten
		return
	}
	r.size += size - h.size
	h.size = size
	for other, o := range r.hosts {
		if r.size <= maxRobotsMemory {
			return
		}
		if o != h && o.size > 0 {
			r.evictHost(other)
		}
	}
}

// refresh fetches the robots.txt of the host of that name into h, whose lock is held. It fails only if ctx is
// canceled. A robots.txt that takes too long cannot be reached, also if that is because the time of the
// page is over.
func (r *robots) refresh(ctx context.Context, h *robotsHost, name, page string) error {
	inTime, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var rules robotsRules
	err := recoverPanic(func() (err error) {
		rules, err = r.fetch(inTime, name+"/robots.txt", page)
		return err
	})
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	now := r.now()
	if err == nil {
		h.rules, h.wasRead, h.refreshAt, h.failingSince, h.err = rules, true, now.Add(robotsMaxAge), time.Time{}, nil
		r.setRulesSize(name, h, rules.size())
		return nil
	}
	if h.refreshAt, h.err = now.Add(robotsRetryAfter), err; h.failingSince.IsZero() {
		h.failingSince = now
	}
	return nil
}

// fetch returns the rules at address, for page, or why the host cannot be asked for them.
func (r *robots) fetch(ctx context.Context, address, page string) (robotsRules, error) {
	resp, err := r.fetchURL(ctx, address, page)
	if err != nil {
		if e, ok := errors.AsType[*pipeline.FetchError](err); ok && e.Status >= 400 && e.Status < 500 && e.Class != pipeline.FailBusy {
			return nil, nil // there is none
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRobots))
	if err != nil {
		return nil, err
	}
	return parseRobots(body, r.agent), nil
}
