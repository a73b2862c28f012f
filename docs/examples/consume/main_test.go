package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vokter/vokter/pipeline"
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
	_, code, _ := strings.Cut(string(tutorial), "```go\n")
	code, _, found := strings.Cut(code, "```")
	if !found || !strings.Contains(string(program), code) {
		t.Errorf("main.go does not contain\n%s", code)
	}
}

func TestConsume(t *testing.T) {
	const topic = "vokter.changes"
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, topic))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cfg := sarama.NewConfig()
	cfg.Producer.Return.Successes = true
	producer, err := sarama.NewSyncProducer(cluster.ListenAddrs(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	change := (flow.Change{
		ID: "C1", URL: "https://example.com/", Page: "https://example.com/", Version: 2,
		Groups: []flow.Group{
			{Differences: []flow.Difference{{Event: pipeline.Removed, Text: "in"}, {Event: pipeline.Added, Text: "out of"}}},
			{Moved: true, New: []flow.Window{{Text: "Opening hours"}}},
		},
	}).Message().WithBody()
	ended, err := json.Marshal(flow.Ended{Page: change.Key})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []flow.Message{{ID: "E", Key: change.Key, Type: flow.TypeEnded, Body: ended}, change} {
		r := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(m.Key), Value: sarama.ByteEncoder(m.Body)}
		for name, value := range m.Metadata() {
			r.Headers = append(r.Headers, sarama.RecordHeader{Key: []byte(name), Value: []byte(value)})
		}
		if _, _, err := producer.SendMessage(r); err != nil {
			t.Fatal(err)
		}
	}
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- consume(ctx, write, cluster.ListenAddrs(), topic, "g") }()
	lines := bufio.NewScanner(read)
	for _, want := range []string{"https://example.com/ version 2 (C1)", "  - in", "  + out of", "  ~ Opening hours"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got %q, want %q", lines.Text(), want)
		}
	}
	cancel()
	if err := <-over; err != nil {
		t.Errorf("consume: %v", err)
	}
}
