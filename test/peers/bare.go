package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

// connections is how many requests are under way at once, of the bare client and of vokter-stream.
const connections = 8

// bareClient measures this program as a client that only asks.
func bareClient(ctx context.Context, m measurement) (cost, error) {
	self, err := os.Executable()
	if err != nil {
		return cost{}, err
	}
	return steady(ctx, m, command(ctx, self, "-bare", m.site.URL, "-pages", strconv.Itoa(m.pages), "-rate", fmt.Sprint(m.rate)))
}

// ask asks for each page in turn, with the validator of its last answer, over kept connections and
// evenly at a rate, until ctx is done.
func ask(ctx context.Context, url string, pages int, rate float64) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	every := time.Duration(connections / rate * float64(time.Second))
	ended := make(chan error, connections)
	for first := range connections {
		go func() { ended <- askEach(ctx, client, url, first, pages, every) }()
	}
	return <-ended
}

// askEach asks for every page with a number first, first+connections and so on.
func askEach(ctx context.Context, client *http.Client, url string, first, pages int, every time.Duration) error {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for n := first; ; n = (n + connections) % pages {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
		if err := askFor(ctx, client, fmt.Sprintf("%s/%d", url, n)); err != nil {
			return err
		}
	}
}

func askFor(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("If-None-Match", `"1"`)
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}
