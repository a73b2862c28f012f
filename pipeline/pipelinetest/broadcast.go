package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vokter/vokter/pipeline/flow"
)

// laneOf returns the lane in a position.
func laneOf(t *testing.T, position string) string {
	t.Helper()
	parts := strings.Split(position, "/")
	if len(parts) != 4 {
		t.Fatalf("the position %q is not STORE/topic/lane/offset", position)
	}
	return parts[2]
}

// testEmitAll emits one message into all lanes, at the second attempt, and from two messages
// the same one: the copies' IDs follow from its ID.
func testEmitAll(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{Topics: map[string]flow.Topic{"in": {Groups: []string{"g"}}, "all": {Groups: []string{"h"}, Feedback: true}}})
	var mu sync.Mutex
	ids := map[string][]string{} // by lane
	consume(t, tr, "h", "all", func(_ context.Context, _ flow.Tx, m flow.Message) error {
		mu.Lock()
		defer mu.Unlock()
		lane := laneOf(t, m.Position)
		ids[lane] = append(ids[lane], m.ID)
		if m.Key != "" || string(m.Body) != "body" || m.Type != "test.v1" || m.Header["name"] != "value" {
			t.Errorf("a copy is %+v", m)
		}
		return nil
	})
	attempts := 0
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		tx.EmitAll(flow.Message{ID: "one", Topic: "all", Type: "test.v1", Header: map[string]string{"name": "value"}, Body: []byte("body")})
		if attempts++; attempts == 1 {
			return errors.New("rejected")
		}
		return nil
	})
	mustPublish(t, tr, testMessage("in", "k", "1"), testMessage("in", "k", "2"))
	waitUntilIdle(t, tr, nil)
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != f.Lanes {
		t.Errorf("copies came in %d lanes, want %d", len(ids), f.Lanes)
	}
	distinct := map[string]bool{}
	for lane, in := range ids {
		if len(in) != 2 || in[0] != in[1] || in[0] == "one" {
			t.Errorf("lane %s got %q, want the same ID for each of two messages, derived from theirs", lane, in)
		}
		distinct[in[0]] = true
	}
	if len(distinct) != len(ids) {
		t.Errorf("the copies of %d lanes have %d IDs", len(ids), len(distinct))
	}
}

// testNeighbours looks at what another group keeps, from all lanes: each key is seen from
// one lane, that of its own messages, with what is committed.
func testNeighbours(t *testing.T, f Features, s Site) {
	tr := s.Open(t, Config{})
	keys := map[string]string{} // key to lane
	var mu sync.Mutex
	consume(t, tr, "g", "in", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		mu.Lock()
		keys[m.Key] = laneOf(t, m.Position)
		mu.Unlock()
		return tx.State(m.Key).Set("key", []byte(m.Key))
	})
	for i := range 40 * f.Lanes {
		key := fmt.Sprint("k", i)
		mustPublish(t, tr, testMessage("in", key, key))
	}
	waitUntilIdle(t, tr, nil)
	seen := map[string]string{}
	consume(t, tr, "h", "all", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		mu.Lock()
		defer mu.Unlock()
		for key, st := range tx.Neighbours("g") {
			if v := mustGet(t, st, "key"); v != key {
				t.Errorf("the state of %q holds %q", key, v)
			}
			if st.Set("key", nil) == nil {
				t.Error("a neighbour's state can be written to")
			}
			if was, twice := seen[key]; twice {
				t.Errorf("%q is seen from the lanes %s and %s", key, was, laneOf(t, m.Position))
			}
			seen[key] = laneOf(t, m.Position)
		}
		for key := range tx.Neighbours("other") {
			t.Errorf("another group has state for %q", key)
		}
		for range tx.Neighbours("g") {
			break
		}
		return nil
	})
	// It comes through another topic, and its own writes are not committed.
	consume(t, tr, "h", "start", func(_ context.Context, tx flow.Tx, m flow.Message) error {
		if err := tx.State(m.Key).Set("new", nil); err != nil {
			return err
		}
		for key := range tx.Neighbours("h") {
			t.Errorf("%q is seen before its commit", key)
		}
		tx.EmitAll(flow.Message{ID: "one", Topic: "all", Type: "test.v1"})
		return nil
	})
	mustPublish(t, tr, testMessage("start", "k", "start"))
	waitUntilIdle(t, tr, nil)
	mu.Lock()
	defer mu.Unlock()
	if !maps.Equal(seen, keys) {
		t.Errorf("seen %d of %d keys, or from other lanes than theirs: missing %v", len(seen), len(keys), missingKeys(keys, seen))
	}
}

// missingKeys lists the keys of want that got does not have, or has with another value.
func missingKeys(want, got map[string]string) []string {
	var keys []string
	for k, v := range want {
		if got[k] != v {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
