package watermill_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline"
	source "github.com/vokter/vokter/sources/watermill"
)

// The subscriber of watermill-kafka takes pages from a topic of Kafka that another program of
// Watermill writes to. A program that needs no Watermill takes sources/kafka.
func Example_kafka() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "pages")) // in place of a real one
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	publisher, err := watermillkafka.NewPublisher(watermillkafka.PublisherConfig{Brokers: cluster.ListenAddrs()}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	m := message.NewMessage("1", []byte("<p>in stock</p>"))
	m.Metadata.Set("ce_subject", "https://example.com/")
	m.Metadata.Set("content-type", "text/html")
	if err := publisher.Publish("pages", m); err != nil {
		log.Fatal(err)
	}

	settings := watermillkafka.DefaultSaramaSubscriberConfig()
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	subscriber, err := watermillkafka.NewSubscriber(watermillkafka.SubscriberConfig{
		Brokers: cluster.ListenAddrs(), ConsumerGroup: "vokter", OverwriteSaramaConfig: settings,
	}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	defer subscriber.Close()
	pages := source.New(source.Config{Subscriber: subscriber, Topic: "pages"})

	// A Router runs the source; here the first page ends it.
	ctx, cancel := context.WithCancel(context.Background())
	err = pages.Run(ctx, func(_ context.Context, p pipeline.Pushed) error {
		fmt.Println(p.URL, p.ContentType, string(p.Body))
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
	// Output: https://example.com/ text/html <p>in stock</p>
}
