//go:build unix

package kafka

import (
	"crypto/rand"
	"flag"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/test/kafkatest"
)

var restoreDocuments = flag.Int("restore.documents", 500, "documents in the state of BenchmarkRestore")

// restoreNames are what is kept for a document, and its size in bytes: what does not pack any
// more, as stored bodies and versions are.
var restoreNames = map[string]int{"page": 1000, "body": 3000, "version": 3500, "tokens": 1500}

// BenchmarkRestore measures how long it takes from the start of a process until it works on
// all lanes: with an empty disk, where it reads the state of all documents, and with the copy
// that it kept, where it reads what is new. One op is one start. Beside it a bare consumer of
// sarama reads the same records.
func BenchmarkRestore(b *testing.B) {
	bs := benchBrokers(b)
	prefix, kept := benchPrefix(b, bs), b.TempDir()
	if err := openBench(b, bs, prefix, "").Close(); err != nil {
		b.Fatal(err)
	}
	records := writeBenchState(b, bs, prefix)
	var bare float64
	b.Run("sarama", func(b *testing.B) {
		for range b.N {
			countRecords(b, bs, prefix+"state").waitFor(int64(records))
		}
		b.StopTimer()
		bare = reportRate(b, records*b.N, "records", 0)
	})
	b.Run("empty", func(b *testing.B) {
		read := 0
		for range b.N {
			b.StopTimer()
			dir := b.TempDir()
			b.StartTimer()
			read += openRestored(b, bs, prefix, dir)
		}
		b.StopTimer()
		if read < records*b.N {
			b.Errorf("read %d records, want %d", read, records*b.N)
		}
		reportRate(b, read, "records", bare)
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s-to-ready")
	})
	b.Run("kept", func(b *testing.B) {
		openRestored(b, bs, prefix, kept)
		b.ResetTimer()
		read := 0
		for range b.N {
			read += openRestored(b, bs, prefix, kept)
		}
		b.StopTimer()
		b.ReportMetric(float64(read)/float64(b.N), "records-read")
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s-to-ready")
	})
}

// openRestored starts a Transport over dir, and returns how many records it had read when it
// worked on all lanes. Its end does not count.
func openRestored(b *testing.B, bs []string, prefix, dir string) int {
	b.Helper()
	tr := openBench(b, bs, prefix, dir)
	b.StopTimer()
	defer b.StartTimer()
	read := tr.counters.restoredRecords.Load()
	if err := tr.Close(); err != nil {
		b.Fatal(err)
	}
	return int(read)
}

// writeBenchState writes the state of so many documents, and returns how many records it has.
func writeBenchState(b *testing.B, bs []string, prefix string) (records int) {
	b.Helper()
	c := kafkatest.Config()
	c.Producer.Partitioner = sarama.NewManualPartitioner
	p := newProducer(b, bs, c)
	var ms []*sarama.ProducerMessage
	wake := engine.Wake{At: time.Now().Add(24 * time.Hour)}.Value()
	for i := range *restoreDocuments {
		url := benchURL(i)
		state := map[string][]byte{changelog.Key(changelog.KindState, engine.WakeGroup("g", "in"), url, flow.WakeName): wake}
		for name, size := range restoreNames {
			value := make([]byte, size)
			_, _ = rand.Read(value)
			state[changelog.Key(changelog.KindState, "g", url, name)] = value
		}
		ms = append(ms, producerMessages(prefix, client.PartitionOf(url, testLanes), nil, state)...)
		if len(ms) < 500 && i < *restoreDocuments-1 {
			continue
		}
		if err := p.SendMessages(ms); err != nil {
			b.Fatal(err)
		}
		records += len(ms)
		ms = nil
	}
	return records
}
