package pipelinetest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// wrongSinkEnv names, for a process that TestWrongSinks starts, the sink to hold to the suite.
const wrongSinkEnv = "WRONG_SINK"

// TestWrongSinks: the suite finds what is wrong with a sink, and comes to its end.
func TestWrongSinks(t *testing.T) {
	if wrong := os.Getenv(wrongSinkEnv); wrong != "" {
		waitTimeout = time.Second
		TestSink(t, func(*testing.T) SinkFake { return newFake(wrong) })
		return
	}
	for wrong, want := range map[string][]string{
		"nothing":                {},
		"ignores its context":    {"Cancel", "Cancel/before", "Cancel/while_waiting", "Deadline"},
		"tells a secret":         {"Faults", "Faults/busy"},
		"delivers whatever":      {"Faults", "Faults/busy"},
		"sends the first again":  {"HostileText", "ManyAtOnce"},
		"sends what it is given": {"HostileText"},
	} {
		t.Run(wrong, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWrongSinks$")
			c.Env = append(os.Environ(), wrongSinkEnv+"="+wrong)
			out, _ := c.CombinedOutput()
			got := []string{}
			for _, m := range regexp.MustCompile(`--- FAIL: TestWrongSinks/(\S+)`).FindAllStringSubmatch(string(out), -1) {
				got = append(got, m[1])
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("the suite finds %q, want %q:\n%s", got, want, out)
			}
		})
	}
}

// wrongSink is a sink and its receiver in one, with one thing wrong.
type wrongSink struct {
	wrong string

	mu        sync.Mutex
	arrived   []Arrived
	nextFails bool
	began     chan struct{} // not nil: the next attempt is held
	release   chan struct{}
}

func newFake(wrong string) SinkFake {
	f := &wrongSink{wrong: wrong}
	return SinkFake{
		Sink: f, Secrets: []string{"hunter2"}, ForPeople: true,
		Got:    func() []Arrived { f.mu.Lock(); defer f.mu.Unlock(); return slices.Clone(f.arrived) },
		Faults: map[string]SinkFault{"busy": {Arrange: func() { f.nextFails = true }}},
		Hold: func() (<-chan struct{}, func()) {
			f.began, f.release = make(chan struct{}), make(chan struct{})
			return f.began, func() { close(f.release) }
		},
	}
}

func (f *wrongSink) Deliver(ctx context.Context, n pipeline.Notification) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wrong == "ignores its context" {
		ctx = context.Background()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f.began != nil {
		close(f.began)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.release:
		}
	}
	if f.nextFails && f.wrong != "delivers whatever" {
		if f.wrong == "tells a secret" {
			return errors.New("busy: hunter2")
		}
		return errors.New("busy")
	}
	text := n.Diffs[0].Text
	if f.wrong != "sends what it is given" {
		text = visibleText(text)
	}
	if f.wrong == "sends the first again" && len(f.arrived) > 0 {
		text = f.arrived[0].Texts[0]
	}
	f.arrived = append(f.arrived, Arrived{ID: n.ID, Texts: []string{strings.Clone(text)}})
	return nil
}
