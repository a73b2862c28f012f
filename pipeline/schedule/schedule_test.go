package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func TestOffsetsAreEven(t *testing.T) {
	const pages, buckets = 20000, 20
	var n [buckets]int
	for i := range pages {
		o := Offset(fmt.Sprintf("https://example.com/%d", i), time.Hour)
		if o < 0 || o >= time.Hour {
			t.Fatalf("got %v, want it in [0, 1h)", o)
		}
		n[o*buckets/time.Hour]++
	}
	for i, got := range n {
		if want := pages / buckets; math.Abs(float64(got-want)) > float64(want)/5 {
			t.Errorf("bucket %d: got %d, want about %d", i, got, want)
		}
	}
	if a, b := Offset("p", time.Hour), Offset("p", time.Hour); a != b {
		t.Errorf("got %v and %v for one page", a, b)
	}
	if got := Offset("p", 0); got != 0 {
		t.Errorf("got %v of nothing", got)
	}
	if got := Offset("p", -time.Hour); got != 0 {
		t.Errorf("got %v of less than nothing", got)
	}
}

func TestSecond(t *testing.T) {
	seen := make(map[time.Time]bool)
	for i := range 100 {
		got := Second(fmt.Sprint(i), t0, 10*time.Minute, 10*time.Second)
		if got.Before(at(10*time.Second)) || got.After(at(10*time.Minute)) {
			t.Errorf("page %d: got %v, want 10s to 10m later", i, got.Sub(t0))
		}
		seen[got] = true
	}
	if len(seen) < 99 {
		t.Errorf("got %d different times for 100 pages", len(seen))
	}
	if got, want := Second("p", t0, 10*time.Second, 10*time.Second), at(10*time.Second); got != want {
		t.Errorf("interval = gap: got %v, want %v", got, want)
	}
	if got, want := Second("p", t0, time.Second, time.Hour), at(time.Second); got != want {
		t.Errorf("interval < gap: got %v, want %v", got, want)
	}
	if got := Second("p", t0, 0, 0); got != t0 {
		t.Errorf("interval 0: got %v, want at once", got)
	}
}

func TestNext(t *testing.T) {
	const m = time.Minute
	for name, c := range map[string]struct {
		due, asked, now time.Duration
		interval, gap   time.Duration
		want            time.Duration
	}{
		"steady":                           {0, 0, time.Second, 10 * m, 10 * time.Second, 10 * m},
		"a late check moves nothing":       {0, 3 * m, 4 * m, 10 * m, 10 * time.Second, 10 * m},
		"a slow check skips":               {0, 0, 25 * m, 10 * m, 10 * time.Second, 30 * m},
		"exactly on the next":              {0, 0, 10 * m, 10 * m, 10 * time.Second, 20 * m},
		"after a pause":                    {0, 95 * m, 96 * m, 10 * m, 10 * time.Second, 100 * m},
		"a check between keeps its due":    {10 * m, 4 * m, 4*m + 1, 10 * m, 10 * time.Second, 10 * m},
		"a check just before skips":        {10 * m, 10*m - 5*time.Second, 10 * m, 10 * m, 10 * time.Second, 20 * m},
		"interval is gap, wake 50 ms late": {0, 50 * time.Millisecond, time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second},
		"interval is gap, wake 5 s late":   {0, 5 * time.Second, 6 * time.Second, 10 * time.Second, 10 * time.Second, 20 * time.Second},
		"at once":                          {0, 0, 7, 0, 0, 7},
	} {
		if got := Next(at(c.due), at(c.asked), at(c.now), c.interval, c.gap); got != at(c.want) {
			t.Errorf("%s: got %v, want %v", name, got.Sub(t0), c.want)
		}
	}
}

func TestNextKeepsThePhaseAndTheBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		interval := time.Duration(rnd.Int64N(int64(time.Hour))) + 10*time.Second
		gap := 10 * time.Second
		due := t0
		for range 50 {
			asked := due.Add(time.Duration(rnd.Int64N(int64(2 * interval))))
			now := asked.Add(time.Duration(rnd.Int64N(int64(time.Minute))))
			next := Next(due, asked, now, interval, gap)
			if !next.After(now) || next.Sub(asked) < gap-gap/10 {
				t.Fatalf("got %v after %v, asked %v", next.Sub(t0), now.Sub(t0), asked.Sub(t0))
			}
			if next.Sub(now) > interval+gap {
				t.Fatalf("got %v after now, more than %v", next.Sub(now), interval+gap)
			}
			if next.Sub(t0)%interval != 0 {
				t.Fatalf("got %v, which leaves the phase of %v", next.Sub(t0), interval)
			}
			due = next
		}
	}
}

func TestOverdue(t *testing.T) {
	if _, late := Overdue("p", t0, at(Late), time.Hour); late {
		t.Error("overdue after Late, want not yet")
	}
	seen := make(map[time.Time]bool)
	for i := range 100 {
		got, late := Overdue(fmt.Sprint(i), t0, at(time.Hour), 10*time.Minute)
		if !late || got.Before(at(time.Hour)) || !got.Before(at(time.Hour+CatchUp)) {
			t.Errorf("page %d: got %v, %v; want it within %v", i, got.Sub(t0), late, CatchUp)
		}
		seen[got] = true
	}
	if len(seen) < 99 {
		t.Errorf("got %d different times for 100 pages", len(seen))
	}
	if got, late := Overdue("p", t0, at(time.Hour), 10*time.Second); !late || got.After(at(time.Hour+10*time.Second)) {
		t.Errorf("interval 10s: got %v, %v", got.Sub(t0), late)
	}
}

// TestAdapt: a page that changes at regular times is checked a few times for each change, and the
// bounds hold.
func TestAdapt(t *testing.T) {
	const least, most = time.Minute, 24 * time.Hour
	for _, every := range []time.Duration{10 * time.Minute, time.Hour, 6 * time.Hour, 48 * time.Hour} {
		pace, checks, changes := time.Duration(0), 0, 0
		for now, last := time.Duration(0), time.Duration(0); now < 1000*every; now += pace {
			changed := now/every != last/every
			if last = now; changed {
				changes++
			}
			checks++
			if pace = Adapt(pace, changed, least, most); pace < least || pace > most {
				t.Fatalf("the pace is %v", pace)
			}
		}
		if per := float64(checks) / float64(changes); per < 2 || per > 6 {
			t.Errorf("a page that changes every %v is checked %.1f times for each change", every, per)
		}
	}
	if got := Adapt(math.MaxInt64, false, least, most); got != most {
		t.Errorf("got %v", got)
	}
}
