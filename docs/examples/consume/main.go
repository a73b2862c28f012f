// Command consume prints what changed in each document, from the topic changes of Kafka.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

func main() {
	brokers := flag.String("brokers", "127.0.0.1:9092", "some brokers, with commas between them")
	topic := flag.String("topic", "vokter.changes", "the topic changes, with its prefix")
	group := flag.String("group", "consume-example", "where this program got to is remembered under this name")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := consume(ctx, os.Stdout, strings.Split(*brokers, ","), *topic, *group); err != nil {
		log.Fatal(err)
	}
}

// consume prints the changes of topic to w until ctx is done.
func consume(ctx context.Context, w io.Writer, brokers []string, topic, group string) error {
	cfg := sarama.NewConfig()
	cfg.Consumer.IsolationLevel = sarama.ReadCommitted // what was rolled back is not seen
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	g, err := sarama.NewConsumerGroup(brokers, group, cfg)
	if err != nil {
		return err
	}
	defer g.Close()
	for ctx.Err() == nil {
		if err := g.Consume(ctx, []string{topic}, printer{w}); err != nil {
			return err
		}
	}
	return nil
}

// printer prints the changes of one partition after the other.
type printer struct{ w io.Writer }

func (printer) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (printer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (p printer) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for record := range claim.Messages() {
		if header(record, "ce_type") == flow.TypeChange { // skip other types
			var c flow.Change
			if err := json.Unmarshal(record.Value, &c); err != nil {
				return fmt.Errorf("change at offset %d: %w", record.Offset, err)
			}
			if err := show(p.w, c); err != nil {
				return err
			}
		}
		session.MarkMessage(record, "") // a record that is not marked is read again after a crash
	}
	return nil
}

func header(record *sarama.ConsumerMessage, name string) string {
	for _, h := range record.Headers {
		if string(h.Key) == name {
			return string(h.Value)
		}
	}
	return ""
}

// show prints one change. A program that keeps changes keeps them under c.ID: one that comes
// again has the same.
func show(w io.Writer, c flow.Change) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s version %d (%s)\n", c.URL, c.Version, c.ID)
	for _, g := range c.Groups {
		for _, d := range g.Differences {
			sign := "+"
			if d.Event == pipeline.Removed {
				sign = "-"
			}
			fmt.Fprintf(&b, "  %s %s\n", sign, d.Text)
		}
		if g.Moved {
			fmt.Fprintf(&b, "  ~ %s\n", g.New[0].Text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
