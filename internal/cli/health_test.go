package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	dir := t.TempDir()
	config := file(t, "c.yaml", fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\n", dir))
	run := start(t, "run", "-c", config)
	run.ready(t, dir)
	expectExit(t, 0, "ok", "health", "--data", dir)
	expectExit(t, 0, "ok", "health", "-c", config)
	expectExit(t, 0, `{"kind":"health","ok":true}`, "health", "-c", config, "--format", "json")
	if err := os.Remove(filepath.Join(dir, "listen")); err != nil { // as without listen
		t.Fatal(err)
	}
	r := runProcess(t, "health", "--data", dir)
	if want := fmt.Sprintf("the process on %s (process %d) cannot be asked: it is still starting, or its configuration has no listen", dir, os.Getpid()); r.code != 1 || !strings.Contains(r.stderr, want) {
		t.Errorf("got %+v, want %s", r, want)
	}
	run.stop()
	<-run.ended
	expectExit(t, 1, "no process runs on "+dir+"\n", "health", "--data", dir)
	expectExit(t, exitUsage, "no data directory is given", "health")
}
