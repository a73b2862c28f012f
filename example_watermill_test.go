package vokter_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

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
		Fetch: vokter.FetchConfig{Allow: loopback}, Checks: 2, Every: &everyTime,
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
		Fetch:     vokter.FetchConfig{Allow: loopback}, Checks: 2, Every: &everyTime,
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
