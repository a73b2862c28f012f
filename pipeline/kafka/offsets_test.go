package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// TestOffsets: what an admin sees of the group is how far it is: behind while a message is held, and at the end when all
// are handled.
func TestOffsets(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		tr := openTransport(t, c)
		messages := subscribe(t, tr, "g", "in")
		const count = 6
		for range count {
			publish(t, tr, "in", "k", "1")
		}
		asked, err := sarama.NewClient(c.Brokers, sarama.NewConfig())
		if err != nil {
			t.Fatal(err)
		}
		defer asked.Close()
		admin, err := sarama.NewClusterAdminFromClient(asked)
		if err != nil {
			t.Fatal(err)
		}
		lane := int32(client.PartitionOf("k", c.Lanes))
		// waitForLag waits until offsets are committed of which the lag is right.
		waitForLag := func(what string, right func(lag int64) bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for lag := int64(-1); ; {
				r, err := admin.ListConsumerGroupOffsets(c.Group, nil)
				if err != nil {
					t.Fatal(err)
				}
				if b := r.GetBlock(c.Prefix+"in", lane); b != nil && b.Offset > 0 {
					end, err := asked.GetOffset(c.Prefix+"in", lane, sarama.OffsetNewest)
					if err != nil {
						t.Fatal(err)
					}
					if lag = end - b.Offset; right(lag) {
						return
					}
				}
				if client.Sleep(ctx, 50*time.Millisecond) != nil {
					t.Fatalf("%s: the lag is %d", what, lag)
				}
			}
		}
		(<-messages).Ack()
		held := <-messages
		waitForLag("one of six is handled", func(lag int64) bool { return lag >= count-1 })
		held.Ack()
		for range count - 2 {
			(<-messages).Ack()
		}
		waitForLag("all are handled", func(lag int64) bool { return lag == 0 })
	})
}
