package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/pipeline/portable"
	"github.com/vokter/vokter/pipeline/store"
)

const (
	// importTimeout is how long the transaction of an import may take: the default maximum of the
	// brokers.
	importTimeout = 15 * time.Minute
	// importBatchBytes is about how many bytes are sent in one call.
	importBatchBytes = 16 << 20
)

var errTopicUsed = errors.New("state is read into topics that were never used: take another topic_prefix, or delete the topics of this one if nothing in them is needed")

// Import creates the missing topics of c and writes the state in e to them. See kafka.Import.
func Import(ctx context.Context, c Config, e *portable.Export) error {
	if err := runImport(ctx, c, e); err != nil {
		return fmt.Errorf("nothing was imported: %w", err)
	}
	return nil
}

func runImport(ctx context.Context, c Config, e *portable.Export) (err error) {
	s := &session{Config: c}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := errors.Join(s.checkUnused(), s.checkVacant(ctx)); err != nil {
		return err
	}
	p, err := s.newImportProducer() // aborts the transaction of an import that was killed
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := s.takeLanes(ctx, ""); err != nil {
		return err
	}
	err = s.stateCopy.EachState(func(store.Kept) error {
		return fmt.Errorf("kafka: topic %s holds state: %w", s.stateTopic(), errTopicUsed)
	})
	if err != nil {
		return err
	}
	if err := p.BeginTxn(); err != nil {
		return fmt.Errorf("kafka: beginning a transaction: %w", err)
	}
	f := &importer{session: s, producer: p}
	if err = f.sendAll(ctx, e); err == nil {
		err = s.checkUntouched(ctx)
	}
	if err != nil {
		return errors.Join(err, p.AbortTxn())
	}
	if err := p.CommitTxn(); err != nil {
		return fmt.Errorf("kafka: committing a transaction: %w", err)
	}
	return nil
}

// checkVacant returns an error if a topic was used before.
func (s *session) checkVacant(ctx context.Context) error {
	var errs []error
	for _, spec := range s.Specs(s.Topics) {
		if spec.Ephemeral || spec.Empty {
			continue
		}
		for lane := range int32(s.lanes) {
			oldest, newest, err := s.bounds(ctx, spec.Name, lane)
			if err != nil {
				return err
			}
			// The state topic may hold fences of failed imports.
			if oldest > 0 || newest > 0 && !spec.Compacted {
				errs = append(errs, fmt.Errorf("kafka: topic %s was used: %w", spec.Name, errTopicUsed))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// newImportProducer returns the producer of imports.
func (s *session) newImportProducer() (sarama.SyncProducer, error) {
	c, err := s.TxnConfig(s.Group + "-import")
	if err != nil {
		return nil, err
	}
	c.Producer.Transaction.Timeout = importTimeout
	p, err := sarama.NewSyncProducer(s.Brokers, c)
	if errors.Is(err, sarama.ErrInvalidTransactionTimeout) {
		return nil, fmt.Errorf("kafka: the brokers allow no transaction of %v: raise their transaction.max.timeout.ms", importTimeout)
	}
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return p, nil
}

// importer collects records and sends them in batches.
type importer struct {
	session  *session
	producer sarama.SyncProducer
	messages []*sarama.ProducerMessage
	size     int
}

// sendAll sends the records of e, and the topics and the clock for the owners of the lanes.
func (f *importer) sendAll(ctx context.Context, e *portable.Export) error {
	for r, err := range e.Records() {
		if err != nil {
			return err
		}
		key := changelog.Key(changelog.KindState, r.Group, r.Key, r.Name)
		f.collect(client.PartitionOf(r.Key, f.session.lanes), map[string][]byte{key: r.Value})
		if f.size < importBatchBytes {
			continue
		}
		if err := f.send(ctx); err != nil {
			return err
		}
	}
	topics, err := json.Marshal(f.session.conn.Topics)
	if err != nil {
		return err
	}
	own := map[string][]byte{changelog.Key(changelog.KindTopics): topics}
	if !e.Clock.IsZero() {
		own[changelog.Key(changelog.KindClock)] = changelog.EncodeTime(e.Clock)
	}
	for lane := range f.session.lanes {
		f.collect(lane, own)
	}
	return f.send(ctx)
}

func (f *importer) collect(lane int, state map[string][]byte) {
	for _, m := range changelog.Messages(f.session.stateTopic(), lane, state) {
		f.messages = append(f.messages, m)
		f.size += m.ByteSize(2)
	}
}

// send sends the collected records.
func (f *importer) send(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := f.producer.SendMessages(f.messages); err != nil {
		return fmt.Errorf("kafka: publishing in a transaction: %w", client.SendError(err))
	}
	for _, m := range f.messages {
		f.session.ends[m.Partition] = max(f.session.ends[m.Partition], m.Offset+1)
	}
	f.messages, f.size = nil, 0
	return nil
}
