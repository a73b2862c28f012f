package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// keptVersion is a stored version of a document. The list of them is stored beside the page, because only new versions
// need it: it is a few bytes for each, the oldest first.
type keptVersion struct {
	N uint64
	// At is when it was found, in seconds since 1970.
	At int64
	// Linked is when the last notification was made that links to it, in seconds since 1970, 0 if none does: one about
	// it, or about the version after it, which is compared with it.
	Linked int64
	// Picture says that a picture of the page is stored with it.
	Picture bool
}

// KeptVersions returns the numbers of the stored versions of a document of the page whose state st is, the newest
// first.
func KeptVersions(st flow.State, document string) ([]uint64, error) {
	all, err := loadKept(st, document)
	numbers := make([]uint64, len(all))
	for i, v := range all {
		numbers[len(all)-1-i] = v.N
	}
	return numbers, err
}

// loadKept returns the stored versions of a document, the oldest first.
func loadKept(st flow.State, document string) ([]keptVersion, error) {
	b, ok, err := st.Get(keptName + document)
	if err != nil || !ok {
		return nil, err
	}
	if len(b) == 0 || b[0] != format {
		return nil, failure.Broken(errors.New("index: a list of versions has a format that this program does not know"))
	}
	var all []keptVersion
	var last keptVersion
	for b = b[1:]; len(b) > 0; {
		var part [3]int64
		for i := range part {
			n, size := binary.Varint(b)
			if size <= 0 {
				return nil, failure.Broken(fmt.Errorf("index: the list of versions of document %s is damaged", document))
			}
			part[i], b = n, b[size:]
		}
		v := keptVersion{N: last.N + uint64(part[0]), At: last.At + part[1], Linked: part[2] >> 1, Picture: part[2]&1 > 0}
		if v.Linked > 0 {
			v.Linked += v.At
		}
		all, last = append(all, v), v
	}
	return all, nil
}

// storeKept stores the list of the stored versions of a document.
func storeKept(st flow.State, document string, all []keptVersion) error {
	b := make([]byte, 1, 1+8*len(all))
	b[0] = format
	var last keptVersion
	for _, v := range all {
		linked := int64(0)
		if v.Linked > 0 {
			linked = max(v.Linked-v.At, 1) << 1
		}
		if v.Picture {
			linked |= 1
		}
		b = binary.AppendVarint(b, int64(v.N-last.N))
		b = binary.AppendVarint(b, v.At-last.At)
		b = binary.AppendVarint(b, linked)
		last = v
	}
	return st.Set(keptName+document, b)
}

// addKept adds v, which was just stored. With replaces it takes the place of the one before.
func addKept(st flow.State, document string, v keptVersion, replaces bool) error {
	all, err := loadKept(st, document)
	if err != nil {
		return err
	}
	if n := len(all); replaces && n > 0 {
		if err := dropVersion(st, document, all[n-1]); err != nil {
			return err
		}
		all = all[:n-1]
	}
	return storeKept(st, document, append(all, v))
}

// dropVersion deletes v and its picture.
func dropVersion(st flow.State, document string, v keptVersion) error {
	err := st.Delete(versionName(document, v.N))
	if err == nil && v.Picture {
		err = st.Delete(screenshotName(document, v.N))
	}
	return err
}

// noteTold notes that a notification links to a version, and so to the one that it is compared with.
func noteTold(st flow.State, o keepTold) error {
	all, err := loadKept(st, o.Document)
	if err != nil {
		return err
	}
	i, ok := slices.BinarySearchFunc(all, o.N, func(v keptVersion, n uint64) int {
		if v.N < n {
			return -1
		}
		return int(min(v.N-n, 1))
	})
	if !ok {
		return nil
	}
	for j := max(i-1, 0); j <= i; j++ {
		all[j].Linked = max(all[j].Linked, o.At.Unix())
	}
	return storeKept(st, o.Document, all)
}

// shedding is what is dropped because versions take too much of the disk.
type shedding struct {
	// keepFor is how long versions are stored for that, in nanoseconds; 0 means that there is room.
	keepFor atomic.Int64
	dropped atomic.Int64
}

// minShed is what keepFor is reduced to before versions are dropped that notifications link to.
const minShed = time.Hour

// Shed drops versions earlier than Config.KeepFor says, because there is no room for them: keepFor after the next one
// took their place; 0 ends that. It is safe for concurrent use.
func (s *Stage) Shed(keepFor time.Duration) { s.shedding.keepFor.Store(int64(keepFor)) }

// Shedded returns how many versions were dropped because of Shed.
func (s *Stage) Shedded() int64 { return s.shedding.dropped.Load() }

// pruneVersions drops the versions that are not kept any more.
func (s *Stage) pruneVersions(tx flow.Tx, st flow.State, o prune) error {
	all, err := loadKept(st, o.Document)
	if err != nil {
		return err
	}
	shed := time.Duration(s.shedding.keepFor.Load())
	kept, short := prunedVersions(all, o.Keep, shed, s.cfg.Now())
	if len(kept) == len(all) {
		return nil
	}
	for i, j := 0, 0; i < len(all); i++ {
		if j < len(kept) && kept[j].N == all[i].N {
			j++
			continue
		}
		if err := dropVersion(st, o.Document, all[i]); err != nil {
			return err
		}
	}
	if short > 0 {
		tx.OnCommit(func() { s.shedding.dropped.Add(int64(short)) })
	}
	return storeKept(st, o.Document, kept)
}

// prunedVersions returns those of all, the oldest first, that are kept: the current one, those that r keeps, and those
// that notifications of the last 30 days link to. With shed above 0 there is no room for those that were replaced
// before that; short is how many are dropped for that alone.
func prunedVersions(all []keptVersion, r retention, shed time.Duration, now time.Time) (kept []keptVersion, short int) {
	for i, v := range all {
		if i == len(all)-1 {
			kept = append(kept, v)
			break
		}
		left := len(all) - i
		replaced := now.Sub(time.Unix(all[i+1].At, 0))
		linked := v.Linked > 0 && now.Sub(time.Unix(v.Linked, 0)) < linkedFor
		wanted := left <= max(r.Versions, 1) && (r.For <= 0 || replaced < r.For)
		switch {
		case !wanted && !linked || left > max(maxLinked, r.Versions):
		case shed > 0 && replaced >= shed && (!linked || shed <= minShed):
			short++
		default:
			kept = append(kept, v)
		}
	}
	return kept, short
}
