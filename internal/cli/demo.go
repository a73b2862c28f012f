package cli

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/sinks/stdout"
)

func (a *app) demoVerb() *cobra.Command {
	var changes int
	var onPage bool
	var listen string
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "demo",
		Short: "Shows the program at work on a small page that changes",
		Long: "Serves a small page on loopback that changes, watches it with the real pipeline, and prints each change of the page with its notification.\n\n" +
			"With --web it shows the story on the web page, as if the page had been watched for a month, and prints a link to it. It keeps nothing.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("changes") && changes < 1 {
				return newUsageError(cmd, "--changes: must be at least 1, not %d; leave it out for the whole story", changes)
			}
			if onPage {
				return a.runDemoWeb(cmd.Context(), listen)
			}
			if cmd.Flags().Changed("listen") {
				return newUsageError(cmd, "--listen is where --web listens; add that")
			}
			return a.runDemo(cmd.Context(), changes)
		},
	}, outputFlags)
	cmd.Flags().IntVar(&changes, "changes", 0, "end after `N` notifications; the story repeats if it is shorter (default: the story once)")
	cmd.Flags().BoolVar(&onPage, "web", false, "show the story of a month on the web page, until Ctrl-C")
	cmd.Flags().StringVar(&listen, "listen", defaultListen, "the `ADDRESS` of the web page")
	cmd.MarkFlagsMutuallyExclusive("web", "changes")
	return cmd
}

func (a *app) runDemo(ctx context.Context, changes int) error {
	reportBrokenPipes(a.stdout)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot serve the demo's page: %w", err)
	}
	site := &http.Server{Handler: new(sceneHandler), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = site.Serve(l) }() // ends with Close
	defer site.Close()
	url := "http://" + l.Addr().String() + "/"

	if changes == 0 {
		changes = len(scenes) - 1
	}
	say := func(format string, args ...any) {
		if a.flags.format == stdout.FormatJSON {
			return
		}
		if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
			cancel(&outputError{err})
		}
	}
	printed, err := stdout.New(stdout.Config{Writer: a.stdout, Format: cmp.Or(a.flags.format, stdout.FormatText)})
	if err != nil {
		return err
	}
	out := &limitedSink{next: mandatorySink{printed, cancel}, limit: changes, onLimit: func() { cancel(nil) }, beforeDelivery: func(n pipeline.Notification) {
		say("%s", beforeAndAfter(n.Version))
	}}
	r, err := vokter.New(vokter.Config{
		Origin: "demo",
		Sinks:  map[string]pipeline.Sink{printerSinkName: out},
		Subscriptions: []pipeline.Subscription{{
			URL: url, Client: "you", Keywords: demoKeywords, Sinks: []string{printerSinkName},
		}},
		Every:  &a.demoInterval,
		Fetch:  vokter.FetchConfig{Rate: 1000, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
		Logger: a.flags.logger(a.stderr, slog.LevelWarn),
	})
	if err != nil {
		return err
	}
	// Keep these lines under 80 columns.
	say("A small shop at %s changes its page every second.\n", url)
	say("You watch it for: %s.\n", strings.Join(demoKeywords, ", "))
	say("What you see has gone the whole way: fetch, index, diff, match, delivery.\nCtrl-C ends it.\n\n")
	if err := causeOrError(ctx, r.Run(ctx)); err != nil {
		return err
	}
	sum := r.Summary()
	say("%s, %s, %s.\n\nTo try next:\n"+
		"  vokter-stream watch URL KEYWORD...     watches a page of your own\n"+
		"  vokter-stream serve                    watches pages in the browser\n"+
		"  vokter-stream run -c FILE              watches many pages, tells many receivers\n"+
		"  vokter-stream help watch               has all options\n",
		countNoun(sum.Checks, "check"), countNoun(sum.Changes, "change"), countNoun(out.delivered(), "notification"))
	return causeOrError(ctx, nil)
}

// limitedSink delivers limit notifications to next, calls onLimit, and drops the rest. A limit of 0
// means no limit.
type limitedSink struct {
	next    pipeline.Sink
	limit   int
	onLimit func()
	// beforeDelivery is called before each delivery.
	beforeDelivery func(pipeline.Notification)

	mu    sync.Mutex
	count int
}

// Deliver passes n on.
func (c *limitedSink) Deliver(ctx context.Context, n pipeline.Notification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limit > 0 && c.count == c.limit {
		return nil
	}
	c.beforeDelivery(n)
	if err := c.next.Deliver(ctx, n); err != nil {
		return err
	}
	if c.count++; c.count == c.limit {
		c.onLimit()
	}
	return nil
}

func (c *limitedSink) delivered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

var _ pipeline.Sink = (*limitedSink)(nil)

// demoKeywords are what the demo watches for.
var demoKeywords = []string{"in stock", "sold out", "half price", "free delivery", "last one"}

// scene is the content of the demo's shop page at one moment.
type scene struct {
	Stock, Price, Delivery, Visitor string
}

// beforeAndAfter shows the lines in which version differs from the version before it.
func beforeAndAfter(version uint64) string {
	at := func(v uint64) [4]string {
		s := scenes[int(v-1)%len(scenes)]
		return [4]string{s.Stock, "Price: " + s.Price, s.Delivery, s.Visitor}
	}
	before, after := at(version-1), at(version)
	was, is := "", ""
	for i := range before {
		if before[i] != after[i] {
			was += fmt.Sprintf("    %s\n", before[i])
			is += fmt.Sprintf("    %s\n", after[i])
		}
	}
	return "The page said:\n" + was + "Now it says:\n" + is + "You get:\n"
}

// scenes are served in turn, again from the first after the last. Each differs from the one
// before it in at least one keyword.
var scenes = []scene{
	{"Sold out. The glassblower is at work.", "49 euros.", "Delivery within a week.", "Ada looks through the window."},
	{"In stock: twelve lanterns, fresh from the furnace.", "49 euros.", "Delivery within a week.", "Ada takes two of them."},
	{"In stock: nine lanterns.", "49 euros.", "Free delivery until midnight!", "Grace asks what delivery costs."},
	{"In stock: four lanterns.", "Half price for one hour: 24.50 euros.", "Free delivery until midnight!", "There is a queue at the door."},
	{"In stock, but this is the last one.", "Half price for one hour: 24.50 euros.", "Free delivery until midnight!", "Two hands reach for it."},
	{"Sold out. The glassblower goes home.", "49 euros.", "Delivery within a week.", "Linus came too late."},
	{"Sold out. The glassblower dreams of lanterns.", "49 euros.", "Free delivery for everyone who waits.", "The street is quiet."},
}

var shopPage = template.Must(template.New("shop").Parse(`<!doctype html>
<html lang="en"><head><title>The Lantern Shop</title></head><body>
<h1>Argus, a lantern with a hundred eyes</h1>
<p>Blown by hand from recycled glass, it lights a whole room.</p>
<ul><li>{{.Stock}}</li><li>Price: {{.Price}}</li><li>{{.Delivery}}</li></ul>
<p>{{.Visitor}}</p>
<footer>Open every day from ten to six. We are glad to see you.</footer>
</body></html>
`))

// sceneHandler serves the next scene at each request.
type sceneHandler struct {
	mu   sync.Mutex
	next int
}

// ServeHTTP serves the next scene.
func (s *sceneHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	now := scenes[s.next%len(scenes)]
	s.next++
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = shopPage.Execute(w, now) // fails only where the client has gone
}
