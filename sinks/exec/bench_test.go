//go:build unix

package exec

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/test/beside"
)

// BenchmarkDeliver runs a command with the sink and with os/exec alone, in turn, which reads
// a notification.
func BenchmarkDeliver(b *testing.B) {
	command := []string{"/bin/cat"}
	e, err := New(Config{Command: command})
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
	beside.Run(b, 1, func() error { return e.Deliver(b.Context(), n) }, bare)
}
