package cli

import (
	"fmt"
	"testing"
)

func TestHealth(t *testing.T) {
	dir := t.TempDir()
	config := file(t, "c.yaml", fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\n", dir))
	run := start(t, "run", "-c", config)
	run.ready(t, dir)
	expectExit(t, 0, "ok", "health", "--data", dir)
	expectExit(t, 0, "ok", "health", "-c", config)
	run.stop()
	<-run.ended
	expectExit(t, 1, "no process runs on "+dir, "health", "--data", dir)
	expectExit(t, exitUsage, "no data directory is given", "health")
}
