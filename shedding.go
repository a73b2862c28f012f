package vokter

import (
	"cmp"
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// shedInterval is the time between two looks at how much of the disk the data directory takes, and shedPause how long a
// change has to take effect: pages drop versions at their checks, and the store gives the space back some time later.
const (
	shedInterval = time.Minute
	shedPause    = 10 * time.Minute
)

// shedder decides how long versions are kept while the data directory takes more of the disk than it may.
type shedder struct {
	age     time.Duration // Retention.Age
	keepFor time.Duration // 0 while there is room
	changed time.Time
}

// next returns how long versions are kept from now on, 0 for as long as Retention says, where used of allowed bytes are
// taken. Versions come about evenly over time, so their age is cut as the bytes have to be. It grows again slowly.
func (s *shedder) next(used, allowed int64, now time.Time) time.Duration {
	if !s.changed.IsZero() && now.Sub(s.changed) < shedPause {
		return s.keepFor
	}
	current := cmp.Or(s.keepFor, s.age)
	switch {
	case used > allowed:
		current = max(time.Duration(float64(current)*0.9*float64(allowed)/float64(used)), time.Minute)
	case s.keepFor > 0 && float64(used) < 0.8*float64(allowed):
		if current += current / 4; current >= s.age {
			current = 0
		}
	default:
		return s.keepFor
	}
	s.keepFor, s.changed = current, now
	return current
}

// boundVersions drops versions early while the data directory takes more of its disk than Retention.Disk says, until
// ctx is done.
func (r *Router) boundVersions(ctx context.Context) error {
	dir := r.cfg.dataDirectory()
	if dir == "" {
		return nil
	}
	s := shedder{age: r.cfg.Retention.Age}
	tick := time.NewTicker(shedInterval)
	defer tick.Stop()
	for {
		disk, err := vfs.Default.GetDiskUsage(dir)
		used := directorySize(dir)
		allowed := int64(r.cfg.Retention.Disk * float64(disk.TotalBytes))
		if before := s.keepFor; err == nil && allowed > 0 {
			switch keepFor := s.next(used, allowed, r.cfg.Now()); {
			case keepFor == before:
			case keepFor == 0:
				r.cfg.Logger.Info("there is room again: versions are kept as retention says", "dropped", r.stages.index.Shedded())
				r.stages.index.Shed(0)
			case before == 0 || keepFor < before:
				r.cfg.Logger.Warn("the data directory takes more of the disk than retention.disk allows: the oldest versions are dropped early; "+
					"raise retention.disk, lower retention.age or retention.versions, or give it a larger disk",
					"bytes", used, "allowed", allowed, "kept_for", keepFor.Round(time.Minute), "dropped", r.stages.index.Shedded())
				r.stages.index.Shed(keepFor)
			default:
				r.stages.index.Shed(keepFor)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// directorySize returns how many bytes the files in dir have. What disappears meanwhile does not count.
func directorySize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}
