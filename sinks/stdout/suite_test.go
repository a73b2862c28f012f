package stdout_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/sinks/stdout"
)

// testOutput is a writer that can be told to fail or to block.
type testOutput struct {
	t *testing.T

	mu    sync.Mutex
	lines bytes.Buffer
	err   error
	began chan struct{}
	hold  chan struct{}
}

func (o *testOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.hold != nil {
		close(o.began)
		<-o.hold
		o.hold = nil
	}
	if err := o.err; err != nil {
		o.err = nil
		return 0, err
	}
	return o.lines.Write(b)
}

func (o *testOutput) arrived() []pipelinetest.Arrived {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []pipelinetest.Arrived
	for line := range bytes.Lines(o.lines.Bytes()) {
		var n pipeline.Notification
		if err := json.Unmarshal(line, &n); err != nil {
			o.t.Errorf("%q: %v", line, err)
		}
		a := pipelinetest.Arrived{ID: n.ID}
		for _, d := range n.Diffs {
			a.Texts = append(a.Texts, d.Text)
		}
		all = append(all, a)
	}
	return all
}

func TestConformance(t *testing.T) {
	pipelinetest.TestSink(t, func(t *testing.T) pipelinetest.SinkFake {
		o := &testOutput{t: t}
		s, err := stdout.New(stdout.Config{Writer: o, Format: stdout.FormatJSON})
		if err != nil {
			t.Fatal(err)
		}
		return pipelinetest.SinkFake{
			Sink: s,
			Got:  o.arrived,
			Hold: func() (<-chan struct{}, func()) {
				o.began, o.hold = make(chan struct{}), make(chan struct{})
				hold := o.hold
				return o.began, func() { close(hold) }
			},
			Faults: map[string]pipelinetest.SinkFault{
				"the output is closed": {Arrange: func() { o.err = errors.New("file already closed") }, Class: failure.ClassRetry},
			},
		}
	})
}
