//go:build unix

package exec

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/beside"
)

// testScript does what the files of a directory say, and otherwise keeps what it gets.
const testScript = `
cd "$1" || exit 1
if [ -e hold ]; then exec 3> held; : > began; sleep 1000; fi
if [ -e kill ]; then kill -9 $$; fi
if [ -e exit ]; then echo first >&2; echo "told with $API_KEY" >&2; exit "$(cat exit)"; fi
cat >> got`

// newInDir returns a sink that runs testScript in dir.
func newInDir(t testing.TB, dir string) *Exec {
	t.Helper()
	e, err := New(Config{Command: []string{"/bin/sh", "-c", testScript, "sh", dir}, Env: map[string]registry.Secret{"API_KEY": registry.NewSecret("hunter22")}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func writeFile(t testing.TB, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// holdCommand makes the next command begin and not end. began is closed when it runs; held ends when
// no process of it is left.
func holdCommand(t testing.TB, dir string) (began, held <-chan struct{}) {
	t.Helper()
	writeFile(t, dir, "hold", "")
	wait := func(name string) <-chan struct{} {
		fifo := filepath.Join(dir, name)
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := os.ReadFile(fifo); err != nil { // until nobody can write to it any more
				t.Error(err)
			}
		}()
		return done
	}
	return wait("began"), wait("held")
}

func TestConformance(t *testing.T) {
	pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
		dir := t.TempDir()
		ends := func(status string) func() { return func() { writeFile(t, dir, "exit", status) } }
		return pipelinetest.SinkFake{
			Sink: newInDir(t, dir),
			Got:  func() []pipelinetest.Arrived { return arrived(t, dir) },
			Hold: func() (<-chan struct{}, func()) {
				began, _ := holdCommand(t, dir)
				return began, func() {}
			},
			Faults: map[string]pipelinetest.SinkFault{
				"any":          {Arrange: ends("1")},
				"temporary":    {Arrange: ends("75")},
				"bad data":     {Arrange: ends("65"), Class: failure.ClassRefused},
				"no receiver":  {Arrange: ends("67"), Class: failure.ClassGone},
				"not allowed":  {Arrange: ends("77")},
				"ended itself": {Arrange: func() { writeFile(t, dir, "kill", "") }, Ambiguous: true},
			},
			Secrets: []string{"hunter22"},
		}
	})
}

// arrived returns what commands kept in dir.
func arrived(t *testing.T, dir string) []pipelinetest.Arrived {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "got"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []pipelinetest.Arrived
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var n pipeline.Notification
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			t.Fatalf("%v in %.300q", err, lines.Text())
		}
		a := pipelinetest.Arrived{ID: n.ID}
		for _, d := range n.Diffs {
			a.Texts = append(a.Texts, d.Text)
		}
		all = append(all, a)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTail: of what a command says only the end is kept.
func TestTail(t *testing.T) {
	kept := tailBuffer{limit: maxStderr}
	for _, size := range []int{1, 10, maxStderr - 1, maxStderr, 10 * maxStderr, 3, 1 << 20} {
		for range 3 {
			if n, err := kept.Write(append(bytes.Repeat([]byte("x"), size-1), 'z')); n != size || err != nil {
				t.Errorf("Write: %d, %v", n, err)
			}
			if len(kept.buf) > maxStderr || cap(kept.buf) > 4*maxStderr || !bytes.HasSuffix(kept.buf, []byte("z")) {
				t.Errorf("%d of %d bytes are kept, ending with %.3q", len(kept.buf), cap(kept.buf), kept.buf[max(0, len(kept.buf)-3):])
			}
		}
	}
}

// TestReason: the last line of the standard error is told, without secrets.
func TestReason(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "exit", "77")
	err := newInDir(t, dir).Deliver(t.Context(), pipeline.Notification{ID: "N"})
	if want := "sh: exit status 77: told with ***"; err == nil || err.Error() != want || !failure.TellsAtOnce(err) {
		t.Errorf("got %v, want %s, to be told at once", err, want)
	}
	for script, want := range map[string]string{
		`printf 'a\nb\033[31m\n\n \n' >&2; exit 1`:                                          "sh: exit status 1: b[31m",
		`i=0; while [ $i -lt 3000 ]; do echo "xxxxxxxxxx $i"; i=$((i+1)); done >&2; exit 1`: "sh: exit status 1: xxxxxxxxxx 2999",
		`head -c 9999 /dev/zero | tr '\0' x >&2; exit 1`:                                    "...",
		`exec >&- 2>&-; exit 1`:                                                             "sh: exit status 1",
	} {
		e, err := New(Config{Command: []string{"/bin/sh", "-c", script}})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Deliver(t.Context(), pipeline.Notification{ID: "N"}); err == nil || !strings.HasSuffix(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%s: got %v, want %s", script, err, want)
		}
	}
}

// TestEndedBeforeItsPipes: a command that has ended has said what it has to say, also where
// the context ends while something that it left behind holds its pipes.
func TestEndedBeforeItsPipes(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// What is left behind waits until the command was waited for, says so, and goes on the test's word.
	const left = `while kill -0 $1; do :; done 2>/dev/null; echo ended >$2; read go <$2`
	e, err := New(Config{Command: []string{"/bin/sh", "-c", `sh -c '` + left + `' sh $$ $1 & exit 65`, "sh", fifo}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = os.ReadFile(fifo)
		cancel()
	}()
	err = e.Deliver(ctx, pipeline.Notification{ID: "N"})
	if class, _ := failure.ClassOf(err); class != failure.ClassRefused || err.Error() != "sh: exit status 65" {
		t.Errorf("got %v, want refused", err)
	}
	if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
		t.Error(err)
	}
}

// TestSecretOfSeveralLines: its last line is no reason.
func TestSecretOfSeveralLines(t *testing.T) {
	c := Config{Command: []string{"/bin/sh", "-c", `echo "no: $KEY" >&2; exit 1`}, Env: map[string]registry.Secret{"KEY": registry.NewSecret("BEGIN\nhunter22\nEND")}}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Deliver(t.Context(), pipeline.Notification{ID: "N"}); err == nil || err.Error() != "sh: exit status 1: no: ***" {
		t.Errorf("got %v", err)
	}
}

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
