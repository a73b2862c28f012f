// Command table keeps the current text of each document, from the topic pages of Kafka, and prints what changed in
// them, from the topic changes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/vokter/vokter/pipeline/flow"
)

func main() {
	brokers := flag.String("brokers", "127.0.0.1:9092", "some brokers, with commas between them")
	prefix := flag.String("prefix", "vokter.", "what the names of the topics begin with")
	group := flag.String("group", "table-example", "up to where changes were printed is remembered under this name")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := follow(ctx, os.Stdout, strings.Split(*brokers, ","), *prefix, *group); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// table has the current text of each document by its ID, from a topic that is read from the beginning at each start.
type table struct {
	client *kgo.Client
	topic  string
	rows   map[string]flow.Current
	next   map[int32]int64 // by partition, behind the last record that was read
}

func newTable(brokers []string, topic string) (*table, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), // what was rolled back is not seen
		kgo.KeepControlRecords(),                     // the last record of a partition is often the mark of a commit
	)
	return &table{client: client, topic: topic, rows: make(map[string]flow.Current), next: make(map[int32]int64)}, err
}

// catchUp reads the topic up to the end that it has now. A version and its change are written in one transaction, so
// the table then has the texts of all changes that were read before, or later ones.
func (t *table) catchUp(ctx context.Context) error {
	ends, err := kadm.NewClient(t.client).ListEndOffsets(ctx, t.topic)
	if err != nil {
		return err
	}
	behind := func() (behind bool) {
		ends.Each(func(end kadm.ListedOffset) { behind = behind || t.next[end.Partition] < end.Offset })
		return behind
	}
	for behind() {
		fetches := t.client.PollFetches(ctx)
		if err := errors.Join(ends.Error(), fetches.Err()); err != nil {
			return err
		}
		for record := range fetches.RecordsAll() {
			if err := t.apply(record); err != nil {
				return fmt.Errorf("record at offset %d of %s: %w", record.Offset, record.Topic, err)
			}
		}
	}
	return nil
}

func (t *table) apply(record *kgo.Record) error {
	t.next[record.Partition] = record.Offset + 1
	switch {
	case record.Attrs.IsControl() || header(record, "ce_type") != flow.TypeCurrent: // skip other types
		return nil
	case record.Value == nil: // the document ended
		delete(t.rows, string(record.Key))
		return nil
	}
	var row flow.Current
	err := json.Unmarshal(record.Value, &row)
	t.rows[row.Document] = row
	return err
}

func header(record *kgo.Record, name string) string {
	for _, h := range record.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// follow prints the changes that group has not seen, each with what the table has of its document, until ctx is done.
func follow(ctx context.Context, w io.Writer, brokers []string, prefix, group string) error {
	pages, err := newTable(brokers, prefix+flow.TopicCurrent)
	if err != nil {
		return err
	}
	defer pages.client.Close()
	changes, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(prefix+flow.TopicChanges),
		kgo.ConsumerGroup(group), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer changes.Close()
	if err := pages.catchUp(ctx); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%d documents\n", len(pages.rows)); err != nil {
		return err
	}
	for {
		fetches := changes.PollFetches(ctx)
		if err := errors.Join(fetches.Err(), pages.catchUp(ctx)); err != nil {
			return err
		}
		for record := range fetches.RecordsAll() {
			if header(record, "ce_type") != flow.TypeChange {
				continue
			}
			var c flow.Change
			if err := json.Unmarshal(record.Value, &c); err != nil {
				return fmt.Errorf("change at offset %d: %w", record.Offset, err)
			}
			row, ok := pages.rows[c.Document]
			if !ok { // it ended since
				continue
			}
			words := len(strings.Fields(row.Text))
			if _, err := fmt.Fprintf(w, "%s version %d of %d, %d words now\n", c.URL, c.Version, row.Version, words); err != nil {
				return err
			}
		}
	}
}
