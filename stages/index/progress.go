package index

import (
	"bytes"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// storedProgress is a Progress without its Wake as it is stored. Times are in nanoseconds since 1970, 0 for none. Sum
// is the checksum of the rest of the page as it is stored.
type storedProgress struct {
	Sum         uint64        `cbor:"1,keyasint"`
	Check       uint64        `cbor:"2,keyasint,omitempty"`
	Asked       int64         `cbor:"3,keyasint,omitempty"`
	Open        *Open         `cbor:"4,keyasint,omitempty"`
	Due         int64         `cbor:"5,keyasint,omitempty"`
	Paced       time.Duration `cbor:"6,keyasint,omitempty"`
	Phased      bool          `cbor:"7,keyasint,omitempty"`
	Delayed     int64         `cbor:"8,keyasint,omitempty"`
	NotBefore   int64         `cbor:"9,keyasint,omitempty"`
	Wish        time.Duration `cbor:"10,keyasint,omitempty"`
	Soon        bool          `cbor:"11,keyasint,omitempty"`
	Bare        bool          `cbor:"12,keyasint,omitempty"`
	Cron        int64         `cbor:"13,keyasint,omitempty"`
	Pace        time.Duration `cbor:"14,keyasint,omitempty"`
	Failures    int           `cbor:"15,keyasint,omitempty"`
	Trouble     string        `cbor:"16,keyasint,omitempty"`
	Busy        int           `cbor:"17,keyasint,omitempty"`
	FailedSince int64         `cbor:"18,keyasint,omitempty"`
	Failing     bool          `cbor:"19,keyasint,omitempty"`
	Records     uint64        `cbor:"20,keyasint,omitempty"`
	Deadline    int64         `cbor:"21,keyasint,omitempty"` // of Open
	Quiet       *storedRecord `cbor:"22,keyasint,omitempty"`
	Reads       uint64        `cbor:"23,keyasint,omitempty"`

	Dormant       int   `cbor:"24,keyasint,omitempty"`
	DormantSince  int64 `cbor:"25,keyasint,omitempty"`
	DormantChecks int   `cbor:"26,keyasint,omitempty"`
	Silent        int   `cbor:"27,keyasint,omitempty"`
	GiveUpAt      int64 `cbor:"28,keyasint,omitempty"`
}

func (p Progress) stored(sum uint64) storedProgress {
	var deadline int64
	if p.Open != nil {
		deadline = nanos(p.Open.Deadline)
	}
	var quiet *storedRecord
	if p.Quiet != nil {
		r := p.Quiet.stored(0)
		quiet = &r
	}
	return storedProgress{
		Deadline: deadline, Quiet: quiet,
		Sum: sum, Check: p.Check, Asked: nanos(p.Asked), Open: p.Open, Due: nanos(p.Due), Paced: p.Paced, Phased: p.Phased,
		Delayed: nanos(p.Delayed), NotBefore: nanos(p.NotBefore), Wish: p.Wish, Soon: p.Soon, Bare: p.Bare, Cron: nanos(p.Cron), Pace: p.Pace,
		Failures: p.Failures, Trouble: p.Trouble, Busy: p.Busy, FailedSince: nanos(p.FailedSince), Failing: p.Failing, Records: p.Records, Reads: p.Reads,
		Dormant: p.Dormant, DormantSince: nanos(p.DormantSince), DormantChecks: p.DormantChecks, Silent: p.Silent, GiveUpAt: nanos(p.GiveUpAt),
	}
}

func (p storedProgress) progress() Progress {
	if p.Open != nil {
		p.Open.Deadline = fromNanos(p.Deadline)
	}
	var quiet *CheckRecord
	if p.Quiet != nil {
		r := p.Quiet.record()
		quiet = &r
	}
	return Progress{
		Quiet: quiet,
		Check: p.Check, Asked: fromNanos(p.Asked), Open: p.Open, Due: fromNanos(p.Due), Paced: p.Paced, Phased: p.Phased,
		Delayed: fromNanos(p.Delayed), NotBefore: fromNanos(p.NotBefore), Wish: p.Wish, Soon: p.Soon, Bare: p.Bare, Cron: fromNanos(p.Cron), Pace: p.Pace,
		Failures: p.Failures, Trouble: p.Trouble, Busy: p.Busy, FailedSince: fromNanos(p.FailedSince), Failing: p.Failing, Records: p.Records, Reads: p.Reads,
		Dormant: p.Dormant, DormantSince: fromNanos(p.DormantSince), DormantChecks: p.DormantChecks, Silent: p.Silent, GiveUpAt: fromNanos(p.GiveUpAt),
	}
}

// encodeProgress returns p as it is stored. Sum is the checksum of the rest of the page.
func encodeProgress(p Progress, sum uint64) ([]byte, error) {
	b, err := stored.Append(flow.AppendWake(make([]byte, 0, 160), p.Wake.Time, p.Wake.AtStart), format, p.stored(sum))
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return b, nil
}

// decodeProgress is the inverse of encodeProgress.
func decodeProgress(b []byte) (p Progress, sum uint64, err error) {
	at, atStart, b, err := flow.CutWake(b)
	if err != nil {
		return p, 0, failure.Broken(fmt.Errorf("index: a stored value is damaged: %w", err))
	}
	var s storedProgress
	if err := decode(b, &s); err != nil {
		return p, 0, err
	}
	p = s.progress()
	p.Wake = wakeAt{at, atStart}
	return p, s.Sum, nil
}

// loadProgress returns the Progress of the page whose state st is; the zero one if nothing is stored.
func loadProgress(st flow.State) (p Progress, err error) {
	b, ok, err := st.Get(progressName)
	if err != nil || !ok {
		return p, err
	}
	p, _, err = decodeProgress(b)
	return p, err
}

// nanos returns t in nanoseconds since 1970, or 0 if t is zero. A t before 1970 or after 2262 counts as
// then.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return flow.WakeTime(t).UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// Load returns the page whose state st is: the zero Page if there is none, a Page without
// Incarnation if it expired. A value that cannot be decoded is a Broken error.
func Load(st flow.State) (Page, error) {
	l, err := load(st)
	if l == nil {
		return Page{}, err
	}
	return *l.page, err
}

// loadedPage is a page with its progress as it is stored, and the checksum and size of the rest. Nobody changes
// the page, except a clone of it.
type loadedPage struct {
	page     *Page
	progress []byte
	sum      uint64
	size     int
}

// load returns the page whose state st is, or nil if nothing is stored of it.
//
// Who reads beside the lane of the page may get the progress of one commit and the rest of the
// next. Such a reader reads again until they belong together.
func load(st flow.State) (*loadedPage, error) {
	for read := []byte(nil); ; {
		progress, ok, err := st.Get(progressName)
		if err != nil || !ok {
			return nil, err
		}
		p, sum, err := decodeProgress(progress)
		if err != nil {
			return nil, err
		}
		l, err := loadRest(st, sum)
		if err != nil {
			return nil, err
		}
		if l != nil {
			l.page.Progress, l.progress = p, progress
			return l, nil
		}
		if bytes.Equal(read, progress) {
			return nil, failure.Broken(fmt.Errorf("index: a stored page is damaged: it is not the one that its progress names"))
		}
		read = progress
	}
}

// loadRest returns the page with this checksum without its progress, or nil if another one is stored.
func loadRest(st flow.State, sum uint64) (*loadedPage, error) {
	b, ok, err := st.Get(pageName)
	if err != nil || !ok || xxhash.Sum64(b) != sum {
		return nil, err
	}
	l := &loadedPage{page: new(Page), sum: sum, size: len(b)}
	return l, decode(b, l.page)
}

// cachedBytes is about how many bytes of pages the cache holds.
const cachedBytes = 32 << 20

// cache holds pages as they were stored last.
type cache struct {
	*stored.Committed[*loadedPage]
}

func newCache() cache { return cache{stored.NewCommitted[*loadedPage](cachedBytes)} }

// load returns the page of tx in this epoch, or nil if nothing is stored of it. Nobody may change it,
// except a clone of it.
func (c cache) load(tx flow.Tx, url string, epoch uint64) (*loadedPage, error) {
	if l, ok := c.Get(url, epoch); ok {
		return l, nil
	}
	return load(tx.State(url))
}

// store stores p of url as far as it differs from before, which is nil if nothing is stored. Nobody may change p
// afterwards.
func (c cache) store(tx flow.Tx, url string, epoch uint64, before *loadedPage, p *Page) error {
	st, after := tx.State(url), &loadedPage{page: p}
	if before != nil && p.sameRest(before.page) {
		after.sum, after.size = before.sum, before.size
	} else {
		rest, err := encode(p)
		if err != nil {
			return err
		}
		after.sum, after.size = xxhash.Sum64(rest), len(rest)
		if before == nil || before.sum != after.sum {
			if err := st.Set(pageName, rest); err != nil {
				return err
			}
		}
	}
	var err error
	if after.progress, err = encodeProgress(p.Progress, after.sum); err != nil {
		return err
	}
	if before != nil && bytes.Equal(before.progress, after.progress) {
		return nil
	}
	c.Put(tx, url, epoch, after, int64(1000+2*after.size))
	return st.Set(progressName, after.progress)
}
