package kafka

import (
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Page returns the page that m carries. Its headers are named as in the topic ingest, in any
// case: ce_subject (or url) is the URL, content-type what the value is; ce_id, ce_time (in RFC
// 3339), content-language and traceparent are optional. Without ce_id the ID is derived from
// where m stands; without ce_time the time is that of the record.
func Page(m *sarama.ConsumerMessage) pipeline.Pushed {
	h := make(map[string]string, len(m.Headers))
	for _, header := range m.Headers {
		h[strings.ToLower(string(header.Key))] = string(header.Value)
	}
	p := pipeline.Pushed{
		URL: h["ce_subject"], ContentType: h["content-type"], ContentLanguage: h["content-language"],
		Body: m.Value, ID: h["ce_id"], Time: m.Timestamp,
	}
	if p.URL == "" {
		p.URL = h["url"]
	}
	if p.ID == "" {
		// A topic that is deleted and made again has other times at the same offsets.
		p.ID = flow.DeriveID("kafka", m.Topic, strconv.Itoa(int(m.Partition)), strconv.FormatInt(m.Offset, 10), strconv.FormatInt(m.Timestamp.UnixMilli(), 10))
	}
	if at, err := time.Parse(time.RFC3339Nano, h["ce_time"]); err == nil {
		p.Time = at
	}
	if trace := h[flow.HeaderTrace]; trace != "" {
		p.Header = map[string]string{flow.HeaderTrace: trace}
	}
	return p
}
