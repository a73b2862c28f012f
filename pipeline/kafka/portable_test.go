package kafka

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/internal/engine"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/kafka/internal/changelog"
	"github.com/vokter/vokter/pipeline/kafka/internal/client"
	"github.com/vokter/vokter/pipeline/portable"
	"github.com/vokter/vokter/pipeline/store"
	"github.com/vokter/vokter/test/kafkatest"
)

// wantNeverUsed is what an import says of topics that were used.
const wantNeverUsed = "state is read into topics that were never used"

// newTestExport returns an export as any transport may have written it.
func newTestExport(t *testing.T) (*portable.Export, []portable.Record) {
	t.Helper()
	at := time.Unix(1<<32, 7).UTC()
	var all []portable.Record
	for _, key := range []string{"", "a", "b", "c\xff", "d"} {
		all = append(all, portable.Record{Group: "g", Key: key, Name: "n", Value: []byte("of " + key)},
			portable.Record{Group: engine.WakeGroup("g", "in"), Key: key, Name: flow.WakeName, Value: engine.Wake{At: at, AtStart: key < "c"}.Value()})
	}
	dir := filepath.Join(t.TempDir(), "e")
	w, err := portable.Create(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	w.Describe(portable.Manifest{StateFormat: store.Format, Clock: time.Unix(9, 0).UTC()})
	for _, r := range all {
		if err := w.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := portable.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return e, all
}

// mustImport imports an export of newTestExport.
func mustImport(t *testing.T, c Config) {
	t.Helper()
	e, _ := newTestExport(t)
	if err := Import(t.Context(), c, e); err != nil {
		t.Fatal(err)
	}
}

// exportState exports what c keeps.
func exportState(t *testing.T, c Config, leave bool) (*portable.Export, []string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "e")
	w, err := portable.Create(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	left, err := Export(t.Context(), c, w, leave)
	if err != nil {
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
		return nil, left, err
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := portable.Open(dir)
	return e, left, err
}

// wantExportError fails t unless exporting what c keeps fails with an error that contains want.
func wantExportError(t *testing.T, c Config, want string) {
	t.Helper()
	_, _, err := exportState(t, c, false)
	kafkatest.Refused(t, err, want)
}

// allRecords returns what e holds, in an order that does not change.
func allRecords(t *testing.T, e *portable.Export) []portable.Record {
	t.Helper()
	var out []portable.Record
	for r, err := range e.Records() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	sortRecords(out)
	return out
}

func sortRecords(all []portable.Record) {
	slices.SortFunc(all, func(a, b portable.Record) int { return strings.Compare(a.Key+a.Group, b.Key+b.Group) })
}

// TestMove: what was imported is there for a process, and is exported again as it was, with
// what was done since.
func TestMove(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, c Config) {
		wantExportError(t, c, "there is no topic "+c.Prefix+"state")
		e, want := newTestExport(t)
		if err := Import(t.Context(), c, e); err != nil {
			t.Fatal(err)
		}
		kafkatest.Refused(t, Import(t.Context(), c, e), "holds state: "+wantNeverUsed)
		tr := openTransport(t, c)
		in := subscribe(t, tr, "g", "in")
		publish(t, tr, "in", "a", "1")
		woken := map[string]bool{}
		for handled := false; !handled || len(woken) < 3; {
			m := <-in
			tx, _ := flow.TxFrom(m.Context())
			key := m.Metadata[flow.HeaderKey]
			if handled = handled || m.UUID == "1"; m.UUID == "1" {
				if err := tx.State(key).Set("n", []byte("altered")); err != nil {
					t.Fatal(err)
				}
				m.Ack()
				continue
			}
			woken[key] = true
			if v, _, err := tx.State(key).Get("n"); err != nil || string(v) != "of "+key && string(v) != "altered" {
				t.Errorf("%q: got %q, %v", key, v, err)
			}
			tx.WakeAt(key, time.Unix(1<<32, 7).UTC(), flow.AtStart)
			m.Ack()
		}
		wantExportError(t, c, "processes work in the consumer group "+c.Group)
		mustClose(t, tr)
		again, left, err := exportState(t, c, false)
		if err != nil || len(left) > 0 {
			t.Fatal(left, err)
		}
		for i := range want {
			if want[i].Key == "a" && want[i].Group == "g" {
				want[i].Value = []byte("altered")
			}
		}
		sortRecords(want)
		if got := allRecords(t, again); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		if again.Lineage == "" || again.Lineage != tr.lineage || again.Clock.IsZero() {
			t.Errorf("got %+v", again.Manifest)
		}
	})
}

// txnProducer returns the transactional producer that id names.
func txnProducer(t *testing.T, c Config, id string) sarama.SyncProducer {
	t.Helper()
	conf, err := c.adminConfig().TxnConfig(id)
	if err != nil {
		t.Fatal(err)
	}
	return newProducer(t, c.Brokers, conf)
}

// TestExportWaits: a message that waits is a refusal, one of a transaction that was given up
// is none.
func TestExportWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, c Config) {
		mustImport(t, c)
		p := txnProducer(t, c, c.Group+"-test")
		for _, end := range []func() error{p.AbortTxn, p.CommitTxn} {
			if _, left, err := exportState(t, c, false); err != nil || len(left) > 0 {
				t.Fatalf("while nothing waits: %v, %v", left, err)
			}
			if err := p.BeginTxn(); err != nil {
				t.Fatal(err)
			}
			ms := []*sarama.ProducerMessage{
				{Topic: c.Prefix + "in", Partition: 1, Value: sarama.StringEncoder("x")},
				{Topic: c.Prefix + "asked", Partition: 1, Value: sarama.StringEncoder("x")},
				newMarker(c.Prefix+"in", 2, "somebody"),
			}
			if err := p.SendMessages(ms); err != nil {
				t.Fatal(err)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
		}
		want := "in 1 of 3 partitions of " + c.Prefix + "in for g"
		wantExportError(t, c, "messages wait to be handled ("+want+")")
		if _, left, err := exportState(t, c, true); err != nil || !slices.Equal(left, []string{want}) {
			t.Errorf("left behind: got %q, %v", left, err)
		}
	})
}

// TestFailedImport: what an import leaves that fails is no obstacle to the next one, and topics
// that were used are.
func TestFailedImport(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, c Config) {
		e, want := newTestExport(t)
		e.Groups[0].States++ // which its file does not hold
		kafkatest.Refused(t, Import(t.Context(), c, e), "nothing was imported: the export in")
		e.Groups[0].States--
		if err := Import(t.Context(), c, e); err != nil {
			t.Fatal(err)
		}
		got, _, err := exportState(t, c, false)
		if err != nil {
			t.Fatal(err)
		}
		sortRecords(want)
		if got := allRecords(t, got); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
	})
	c := testConfig(kafkatest.Start(t))
	tr := openTransport(t, c)
	e, _ := newTestExport(t)
	kafkatest.Refused(t, Import(t.Context(), c, e), "processes work")
	publish(t, tr, "in", "a", "1")
	mustClose(t, tr)
	kafkatest.Refused(t, Import(t.Context(), c, e), "topic "+c.Prefix+"in was used: "+wantNeverUsed)
}

// TestKeysInTwoLanes: what is kept for one key in two lanes cannot be one state elsewhere.
func TestKeysInTwoLanes(t *testing.T) {
	t.Parallel()
	c := testConfig(kafkatest.Start(t))
	mustImport(t, c)
	other := (client.PartitionOf("a", 3) + 1) % 3
	another := producerMessages(c.Prefix, other, nil, map[string][]byte{changelog.Key(changelog.KindState, "g", "a", "n"): []byte("another")})
	if err := newLaneProducer(t, c.Brokers).SendMessages(another); err != nil {
		t.Fatal(err)
	}
	wantExportError(t, c, `group g keeps something for the key "a" in lane `)
}
