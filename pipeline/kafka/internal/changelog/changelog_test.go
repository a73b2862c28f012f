package changelog

import (
	"context"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/IBM/sarama/mocks"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/kafka/internal/admin"
)

func TestKey(t *testing.T) {
	long := strings.Repeat("x", 300) // its length takes two bytes
	for name, test := range map[string]struct {
		kind  byte
		parts []string
		want  string // empty: not compared
	}{
		"fence":       {KindFence, nil, "\x07f"},
		"topics":      {KindTopics, nil, "\x07t"},
		"clock":       {KindClock, nil, "\x07c"},
		"position":    {KindPosition, []string{"g", "in"}, "\x07p\x01g\x02in"},
		"state":       {KindState, []string{"g", "key", "name"}, "\x07s\x01g\x03key\x04name"},
		"empty parts": {KindState, []string{"", "", ""}, "\x07s\x00\x00\x00"},
		"long part":   {KindState, []string{"g", long, "n"}, ""},
		"no text":     {KindState, []string{"\x00", "\xff\x01", "\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key := Key(test.kind, test.parts...)
			if test.want != "" && key != test.want {
				t.Errorf("got %q, want %q", key, test.want)
			}
			kind, parts, err := parseKey(key)
			if err != nil || kind != test.kind || !slices.Equal(parts, test.parts) {
				t.Errorf("split: %q, %q, %v", kind, parts, err)
			}
		})
	}
}

// TestSplitRefuses: what no version wrote, or a newer one, is an error that no retry mends.
func TestSplitRefuses(t *testing.T) {
	for name, test := range map[string]struct{ key, want string }{
		"empty":            {"", "malformed"},
		"format alone":     {"\x07", "malformed"},
		"newer format":     {"\x08s\x01g\x01k\x01n", "written by another version of Vokter (format 8, this one knows 7)"},
		"unknown kind":     {"\x07x", "unknown kind 'x'"},
		"too few parts":    {Key(KindState, "g", "k"), "malformed"},
		"too many parts":   {Key(KindPosition, "g", "in", "more"), "malformed"},
		"fence with parts": {Key(KindFence, "g"), "malformed"},
		"part is cut":      {"\x07p\x01g\x09in", "malformed"},
		"length is cut":    {"\x07p\x01g\x80", "malformed"},
		"endless length":   {"\x07p\x01g\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := parseKey(test.key)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want an error with %q", err, test.want)
			}
			if class, _ := failure.ClassOf(err); class != failure.ClassBroken {
				t.Errorf("its class is %v", class)
			}
		})
	}
}

// newMemoryStore returns a store of two lanes in memory.
func newMemoryStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(store.Options{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestApply puts records into the copy of a lane: the last one of a key counts, a tombstone
// deletes, a fence leaves nothing, and other lanes are not touched.
func TestApply(t *testing.T) {
	db := newMemoryStore(t)
	position := Key(KindPosition, "g", "in")
	for _, r := range []struct {
		key   string
		value []byte
	}{
		{Key(KindState, "g", "k", "kept"), []byte("1")},
		{Key(KindState, "g", "k", "kept"), []byte("2")},
		{Key(KindState, "g", "k", "empty"), []byte{}},
		{Key(KindState, "g", "k", "deleted"), []byte("3")},
		{Key(KindState, "g", "k", "deleted"), nil},
		{position, EncodeOffset(7)},
		{Key(KindClock), EncodeTime(time.Unix(1, 0))},
		{Key(KindClock), nil},
		{Key(KindFence), []byte("nonce")},
	} {
		err := db.Write(false, func(b *store.Batch) error { return Apply(b, 1, map[string][]byte{r.key: r.value}) })
		if err != nil {
			t.Fatal(err)
		}
	}
	for lane, want := range []map[string]string{
		{},
		{"g/k/kept": "2", "g/k/empty": "", OwnGroup + "/" + ownKey + "/" + position: string(EncodeOffset(7))},
	} {
		got := make(map[string]string)
		for _, of := range [][2]string{{"g", "k"}, {OwnGroup, ownKey}} {
			for name, v := range db.ScanState(of[0], lane, of[1], "") {
				if v.Err != nil {
					t.Fatal(v.Err)
				}
				got[of[0]+"/"+of[1]+"/"+name] = string(v.Bytes)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("lane %d: got %q, want %q", lane, got, want)
		}
	}
	err := db.Write(false, func(b *store.Batch) error {
		err := Apply(b, 1, map[string][]byte{"\x07x": nil})
		if !b.Empty() {
			t.Error("there is something to write of an unknown record")
		}
		return err
	})
	if err == nil {
		t.Error("an unknown record: got no error")
	}
}

// TestMessages: records come in the order of their keys, a nil value is a tombstone and an
// empty one is not.
func TestMessages(t *testing.T) {
	ms := Messages("p.state", 3, map[string][]byte{"c": nil, "a": []byte("1"), "b": {}})
	var got []string
	for _, m := range ms {
		if m.Topic != "p.state" || m.Partition != 3 {
			t.Errorf("it goes to partition %d of %s", m.Partition, m.Topic)
		}
		key, err := m.Key.Encode()
		if err != nil {
			t.Fatal(err)
		}
		value := "tombstone"
		if m.Value != nil {
			b, err := m.Value.Encode()
			if err != nil || b == nil {
				t.Fatal(b, err)
			}
			value = string(b)
		}
		got = append(got, string(key)+"="+value)
	}
	if want := []string{"a=1", "b=", "c=tombstone"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCopy ends with our fence, and no other record, or with an error of write or of the brokers, the end
// of the partition, or the context.
func TestCopy(t *testing.T) {
	failed, over := errors.New("failed"), errors.New("over")
	for name, test := range map[string]struct {
		prepare func(pc *mocks.PartitionConsumer, cancel context.CancelCauseFunc)
		write   error
		want    string
	}{
		"our fence":   {},
		"write fails": {write: failed, want: "failed"},
		"brokers fail": {prepare: func(pc *mocks.PartitionConsumer, _ context.CancelCauseFunc) {
			pc.YieldError(sarama.ErrOffsetOutOfRange)
		}, want: "outside the range"},
		"it ends early": {prepare: func(pc *mocks.PartitionConsumer, _ context.CancelCauseFunc) { pc.AsyncClose() }, want: "ended early"},
		"it is ended":   {prepare: func(_ *mocks.PartitionConsumer, cancel context.CancelCauseFunc) { cancel(over) }, want: "over"},
	} {
		t.Run(name, func(t *testing.T) {
			c := mocks.NewConsumer(t, nil)
			expected := c.ExpectConsumePartition("state", 0, 0)
			position := Key(KindPosition, "g", "in")
			if test.prepare == nil {
				for _, r := range [][2]string{{position, "1"}, {Key(KindFence), "other"}, {Key(KindFence), ""}, {Key(KindClock), "nonce"}, {position, "2"}, {Key(KindFence), "nonce"}, {"behind it", ""}} {
					expected.YieldMessage(&sarama.ConsumerMessage{Key: []byte(r[0]), Value: []byte(r[1])})
				}
			}
			pc, err := c.ConsumePartition("state", 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if test.prepare != nil {
				test.prepare(expected, cancel)
			}
			err = Copy(ctx, pc, "nonce", func(records map[string][]byte, read int, next int64) error {
				if len(records) != 3 || read != 6 || next == 0 || string(records[position]) != "2" {
					t.Errorf("got %q of %d records, up to %d", records, read, next)
				}
				return test.write
			})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestReadOwn reads what Apply wrote, and refuses a record that is damaged.
func TestReadOwn(t *testing.T) {
	db := newMemoryStore(t)
	at := time.Unix(9, 1).UTC()
	put := func(records map[string][]byte) {
		t.Helper()
		err := db.Write(false, func(b *store.Batch) error {
			WriteEnd(b, 1, 11, at)
			return Apply(b, 1, records)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	position := Key(KindPosition, "g", "in")
	good := map[string][]byte{
		position: EncodeOffset(math.MaxInt64), Key(KindPosition, "h", "in"): EncodeOffset(0), Key(KindClock): EncodeTime(at),
		Key(KindTopics): []byte(`{"lanes":2,"ids":{"in":"1"}}`), Key(KindState, "g", "k", "n"): []byte("v"),
	}
	put(good)
	want := Own{
		Positions: map[engine.Consumer]int64{{Group: "g", Topic: "in"}: math.MaxInt64, {Group: "h", Topic: "in"}: 0}, Clock: at, Topics: admin.Info{Lanes: 2, IDs: map[string]string{"in": "1"}}, End: 11, At: at,
	}
	if own, err := ReadOwn(db, 1); err != nil || !reflect.DeepEqual(own, want) {
		t.Errorf("got %+v, %v, want %+v", own, err, want)
	}
	if own, err := ReadOwn(db, 0); err != nil || len(own.Positions) > 0 || !own.Clock.IsZero() || own.Topics.Lanes != 0 || !own.At.IsZero() {
		t.Errorf("another lane has %+v, %v", own, err)
	}
	for name, test := range map[string]struct{ key, value, want string }{
		"topics":    {Key(KindTopics), "{", "is damaged"},
		"time":      {Key(KindClock), "1234567", "malformed"},
		"no offset": {position, "", "malformed"},
		"offset":    {position, "\x80", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			put(map[string][]byte{test.key: []byte(test.value)})
			_, err := ReadOwn(db, 1)
			if class, _ := failure.ClassOf(err); class != failure.ClassBroken || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
			put(good)
		})
	}
}
