package vokter_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/sinks/webhook"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/match"
)

// A program that prints each change of a page that adds or removes a keyword.
func ExampleWatch() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := vokter.Watch(ctx, "https://example.com/item/7", func(n pipeline.Notification) {
		for _, d := range n.Diffs {
			fmt.Println(d.Event, d.Snippet)
		}
	}, "out of stock")
	if err != nil {
		log.Fatal(err)
	}
}

// A service that watches a page, with a webhook and a function as sinks.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	hook, err := webhook.New(webhook.Config{
		URL: registry.NewSecret("https://ops.example.com/in"), Secret: registry.NewSecret(os.Getenv("HOOK_SECRET")),
	})
	if err != nil {
		log.Fatal(err)
	}
	r, err := vokter.New(vokter.Config{
		Dir: "/var/lib/shop", // empty: everything in memory
		Sinks: map[string]pipeline.Sink{
			"hook": hook,
			"log": pipeline.SinkFunc(func(ctx context.Context, n pipeline.Notification) error {
				slog.Info(n.URL, "diffs", n.Diffs)
				return nil // nil: delivered, never sent again
			}),
		},
		Subscriptions: []pipeline.Subscription{{
			URL: "https://example.com/item/7", Client: "shop",
			Keywords: []string{"out of stock"},
			Interval: pipeline.Every(5 * time.Minute), Sinks: []string{"log", "hook"},
		}}, // more at any time: r.Subscribe(ctx, s), r.Cancel(ctx, url, client)
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		log.Fatal(err)
	} // nil after a clean drain
}

// shop serves a page that is another one at every request; the last one stays.
func shop(contentType string, pages ...string) *httptest.Server {
	var n atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, pages[min(int(n.Add(1)), len(pages))-1])
	}))
}

// loopback permits the pages of the examples, which are served on this machine.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// A sink is one method. It returns nil only when the receiver has the notification;
// after an error it gets the same notification again.
func Example_sink() {
	site := shop("text/html", "<p>Zeus. In stock.</p>", "<p>Zeus. Out of stock.</p>")
	defer site.Close()

	shout := pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
		for _, d := range n.Diffs {
			fmt.Println(strings.ToUpper(string(d.Event)), d.Keyword, "in:", d.Snippet)
		}
		return nil
	})
	r, err := vokter.New(vokter.Config{
		Sinks: map[string]pipeline.Sink{"shout": shout},
		Subscriptions: []pipeline.Subscription{{
			URL: site.URL, Keywords: []string{"out of stock"}, Sinks: []string{"shout"},
		}},
		Fetch: vokter.FetchConfig{Allow: loopback}, Checks: 2, Every: new(time.Duration),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: ADDED out of stock in: Zeus. Out of stock.
}

// prices reads price lists such as "lamp=12.50; chair=80".
type prices struct{}

func (prices) ContentTypes() []string { return []string{"application/x-prices"} }

func (prices) Read(_ context.Context, raw pipeline.Raw, _ pipeline.View) (pipeline.Text, error) {
	var b strings.Builder
	for n, entry := range strings.Split(string(raw.Body), "; ") {
		name, price, ok := strings.Cut(entry, "=")
		if !ok {
			return pipeline.Text{}, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: fmt.Sprintf("record %d has no price", n+1)}
		}
		fmt.Fprintf(&b, "%c%s%c%s%c%c", pipeline.ItemStart, name, pipeline.BlockEnd, price, pipeline.BlockEnd, pipeline.ItemEnd)
	}
	return pipeline.Text{Content: b.String()}, nil
}

// A reader makes pages of another content type readable, or replaces the one of a type, while the
// router runs.
func ExampleRouter_RegisterReader() {
	var registered atomic.Bool
	var asked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-prices")
		if registered.Load() && asked.Add(1) > 1 {
			fmt.Fprint(w, "lamp=14.00; chair=80")
		} else {
			fmt.Fprint(w, "lamp=12.50; chair=80")
		}
	}))
	defer site.Close()

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, err := vokter.New(vokter.Config{
		Sinks: map[string]pipeline.Sink{"print": pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
			fmt.Println(n.ContentType, n.Diffs[0].Event, n.Diffs[0].Keyword)
			stop()
			return nil
		})},
		Subscriptions: []pipeline.Subscription{{URL: site.URL, Keywords: []string{"14.00"}, Sinks: []string{"print"}}},
		Fetch:         vokter.FetchConfig{Allow: loopback}, Every: new(time.Duration),
		Expire: vokter.ExpireConfig{After: -1}, // until there is a reader, all checks fail
	})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	<-r.Running()
	r.RegisterReader(prices{})
	registered.Store(true)
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	r.UnregisterReader("application/x-prices") // at any time, too
	// Output: application/x-prices added 14.00
}

// Diff and match work alone, over texts of one's own.
func Example_diffAndMatch() {
	before := text.Analyze("Zeus is in stock.\nHera is here.\n")
	after := text.Analyze("Hera is here.\nZeus is out of stock.\n")

	change := &flow.Change{Language: "en", Groups: diff.Diff(before, after)}
	matcher := match.NewMatcher([]match.Entry{{
		ID:           "shop",
		Subscription: pipeline.Subscription{Keywords: []string{"out of stock", "Hera"}}.WithDefaults(),
	}}, text.NewLanguages())
	for _, m := range matcher.Match(change) {
		for _, d := range m.Diffs {
			fmt.Printf("%s: %s %q in %q\n", m.ID, d.Event, d.Keyword, d.Snippet)
		}
	}
	// Output: shop: added "out of stock" in "Zeus is out of stock."
}

// A program that has a message.Router of Watermill runs the stages in it. Middleware of the router
// is around them like around its own handlers; WatermillMiddleware is around the stages alone.
func Example_watermill() {
	site := shop("text/html", "<p>Zeus. In stock.</p>", "<p>Zeus. Out of stock.</p>")
	defer site.Close()

	shared, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	var handled atomic.Int64
	shared.AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			handled.Add(1)
			return next(msg)
		}
	})
	// The router runs until the Router has ended.
	go func() {
		if err := shared.Run(context.Background()); err != nil {
			log.Print(err)
		}
	}()
	defer shared.Close()

	r, err := vokter.New(vokter.Config{
		Watermill: shared,
		WatermillMiddleware: []message.HandlerMiddleware{func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				if name := message.HandlerNameFromCtx(msg.Context()); name == "vokter.match.changes" {
					fmt.Println(name, "handles a", msg.Metadata.Get("ce_type"), "with an ID:", msg.UUID != "")
				}
				return next(msg)
			}
		}},
		Sinks: map[string]pipeline.Sink{"print": pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
			fmt.Println(n.Diffs[0].Event, n.Diffs[0].Keyword)
			return nil
		})},
		Subscriptions: []pipeline.Subscription{{
			URL: site.URL, Keywords: []string{"out of stock"}, Sinks: []string{"print"},
		}},
		Fetch: vokter.FetchConfig{Allow: loopback}, Checks: 2, Every: new(time.Duration),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the middleware of the router saw messages:", handled.Load() > 0)
	// Output:
	// vokter.match.changes handles a vokter.change.v1 with an ID: true
	// added out of stock
	// the middleware of the router saw messages: true
}

// A consumer of the topic changes gets every change of every document, whatever anybody watches
// for. It gets each change at least once, in the order of its page, with a transaction and a state
// of its own.
func ExampleRouter_Handle() {
	site := shop("text/html", "<p>Zeus. In stock.</p>", "<p>Zeus. Out of stock.</p>")
	defer site.Close()

	r, err := vokter.New(vokter.Config{
		Documents: []vokter.Document{{URL: site.URL, Keep: true}}, // nobody subscribes to it
		Fetch:     vokter.FetchConfig{Allow: loopback}, Checks: 2, Every: new(time.Duration),
	})
	if err != nil {
		log.Fatal(err)
	}
	r.Handle("archive", flow.TopicChanges, flow.ProcessorFunc(func(_ context.Context, _ flow.Tx, m flow.Message) error {
		if m.Type != flow.TypeChange {
			return nil // for example the end of a page
		}
		c, err := flow.ChangeFrom(m)
		if err != nil {
			return err
		}
		for _, g := range c.Groups {
			for _, d := range g.Differences {
				fmt.Printf("version %d: %s %q\n", c.Version, d.Event, strings.TrimSpace(d.Text))
			}
		}
		return nil
	}))
	if err := r.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output:
	// version 2: removed "In"
	// version 2: added "Out of"
}
