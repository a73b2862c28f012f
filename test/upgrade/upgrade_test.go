package upgrade

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/local"
	"github.com/vokter/vokter/sinks"
)

const site = "http://127.0.0.1:8093"

// unpack returns a copy of the data directory in an archive.
func unpack(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir, in := t.TempDir(), tar.NewReader(z)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// shop serves pages: a list of items each, or nothing but failures.
type shop struct {
	mu    sync.Mutex
	pages map[string]string
}

func (s *shop) Schemes() []string { return []string{"http"} }

func (s *shop) Fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, ok := s.pages[strings.TrimPrefix(r.URL, site)]
	if !ok {
		return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailStatus, Reason: "HTTP status 500", Status: 500}
	}
	h := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	return pipeline.Response{URL: r.URL, Status: http.StatusOK, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// set makes a page a list of items.
func (s *shop) set(page string, items ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[page] = "<!doctype html><html lang=en><title>Shop</title><body><h1>Items on offer today</h1><ul><li>" +
		strings.Join(items, "</li><li>") +
		"</li></ul><p>Prices include delivery within the country, and the shop is closed on Sundays.</p></body></html>"
}

// heard is what a test compares of a notification.
type heard struct {
	Sink, ID, Status, Page, Client string
	Version                        uint64
	Said                           string
}

// inbox collects what its sinks get.
type inbox struct {
	mu  sync.Mutex
	all []heard
}

func (b *inbox) sink(name string) pipeline.Sink {
	return pipeline.SinkFunc(func(_ context.Context, n pipeline.Notification) error {
		h := heard{name, n.ID, n.Status, strings.TrimPrefix(n.URL, site), n.Client, n.Version, ""}
		for _, d := range n.Diffs {
			h.Said += string(d.Event) + " " + d.Keyword + " in " + d.Text + ";"
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.all = append(b.all, h)
		return nil
	})
}

// take returns what name got since the last time, in order.
func (b *inbox) take(name string) []heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	var got, rest []heard
	for _, h := range b.all {
		if h.Sink == name {
			got = append(got, h)
		} else {
			rest = append(rest, h)
		}
	}
	b.all = rest
	return got
}

// subscriptions are those of the file that the old version ran with.
func subscriptions() []pipeline.Subscription {
	return []pipeline.Subscription{
		{URL: site + "/lamps", Client: "anna", Keywords: []string{"lamp"}, IgnoreCase: true, Interval: pipeline.Duration(time.Hour), Sinks: []string{"good", "down"}},
		{URL: site + "/lamps", Client: "ben", Keywords: []string{"sold out", "chrome"}, Interval: pipeline.Duration(2 * time.Hour), Sinks: []string{"down"}},
		{URL: site + "/chairs", Client: "anna", Keywords: []string{"sold out"}, Interval: pipeline.Duration(time.Hour), Sinks: []string{"good"}},
		{URL: site + "/tables", Client: "ben", Keywords: []string{"oak"}, Interval: pipeline.Duration(time.Hour), Sinks: []string{"good"}},
	}
}

// run runs a Router over dir until it made its checks and delivered what follows. Its
// clock stands where the old version left, and an hour and more later.
func run(t *testing.T, dir string, s *shop, b *inbox, c vokter.Config) {
	t.Helper()
	later, began := time.Date(2026, 11, 21, 16, 10, 0, 0, time.UTC), time.Now()
	every := time.Duration(0)
	c.Dir, c.MinFree, c.Every = dir, 1, &every
	c.Now = func() time.Time { return later.Add(time.Since(began)) }
	c.Fetchers = []pipeline.Fetcher{s}
	c.Fetch.Rate, c.Fetch.Concurrency = 1000, 4
	c.Sinks = map[string]pipeline.Sink{"good": b.sink("good"), "down": b.sink("down")}
	r, err := vokter.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// known is what is remembered of a notification.
func known(t *testing.T, dir, sink, id string) sinks.Record {
	t.Helper()
	tr, err := local.Open(local.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	r, ok, err := sinks.Known(tr.State(flow.GroupDelivery, sink), id)
	if !ok || err != nil {
		t.Errorf("%s at %s is not remembered: %v", id, sink, err)
	}
	return r
}

func same(t *testing.T, what string, got, want []heard) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %+v\nwant %+v", what, got, want)
	}
}

// TestFormat1 goes on with a store of format 1.
func TestFormat1(t *testing.T) {
	dir, b := unpack(t, "format1.tar.gz"), &inbox{}
	s := &shop{pages: map[string]string{}} // where the tables fail
	s.set("/lamps", "Desk lamp, brass", "Floor lamp, black", "Reading lamp, chrome")
	s.set("/chairs", "Armchair, green, sold out", "Stool, oak")
	file := vokter.Config{
		Origin: "yaml", Subscriptions: subscriptions(), Documents: []vokter.Document{{URL: site + "/tables", Keep: true}}, Checks: 1,
	}

	// The file is the same and so are the pages: what waited comes, under the IDs that the
	// old version gave, and nothing else.
	run(t, dir, s, b, file)
	same(t, "what waited", b.take("down"), []heard{
		{"down", "VI5IBOJV3ERIS5RFSRJOC7A5PG", "ok", "/lamps", "anna", 2, "added lamp in Reading lamp, sold out;"},
		{"down", "SELSC275VMA1A93MR9PSO50S4S", "ok", "/lamps", "ben", 2, "added sold out in Reading lamp, sold out;"},
		{"down", "DGT0HDGJ8MM6M111A0C3VD9H18", "ok", "/lamps", "ben", 3, "removed sold out in sold out;added chrome in chrome;"},
	})
	same(t, "what was delivered before", b.take("good"), nil)

	for id, sink := range map[string]string{
		"LNTTTU5EE093C7KHPFPMDUTQL0": "good", "FA3CSAG3U4Q4JMM9AM7AA3VV48": "good", // by the old version
		"VI5IBOJV3ERIS5RFSRJOC7A5PG": "down", "DGT0HDGJ8MM6M111A0C3VD9H18": "down",
	} {
		if r := known(t, dir, sink, id); r.State != sinks.RecordDelivered || r.Attempts == 0 || r.Time.IsZero() {
			t.Errorf("%s at %s is remembered as %+v", id, sink, r)
		}
	}

	// The subscriptions stand in the store: a Router without the file hears for them what
	// differs from the versions that the old one stored.
	s.set("/lamps", "Desk lamp, brass", "Floor lamp, black", "Reading lamp, chrome", "Wall lamp, white")
	s.set("/chairs", "Armchair, green", "Stool, oak")
	run(t, dir, s, b, vokter.Config{Checks: 1})
	got := map[string]heard{}
	for _, h := range append(b.take("good"), b.take("down")...) {
		if h.ID == "" || got[h.Sink+h.Page] != (heard{}) {
			t.Errorf("got %+v, and %+v", h, got[h.Sink+h.Page])
		}
		h.ID = ""
		got[h.Sink+h.Page] = h
	}
	want := map[string]heard{
		"good/lamps":  {"good", "", "ok", "/lamps", "anna", 4, "added lamp in Wall lamp, white;"},
		"down/lamps":  {"down", "", "ok", "/lamps", "anna", 4, "added lamp in Wall lamp, white;"},
		"good/chairs": {"good", "", "ok", "/chairs", "anna", 3, "removed sold out in sold out;"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the next changes:\ngot  %+v\nwant %+v", got, want)
	}

	// The tables failed 5 times before, and twice in the runs above.
	file.Checks = 3
	run(t, dir, s, b, file)
	gone := b.take("good")
	for i := range gone {
		gone[i].ID = ""
	}
	same(t, "a page that went on failing", gone, []heard{{"good", "", "timeout", "/tables", "ben", 0, ""}})
}
