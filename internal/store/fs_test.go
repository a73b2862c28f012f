package store

import (
	"math/rand/v2"
	"path"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// powerCut remembers what a power cut before operation cutAt would leave of mem, where any
// part of what was not synced may be lost. It counts operations while counting is set.
type powerCut struct {
	mem   *vfs.MemFS
	cutAt int

	mu       sync.Mutex
	counting bool
	count    int
	afterCut *vfs.MemFS
}

func (p *powerCut) fs() vfs.FS { return errorfs.Wrap(p.mem, p) }

func (p *powerCut) String() string { return "power cut" }

func (p *powerCut) MaybeError(op errorfs.Op) error {
	if strings.HasPrefix(path.Base(op.Path), "marker.") {
		if err := p.syncDir(path.Dir(op.Path)); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.counting {
		return nil
	}
	if p.count++; p.count == p.cutAt {
		random := rand.New(rand.NewPCG(uint64(p.cutAt), 1))
		p.afterCut = p.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: random.IntN(101), RNG: random})
	}
	return nil
}

// syncDir makes the entries of dir durable. Pebble writes and syncs a file and then moves a
// marker to its name. File systems with a journal never keep the second entry without the
// first. The one in memory does.
func (p *powerCut) syncDir(dir string) error {
	d, err := p.mem.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// setCounting begins or ends the counting.
func (p *powerCut) setCounting(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counting = on
}

// lossyFS is a file system that loses all that is written to some files: those whose path
// begins with dir and has part in it.
type lossyFS struct {
	vfs.FS
	dir, part string
}

func (l *lossyFS) loses(name string) bool {
	return strings.HasPrefix(name, l.dir) && strings.Contains(name, l.part)
}

func (l *lossyFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := l.FS.Create(name, c)
	if err != nil || !l.loses(name) {
		return file, err
	}
	return discardingFile{file}, nil
}

func (l *lossyFS) Link(oldname, newname string) error {
	if !l.loses(newname) {
		return l.FS.Link(oldname, newname)
	}
	return nil
}

type discardingFile struct{ vfs.File }

func (discardingFile) Write(b []byte) (int, error) { return len(b), nil }
