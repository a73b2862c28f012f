package index

import (
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/schedule"
)

// asks subscribes client to the page with an interval.
func (b *bench) asks(client, interval string) {
	b.Helper()
	i, err := pipeline.ParseInterval(interval)
	if err != nil {
		b.Fatal(err)
	}
	s := sub(client, pipeline.View{})
	s.Interval = i
	b.do(subscribe{Origin: "api", Subscription: s})
}

// next brings the time of the next check, and returns it without what spreads pages within a minute.
func (b *bench) next() time.Time {
	b.Helper()
	b.due()
	return b.p.Asked.Truncate(time.Minute).UTC()
}

// The most impatient subscription decides, be it a duration or a cron line.
func TestCronLineAndDuration(t *testing.T) {
	b := newBench(t)
	b.asks("daily", "0 9 * * *")
	b.read("A")
	nine := pipeline.Cron("0 9 * * *").Next(b.now)
	b.asks("often", "1h")
	for {
		asked := b.next()
		b.unchanged()
		if !asked.Before(nine) {
			if !asked.Equal(nine) {
				t.Errorf("nine o'clock was left out: checked at %v", asked)
			}
			break
		}
		if gap := nine.Sub(asked); gap < 0 {
			t.Fatal("the check is late")
		}
	}
	b.cancel("often")
	if got, want := b.next(), nine.AddDate(0, 0, 1); !got.Equal(want) {
		t.Errorf("without the duration the next check is at %v, want %v", got, want)
	}
	b.unchanged()
	b.asks("often", "1h")
	before := b.p.Asked
	b.due()
	if gap := b.p.Asked.Sub(before); gap > time.Hour+2*time.Second {
		t.Errorf("a duration that is added counts after %v", gap)
	}
}

// A cron line asks for no more checks than fetch.min_interval permits, and --every replaces it.
func TestCronLineWithinTheRules(t *testing.T) {
	b := newBench(t)
	b.rules.MinInterval = 5 * time.Minute
	b.asks("c", "* * * * *")
	b.read("A")
	before := b.p.Asked
	b.due()
	if gap := b.p.Asked.Sub(before); gap < 5*time.Minute || gap > 7*time.Minute {
		t.Errorf("checked again after %v, with at least 5 minutes", gap)
	}
	b.unchanged()
	every := 10 * time.Second
	b.rules.Every = &every
	before = b.p.Asked
	b.do(wake{})
	b.due()
	if gap := b.p.Asked.Sub(before); gap > time.Minute {
		t.Errorf("with --every 10s checked again after %v", gap)
	}
}

// After a pause of the process, a time that passed meanwhile is made up for within a minute.
func TestCronLineThatWasMissed(t *testing.T) {
	b := newBench(t)
	b.asks("c", "0 9 * * *")
	b.read("A")
	b.now = b.now.Add(72 * time.Hour)
	start := b.now
	b.restart(wake{})
	b.due()
	if late := b.p.Asked.Sub(start); late > schedule.CatchUp+5*time.Second {
		t.Errorf("checked %v after the start", late)
	}
	b.unchanged()
	if got, want := b.p.NextDue().Truncate(time.Minute), pipeline.Cron("0 9 * * *").Next(b.now); !got.Equal(want) {
		t.Errorf("then due at %v, want %v", got, want)
	}
}

// An interval with bounds follows how often the page changes.
func TestAdaptiveInterval(t *testing.T) {
	b := newBench(t)
	b.asks("c", "10m to 24h")
	b.read("A")
	gap := func() time.Duration {
		before := b.p.Asked
		b.due()
		return b.p.Asked.Sub(before)
	}
	for range 60 {
		gap()
		b.unchanged()
	}
	if got := gap(); got < 23*time.Hour || got > 24*time.Hour+time.Minute {
		t.Errorf("a page that never changes is checked every %v", got)
	}
	for i := range 20 {
		b.read(string(rune('B' + i)))
		gap()
	}
	b.read("Z")
	if got := gap(); got > 11*time.Minute {
		t.Errorf("a page that changes all the time is checked every %v", got)
	}
	b.failed(pipeline.FailDNS)
	if b.p.Pace != 10*time.Minute {
		t.Errorf("a failed check changes the pace to %v", b.p.Pace)
	}
	b.asks("strict", "5m")
	gap()
	b.unchanged()
	if got := gap(); got > 6*time.Minute {
		t.Errorf("beside an interval of 5m the page is checked every %v", got)
	}
}
