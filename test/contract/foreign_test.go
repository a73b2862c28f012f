package contract

import (
	"fmt"
	"sync"
	"testing"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// program is a program of somebody else, whose producer chooses partitions in its own way.
type program struct {
	*testing.T
	topic    string
	producer sarama.SyncProducer
}

func newProgram(t *testing.T, brokers []string, topic string) program {
	t.Helper()
	cfg := sarama.NewConfig()
	cfg.Producer.Return.Successes = true
	p, err := sarama.NewSyncProducer(brokers, cfg) // FNV, not murmur2
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return program{t, topic, p}
}

// send publishes a record; an empty key or body is none.
func (p program) send(key, body string, headers map[string]string) {
	r := &sarama.ProducerMessage{Topic: p.topic}
	if key != "" {
		r.Key = sarama.StringEncoder(key)
	}
	if body != "" {
		r.Value = sarama.StringEncoder(body)
	}
	for name, value := range headers {
		r.Headers = append(r.Headers, sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
	}
	if _, _, err := p.producer.SendMessage(r); err != nil {
		p.Error(err)
	}
}

func command(id, typ string) map[string]string {
	return map[string]string{"ce_specversion": "1.0", "ce_source": foreign, "ce_id": id, "ce_type": typ, "content-type": "application/json"}
}

// TestProgramsOfOthersOnKafka: of two that ask for the same one is refused, wherever their
// records arrive; and no record stops anything.
func TestProgramsOfOthersOnKafka(t *testing.T) { kafkatest.OnBoth(t, programsOfOthers) }

func programsOfOthers(t *testing.T, brokers []string, prefix string) {
	const pages = 6 // in several partitions
	w := newWorldOnKafka(t, brokers, prefix, 4, []string{flow.TopicChanges, flow.TopicHealth, flow.TopicDead, flow.TopicSubscriptions})
	stop := w.run()
	var programs [2]program
	for i := range programs {
		programs[i] = newProgram(t, brokers, prefix+flow.TopicDocuments)
	}
	programs[0].send("", "no key, no headers", nil)
	programs[0].send("key", "", nil)
	programs[0].send("\xff", "\xfe", command("\xfd", flow.TypeCancel))
	programs[0].send("key", "{}", command("typo", "vokter.subscibe.v1"))
	var all sync.WaitGroup
	for i, p := range programs {
		all.Go(func() {
			for n := range pages {
				page := w.url(fmt.Sprintf("/%d", n))
				body := fmt.Sprintf(`{"subscription":{"url":%q,"client":"crm","keywords":["stock"],"sinks":["box"]}}`, page)
				p.send(page, body, command(fmt.Sprintf("%d of %d", n, i), flow.TypeSubscribe))
			}
		})
	}
	all.Wait()
	for n := range pages {
		page := w.url(fmt.Sprintf("/%d", n))
		w.awaitStamp(page, "crm")
		h := w.awaitHealth("a refusal about "+page, func(h pipeline.Health) bool { return h.Event == pipeline.HealthRefused && h.URL == page })
		if h.Code != 5 || h.Client != "crm" {
			t.Errorf("refused: %+v, want the code 5", h)
		}
	}
	w.awaitNumber(3, "the third record that is no command among the dead letters", func(m flow.Message) bool { return m.Type == flow.TypeDeadLetter })
	w.awaitRefusal("\ufffd") // as JSON has it
	for n := range pages {
		page := w.url(fmt.Sprintf("/%d", n))
		programs[1].send(page, fmt.Sprintf(`{"url":%q,"client":"crm"}`, page), command(fmt.Sprintf("cancel %d", n), flow.TypeCancel))
		w.awaitCount(flow.TypeEnded, page, 1)
	}
	if err := stop(); err != nil {
		t.Errorf("Run: %v", err)
	}
	refused := make(map[string]int)
	for _, h := range w.healths(pipeline.HealthRefused) {
		refused[h.URL]++
	}
	stamped := make(map[string]int)
	for _, m := range w.messages() {
		if m.Type == flow.TypeStamp {
			stamped[m.Key]++
		}
	}
	for n := range pages {
		if page := w.url(fmt.Sprintf("/%d", n)); refused[page] != 1 || stamped[page] != 2 {
			t.Errorf("%s: %d refusals, %d stamps, want 1 and those of the begin and the end", page, refused[page], stamped[page])
		}
	}
}
