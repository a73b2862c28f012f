package admin

import (
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/kafka/internal/client"
)

// MaxRecord is how many bytes a record may have before it is packed. What differs between two
// versions is written as JSON, which packs well.
const MaxRecord = 32 << 20

// ProducerConfig returns the configuration of an idempotent producer that puts each message
// into the partition that it names. It outlasts a minute without brokers.
func (c Config) ProducerConfig() (*sarama.Config, error) {
	conf, err := c.Sarama()
	if err != nil {
		return nil, err
	}
	conf.Net.MaxOpenRequests = 1 // idempotence asks for it
	p := &conf.Producer
	p.Idempotent, p.RequiredAcks = true, sarama.WaitForAll
	p.Retry.Max, p.Retry.Backoff = 240, 250*time.Millisecond
	p.Compression = sarama.CompressionZSTD
	p.MaxMessageBytes = client.MaxMessage
	p.Partitioner = sarama.NewManualPartitioner
	p.Return.Successes, p.Return.Errors = true, true
	return conf, nil
}

// TxnConfig returns the configuration of the transactional producer that id names.
// Another producer with the same id fences it.
func (c Config) TxnConfig(id string) (*sarama.Config, error) {
	conf, err := c.ProducerConfig()
	if err != nil {
		return nil, err
	}
	conf.Producer.MaxMessageBytes = MaxRecord // Transact splits what is sent
	t := &conf.Producer.Transaction
	t.ID = id
	t.Timeout = 10 * time.Second // how long readers wait for what a frozen process left open
	t.Retry.Max = 260            // a minute
	t.Retry.BackoffFunc = func(retries, _ int) time.Duration {
		// The transaction before this one is settled within milliseconds, mostly.
		if retries < 20 {
			return 2 * time.Millisecond
		}
		return 250 * time.Millisecond
	}
	return conf, nil
}
