package store

import (
	"math"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Free returns how many bytes the file system of dir, which exists, has free for this user.
func Free(dir string) (int64, error) {
	u, err := vfs.Default.GetDiskUsage(dir)
	return int64(min(u.AvailBytes, math.MaxInt64)), err
}
