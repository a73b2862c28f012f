package vokter

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"go.opentelemetry.io/otel/trace"

	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	httpsource "github.com/vokter/vokter/sources/http"
	"github.com/vokter/vokter/stages/index"
)

// Config says what a Router does. The zero value of every field is useful: it stands for the default
// that the field names. [New] refuses negative numbers, except where a field says otherwise.
type Config struct {
	// Name is the Router's name in logs, and its namespace in a Store that several Routers
	// share: Routers with different names see nothing of each other.
	Name string
	// Store is an open data directory to use instead of Dir. Run does not close it. A Config has neither
	// Dir nor Transport beside it.
	Store *Store
	// Mode says which part of the work the Router does. Default: ModeAll.
	Mode Mode
	// Dir is the data directory. Run makes it if it does not exist. Empty: everything is kept in
	// memory and is lost when the process ends. With a Transport it is the directory for the
	// Transport's cache.
	Dir string
	// MinFree is how many bytes must be free on the disk of Dir or Store. With less, the Router
	// fetches nothing, commands fail and Ready returns the reason, until there is room again.
	// Default 256,000,000. It does not apply to a Router in memory; a Transport checks it for its
	// cache.
	MinFree int64
	// Memory is how many bytes all comparisons of pages may take together. Comparisons of large
	// pages wait for each other; those of small pages never wait. A comparison that needs more
	// than Memory runs alone. Default: a quarter of what the process may use, at least 64 MB and
	// at most 1 GB. What it may use is the least of GOMEMLIMIT, the limit of its cgroup,
	// RLIMIT_AS (on Linux) and the memory of the machine. The store of Dir may hold another eighth
	// of Memory in memory, at least 10 MB: what was written last, and a cache of what was read.
	Memory int64
	// Transport replaces the embedded transport over Dir. Run starts it and closes it.
	Transport flow.Transport
	// Sinks are the sinks that subscriptions name, by name. Names have no blanks. Where a sink has
	// a method Validate() error, New calls it and returns its error. Where a sink is an
	// io.Closer, the Router closes it when Run ends, also if Run could not start, or after a
	// Reload whose Config does not have it.
	Sinks map[string]pipeline.Sink
	// SinkOf returns the sink of a name that Sinks does not have, or nil where there is none. It
	// makes sinks while the Router runs, such as those of rest.Receivers. It must be safe for
	// concurrent use, return at once, and know the same names after a restart. These sinks are not
	// closed, and Reload keeps the SinkOf of New. Default: Sinks has all.
	SinkOf func(name string) pipeline.Sink
	// PublicURL is the address of a web page about the Router, such as https://vokter.example.com, to
	// which notifications link. Vokter-stream serves such a page. Default: there are no links.
	PublicURL string
	// EventSource is a URI that names this installation: the ce_source of the CloudEvents in the topics of a Transport
	// and from sinks. Default: PublicURL, and without it flow.SourceVokter.
	EventSource string
	// Subscriptions are all subscriptions of Origin. At its start the Router adds those that are
	// new, changes those that differ, and cancels those of Origin that are in the data directory
	// but not here. Router.Subscribe adds more at any time.
	Subscriptions []pipeline.Subscription
	// ResumeExpired restarts expired entries of Subscriptions and Documents. Without it such an
	// entry stays expired until it changes or Router.Resume restarts it.
	ResumeExpired bool
	// Documents are pages to watch without a subscription. Each may occur once.
	Documents []Document
	// Origin names the owner of Subscriptions. A Router changes and cancels those of its own
	// origin only, so that several programs can use one data directory in turn. It must not be
	// OriginAPI. Default "go".
	Origin string
	// Sources push pages into the pipeline. Their names are for the logs. A pushed page that
	// nobody watches, and that Documents does not keep, is dropped. Where a source has a method
	// Validate() error, New calls it and returns its error.
	Sources map[string]pipeline.Source
	// Fetchers replace the built-in fetcher for the URL schemes that they serve, or add schemes. One that
	// fetches only some pages of a scheme, such as sources/browser, hands the others over to
	// FetchRequest.Next. Where a fetcher has a method Gauges() []flow.Gauge, Router.Gauges has them too.
	Fetchers []pipeline.Fetcher
	// Readers replace the built-in readers for the content types that they read, or add types. Markdown is not built in:
	// markdown.New() of stages/fetch/readers/markdown reads it. Default: a page in Markdown is a failed check.
	Readers []pipeline.Reader
	// Stemmers are the stemmers of languages besides English: those of package pipeline/text/stemmers, of which
	// stemmers.All() returns all, or your own. Default: a subscription with Stem that names one of these languages is
	// refused; on a page of one, words are compared as they stand, with a warning.
	Stemmers []pipeline.Stemmer
	// Language is the language of pages whose language nothing tells: no subscription, no Document,
	// not the page, and not its text. It is a BCP 47 tag. Default text.DefaultLanguage.
	Language string
	// Fetch says how pages are fetched.
	Fetch FetchConfig
	// Access says, by names of its own, how the built-in fetcher reaches hosts and pages that ask
	// for headers, cookies, a login, a proxy or a client certificate.
	Access map[string]httpsource.Access
	// Delivery says how notifications are delivered.
	Delivery DeliveryConfig
	// Expire says when the clients of a failing page are told, and when its subscriptions end.
	Expire ExpireConfig
	// Health names the sinks, among Sinks, that get health events.
	Health []string
	// Changes names the sinks, among Sinks, that get the change record of each change of every
	// document. They have to be pipeline.ChangeSinks.
	Changes []string
	// Baseline makes a change record of a version that is compared with nothing as well, such as the first one of a
	// document: flow.Change.Baseline is set, and all of its text is added. Subscriptions are not told of it. Default: none.
	Baseline bool
	// Now is the clock of the times in records, such as Notification.Time and the age of versions. Timers do not
	// follow it: a test that lets time pass runs in a bubble of testing/synctest. Default: time.Now.
	Now func() time.Time
	// Retention says which versions of documents are kept.
	Retention Retention
	// Checks makes Run end after that many checks of every page, once the notifications that
	// follow are delivered, with ErrNothingRead where all of them failed. 0: Run goes on until its context is done.
	Checks int
	// Every overrides the intervals of all subscriptions, and Fetch.MinInterval does not apply.
	// A pointer to 0 checks again at once, and without a limit of requests per second unless Fetch.Rate
	// sets one. nil: subscriptions say how often.
	Every *time.Duration
	// Only restricts the checks of this run to these URLs. Empty: all pages are checked.
	Only []string
	// Drain is how long Run at most delivers pending notifications once its context is done.
	// Default 10 s.
	Drain time.Duration
	// Logger gets log records. Default: slog.Default(). For no records at all give a Logger of slog.DiscardHandler.
	Logger *slog.Logger
	// TracerProvider gets a span of each check, each attempt to deliver, and the handling of each
	// message between them, all of one trace for what follows from one check. Messages carry the
	// trace as the header traceparent. Default: no spans are made.
	TracerProvider trace.TracerProvider
	// OnFatal is called with the reason just before Run ends because the store failed. Default:
	// nothing is called.
	OnFatal func(error)
	// Middleware wraps the stages, by consumer group: flow.GroupFetch, GroupIndex, GroupDiff,
	// GroupMatch and GroupDelivery. The first is the outermost. It runs within the attempts to
	// handle a message, and in its transaction. A message that one of them does not pass on, with its
	// context, becomes a dead letter.
	Middleware map[string][]flow.Middleware
	// WatermillMiddleware wraps the Watermill handler of every consumer: those of the stages
	// and of Handle. The first is the outermost; all are outside Middleware. They see each
	// message with UUID, metadata and payload, and message.HandlerNameFromCtx names the
	// handler: "vokter.GROUP.TOPIC", or "vokter.NAME.GROUP.TOPIC" where Name is set. Their
	// changes to the message have no effect on the stages, and they must pass its context on.
	// Where one of them returns an error the message is redelivered, without end. A message that
	// they acknowledge without its handler becomes a dead letter, with an error in the log; wakes and
	// results that nobody published are handled past them. They must return no messages. The file
	// docs/watermill.md says which of Watermill's own are of use.
	WatermillMiddleware []message.HandlerMiddleware
	// Watermill is a router of the program that the handlers are added to, so that its middleware
	// is around them, outside WatermillMiddleware. Its decorators of subscribers see the messages
	// of topics, those of publishers nothing. The program runs it and closes it. Run waits until
	// it runs, adds the handlers, and stops them when it ends; the router and its other handlers
	// go on, but a router that has no other handlers closes itself then, as Watermill's routers
	// do. The program must not close it before Run has returned: Run fails where its handlers end
	// early, and leaves the remaining notifications to the next start. The program may cancel the
	// context of the router's own Run. Default: the Router has a router of its own.
	Watermill *message.Router
}

// Document is a page that is watched without a subscription, for its versions and changes.
type Document struct {
	// URL is the address of the page.
	URL string
	// Keep watches the page while nobody subscribes to it. New refuses a Document without it.
	Keep bool
	// Interval is pipeline.Never for a page that is only pushed: it is fetched only where a
	// subscription asks for that. Otherwise it is the zero Interval.
	Interval pipeline.Interval
	// Retention takes the place of that of Config for the documents of this page. Zero fields mean those of Config. Its
	// Disk is 0: the bound holds for all pages together.
	Retention Retention
	// Expire says what becomes of the page where checks of it fail, for its subscriptions too where they do not say
	// it. Zero fields mean those of Config.Expire.
	Expire pipeline.Expire
	// Language is the language of the page, a BCP 47 tag, if what the page declares is missing or
	// wrong. The Language of a subscription comes before it.
	Language string
	// Changes names the sinks, among Config.Sinks, that get the change records of the page, besides
	// those of Config.Changes.
	Changes []string
}

// Retention says which versions of a document are kept. The current one always is, and what a notification of the last
// 30 days links to. Versions are dropped at the checks of their page.
type Retention struct {
	// Age is how long a version is kept after the next one has taken its place. Default 90 days.
	Age time.Duration
	// Versions is how many are kept at most, 2 to MaxVersions. Default 1000.
	Versions int
	// Disk is the share of the disk that the data directory may take, above 0 to 1, before the oldest versions of all
	// documents are dropped early, those last that notifications link to. Default 0.5.
	Disk float64
}

// MaxVersions is the largest Retention.Versions.
const MaxVersions = index.MaxKeep

// FetchConfig says how pages are fetched.
type FetchConfig struct {
	// Timeout is the longest time that one fetch may take, body included. Default 30 s.
	Timeout time.Duration
	// UserAgent is sent with every request. Default "vokter/VERSION (+URL)".
	UserAgent string
	// MinInterval is the shortest interval between checks of a page. Default 10 s.
	MinInterval time.Duration
	// Concurrency is how many requests may be open to one host at the same time. Default 2.
	Concurrency int
	// Rate is how many requests per second one host gets at most. It may be a fraction. Default 1, and no limit where
	// Config.Every is 0.
	Rate float64
	// Allow lists networks that the built-in fetcher may connect to besides public addresses.
	// Sinks have lists of their own, such as Allow of webhook.Config. Default: public addresses
	// only.
	Allow []netip.Prefix
	// Files lists what may be read as file URLs, as absolute paths: a folder permits all that is in
	// it and below it, a file permits itself. Symbolic links that lead out of a folder are refused.
	// Changes are noticed at once where the system reports them. Default: nothing may be read.
	Files []string
	// Robots says that robots.txt of its host must allow a page to be fetched. Default: it must only
	// for pages that are watched because others link to them.
	Robots bool
	// MaxBody is the size of the largest body, decoded, in bytes. Default 10 MiB.
	MaxBody int64
	// PDF makes pages in PDF readable, by the program pdftotext of Poppler, which must be installed.
	// It is a process of its own, since parsers of PDF are large and pages come from anywhere.
	// Default: pages in PDF are failed checks.
	PDF bool
}

// DeliveryConfig says how notifications are delivered.
type DeliveryConfig struct {
	// Retry lists the delays between attempts; the last one repeats. A new notification, or a success
	// of another sink at the same host, makes an attempt early. Default 5s, 30s, 5m, 15m, and 1h
	// once the receiver has failed for a day.
	Retry []time.Duration
	// DeadAfter is how long after its first attempt a notification becomes a dead letter.
	// Default 72 h.
	DeadAfter time.Duration
	// ExpireAfter is how long a receiver may fail without a success before it expires: its
	// subscriptions end. Default 120 h.
	ExpireAfter time.Duration
	// Receivers says how sinks get their notifications, by the name of the sink: grouped, not in
	// quiet hours, or by another sink while this one fails. Default: each at once.
	Receivers map[string]pipeline.Receiving
}

// ExpireConfig says what becomes of a page of which check after check fails, where neither its Document nor a
// subscription says it.
type ExpireConfig struct {
	// After is after how many failed checks in a row a client gets its timeout notification and the page is dormant.
	// Default 10; negative: never.
	After int
	// Retry is how long a dormant page is checked, ever more rarely, before it expires. Default 30 days; negative: the
	// subscription ends with the timeout notification.
	Retry time.Duration
	// SelectorGone makes checks that find no text count as failed: a selector without a match,
	// an empty page, or one that looks replaced (pipeline.View.Replaced). Default: they do not count.
	SelectorGone bool
}

func (c ExpireConfig) toPipeline() pipeline.Expire {
	return pipeline.Expire{After: c.After, Retry: c.Retry}
}

// Mode says which part of its work a Router does.
type Mode int

const (
	// ModeAll watches and delivers.
	ModeAll Mode = iota
	// ModeDeliver delivers what Retry and Replay ask for, and ends with Finish as soon as each of these notifications
	// was attempted. It checks no page and leaves subscriptions as they are, whatever Config.Subscriptions says.
	ModeDeliver
	// ModeCommands carries out commands such as Cancel, and answers List and Explain. It does
	// nothing else, so that it needs no configuration.
	ModeCommands
)

// groupsWithoutWakes returns the consumer groups whose wakes are not delivered in this mode.
func (m Mode) groupsWithoutWakes() []string {
	switch m {
	case ModeDeliver:
		return []string{flow.GroupIndex, flow.GroupDelivery}
	case ModeCommands:
		return []string{flow.GroupIndex, flow.GroupMatch, flow.GroupDelivery}
	}
	return nil
}

// unlimitedRate is a Fetch.Rate that no host reaches.
const unlimitedRate = 1e6

// defaultMinFree is the default of Config.MinFree for a data directory.
const defaultMinFree = 256_000_000

// defaultMemory returns the default of Config.Memory for a process that may use limit bytes.
func defaultMemory(limit int64) int64 { return min(max(limit/4, 64_000_000), 1_000_000_000) }

// storeMemory returns how much memory the store may hold if comparisons may take budget bytes.
func storeMemory(budget int64) int64 { return max(budget/8, 1) }

// dataDirectory returns the directory of Dir or Store, empty where everything is in memory.
func (c *Config) dataDirectory() string {
	if c.Store != nil {
		return c.Store.db.Dir()
	}
	return c.Dir
}

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
	e := c.Expire.toPipeline().Or(pipeline.DefaultExpire)
	c.Expire.After, c.Expire.Retry = e.After, e.Retry
	c.Origin = cmp.Or(c.Origin, "go")
	c.Fetch.Timeout = cmp.Or(c.Fetch.Timeout, 30*time.Second)
	c.Fetch.MinInterval = cmp.Or(c.Fetch.MinInterval, pipeline.DefaultMinInterval)
	c.Fetch.Concurrency = cmp.Or(c.Fetch.Concurrency, 2)
	rate := 1.0
	if c.Every != nil && *c.Every == 0 {
		rate = unlimitedRate
	}
	c.Fetch.Rate = cmp.Or(c.Fetch.Rate, rate)
	c.Retention.Age = cmp.Or(c.Retention.Age, index.DefaultKeepFor)
	c.Retention.Versions = cmp.Or(c.Retention.Versions, index.DefaultKeep)
	c.Retention.Disk = cmp.Or(c.Retention.Disk, 0.5)
	c.Drain = cmp.Or(c.Drain, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Name != "" {
		c.Logger = c.Logger.With("router", c.Name)
	}
	return c
}

// Listener is a Sink that calls a function for each kind of notification. Where a function
// returns an error the notification is delivered again later. A nil function accepts every
// notification.
type Listener struct {
	// OnNotification is called with the matches of one change. Where the subscription has a
	// digest, n.Items has those of several changes.
	OnNotification func(ctx context.Context, n pipeline.Notification) error
	// OnTimeout is called once for each client of a page that fails for too long, and once more when it answers again
	// or expires: n.Status is pipeline.StatusTimeout, StatusRecovered or StatusExpired.
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
	case n.TellsOutage():
		f = l.OnTimeout
	}
	if f == nil {
		return nil
	}
	return f(ctx, n)
}
