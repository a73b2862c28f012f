package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	"github.com/cloudevents/sdk-go/v2/binding"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

var update = flag.Bool("update", false, "write the golden files anew")

// healthNotification is a health event as it is delivered.
func healthNotification() pipeline.Notification {
	h := pipeline.Health{ID: "H", Event: pipeline.HealthReceiverFailing, Time: sample("").Time, Receiver: &pipeline.Receiver{Sink: "team"}, Reason: "no answer"}
	return pipeline.Notification{
		Status: string(h.Event), ID: "H", Type: pipeline.NotificationTypeHealth, Time: h.Time, Diffs: []pipeline.Diff{}, Reason: h.Reason, Health: &h,
	}
}

// TestRecord: the SDK of CloudEvents reads from the topic what was delivered.
func TestRecord(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		makeTopic(t, c, 1, nil)
		s := newTestSink(t, c)
		timeout := pipeline.Notification{Status: pipeline.StatusTimeout, URL: "https://example.com/", ID: "T", Type: pipeline.NotificationType, Client: "shop"}
		all := map[string]pipeline.Notification{"ok": sample("OK"), "health": healthNotification(), "timeout": timeout}
		names := slices.Sorted(maps.Keys(all))
		for _, name := range names {
			if err := s.Deliver(t.Context(), all[name]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for i, m := range records(t, c, len(names)) {
			compareGolden(t, names[i], m)
			checkCloudEvent(t, m, all[names[i]])
		}
	})
}

// compareGolden compares m with a file in testdata.
func compareGolden(t *testing.T, name string, m *sarama.ConsumerMessage) {
	t.Helper()
	var got bytes.Buffer
	fmt.Fprintf(&got, "key: %s\n", m.Key)
	h := headersOf(m)
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Fprintf(&got, "%s: %s\n", name, h[name])
	}
	fmt.Fprintf(&got, "\n%s\n", m.Value)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got.String(), want)
	}
}

var attributeName = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// checkCloudEvent checks that m is a CloudEvent that says what n does.
func checkCloudEvent(t *testing.T, m *sarama.ConsumerMessage, n pipeline.Notification) {
	t.Helper()
	e, err := binding.ToEvent(context.Background(), kafka_sarama.NewMessageFromConsumerMessage(m))
	if err != nil {
		t.Fatalf("%s: %v", n.ID, err)
	}
	if err := e.Validate(); err != nil {
		t.Errorf("%s: %v", n.ID, err)
	}
	if e.ID() != n.ID || e.Type() != flow.TypeNotification || e.DataSchema() == "" || e.Source() != flow.SourceVokter || e.SpecVersion() != "1.0" ||
		!e.Time().Equal(n.Time) || e.DataContentType() != "application/json" || !bytes.Equal(e.Data(), m.Value) {
		t.Errorf("%s: read as %v", n.ID, e)
	}
	var read pipeline.Notification
	if err := json.Unmarshal(m.Value, &read); err != nil || read.ID != n.ID {
		t.Errorf("%s: the body is %s, %v", n.ID, m.Value, err)
	}
	// What the SDK does not look at.
	for name, value := range headersOf(m) {
		attribute, ok := strings.CutPrefix(name, "ce_")
		if ok && (!attributeName.MatchString(attribute) || attribute == "data" || value == "") {
			t.Errorf("%s: an attribute %q with the value %q", n.ID, name, value)
		}
		if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
			t.Errorf("%s: %s has the value %q", n.ID, name, value)
		}
	}
}

type attempt struct {
	pipeline.Attempt
	document string
}

func (a attempt) Document() string { return a.document }

func TestKeys(t *testing.T) {
	inDocument := pipeline.WithAttempt(t.Context(), attempt{document: "D"})
	process := healthNotification()
	process.Health = &pipeline.Health{Event: pipeline.HealthOverdue}
	odd := sample("N")
	odd.URL = "no URL"
	for _, tt := range []struct {
		key  string
		ctx  context.Context
		n    pipeline.Notification
		want string
	}{
		{"", t.Context(), sample("N"), "https://example.com/a"},
		{KeyPage, inDocument, sample("N"), "https://example.com/a"},
		{KeyPage, t.Context(), odd, "no URL"},
		{KeyPage, t.Context(), pipeline.Notification{ID: "N"}, "N"},
		{KeyPage, t.Context(), healthNotification(), "team"},
		{KeyPage, t.Context(), process, flow.HealthKey},
		{KeyDocument, inDocument, sample("N"), "D"},
		{KeyDocument, t.Context(), sample("N"), "https://example.com/a"},
		{KeyClient, t.Context(), sample("N"), "shop"},
		{KeyClient, t.Context(), healthNotification(), "team"},
		{KeyNotification, t.Context(), sample("N"), "N"},
	} {
		s := newTestSink(t, Config{Brokers: []string{"127.0.0.1:1"}, Topic: "t", Key: tt.key})
		m, err := s.newMessage(tt.ctx, tt.n)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := recordOf("t", m).Key.Encode(); string(got) != tt.want {
			t.Errorf("key %q: got %q, want %q", tt.key, got, tt.want)
		}
	}
}

// TestOrderOfAPage: what is delivered of one page comes in that order, whatever the others do.
func TestOrderOfAPage(t *testing.T) {
	onBoth(t, func(t *testing.T, c Config) {
		makeTopic(t, c, 4, nil)
		s := newTestSink(t, c)
		const pages, each = 5, 4
		errs := make(chan error, pages)
		for p := range pages {
			go func() {
				for i := range each {
					n := sample(fmt.Sprintf("%d-%d", p, i))
					n.URL = fmt.Sprintf("https://example.com/%d", p)
					if err := s.Deliver(t.Context(), n); err != nil {
						errs <- err
						return
					}
				}
				errs <- nil
			}()
		}
		for range pages {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		next, partition := make(map[string]int), make(map[string]int32)
		for _, m := range records(t, c, pages*each) {
			id, key := headersOf(m)["ce_id"], string(m.Key)
			if want := fmt.Sprintf("%s-%d", strings.TrimPrefix(key, "https://example.com/"), next[key]); id != want {
				t.Errorf("%s: got %s, want %s", key, id, want)
			}
			if p, seen := partition[key]; seen && p != m.Partition {
				t.Errorf("%s is in the partitions %d and %d", key, p, m.Partition)
			}
			next[key], partition[key] = next[key]+1, m.Partition
		}
	})
}
