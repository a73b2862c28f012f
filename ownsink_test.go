package vokter_test

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

func TestBoard(t *testing.T) {
	pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
		f := newFakeBoard(t)
		return pipelinetest.SinkFake{
			Sink: board{f.addr()},
			Got:  f.arrived,
			Hold: f.hold,
			Faults: map[string]pipelinetest.SinkFault{
				"busy":    {Arrange: func() { f.answer("busy\n") }},
				"bad":     {Arrange: func() { f.answer("bad\n") }, Class: failure.ClassRefused},
				"strange": {Arrange: func() { f.answer("HTTP/1.1 400 Bad Request\r\n") }},
				"silent":  {Arrange: func() { f.answer("") }, Ambiguous: true},
				"endless": {Arrange: func() { f.answer(strings.Repeat("x", 1<<20)) }, Ambiguous: true},
				"gone":    {Arrange: func() { f.listener.Close() }},
			},
		}
	})
}

// fakeBoard answers "ok", or once what a test says.
type fakeBoard struct {
	listener net.Listener
	mu       sync.Mutex
	got      []pipelinetest.Arrived
	next     *string
	held     func()
}

func newFakeBoard(t *testing.T) *fakeBoard {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f := &fakeBoard{listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(conn)
		}
	}()
	return f
}

func (f *fakeBoard) serve(conn net.Conn) {
	defer conn.Close()
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		return
	}
	f.mu.Lock()
	next, held := f.next, f.held
	f.next, f.held = nil, nil
	f.mu.Unlock()
	if held != nil {
		held()
		return
	}
	answer := "ok\n"
	if next != nil {
		answer = *next
	} else if !f.keep(line) {
		answer = "bad\n"
	}
	_, _ = conn.Write([]byte(answer))
}

func (f *fakeBoard) keep(line []byte) bool {
	var n pipeline.Notification
	if err := json.Unmarshal(line, &n); err != nil {
		return false
	}
	a := pipelinetest.Arrived{ID: n.ID}
	for _, d := range n.Diffs {
		a.Texts = append(a.Texts, d.Text)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, a)
	return true
}

func (f *fakeBoard) addr() string { return f.listener.Addr().String() }

func (f *fakeBoard) arrived() []pipelinetest.Arrived {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]pipelinetest.Arrived(nil), f.got...)
}

func (f *fakeBoard) answer(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = &s
}

func (f *fakeBoard) hold() (<-chan struct{}, func()) {
	began, released := make(chan struct{}), make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = func() { close(began); <-released }
	return began, func() { close(released) }
}

// What the page about sinks of one's own shows is what is compiled and tested here.
func TestPageShowsTheSink(t *testing.T) {
	page, err := os.ReadFile("docs/sinks/write-your-own.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, name := range []string{"example_sink_test.go", "ownsink_test.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(b)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	if len(blocks) < 3 {
		t.Errorf("the page shows %d pieces of code, want the sink, its registration and its test", len(blocks))
	}
	for _, block := range blocks {
		shown, _, _ := strings.Cut(block, "```")
		if !strings.Contains(code.String(), shown) {
			t.Errorf("this is not in the tests any more:\n%s", shown)
		}
	}
}
