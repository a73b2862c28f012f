package pipelinetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// countingPipeline is a small pipeline whose records must agree after any crash. Group g records
// every message of "in" in its state and passes it on to "out", where h records it too.
// Each message sets a wake, and the wake records how far g had come.
type countingPipeline struct {
	attempted map[string]bool

	mu       sync.Mutex
	accepted []string // Publish returned nil
}

func newCountingPipeline() *countingPipeline { return &countingPipeline{attempted: map[string]bool{}} }

const countingKeys = 5

var countingConfig = Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "out": {Groups: []string{"h"}}}}

func countingKey(i int) string { return fmt.Sprint("key", i%countingKeys) }

// start consumes both topics. It closes enough after so many steps.
func (l *countingPipeline) start(t *testing.T, tr flow.Transport, steps int64) (enough <-chan struct{}) {
	var done atomic.Int64
	end := make(chan struct{})
	step := func() {
		if done.Add(1) == steps {
			close(end)
		}
	}
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		defer step()
		st := tx.State(m.Key)
		book, _, err := st.Get("book")
		if err != nil {
			return err
		}
		if m.Type == flow.TypeWake {
			tx.Emit(testMessage("out", m.Key, "wake "+fmt.Sprint(len(book))))
			return st.Set("woken", book)
		}
		tx.Emit(testMessage("out", m.Key, m.ID))
		tx.WakeAt(m.Key, time.Now().Add(shortDelay/4), flow.AtStart)
		return st.Set("book", append(book, m.ID+"@"+m.Position+"\n"...))
	})
	consume(t, tr, "h", "out", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		defer step()
		st := tx.State(m.Key)
		book, _, err := st.Get("book")
		if err != nil || strings.HasPrefix(m.ID, "wake ") {
			return err
		}
		return st.Set("book", append(book, m.ID+"\n"...))
	})
	return end
}

// publish publishes one message and reports whether it was accepted.
func (l *countingPipeline) publish(tr flow.Transport, id string) bool {
	key := countingKey(len(l.attempted))
	l.attempted[id] = true
	if tr.Publish(context.Background(), testMessage("in", key, id)) != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted = append(l.accepted, id)
	return true
}

// splitLines splits a list of lines in state.
func splitLines(book string) []string {
	return strings.Split(strings.TrimSuffix(book, "\n"), "\n")
}

// verify lets a last transport finish, and compares what the groups recorded with what was published.
func (l *countingPipeline) verify(t *testing.T, s Site) {
	t.Helper()
	tr := s.Open(t, countingConfig)
	l.start(t, tr, 0)
	waitUntilIdle(t, tr, func() bool {
		for i := range countingKeys {
			st := tr.State("g", countingKey(i))
			if mustGet(t, st, "book") != mustGet(t, st, "woken") {
				return false
			}
		}
		return true
	})
	found, positions := map[string]bool{}, map[string]bool{}
	for i := range countingKeys {
		key := countingKey(i)
		var passed []string
		for _, line := range splitLines(mustGet(t, tr.State("g", key), "book")) {
			id, position, _ := strings.Cut(line, "@")
			if id == "" {
				continue
			}
			if found[id] {
				t.Errorf("%s counted twice", id)
			}
			if positions[position] {
				t.Errorf("two messages had the position %s", position)
			}
			if !l.attempted[id] {
				t.Errorf("%s was never published", id)
			}
			found[id], positions[position] = true, true
			passed = append(passed, id)
		}
		got := splitLines(mustGet(t, tr.State("h", key), "book"))
		if want := splitLines(strings.Join(passed, "\n")); !slices.Equal(got, want) {
			t.Errorf("%s: g passed on %v, h got %v", key, want, got)
		}
		l.verifyOrder(t, key, passed)
	}
	for _, id := range l.accepted {
		if !found[id] {
			t.Errorf("%s was accepted and is lost", id)
		}
	}
	mustClose(t, tr)
}

// verifyOrder checks that got has the accepted messages of a key in the order in which they were accepted.
func (l *countingPipeline) verifyOrder(t *testing.T, key string, got []string) {
	t.Helper()
	at := -1
	for _, id := range l.accepted {
		if i := slices.Index(got, id); i >= 0 {
			if i < at {
				t.Errorf("%s: %s is out of order in %v", key, id, got)
			}
			at = i
		}
	}
}

// testSurvivesCrashes crashes the site at any moment, several times over.
func testSurvivesCrashes(t *testing.T, site Crasher, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	l := newCountingPipeline()
	for round := range 6 {
		tr := site.Open(t, countingConfig)
		enough := l.start(t, tr, 1+random.Int64N(40))
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; i < 100 && l.publish(tr, fmt.Sprintf("r%d.%d", round, i)); i++ {
			}
		})
		receive(t, enough, "enough steps")
		l.mu.Lock()
		certain := slices.Clone(l.accepted)
		l.mu.Unlock()
		site.Crash(random)
		mustClose(t, tr)
		wg.Wait()
		l.accepted = certain // what was accepted later is lost
	}
	l.verify(t, site)
}

// killEnv tells the suite's test binary that it is the process to be killed.
const killEnv = "VOKTER_PIPELINETEST_KILL"

// testSurvivesKill runs this very test in another process and kills that, several times.
func testSurvivesKill(t *testing.T, f Features) {
	if f.At == nil {
		t.Skip("this transport keeps nothing for another process")
	}
	if dir := os.Getenv(killEnv); dir != "" {
		runUntilKilled(t, f.At(dir))
		return
	}
	dir := t.TempDir()
	l := newCountingPipeline()
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 5 {
		l.runAndKill(t, dir, round, 20+random.IntN(200))
	}
	l.verify(t, f.At(dir))
}

// runAndKill runs the test in another process, and kills that after so many messages.
func (l *countingPipeline) runAndKill(t *testing.T, dir string, round, after int) {
	t.Helper()
	// Each part of the name is anchored, or -test.run would run others, too.
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern)
	cmd.Env = append(os.Environ(), killEnv+"="+dir, fmt.Sprintf("%s_ROUND=%d", killEnv, round))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var rest strings.Builder
	in := bufio.NewScanner(io.TeeReader(out, &rest))
	for in.Scan() {
		word, id, _ := strings.Cut(in.Text(), " ")
		switch word {
		case "attempt":
			l.attempted[id] = true
		case "accept":
			l.accepted = append(l.accepted, id)
			if after--; after == 0 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := cmd.Wait(); err == nil || after > 0 {
		t.Fatalf("the process ended by itself: %v\n%s", err, rest.String())
	}
}

// runUntilKilled publishes and handles messages until its process is killed.
func runUntilKilled(t *testing.T, s Site) {
	tr := s.Open(t, countingConfig)
	l := newCountingPipeline()
	l.start(t, tr, 0)
	for i := 0; ; i++ {
		id := fmt.Sprintf("r%s.%d", os.Getenv(killEnv+"_ROUND"), i)
		fmt.Printf("attempt %s\n", id)
		if !l.publish(tr, id) {
			t.Fatal("Publish failed")
		}
		fmt.Printf("accept %s\n", id)
	}
}

// Breaker is a Site whose disk can fail.
type Breaker interface {
	Site
	// Break makes reads from the disk fail, or work again.
	Break(broken bool)
}

// testBrokenReads lets the disk fail under handlers: what they cannot read is an error of
// failure.ClassBroken, and what they did not do then they do, once, when it works again.
func testBrokenReads(t *testing.T, _ Features, s Site) {
	b, ok := s.(Breaker)
	if !ok {
		t.Skip("the disk of this site cannot fail")
	}
	const keys = 50
	random := rand.NewChaCha8([32]byte{})
	var failed atomic.Int64
	add := func(_ context.Context, tx flow.Tx, m flow.Message) error {
		st := tx.State(m.Key)
		v, _, err := st.Get("v")
		if err != nil {
			failed.Add(1)
			if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
				t.Errorf("a read gave %v, of class %d", err, class)
			}
			return err
		}
		if len(v) == 0 {
			v = make([]byte, 4096)
			_, _ = random.Read(v) // or it would be packed into what was read already
		}
		return st.Set("v", append(v, m.ID...))
	}
	tr := s.Open(t, Config{})
	stop := consume(t, tr, "g", "in", add)
	for i := range keys {
		mustPublish(t, tr, testMessage("in", fmt.Sprint(i), "a"))
		waitUntilIdle(t, tr, nil)
	}
	stop()
	mustClose(t, tr)
	tr = s.Open(t, Config{})
	b.Break(true)
	consume(t, tr, "g", "in", add)
	for i := range keys {
		mustPublish(t, tr, testMessage("in", fmt.Sprint(i), "b"))
	}
	for failed.Load() == 0 {
		if tr.Idle() {
			t.Fatal("nothing was read from the disk")
		}
	}
	b.Break(false)
	waitUntilIdle(t, tr, nil)
	for i := range keys {
		if v := mustGet(t, tr.State("g", fmt.Sprint(i)), "v"); len(v) != 4098 || v[4096:] != "ab" {
			t.Errorf("key %d: %d bytes that end with %q, want one a and one b", i, len(v), v[min(len(v), 4096):])
		}
	}
}
