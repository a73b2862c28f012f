package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/test/kafkatest"
)

// newNumberedPage serves pages whose text is another one at each GET, with a number that only grows.
func newNumberedPage(t *testing.T) *changingPage {
	t.Helper()
	p := newPage(t)
	var mu sync.Mutex
	gets := map[string]int{}
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		gets[r.URL.Path]++
		n := gets[r.URL.Path]
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>Shop</title><p>The price of this lamp is %d now</p><p>Ships in two days</p>", n)
	})
	return p
}

// changeSchema is the published schema of change records.
func changeSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile("../../docs/schemas/vokter.change.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// changeChecker holds change records as a consumer has to see them: valid, and for each document the
// versions in order, without gaps and, but for repeats under the same ID, once.
type changeChecker struct {
	schema *jsonschema.Schema
	ids    map[string]bool
	last   map[string]flow.Change
}

func (v *changeChecker) add(t *testing.T, id string, body []byte) {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = v.schema.Validate(instance)
	}
	var c flow.Change
	if err != nil || json.Unmarshal(body, &c) != nil || c.ID != id {
		t.Fatalf("record %s: %v: %s", id, err, body)
	}
	if v.ids[id] {
		return
	}
	v.ids[id] = true
	if want := v.last[c.URL].Version; want > 0 && (c.Previous != want || c.Version != want+1) || want == 0 && c.Version != 2 {
		t.Fatalf("%s: version %d after %d, behind version %d", c.URL, c.Version, c.Previous, want)
	}
	v.last[c.URL] = c
}

// TestChangesToKafka kills the program again and again. A consumer of the topic sees each version of
// each document, in order, and no gap.
func TestChangesToKafka(t *testing.T) {
	t.Run("kfake", func(t *testing.T) { changesToKafka(t, []string{startCluster(t)}, 3) })
	t.Run("kafka", func(t *testing.T) {
		list := os.Getenv(kafkatest.RealEnv)
		if list == "" {
			t.Skip(kafkatest.RealEnv + " names no brokers")
		}
		changesToKafka(t, strings.Split(list, ","), 20)
	})
}

func changesToKafka(t *testing.T, brokers []string, kills int) {
	topic := "changes-" + strings.ToLower(rand.Text())
	admin, err := sarama.NewClusterAdmin(brokers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 1}, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = admin.DeleteTopic(topic)
		admin.Close()
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p := newNumberedPage(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	var names strings.Builder
	for i, b := range brokers {
		if i > 0 {
			names.WriteString(", ")
		}
		fmt.Fprintf(&names, "%q", b)
	}
	text := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nallow: {fetch: [%s]}\nfetch: {per_host: {concurrency: 4, rate: 1000/s}}\nsinks: {stream: {kafka: {brokers: [%s], topic: %s}}}\nchanges: [stream]\ndocuments:\n",
		filepath.Join(dir, "d"), loopback, names.String(), topic)
	for i := range 3 {
		text += fmt.Sprintf("- {url: %q, keep: true}\n", fmt.Sprint(p.URL, "/", i))
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := changeChecker{schema: changeSchema(t), ids: map[string]bool{}, last: map[string]flow.Change{}}
	poll := func() {
		t.Helper()
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			h := map[string]string{}
			for _, header := range r.Headers {
				h[header.Key] = string(header.Value)
			}
			if h["ce_type"] != flow.TypeChange || h["content-type"] != "application/json" || string(r.Key) != h["ce_subject"] {
				t.Fatalf("key %s, headers %v", r.Key, h)
			}
			seen.add(t, h["ce_id"], r.Value)
		})
	}
	for range kills + 1 {
		os.Remove(filepath.Join(dir, "d", "listen"))
		d := startDaemon(t, filepath.Join(dir, "d"), "run", "-c", config, "--every", "20ms", "--log-level", "error")
		for before := len(seen.ids); len(seen.ids) < before+15; {
			poll()
		}
		d.signal(t, syscall.SIGKILL)
		_ = d.Wait()
	}
	if len(seen.last) != 3 || len(seen.ids) < 15*kills {
		t.Errorf("%d changes of %d documents", len(seen.ids), len(seen.last))
	}
	t.Logf("%d changes of %d documents through %d kills", len(seen.ids), len(seen.last), kills+1)
}

// TestChangesToWebhook: change records have their own body, in order, and again under the same ID
// after a failure. A documents entry names sinks for its page alone.
func TestChangesToWebhook(t *testing.T) {
	seen := changeChecker{schema: changeSchema(t), ids: map[string]bool{}, last: map[string]flow.Change{}}
	var mu sync.Mutex
	var paths, ids []string
	var events []string
	hook := newPage(t)
	hook.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		id := r.Header.Get("webhook-id")
		if ids = append(ids, id); len(ids) == 2 {
			w.WriteHeader(http.StatusServiceUnavailable) // it comes again
			return
		}
		if paths = append(paths, r.URL.Path); r.URL.Path == "/events" {
			events = append(events, b.String())
			return
		}
		seen.add(t, id, b.Bytes())
	})
	p := newNumberedPage(t)
	config := file(t, "c.yaml", fmt.Sprintf(`allow: {fetch: [%s], sinks: [%s]}
fetch: {per_host: {rate: 1000/s}}
delivery: {retry: [1ms]}
sinks:
  plain: {webhook: {url: "%s/plain"}}
  events: {webhook: {url: "%s/events", format: cloudevents}}
changes: [plain]
documents:
- {url: "%s/a", keep: true, changes: [events, plain]}
- {url: "%s/b", keep: true}
`, loopback, loopback, hook.URL, hook.URL, p.URL, p.URL))
	if r := runCLI(t, "run", "-c", config, "--checks", "4", "--every", "0s", "--log-level", "error"); r.code != 0 {
		t.Fatalf("got %+v", r)
	}
	slices.Sort(paths)
	if got := seen.last; got[p.URL+"/a"].Version != 4 || got[p.URL+"/b"].Version != 4 || len(seen.ids) != 6 || len(events) != 3 {
		t.Fatalf("%d records, %d events, requests %v", len(seen.ids), len(events), paths)
	}
	var e struct {
		ID, Type, Subject string
		Data              flow.Change
	}
	if err := json.Unmarshal([]byte(events[0]), &e); err != nil || e.Type != flow.TypeChange || e.ID != e.Data.ID || e.Data.Version != 2 || e.Subject != p.URL+"/a" {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestChangesRefused: lint refuses sinks that cannot deliver a record.
func TestChangesRefused(t *testing.T) {
	for changes, want := range map[string]string{
		"changes: [team]":       `:7:11: changes[0]: sink "team": its kind takes no change records, which are for programs; name a kafka or a webhook sink`,
		"changes: [old]":        `changes[0]: sink "old": format: v1 has no change records; name a webhook with format: documented or cloudevents`,
		"changes: [own]":        `changes[0]: sink "own": a template in body cannot make a change record; name a webhook without body`,
		"changes: [spread]":     `changes[0]: sink "spread": key: notification spreads the changes of a document over all partitions`,
		"changes: [hok]":        `changes[0]: no sink is named "hok"; did you mean "hook"?`,
		"changes: []":           `changes is empty; list at least one sink or remove the key`,
		"changes: [a, a]":       `no sink is named "a"`,
		"changes: [hook, hook]": `changes[1]: "hook" is listed twice; list it once`,
		"documents: [{url: https://example.com/, keep: true, changes: [team]}]": `documents[0].changes[0]: sink "team": its kind takes no change records`,
	} {
		config := file(t, "c.yaml", `sinks:
  hook: {webhook: {url: https://example.com/}, rate: 1/s}
  old: {webhook: {url: https://example.com/, format: v1}}
  own: {webhook: {url: https://example.com/, body: "{}"}}
  spread: {kafka: {brokers: ["127.0.0.1:1"], topic: t, key: notification}}
  team: {slack: {webhook_url: https://hooks.slack.com/services/T/B/x}}
`+changes+"\n")
		expectExit(t, 2, want, "lint", "-c", config)
	}
}
