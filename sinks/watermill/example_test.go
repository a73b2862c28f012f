package watermill_test

import (
	"context"
	"fmt"
	"log"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill"
	watermillkafka "github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline"
	sink "github.com/vokter/vokter/sinks/watermill"
)

// The publisher of watermill-kafka writes notifications to a topic of Kafka. The URL of the page
// is the key of each record, so that the notifications of a page stay in order.
func Example_kafka() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "alerts")) // in place of a real one
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	publisher, err := watermillkafka.NewPublisher(watermillkafka.PublisherConfig{
		Brokers: cluster.ListenAddrs(),
		Marshaler: watermillkafka.NewWithPartitioningMarshaler(func(_ string, m *message.Message) (string, error) {
			return m.Metadata.Get("ce_subject"), nil
		}),
	}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()
	alerts, err := sink.New(sink.Config{Publisher: publisher, Topic: "alerts"})
	if err != nil {
		log.Fatal(err)
	}

	// A Router delivers to the sink as to any other; here it gets one notification by hand.
	n := pipeline.Notification{ID: "n1", Type: pipeline.NotificationType, Status: pipeline.StatusOK, URL: "https://example.com/", Client: "shop"}
	if err := alerts.Deliver(context.Background(), n); err != nil {
		log.Fatal(err)
	}

	settings := watermillkafka.DefaultSaramaSubscriberConfig()
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	subscriber, err := watermillkafka.NewSubscriber(watermillkafka.SubscriberConfig{
		Brokers: cluster.ListenAddrs(), ConsumerGroup: "shop", OverwriteSaramaConfig: settings,
	}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	defer subscriber.Close()
	messages, err := subscriber.Subscribe(context.Background(), "alerts")
	if err != nil {
		log.Fatal(err)
	}
	m := <-messages
	m.Ack()
	fmt.Println(m.UUID, m.Metadata.Get("ce_type"), m.Metadata.Get("ce_subject"))
	// Output: n1 vokter.notification.v1 https://example.com/
}
