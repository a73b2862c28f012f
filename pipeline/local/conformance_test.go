package local_test

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/vokter/vokter/internal/store"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

const testLanes = 8

func TestTransport(t *testing.T) {
	bubble := pipelinetest.Features{Lanes: testLanes, Bubble: true}
	volatile := pipelinetest.Features{Lanes: testLanes, Bubble: true, Volatile: true}
	disk := pipelinetest.Features{Lanes: testLanes, At: func(dir string) pipelinetest.Site { return &fixture{dir: dir} }}
	for name, test := range map[string]struct {
		f    pipelinetest.Features
		site func(t *testing.T) pipelinetest.Site
	}{
		"volatile":  {volatile, func(*testing.T) pipelinetest.Site { return &fixture{} }},
		"crashable": {bubble, func(*testing.T) pipelinetest.Site { return newCrashable("") }},
		"namespace": {bubble, func(*testing.T) pipelinetest.Site { return newCrashable("name") }},
		"disk":      {disk, func(t *testing.T) pipelinetest.Site { return disk.At(t.TempDir()) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipelinetest.TestTransport(t, test.f, test.site)
		})
	}
}

// fixture opens transports in dir on fs; on the real file system if fs is nil, and in memory
// without a dir.
type fixture struct {
	dir       string
	fs        *vfs.MemFS
	namespace string
	broken    atomic.Bool
}

// MaybeError makes reads of what is not in memory fail while the fixture is broken.
func (s *fixture) MaybeError(op errorfs.Op) error {
	if read := op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt; read && s.broken.Load() {
		return syscall.EIO
	}
	return nil
}

func (s *fixture) String() string { return "a disk that fails" }

func (s *fixture) Open(t *testing.T, c pipelinetest.Config) flow.Transport {
	t.Helper()
	lc := local.Config{Dir: s.dir, Lanes: testLanes, Bound: c.Bound, Topics: c.Topics, Now: c.Now, Grace: time.Second, MaxPause: 10 * time.Millisecond}
	var db *store.DB
	if s.fs != nil {
		var err error
		if db, err = store.Open(store.Options{Dir: s.dir, FS: errorfs.Wrap(s.fs, s), Lanes: testLanes}); err != nil {
			t.Fatal(err)
		}
		lc.Dir, lc.Store, lc.Namespace = "", db, s.namespace
	}
	tr, err := local.Open(lc)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Start(t.Context(), flow.Wiring{Unhandled: c.Unhandled}); err != nil {
		t.Fatal(err)
	}
	o := &openedTransport{tr, db}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return o
}

// openedTransport closes its store, too.
type openedTransport struct {
	*local.Transport
	db *store.DB
}

func (o *openedTransport) Close() error {
	err := o.Transport.Close()
	if o.db != nil {
		err = errors.Join(err, o.db.Close())
	}
	return err
}

// crashable is a fixture whose file system can lose what was not synced.
type crashable struct{ fixture }

var (
	_ pipelinetest.Crasher = (*crashable)(nil)
	_ pipelinetest.Breaker = (*crashable)(nil)
)

func newCrashable(namespace string) *crashable {
	return &crashable{fixture{dir: "data", fs: vfs.NewCrashableMem(), namespace: namespace}}
}

func (c *crashable) Break(broken bool) { c.broken.Store(broken) }

func (c *crashable) Crash(random *rand.Rand) {
	c.fs = c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
}

// TestWatermill runs Watermill's own suite with 8 lanes.
func TestWatermill(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, err := local.Open(local.Config{Dir: dir, Lanes: testLanes, Bound: 1 << 20, Grace: time.Second, MaxPause: 10 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := tr.Close(); err != nil {
					t.Error(err)
				}
			})
			pipelinetest.TestWatermill(t, tr)
		})
	}
}
