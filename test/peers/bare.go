package main

import (
	"context"
	"crypto/sha256"
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
// evenly at a rate, until ctx is done. It hashes the bodies.
func ask(ctx context.Context, url string, pages int, rate float64) error {
	c := &asker{url: url, tags: make([]string, pages), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}}
	every := time.Duration(connections / rate * float64(time.Second))
	ended := make(chan error, connections)
	for first := range connections {
		go func() { ended <- c.each(ctx, first, every) }()
	}
	return <-ended
}

// asker asks for the pages of a site.
type asker struct {
	url    string
	client *http.Client
	tags   []string // the last validator of each page, by number
}

// each asks for every page with a number first, first+connections and so on.
func (c *asker) each(ctx context.Context, first int, every time.Duration) error {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for n := first; ; {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
		if err := c.one(ctx, n); err != nil {
			return err
		}
		if n += connections; n >= len(c.tags) {
			n = first
		}
	}
}

func (c *asker) one(ctx context.Context, n int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/%d", c.url, n), nil)
	if err != nil {
		return err
	}
	if tag := c.tags[n]; tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	res, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	c.tags[n] = res.Header.Get("ETag")
	_, err = io.Copy(sha256.New(), res.Body)
	return err
}
