package index

import (
	"bytes"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/vokter/vokter/internal/bounded"
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
		Failures: p.Failures, Trouble: p.Trouble, Busy: p.Busy, FailedSince: nanos(p.FailedSince), Failing: p.Failing, Records: p.Records,
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
		Failures: p.Failures, Trouble: p.Trouble, Busy: p.Busy, FailedSince: fromNanos(p.FailedSince), Failing: p.Failing, Records: p.Records,
	}
}

// encodeProgress returns p as it is stored. Sum is the checksum of the rest of the page.
func encodeProgress(p Progress, sum uint64) ([]byte, error) {
	b, err := stored.Append(flow.AppendWake(make([]byte, 0, 256), p.Wake.Time, p.Wake.AtStart), format, p.stored(sum))
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
	l, err := new(cache).load(st, "")
	return l.page, err
}

// cachedBytes is about how many bytes of pages the cache holds.
const cachedBytes = 32 << 20

// cache holds pages as they were stored or loaded last. An entry counts only if the stored progress is
// its own, or names its checksum, so an entry from a transaction that failed does no harm. The zero cache
// holds none.
type cache struct {
	pages *bounded.Cache[string, loaded]
}

func newCache() *cache { return &cache{bounded.New[string, loaded](cachedBytes)} }

// loaded is a page with its progress as it is stored, and the checksum and size of the rest. It has no
// progress if nothing is stored of the page. Nobody changes the page, except a clone of it.
type loaded struct {
	page     Page
	progress []byte
	sum      uint64
	size     int
}

// load returns the page of url whose state st is. Nobody may change it, except a clone of it.
//
// Who reads beside the lane of the page may get the progress of one commit and the rest of the
// next. Such a reader reads again until they belong together.
func (c *cache) load(st flow.State, url string) (l loaded, err error) {
	for {
		before := l.progress
		var ok bool
		if l.progress, ok, err = st.Get(progressName); err != nil || !ok {
			return loaded{}, err
		}
		known, ok := c.get(url)
		if ok && bytes.Equal(known.progress, l.progress) {
			return known, nil
		}
		var p Progress
		if p, l.sum, err = decodeProgress(l.progress); err != nil {
			return l, err
		}
		if ok && known.sum == l.sum {
			l.page, l.size = known.page, known.size
		} else if l.page, l.size, ok, err = rest(st, l.sum); err != nil {
			return l, err
		}
		if ok {
			l.page.Progress = p
			c.put(url, l)
			return l, nil
		}
		if bytes.Equal(before, l.progress) {
			return l, failure.Broken(fmt.Errorf("index: a stored page is damaged: it is not the one that its progress names"))
		}
	}
}

// rest returns the page with this checksum without its progress. It returns false if another one is
// stored.
func rest(st flow.State, sum uint64) (p Page, size int, ok bool, err error) {
	b, ok, err := st.Get(pageName)
	if err != nil || !ok || xxhash.Sum64(b) != sum {
		return p, 0, false, err
	}
	err = decode(b, &p)
	return p, len(b), err == nil, err
}

func (c *cache) get(url string) (loaded, bool) {
	if c.pages == nil {
		return loaded{}, false
	}
	return c.pages.Get(url)
}

func (c *cache) put(url string, l loaded) {
	if c.pages != nil {
		c.pages.Put(url, l, int64(1000+2*l.size))
	}
}

// store stores p of url as far as it differs from before.
func (c *cache) store(st flow.State, url string, before loaded, p Page) error {
	after := loaded{page: p, sum: before.sum, size: before.size}
	if before.progress == nil || !p.sameRest(&before.page) {
		rest, err := encode(p)
		if err != nil {
			return err
		}
		after.sum, after.size = xxhash.Sum64(rest), len(rest)
		if before.progress == nil || before.sum != after.sum {
			if err := st.Set(pageName, rest); err != nil {
				return err
			}
		}
	}
	var err error
	if after.progress, err = encodeProgress(p.Progress, after.sum); err != nil || bytes.Equal(before.progress, after.progress) {
		return err
	}
	c.put(url, after)
	return st.Set(progressName, after.progress)
}
