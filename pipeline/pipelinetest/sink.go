package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/test/expiring"
)

// SinkFake is a sink under test with its receiver, for sinks that do not use HTTP.
type SinkFake struct {
	Sink pipeline.Sink
	// Got returns the notifications that have arrived.
	Got func() []Arrived
	// Hold makes the receiver accept the next attempt without an answer. It returns a channel
	// that is closed when the attempt has begun, and a function that releases the receiver. Nil
	// means that the protocol has no answers.
	Hold func() (began <-chan struct{}, release func())
	// Faults make the next attempt fail, by what goes wrong.
	Faults map[string]SinkFault
	// Secrets must not appear in errors.
	Secrets []string
	// ForPeople says that texts arrive in a form for people: without control characters, and
	// with "…" or "..." where they are cut.
	ForPeople bool
}

// Arrived is a notification that arrived at a SinkFake.
type Arrived struct {
	ID    string
	Texts []string
}

// SinkFault is a fault of the receiver or the connection.
type SinkFault struct {
	// Arrange makes the next attempt meet the fault.
	Arrange func()
	// Class is the class of the sink's error. Ambiguous says that the notification may have
	// arrived all the same.
	Class     failure.Class
	Ambiguous bool
}

// sinkSuite is what all the tests of a sink share.
type sinkSuite struct {
	newFake func(t *testing.T) SinkFake
	// largestText is the size of the largest text, in bytes.
	largestText int
}

// TestSink tests that a sink without HTTP keeps the contract of pipeline.Sink: what counts as
// delivered, the class of each failure, waits that end with their context, no secrets in
// errors, concurrent deliveries, and page text that arrives as data. newFake makes a sink and
// its receiver for one test, and cleans up with t.Cleanup. Sinks over HTTP use TestHTTPSink.
func TestSink(t *testing.T, newFake func(t *testing.T) SinkFake) {
	(&sinkSuite{newFake: newFake, largestText: 1 << 17}).runAll(t)
}

func (s *sinkSuite) runAll(t *testing.T) {
	t.Run("SameNotificationTwice", s.testTwice)
	t.Run("HostileText", s.testHostileText)
	t.Run("Faults", s.testFaults)
	t.Run("Cancel", s.testCancel)
	t.Run("Deadline", s.testDeadline)
	t.Run("ManyAtOnce", s.testManyAtOnce)
}

// errHangs is the error of a delivery that was given up.
var errHangs = errors.New("Deliver does not return")

// deliver fails the test if the error holds a secret, or if Deliver does not return: the test
// would hang there.
func (f SinkFake) deliver(ctx context.Context, t *testing.T, n pipeline.Notification) (err error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f.Sink.Deliver(ctx, n) }()
	select {
	case err = <-ended:
	case <-time.After(waitTimeout):
		t.Error(errHangs)
		return errHangs
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, secret := range f.Secrets {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("the error holds a secret: %v", e)
			}
		}
	}
	return err
}

// deliverInterrupted delivers to a receiver that does not answer, calls end once it has the attempt,
// and returns the error.
func (f SinkFake) deliverInterrupted(ctx context.Context, t *testing.T, end func()) error {
	t.Helper()
	if f.Hold == nil {
		t.Skip("the protocol has no answer to wait for")
	}
	began, release := f.Hold()
	defer release()
	go func() {
		select {
		case <-began:
			end()
		case <-t.Context().Done():
		}
	}()
	return f.deliver(ctx, t, newNotification("a", "a"))
}

func (s *sinkSuite) testTwice(t *testing.T) {
	f := s.newFake(t)
	for range 2 {
		if err := f.deliver(t.Context(), t, newNotification("SAME", "SAME")); err != nil {
			t.Fatal(err)
		}
	}
	got := f.Got()
	if len(got) != 2 || got[0].ID != got[1].ID {
		t.Fatalf("the receiver saw %+v, want the same twice", got)
	}
	for _, a := range got {
		if a.ID != "" && a.ID != "SAME" || !slices.Equal(a.Texts, []string{"SAME"}) {
			t.Errorf("the receiver saw %+v", a)
		}
	}
}

func (s *sinkSuite) testHostileText(t *testing.T) {
	f := s.newFake(t)
	same := sameText
	if f.ForPeople {
		same = readableText
	}
	for i, text := range append(slices.Clone(hostileTexts), strings.Repeat("0123456789ä😀", s.largestText/16)) {
		n := newNotification("H", text)
		n.Title, n.URL, n.Client, n.Diffs[0].Keyword = text, text, text, text
		if err := f.deliver(t.Context(), t, n); err != nil {
			t.Fatalf("%.40q: %v", text, err)
		}
		got := f.Got()
		if len(got) != i+1 {
			t.Fatalf("%.40q: %d arrived, want %d", text, len(got), i+1)
		}
		if texts := got[i].Texts; len(texts) != 1 || !same(texts[0], text) {
			t.Errorf("%.40q arrived as %.40q", text, texts)
		}
	}
}

func (s *sinkSuite) testFaults(t *testing.T) {
	for name := range s.newFake(t).Faults {
		t.Run(name, func(t *testing.T) {
			f := s.newFake(t)
			fault := f.Faults[name]
			fault.Arrange()
			ctx, cancel := context.WithTimeout(t.Context(), faultTimeout)
			defer cancel()
			err := f.deliver(ctx, t, newNotification("F", "F"))
			if err == nil {
				t.Fatal("it was delivered")
			}
			wantClass(t, err, fault.Class)
			if got := failure.IsAmbiguous(err); got != fault.Ambiguous {
				t.Errorf("ambiguous: %v, want %v: %v", got, fault.Ambiguous, err)
			}
		})
	}
}

func (s *sinkSuite) testCancel(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		f := s.newFake(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantCanceled(t, f.deliver(ctx, t, newNotification("a", "a")))
		if got := f.Got(); len(got) != 0 {
			t.Errorf("%+v arrived", got)
		}
	})
	t.Run("while waiting", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wantCanceled(t, s.newFake(t).deliverInterrupted(ctx, t, cancel))
	})
}

func (s *sinkSuite) testDeadline(t *testing.T) {
	ctx, expire := expiring.New(t.Context())
	err := s.newFake(t).deliverInterrupted(ctx, t, expire)
	if err == nil {
		t.Fatal("it was delivered")
	}
	wantClass(t, err, failure.ClassRetry)
}

func (s *sinkSuite) testManyAtOnce(t *testing.T) {
	f := s.newFake(t)
	before := runtime.NumGoroutine()
	deliverThousand(t, f.Got, func(n pipeline.Notification) error { return f.deliver(t.Context(), t, n) })
	waitForGoroutines(t, before+idleGoroutines)
}

// deliverThousand has deliver deliver a thousand notifications, from twenty goroutines, and checks
// that each arrives.
func deliverThousand(t *testing.T, arrived func() []Arrived, deliver func(n pipeline.Notification) error) {
	t.Helper()
	const deliveries, workers = 1000, 20
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1); i <= deliveries; i = next.Add(1) {
				id := fmt.Sprint("N", i)
				if err := deliver(newNotification(id, id)); err != nil {
					t.Errorf("%s was not delivered: %v", id, err)
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool)
	for _, a := range arrived() {
		seen[strings.Join(a.Texts, "")] = true
	}
	if len(seen) != deliveries {
		t.Errorf("%d of %d arrived", len(seen), deliveries)
	}
}

// faultTimeout ends an attempt that should have ended by itself.
const faultTimeout = 20 * time.Second

// idleGoroutines are how many more a sink and its fake may keep between deliveries, for
// their connections. A client opens another one while those that it has are in use, so that it may have
// several for each delivery at once.
const idleGoroutines = 300
