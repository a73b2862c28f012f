package slack

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/slackfake"
)

var update = flag.Bool("update", false, "write the golden files anew")

// examples are notifications by the names of their golden files.
func examples() map[string]pipeline.Notification {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	change := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://shop.example/item/7?color=red&size=M", ID: "0123456789ABCDEFGHIJKLMNOP",
		Type: pipeline.NotificationType, Time: at, Client: "shop", Version: 7, Title: "Zeus, the god of thunder", Language: "en",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "out of stock", Text: "Out of", Snippet: "Zeus. Out of stock. Order by Friday & save <10 %>.", Offset: 6},
			{Event: pipeline.Added, Keyword: "stock", Text: "Out of", Snippet: "Zeus. Out of stock. Order by Friday & save <10 %>.", Offset: 6},
			{Event: pipeline.Removed, Keyword: "in stock", Text: "In", Snippet: "Zeus. In stock.", Offset: 6},
			{Event: pipeline.Added, Keyword: "argus", Text: "Argus", Snippet: "... " + strings.Repeat("before ", 150) + "Argus" + strings.Repeat(" behind", 150) + " ..."},
		},
	}
	timeout := change
	timeout.Status, timeout.Diffs, timeout.Reason = pipeline.StatusTimeout, nil, "answered 404 Not Found"
	many := change
	many.Diffs, many.Truncated = nil, true
	for i := range 50 {
		many.Diffs = append(many.Diffs, pipeline.Diff{
			Event: pipeline.Added, Keyword: "price", Text: fmt.Sprintf("Price %d", i), Snippet: fmt.Sprintf("Lot %d. Price %d. Bid now.", i, i), Offset: 30 * i,
		})
	}
	hostile := change
	hostile.Title, hostile.Diffs = "<!channel> *x* & <http://evil.example|bank.example>", []pipeline.Diff{{
		Event: pipeline.Added, Keyword: "login", Text: "Login <@U1> `now`", Snippet: "<!channel> *x* & <http://evil.example|bank.example> :boom: %41\u202e\x00 Login <@U1> `now`",
	}}
	digest := change
	digest.Type, digest.Diffs = pipeline.NotificationTypeDigest, slices.Concat(change.Diffs[2:3], many.Diffs[:3])
	digest.Items = []pipeline.Item{
		{ID: "A", Time: at.Add(-time.Hour), Version: 6, Title: change.Title, Diffs: 1}, {ID: "B", Time: at, Version: 7, Title: change.Title, Diffs: 3},
	}
	health := pipeline.Notification{
		Status: string(pipeline.HealthFailing), URL: change.URL, ID: change.ID, Type: pipeline.NotificationTypeHealth, Time: at, Diffs: []pipeline.Diff{},
		Health: &pipeline.Health{
			ID: change.ID, Event: pipeline.HealthFailing, Time: at, URL: change.URL, Class: "status", Reason: "answered 503 Service Unavailable",
			Since: at.Add(-3 * time.Hour), Count: 3,
		},
	}
	recovered := health
	recovered.Status = string(pipeline.HealthReceiverRecovered)
	recovered.Health = &pipeline.Health{
		ID: change.ID, Event: pipeline.HealthReceiverRecovered, Time: at, Receiver: &pipeline.Receiver{Sink: "ops"}, Since: at.Add(-time.Hour), Count: 7,
	}
	return map[string]pipeline.Notification{
		"change": change, "timeout": timeout, "many": many, "hostile": hostile, "digest": digest, "health": health, "recovered": recovered,
	}
}

// TestGolden compares what is posted with the golden files, and both ways with each other.
func TestGolden(t *testing.T) {
	for name, n := range examples() {
		fake := slackfake.Start(t, nil)
		m := deliver(t, fake, ways(fake, "C1")["bot"], n)
		b := deliver(t, fake, ways(fake, "C1")["webhook"], n)
		if !bytes.Equal(m.Blocks, b.Blocks) || m.Text != b.Text {
			t.Errorf("%s: a webhook gets %s, a bot %s", name, b.Blocks, m.Blocks)
		}
		var got bytes.Buffer
		e := json.NewEncoder(&got)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(struct {
			Text   string `json:"text"`
			Blocks any    `json:"blocks"`
		}{m.Text, m.Blocks}); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".golden.json")
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
			t.Errorf("%s: got\n%s\nwant\n%s", name, &got, want)
		}
	}
}
