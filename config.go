package vokter

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Config says what a Router does. The zero value of every field is useful.
type Config struct {
	// Name is the Router's name in logs, and its namespace in a Store that several Routers
	// share: Routers with different names see nothing of each other.
	Name string
	// Store is an open data directory to use instead of Dir. It stays open.
	Store *Store
	// Mode says which of its work the Router does. Default: all.
	Mode Mode
	// Dir is the data directory; it is made if it does not exist. Empty: everything is
	// kept in memory and gone with the process. With a Transport it is where that may keep
	// a cache.
	Dir string
	// MinFree is how many bytes the disk of Dir, or of Store, must have free. Below that nothing is
	// fetched, commands fail and Ready says so, until there is room again. Default 256 MB.
	// In memory nothing is watched, and with a Transport it is for that to watch Dir.
	MinFree int64
	// Memory is how many bytes comparing pages may take at the same time: those that need much
	// wait for each other, and small ones for none. One that needs more than that alone is
	// compared alone. Default: a quarter of what the process may use, at least 64 MB and at most
	// 1 GB. It may use the least of GOMEMLIMIT, the limit of its cgroup, RLIMIT_AS (on Linux) and
	// the memory of the machine.
	Memory int64
	// Transport replaces the embedded transport over Dir. The Router starts and closes it.
	Transport flow.Transport
	// Sinks are the sinks that subscriptions name, by names without blanks. One with a method Validate() error is
	// refused by New where that returns an error. One that is an io.Closer is closed when Run
	// ends, also where Run could not start, or after Reload with a Config that does not have it.
	Sinks map[string]pipeline.Sink
	// Subscriptions are all that Origin wants: at start what is new is added, what
	// differs is changed, and what Origin had in the data directory and is not here is
	// cancelled. More can be added at any time with Router.Subscribe.
	Subscriptions []pipeline.Subscription
	// ResumeExpired begins anew what expired earlier and is in Subscriptions or Documents
	// again. Without it such an entry stays expired until it changes, or Router.Resume.
	ResumeExpired bool
	// Documents are pages to be watched without a subscription, each once.
	Documents []Document
	// Origin names who made Subscriptions, so that several who use one data directory
	// leave each other's alone. It must not be OriginAPI. Default "go".
	Origin string
	// Sources bring pages from elsewhere, each under a name for the logs. A page that nobody
	// watches, and that is not kept, is dropped. One with a method Validate() error is refused
	// by New where that returns an error.
	Sources map[string]pipeline.Source
	// Fetchers replace the built-in one for the schemes they serve.
	Fetchers []pipeline.Fetcher
	// Readers replace the built-in ones for the content types they read.
	Readers []pipeline.Reader
	// Stemmers replace or add to the built-in ones.
	Stemmers []pipeline.Stemmer
	// Fetch says how pages are fetched.
	Fetch FetchConfig
	// Delivery says how notifications are delivered.
	Delivery DeliveryConfig
	// Expire says when a page is given up.
	Expire ExpireConfig
	// Health names the sinks that are told of health events.
	Health []string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Versions is how many versions of a document are kept. Default 10.
	Versions int
	// Checks ends Run after that many checks of every page and the delivery of all that
	// follows. 0: Run goes on until its context is done.
	Checks int
	// Every overrides the intervals of all subscriptions and lifts Fetch.MinInterval;
	// 0 checks again at once.
	Every *time.Duration
	// Only restricts checks to these URLs in this run; empty means all.
	Only []string
	// Drain is how long Run goes on delivering once its context is done. Default 10 s.
	Drain time.Duration
	// Logger gets what happens. Default: nothing is logged.
	Logger *slog.Logger
	// OnFatal is called before Run gives up because the store failed.
	OnFatal func(error)
	// Middleware wraps the stages, by consumer group (pipeline.GroupIndex, ...); the first
	// is the outermost.
	Middleware map[string][]flow.Middleware
	// WatermillMiddleware wraps the Watermill handler of every consumer: those of the stages and
	// of Handle. The first is the outermost; all are outside Middleware. They see each message
	// with UUID, metadata and payload, and message.HandlerNameFromCtx names the handler:
	// "vokter.GROUP.TOPIC", or "vokter.NAME.GROUP.TOPIC" where Name is set. What they change in
	// the message has no effect on the stages, and its context must be handed on. A message that
	// one of them fails comes again, without end. One that they answer with nil counts as
	// handled, whether a stage saw it or not. They must return no messages.
	WatermillMiddleware []message.HandlerMiddleware
	// Watermill is a router of the program that the handlers are added to, so that its
	// middleware and its decorators are around them; outside WatermillMiddleware. The program
	// runs it and closes it. Run waits until it runs, adds the handlers, and stops them when it
	// ends; the router and its other handlers go on, but a router that has no other handlers
	// closes itself then, as Watermill's routers do. The program must not close it before Run
	// returned: Run fails where its handlers end early, and what is not delivered by then is
	// left to the next start. To end the context of the router's own Run is harmless. Default:
	// the Router has a router of its own.
	Watermill *message.Router
}

// Document is a page that is watched without a subscription, for its versions and changes.
type Document struct {
	URL string
	// Keep keeps the page alive while nobody subscribes to it. It must be set: without it New
	// refuses the Document, which would do nothing.
	Keep bool
	// Interval is Never for a page that is only pushed: it is not fetched unless a
	// subscription asks for that. Otherwise 0.
	Interval pipeline.Duration
}

// FetchConfig says how pages are fetched.
type FetchConfig struct {
	// Timeout bounds one fetch, body included. Default 30 s.
	Timeout time.Duration
	// UserAgent is sent with every request. Default "vokter/VERSION (+URL)".
	UserAgent string
	// MinInterval is the shortest interval between checks of a page. Default 10 s.
	MinInterval time.Duration
	// Concurrency is how many requests one host gets at once. Default 2.
	Concurrency int
	// Rate is how many requests one host gets per second. Default 1.
	Rate float64
	// Allow are networks that pages may be in besides public addresses. Sinks have lists of
	// their own, such as webhook.Allow.
	Allow []netip.Prefix
	// MaxBody bounds a decoded body in bytes. Default 10 MiB.
	MaxBody int64
}

// DeliveryConfig says how notifications are delivered.
type DeliveryConfig struct {
	// Retry are the delays between attempts; the last one repeats. Default 5s, 30s, 5m,
	// 30m, 2h, 5h, 10h, 12h.
	Retry []time.Duration
	// DeadAfter is how long after its first attempt a notification is given up. Default 72 h.
	DeadAfter time.Duration
	// ExpireAfter is how long a receiver may fail without a success before it is expired.
	// Default 120 h.
	ExpireAfter time.Duration
}

// ExpireConfig says when a page is given up: each of its clients gets one timeout
// notification, and its subscriptions end.
type ExpireConfig struct {
	// After is how many failed checks in a row it takes. Default 10; negative: never.
	After int
	// SelectorGone also counts checks that find no text: a selector without a match, an
	// empty page.
	SelectorGone bool
}

// Mode says which of its work a Router does.
type Mode int

const (
	// ModeAll watches and delivers.
	ModeAll Mode = iota
	// ModeDeliver delivers what is pending or replayed. No page is checked, and
	// subscriptions stay as they are, whatever Config says of them.
	ModeDeliver
	// ModeCommands carries out commands such as Cancel and lets the data directory be read.
	// Everything else in it is left as it is, for a Router that knows its configuration.
	ModeCommands
)

// asleep lists the groups that leave alone what they have scheduled.
func (m Mode) asleep() []string {
	switch m {
	case ModeDeliver:
		return []string{flow.GroupIndex}
	case ModeCommands:
		return []string{flow.GroupIndex, flow.GroupDelivery}
	}
	return nil
}

// defaultMinFree is Config.MinFree on a disk.
const defaultMinFree = 256_000_000

// defaultMemory is Config.Memory where the process may use limit bytes.
func defaultMemory(limit int64) int64 { return min(max(limit/4, 64_000_000), 1_000_000_000) }

func (c Config) withDefaults() Config {
	if c.MinFree == 0 && (c.Dir != "" || c.Store != nil) {
		c.MinFree = defaultMinFree
	}
	if c.Memory == 0 {
		c.Memory = defaultMemory(memory.Limit())
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Expire.After == 0 {
		c.Expire.After = 10
	}
	if c.Origin == "" {
		c.Origin = "go"
	}
	if c.Fetch.Timeout == 0 {
		c.Fetch.Timeout = 30 * time.Second
	}
	if c.Fetch.MinInterval == 0 {
		c.Fetch.MinInterval = pipeline.DefaultMinInterval
	}
	if c.Fetch.Concurrency == 0 {
		c.Fetch.Concurrency = 2
	}
	if c.Fetch.Rate == 0 {
		c.Fetch.Rate = 1
	}
	if c.Versions == 0 {
		c.Versions = 10
	}
	if c.Drain == 0 {
		c.Drain = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Name != "" {
		c.Logger = c.Logger.With("router", c.Name)
	}
	return c
}

// Listener is a Sink of functions, for programs that handle changes and timeouts apart.
// An error brings the notification again later; a function that is nil takes everything.
type Listener struct {
	// OnNotification is called with the matches of one change, or where the subscription has a
	// digest with those of several, n.Items.
	OnNotification func(ctx context.Context, n pipeline.Notification) error
	// OnTimeout is called once for each client of a page that failed too often: its
	// subscriptions there have ended.
	OnTimeout func(ctx context.Context, n pipeline.Notification) error
	// OnHealth is called with health events, where the sink is among Config.Health.
	OnHealth func(ctx context.Context, n pipeline.Notification) error
}

var _ pipeline.Sink = Listener{}

// Deliver calls the function for n.
func (l Listener) Deliver(ctx context.Context, n pipeline.Notification) error {
	f := l.OnNotification
	switch {
	case n.Type == pipeline.NotificationTypeHealth:
		f = l.OnHealth
	case n.Status == pipeline.StatusTimeout:
		f = l.OnTimeout
	}
	if f == nil {
		return nil
	}
	return f(ctx, n)
}
