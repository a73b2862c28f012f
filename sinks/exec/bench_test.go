//go:build unix

package exec

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// BenchmarkDeliver runs a command with the sink and with os/exec alone, in turn, which reads
// a notification.
func BenchmarkDeliver(b *testing.B) {
	command := []string{"/bin/cat"}
	e, err := Config{Command: command}.Build()
	if err != nil {
		b.Fatal(err)
	}
	n := pipeline.Notification{
		ID: "N", Type: pipeline.NotificationType, URL: "https://example.com/",
		Diffs: []pipeline.Diff{{Event: pipeline.Added, Keyword: "argus", Text: "Argus' wakeful", Snippet: "... Argus' wakeful alertness ..."}},
	}
	body, err := json.Marshal(n)
	if err != nil {
		b.Fatal(err)
	}
	bare := func() error {
		cmd := exec.CommandContext(b.Context(), command[0])
		var stderr bytes.Buffer
		cmd.Stdin, cmd.Stderr = bytes.NewReader(body), &stderr
		return cmd.Run()
	}
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, timed(b, func() error { return e.Deliver(b.Context(), n) }))
		theirs = append(theirs, timed(b, bare))
	}
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "x/bare")
	b.ReportMetric(float64(time.Second)/float64(median(ours)), "deliveries/s")
}

func timed(b *testing.B, f func() error) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}
