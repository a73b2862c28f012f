package voktertest_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
	"github.com/vokter/vokter/voktertest"
)

const lamp = "https://shop.example.com/lamp"

// watchLamp is a Config that tells inbox when the lamp is out of stock.
func watchLamp(inbox *voktertest.Inbox) vokter.Config {
	return vokter.Config{
		Sinks: map[string]pipeline.Sink{"inbox": inbox},
		Subscriptions: []pipeline.Subscription{{
			URL: lamp, Keywords: []string{"out of stock"}, Interval: pipeline.Every(time.Hour), Sinks: []string{"inbox"},
		}},
	}
}

// TestTwoDays runs ten Routers one after another, each in a bubble of its own, for two days: all hourly checks are
// made, and one change is told at the hour of its check, though the receiver fails at first.
func TestTwoDays(t *testing.T) {
	routers := 10
	if testing.Short() {
		routers = 2
	}
	for i := range routers {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web, inbox := new(voktertest.Web), new(voktertest.Inbox)
				web.Set(lamp, "<p>The lamp is in stock.</p>")
				voktertest.Run(t, web, watchLamp(inbox))
				began := time.Now()
				time.Sleep(24 * time.Hour)
				web.Set(lamp, "<p>The lamp is out of stock.</p>")
				inbox.Fail(errors.New("away"))
				time.Sleep(3 * time.Hour)
				if n := inbox.Notifications(); len(n) != 0 {
					t.Fatalf("got %v from a receiver that is away", n)
				}
				inbox.Fail(nil)
				time.Sleep(21 * time.Hour)
				n := inbox.Notifications()
				if len(n) != 1 || len(n[0].Diffs) == 0 || n[0].Diffs[0].Keyword != "out of stock" {
					t.Fatalf("got %v, want one notification", n)
				}
				if after := n[0].Time.Sub(began); after < 24*time.Hour || after > 25*time.Hour {
					t.Errorf("the change is of %v after the start", after)
				}
				if got := web.Fetches(lamp); got < 48 || got > 49 {
					t.Errorf("%d fetches in 48 hours", got)
				}
			})
		})
	}
}

// TestOutage: a page that cannot be read is no change, and neither is one that is not there.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, inbox := new(voktertest.Web), new(voktertest.Inbox)
		web.Set(lamp, "<p>The lamp is in stock.</p>")
		r := voktertest.Run(t, web, watchLamp(inbox))
		time.Sleep(time.Hour)
		web.Fail(lamp, errors.New("no route to host"))
		time.Sleep(2 * time.Hour)
		web.SetResponse(lamp, 404, "text/plain", "gone")
		time.Sleep(2 * time.Hour)
		web.Set(lamp, "<p>The lamp is in stock.</p>")
		time.Sleep(2 * time.Hour)
		if n := inbox.Notifications(); len(n) != 0 || r.Summary().Failed != 4 {
			t.Errorf("got %v and %d failed checks, want none and 4", n, r.Summary().Failed)
		}
	})
}

// TestNothingRead: a run of which every check fails ends with an error that says why.
func TestNothingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := watchLamp(new(voktertest.Inbox))
		cfg.Checks, cfg.Fetchers = 2, []pipeline.Fetcher{new(voktertest.Web)}
		r, err := vokter.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Run(t.Context())
		if !errors.Is(err, vokter.ErrNothingRead) {
			t.Fatalf("got %v", err)
		}
		if want := vokter.ErrNothingRead.Error() + "\n" + lamp + ": HTTP status 404 Not Found"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	})
}

func TestWebIsAFetcher(t *testing.T) {
	pipelinetest.TestFetcher(t, func(*testing.T) pipelinetest.FetcherSite {
		web := new(voktertest.Web)
		return pipelinetest.FetcherSite{
			Fetcher: web, Missing: "https://example.com/missing", MaxBody: 10 << 20,
			Put: func(_ *testing.T, body string) string {
				web.SetResponse(lamp, 200, "text/plain", body)
				return lamp
			},
		}
	})
}
