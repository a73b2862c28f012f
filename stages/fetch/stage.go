// Package fetch turns requests into outcomes: it fetches pages, within the limits of each host, and
// extracts the texts of their documents. It keeps no state of pages: a request has what is known, an
// outcome what was found.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/internal/span"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

// idleWorkers is how many goroutines are kept for the next fetch.
const idleWorkers = 64

// Config says how pages are fetched. What has no default is required.
type Config struct {
	// Publisher takes the outcomes.
	Publisher flow.Publisher
	// Unsynced takes the outcomes that may be lost in a crash: those without news, and failed checks.
	Unsynced flow.Publisher
	// Poster takes the outcomes of checks that found nothing new, which most checks have, of pages that
	// this process owns. They are then in no log. Nil means that Unsynced takes them.
	Poster flow.Poster
	// Owned says whether this process owns a page now. It must not block.
	Owned func(page string) bool
	// Fetchers fetch pages. The last one of a scheme is used; the one before it is its FetchRequest.Next.
	Fetchers []pipeline.Fetcher
	// Readers read them.
	Readers *Readers
	// Timeout bounds one fetch, body included, and then reading it.
	Timeout time.Duration
	// Concurrency is how many requests one host gets at once.
	Concurrency int
	// Rate is how many requests one host gets per second.
	Rate float64
	// InFlight is how many requests there are at once in all. Default 512. A host gets more
	// than one of them only while half of them are free. Hosts of which nothing is known get at most half of
	// them, and hosts that took more than 5 seconds for their last request a quarter.
	InFlight int
	// Queue is how many requests may wait, of one host at most as many as there is room left for
	// others. Without room a new request is dropped, and its owner sends it again. Default 131,072.
	Queue int
	// MaxBody bounds a decoded body in bytes, whatever Fetcher it comes from. Default 10 MiB.
	MaxBody int64
	// Room returns nil while fetches may begin. Otherwise it returns a channel that is closed when
	// they may begin again.
	Room func() <-chan struct{}
	// OfflineSince is when an earlier process went offline, if its last health event said so.
	// Failures do not count until a host answers.
	OfflineSince time.Time
	// UserAgent is the User-Agent of the Fetchers. Its part before the first slash is the name that
	// robots.txt gives this program. Default "vokter".
	UserAgent string
	// Robots says that robots.txt of its host must allow every fetch. Without it, only pages that
	// are watched because others link to them need that.
	Robots bool
	// MayLead reports whether a link on page may be followed to other.
	MayLead func(page, other string) bool
	// Memory bounds the memory for reading large pages. Nil means no bound.
	Memory flow.Memory
	// Reading calls read, which reads a page; key names the page as it is now, with its settings. It returns
	// an error if read must not be called, because processes died of it.
	Reading func(ctx context.Context, key string, read func()) error
	// Now is the clock.
	Now func() time.Time
	// Tracer gets a span of each check.
	Tracer span.Tracer
	// Logger gets what happens.
	Logger *slog.Logger
}

// Stage is the fetch stage: a Processor for flow.TopicRequests, which it only queues, and for
// flow.TopicIngest, and a pool that Run runs.
type Stage struct {
	cfg              Config
	fetchers         map[string]pipeline.Fetcher // by scheme
	queue            *queue
	smallBodyLimit   int64         // how large a body may be that takes no slot, in bytes
	bodySemaphore    chan struct{} // of larger bodies
	sitemapSemaphore chan struct{} // of larger sitemaps, which may be larger than MaxBody
	running          chan struct{} // held by Run
	health           *health
	robots           *robots
	// dropped counts the requests that were dropped since full logged it.
	dropped atomic.Int64
	dropLog rate.Sometimes
}

var _ flow.Processor = (*Stage)(nil)

// New returns a Stage.
func New(c Config) *Stage {
	if c.InFlight <= 0 {
		c.InFlight = 512
	}
	if c.Queue <= 0 {
		c.Queue = 1 << 17
	}
	if c.MaxBody <= 0 {
		c.MaxBody = 10 << 20
	}
	s := &Stage{
		cfg: c, fetchers: make(map[string]pipeline.Fetcher), running: make(chan struct{}, 1), health: newHealth(c.OfflineSince),
		smallBodyLimit: smallBodyLimit(c.InFlight), bodySemaphore: newBodySemaphore(c.MaxBody), sitemapSemaphore: newBodySemaphore(max(c.MaxBody, html.MaxSitemap)),
		dropLog: rate.Sometimes{First: 1, Interval: time.Minute},
		queue: newQueue(limits{
			maxPerHost: c.Concurrency, rate: rate.Limit(c.Rate), burst: max(1, int(c.Rate/10)),
			maxInFlight: c.InFlight, maxWaiting: c.Queue,
		}, c.Now),
	}
	for _, f := range c.Fetchers {
		for _, scheme := range f.Schemes() {
			s.fetchers[scheme] = chainedFetcher{f, s.fetchers[scheme]}
		}
	}
	s.robots = newRobots(cmp.Or(c.UserAgent, "vokter"), c.Now, c.Timeout, func(ctx context.Context, url, page string) (pipeline.Response, error) {
		scheme, _, _ := strings.Cut(url, ":")
		f := s.fetchers[scheme]
		if f == nil {
			return pipeline.Response{}, noFetcherError(scheme)
		}
		return f.Fetch(ctx, pipeline.FetchRequest{URL: url, Page: page})
	})
	return s
}

// chainedFetcher tells a Fetcher which one it stands before.
type chainedFetcher struct {
	pipeline.Fetcher
	next pipeline.Fetcher
}

func (c chainedFetcher) Fetch(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	r.Next = c.next
	return c.Fetcher.Fetch(ctx, r)
}

// noFetcherError is the error for a URL of a scheme without a Fetcher.
func noFetcherError(scheme string) error {
	return &pipeline.FetchError{Class: pipeline.FailURL, Reason: fmt.Sprintf("there is no source for the scheme %.20q", scheme)}
}

// Process queues a request when its transaction commits. If the process ends before the outcome is
// published, the owner of the request sends it again. A pushed page is passed on to its owner in the
// transaction.
func (s *Stage) Process(_ context.Context, tx flow.Tx, m flow.Message) error {
	if m.Topic == flow.TopicIngest {
		return s.handlePushed(tx, m)
	}
	j, err := newJob(m)
	if err != nil {
		return err
	}
	tx.OnCommit(func() { s.enqueue(j) })
	return nil
}

// Take queues a request that index hands over in this process. It does not block.
func (s *Stage) Take(m flow.Message) {
	j, err := newJob(m)
	if err != nil {
		s.cfg.Logger.Error("a request was dropped; it will be made again", "id", m.ID, "err", err)
		return
	}
	s.enqueue(j)
}

// newJob returns the request in m as a job.
func newJob(m flow.Message) (*job, error) {
	if m.Type != flow.TypeRequest {
		return nil, m.UnknownType(flow.GroupFetch)
	}
	req, err := flow.RequestFrom(m)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	if req.Page == "" || len(req.Documents) == 0 {
		return nil, failure.Permanent(fmt.Errorf("fetch: request %s names no page or no document", m.ID))
	}
	return &job{req: req, trace: m.Trace}, nil
}

// enqueue queues j, or drops it if there is no room.
func (s *Stage) enqueue(j *job) {
	if !s.queue.add(j) {
		s.logDropped(j.req.Page)
	}
}

// logDropped counts a request for which the queue has no room, and says so at most once a minute.
func (s *Stage) logDropped(page string) {
	s.dropped.Add(1)
	s.dropLog.Do(func() {
		s.cfg.Logger.Warn("too many requests wait; those that were dropped will be made again in a few minutes", "dropped", s.dropped.Swap(0), "host", pageurl.Host(page))
	})
}

// Idle reports whether nothing waits, is being fetched or being published.
func (s *Stage) Idle() bool { return s.queue.isIdle() }

// Run fetches the queued pages until ctx is done. Then it cancels the open fetches, publishes nothing
// more, and returns nil when all have ended. Only one Run can be active.
func (s *Stage) Run(ctx context.Context) error {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	default:
		return errors.New("fetch: the stage runs already")
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{}, s.cfg.InFlight)
	active := 0
	workers := memory.NewPool(idleWorkers)
	defer workers.Close()
	defer func() {
		cancel()
		for ; active > 0; active-- {
			<-ended
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var jobs []*job
		var after time.Duration
		var again bool
		room := s.cfg.Room()
		if room == nil {
			jobs, after, again = s.queue.takeReady()
		}
		for _, j := range jobs {
			active++
			workers.Go(func() {
				defer func() { ended <- struct{}{} }()
				s.runJob(ctx, j)
			})
		}
		if again {
			timer.Reset(after)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
			active--
		case <-room:
		case <-s.queue.changed:
		case <-timer.C:
		}
	}
}
