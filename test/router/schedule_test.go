package router_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
)

// clockPage is a page with another text at each fetch. It notes when it is fetched.
type clockPage struct {
	mu sync.Mutex
	at []time.Time
}

func (*clockPage) Schemes() []string { return []string{"https"} }

func (p *clockPage) Fetch(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, time.Now())
	return pipeline.Response{
		URL: "https://example.com/", Status: http.StatusOK, Header: http.Header{"Content-Type": {"text/html"}},
		Body: io.NopCloser(strings.NewReader(fmt.Sprintf("<p>Argus%s</p>", strings.Repeat(" Argus", len(p.at)%20)))),
	}, nil
}

// minutes returns the minutes of the fetches in UTC, without the first, which reads the baseline.
func (p *clockPage) minutes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, at := range p.at[1:] {
		all = append(all, at.UTC().Format("2006-01-02 15:04"))
	}
	return all
}

// runBetween runs a Router of cfg from one time to another, within a bubble of synctest.
func runBetween(t *testing.T, cfg vokter.Config, from, to string) {
	t.Helper()
	at := func(s string) time.Time {
		v, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	time.Sleep(time.Until(at(from)))
	_, stop := startRouter(t, cfg)
	time.Sleep(time.Until(at(to)))
	stop()
}

// TestCronOverDaylightSaving: a page with a cron line in Berlin is checked at its times on the days on
// which the clocks change. The time of a bubble begins in 2000: there they change on 26 March and on
// 29 October.
func TestCronOverDaylightSaving(t *testing.T) {
	for _, c := range []struct {
		line, from, to string
		want           []string
	}{
		{"30 2 * * * Europe/Berlin", "2000-03-26 00:00", "2000-03-26 03:00", []string{"2000-03-26 01:30"}},
		{"30 2 * * * Europe/Berlin", "2000-10-28 23:00", "2000-10-29 03:00", []string{"2000-10-29 00:30"}},
		{"15,45 1-3 * * * Europe/Berlin", "2000-03-25 23:00", "2000-03-26 03:00", []string{"2000-03-26 00:15", "2000-03-26 00:45", "2000-03-26 01:15", "2000-03-26 01:45"}},
		{"15,45 1-3 * * * Europe/Berlin", "2000-10-28 23:00", "2000-10-29 03:00", []string{
			"2000-10-28 23:15", "2000-10-28 23:45", "2000-10-29 00:15", "2000-10-29 00:45", "2000-10-29 02:15", "2000-10-29 02:45",
		}},
		{"0 * * * * Europe/Berlin", "2000-10-28 22:30", "2000-10-29 02:30", []string{"2000-10-28 23:00", "2000-10-29 00:00", "2000-10-29 01:00", "2000-10-29 02:00"}},
		{"0 9 * * 1-5 Europe/Berlin", "2000-03-24 07:30", "2000-03-24 08:30", []string{"2000-03-24 08:00"}},
		{"0 9 * * 1-5 Europe/Berlin", "2000-03-27 06:30", "2000-03-27 07:30", []string{"2000-03-27 07:00"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			interval, err := pipeline.ParseInterval(c.line)
			if err != nil {
				t.Fatal(err)
			}
			page := new(clockPage)
			runBetween(t, vokter.Config{
				Sinks: map[string]pipeline.Sink{"box": newMailbox()}, Fetchers: []pipeline.Fetcher{page},
				Subscriptions: []pipeline.Subscription{{URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}, Interval: interval}},
			}, c.from, c.to)
			if got := page.minutes(); !slices.Equal(got, c.want) {
				t.Errorf("%s:\n got %v\nwant %v", c.line, got, c.want)
			}
		})
	}
}

// TestQuietHours: changes by day are notified at once. Those by night are notified together in the
// morning.
func TestQuietHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet, err := pipeline.ParseQuiet("22:00-07:00 Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var got []string
		box := pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, fmt.Sprintf("%s %s %d", time.Now().UTC().Format("02 15:04"), n.Type, len(n.Items)))
			return nil
		})
		runBetween(t, vokter.Config{
			Sinks: map[string]pipeline.Sink{"box": box}, Fetchers: []pipeline.Fetcher{new(clockPage)},
			Subscriptions: []pipeline.Subscription{{
				URL: "https://example.com/", Keywords: []string{"Argus"}, Sinks: []string{"box"}, Quiet: quiet,
				Interval: pipeline.Interval{Cron: "30 18-23,0-8 * * * Europe/Berlin"},
			}},
		}, "2000-06-01 16:00", "2000-06-02 07:00")
		// Berlin is two hours ahead: quiet from 20:00 to 05:00.
		want := []string{"01 16:30", "01 17:30", "01 18:30", "01 19:30", "02 05:00", "02 05:30", "02 06:30"}
		mu.Lock()
		defer mu.Unlock()
		for i, w := range want {
			w += " notification 0"
			if i == 4 {
				w = want[i] + " digest 9"
			}
			if i >= len(got) || got[i] != w {
				t.Fatalf("got %q, want %s as number %d", got, w, i)
			}
		}
		if len(got) != len(want) {
			t.Errorf("got %q", got)
		}
	})
}
