package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/vokter/vokter/pipeline/flow"
)

func TestTheTutorialShowsThisProgram(t *testing.T) {
	tutorial, err := os.ReadFile("../../../docs/consume.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(tutorial), "## The table of the web")
	_, code, _ := strings.Cut(section, "```go\n")
	code, _, found := strings.Cut(code, "```")
	if !found || !strings.Contains(string(program), code) {
		t.Errorf("main.go does not contain\n%s", code)
	}
}

// transact publishes messages in one transaction, as the pipeline does.
func transact(t *testing.T, brokers []string, commit bool, ms ...flow.Message) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.TransactionalID("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		r := &kgo.Record{Topic: "vokter." + m.Topic, Key: []byte(m.Key), Value: m.Encoded()}
		for name, value := range m.Metadata() {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)); err != nil {
		t.Fatal(err)
	}
}

func current(t *testing.T, document string, version uint64, text string) flow.Message {
	t.Helper()
	m, err := flow.Current{Document: document, Page: "https://example.com/" + document, Version: version, Hash: "h", Text: text}.Message()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func change(document string, version uint64) flow.Message {
	page := "https://example.com/" + document
	return flow.Change{ID: "C", URL: page, Page: page, Document: document, Version: version, Groups: []flow.Group{}}.Message()
}

func TestTable(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "vokter.pages", "vokter.changes"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	brokers := cluster.ListenAddrs()
	gone := flow.Gone("https://example.com/b", "I", "b", time.Unix(0, 0))
	transact(t, brokers, true, current(t, "a", 1, "Zeus"), change("a", 1), current(t, "b", 1, "Hera"), change("b", 1))
	transact(t, brokers, true, current(t, "a", 2, "Zeus sees"), change("a", 2), gone)
	transact(t, brokers, false, current(t, "c", 1, "rolled back"), change("c", 1))
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- follow(ctx, write, brokers, "vokter.", "g") }()
	lines := bufio.NewScanner(read)
	want := func(line string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != line {
			t.Errorf("got %q, want %q", lines.Text(), line)
		}
	}
	want("1 documents")
	want("https://example.com/a version 1 of 2, 2 words now")
	want("https://example.com/a version 2 of 2, 2 words now")
	transact(t, brokers, true, current(t, "a", 3, "Zeus sees Argus"), change("a", 3))
	want("https://example.com/a version 3 of 3, 3 words now")
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("follow: %v", err)
	}
}
