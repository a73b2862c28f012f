package watermill_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	sink "github.com/vokter/vokter/sinks/watermill"
)

// runEvents runs an event processor of Watermill that reads topic with sub, until the returned function is called.
func runEvents(sub message.Subscriber, topic string, h cqrs.EventHandler) (stop func()) {
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	events, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return topic, nil },
		SubscriberConstructor: func(cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return sub, nil
		},
		Marshaler:         sink.Marshaler{},
		AckOnUnknownEvent: true, // the topic has other types too
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := events.AddHandlers(h); err != nil {
		log.Fatal(err)
	}
	go func() {
		if err := router.Run(context.Background()); err != nil {
			log.Print(err)
		}
	}()
	<-router.Running()
	return func() { _ = router.Close() }
}

// A handler of Watermill's package cqrs gets the notifications that the sink publishes.
func Example_cqrs() {
	pubsub := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{})
	defer runEvents(pubsub, "alerts", cqrs.NewEventHandler("print", func(_ context.Context, n *pipeline.Notification) error {
		fmt.Println(n.Client, n.URL)
		return nil
	}))()

	alerts, err := sink.New(sink.Config{Publisher: pubsub, Topic: "alerts"})
	if err != nil {
		log.Fatal(err)
	}
	// A Router delivers to the sink as to any other; here it gets one notification by hand.
	n := pipeline.Notification{ID: "n1", Type: pipeline.NotificationType, Status: pipeline.StatusOK, URL: "https://example.com/", Client: "shop"}
	if err := alerts.Deliver(context.Background(), n); err != nil {
		log.Fatal(err)
	}
	// Output: shop https://example.com/
}

// A handler of Watermill's package cqrs reads the topic changes from the Router's own transport, as a consumer group of
// its own. It gets each change at least once, in the order of its page.
func Example_cqrsTransport() {
	var checked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			fmt.Fprintf(w, "<p>Version %d.</p>", min(checked.Add(1), 2))
		}
	}))
	defer site.Close()

	topics := vokter.Topology()
	changes := topics[flow.TopicChanges]
	changes.Groups = append(changes.Groups, "billing")
	topics[flow.TopicChanges] = changes
	transport, err := local.Open(local.Config{Topics: topics})
	if err != nil {
		log.Fatal(err)
	}
	seen := make(chan struct{})
	defer runEvents(transport.Subscriber("billing"), flow.TopicChanges, cqrs.NewEventHandler("bill", func(_ context.Context, c *flow.Change) error {
		fmt.Println("version", c.Version, "of", c.ContentType)
		close(seen)
		return nil
	}))()

	r, err := vokter.New(vokter.Config{
		Transport: transport,
		Documents: []vokter.Document{{URL: site.URL, Keep: true}}, // nobody subscribes to it
		Fetch:     vokter.FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Every: new(50 * time.Millisecond),
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { <-seen; stop() }()
	if err := r.Run(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
	// Output: version 2 of text/html
}
