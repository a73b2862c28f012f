package store_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/pipeline/store"
)

func TestStore(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		f := pipelinetest.StoreFeatures{ErrClosed: store.ErrClosed, Volatile: true}
		pipelinetest.TestStore(t, f, func(*testing.T) pipelinetest.StoreSite { return &site{} })
	})
	t.Run("crashable", func(t *testing.T) {
		f := pipelinetest.StoreFeatures{ErrClosed: store.ErrClosed}
		pipelinetest.TestStore(t, f, func(*testing.T) pipelinetest.StoreSite {
			return &site{dir: "data", fs: vfs.NewCrashableMem()}
		})
	})
	t.Run("gathered", func(t *testing.T) {
		f := pipelinetest.StoreFeatures{ErrClosed: store.ErrClosed}
		pipelinetest.TestStore(t, f, func(*testing.T) pipelinetest.StoreSite {
			return &site{dir: "data", fs: vfs.NewCrashableMem(), gather: time.Hour}
		})
	})
	t.Run("namespace", func(t *testing.T) {
		f := pipelinetest.StoreFeatures{ErrClosed: store.ErrClosed}
		pipelinetest.TestStore(t, f, func(*testing.T) pipelinetest.StoreSite {
			return &site{dir: "data", fs: vfs.NewCrashableMem(), namespace: "name"}
		})
	})
}

// site opens stores in dir on fs, or in memory without a dir.
type site struct {
	dir       string
	fs        *vfs.MemFS
	namespace string
	gather    time.Duration
}

func (s *site) Open(t *testing.T) pipelinetest.Store {
	t.Helper()
	o := store.Options{Dir: s.dir, Gather: s.gather}
	if s.fs != nil {
		o.FS = s.fs
	}
	db, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	// Beside what the suite uses there are neighbours that its scans must not see.
	for _, name := range []string{"", "nam", "name", "name\x00", "name\xff", "other"} {
		if name == s.namespace {
			continue
		}
		err := db.Namespace(name).Write(false, func(b *store.Batch) error {
			b.SetState("group", 3, "key", "neighbour", []byte("x"))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	db = db.Namespace(s.namespace)
	err = db.Write(true, func(b *store.Batch) error {
		for _, key := range []string{"", "ke", "key\x00", "keyz", "\xff"} {
			b.SetState("group", 3, key, "neighbour", []byte("x"))
		}
		b.SetState("grou", 3, "key", "neighbour", []byte("x"))
		b.SetState("group", 2, "key", "neighbour", []byte("x"))
		b.SetState("group", 4, "key", "neighbour", []byte("x"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return kv{db}
}

func (s *site) Crash(random *rand.Rand) {
	s.fs = s.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
}

// kv shows the state of one key.
type kv struct{ db *store.DB }

func (k kv) Get(name string) ([]byte, bool, error) {
	return k.db.GetState("group", 3, "key", name)
}

func (k kv) Scan(prefix string, f func(string, []byte) bool) error {
	for name, v := range k.db.ScanState("group", 3, "key", prefix) {
		if v.Err != nil || !f(name, v.Bytes) {
			return v.Err
		}
	}
	return nil
}

func (k kv) Apply(sync bool, ops ...pipelinetest.Op) error {
	return k.db.Write(sync, func(b *store.Batch) error {
		for _, op := range ops {
			if op.Delete {
				b.DeleteState("group", 3, "key", op.Name)
			} else {
				b.SetState("group", 3, "key", op.Name, op.Value)
			}
		}
		return nil
	})
}

func (k kv) Close() error { return k.db.Close() }
