package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// network is a fetcher whose hosts answer or do not.
type network struct{ down map[string]bool }

func (n *network) fetch(_ context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
	if n.down[pipeline.HostKey(r.URL)] {
		return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailRefused, Reason: "connection refused"}
	}
	return answer("hello " + r.URL)
}

// look checks one page of each host and returns what was found.
func (b *bench) look(t *testing.T, check uint64, hosts ...string) map[string]flow.Outcome {
	t.Helper()
	for _, h := range hosts {
		r := request("http://"+h+".example/", check)
		r.Documents[0].TextHash = "h"
		b.ask(t, r)
		time.Sleep(time.Minute) // of the bubble
		synctest.Wait()
	}
	return b.out.take()
}

func (n *network) set(down bool, hosts ...string) {
	n.down = make(map[string]bool)
	for _, h := range hosts {
		n.down[h+".example:80"] = down
	}
}

// flags says which of the outcomes of hosts are marked.
func flags(got map[string]flow.Outcome, hosts ...string) string {
	var s []string
	for _, h := range hosts {
		o, ok := got["http://"+h+".example/"]
		s = append(s, fmt.Sprintf("%s:%v", o.Kind, ok && o.Offline))
	}
	return strings.Join(s, " ")
}

func TestOfflineIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		b := start(t, Config{}, n.fetch)
		hosts := []string{"a", "b", "c", "d"}
		if got := flags(b.look(t, 1, hosts...), hosts...); got != "read:false read:false read:false read:false" {
			t.Errorf("got %s", got)
		}
		n.set(true, hosts...)
		begun := time.Now()
		if got := flags(b.look(t, 2, hosts...), hosts...); got != "failed:false failed:false failed:true failed:true" {
			t.Errorf("got %s", got)
		}
		if got := flags(b.look(t, 3, hosts...), hosts...); got != "failed:true failed:true failed:true failed:true" {
			t.Errorf("got %s", got)
		}
		if len(b.out.events) != 1 {
			t.Fatalf("got events %+v, want one", b.out.events)
		}
		e := b.out.events[0]
		if e.Event != pipeline.HealthOffline || e.Count != 3 || e.after != 2 || !e.Since.Equal(begun) || e.Reason == "" ||
			strings.Join(e.URLs, " ") != "http://a.example/ http://b.example/ http://c.example/" {
			t.Errorf("got %+v", e)
		}
		n.set(false)
		if got := flags(b.look(t, 4, "b", "a"), "b", "a"); got != "read:false read:false" {
			t.Errorf("got %s", got)
		}
		if len(b.out.events) != 2 {
			t.Fatalf("got events %+v, want two", b.out.events)
		}
		if f := b.out.events[1]; f.Event != pipeline.HealthOnline || f.after != 0 || !f.Since.Equal(begun) || f.ID == e.ID {
			t.Errorf("got %+v", f)
		}
		n.set(true, hosts...)
		b.look(t, 5, hosts...)
		if len(b.out.events) != 3 || b.out.events[2].ID == e.ID {
			t.Errorf("got events %+v, want three with IDs of their own", b.out.events)
		}
	})
}

func TestOfflineIsToldAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		b := start(t, Config{}, n.fetch)
		n.set(true, "a", "b", "c")
		b.out.err = errors.New("the store is gone")
		b.look(t, 1, "a", "b", "c")
		b.out.err = nil
		if len(b.out.events) != 0 {
			t.Fatalf("got %+v", b.out.events)
		}
		got := b.look(t, 2, "a", "b")
		if s := flags(got, "a", "b"); s != "failed:true failed:true" || len(b.out.events) != 1 || b.out.events[0].after != 0 {
			t.Errorf("got %s, events %+v", s, b.out.events)
		}
	})
}

// Pages without a host, hosts that are left alone and those that the guard refuses say
// nothing about the network.
func TestOfflineIsAboutHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n network
		b := start(t, Config{}, func(ctx context.Context, r pipeline.FetchRequest) (pipeline.Response, error) {
			switch r.URL {
			case "http://busy.example/1":
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailBusy, RetryAfter: time.Hour, Reason: "HTTP status 429"}
			case "http://inner.example/":
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailAddress, Reason: "10.0.0.1 is refused"}
			case "http:///gone/1", "http:///gone/2", "http:///gone/3":
				return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailUnreadable, Reason: "no such file"}
			}
			return n.fetch(ctx, r)
		})
		check := func(url string) flow.Outcome {
			r := request(url, 1)
			r.NotAfter = time.Now().Add(time.Minute)
			b.ask(t, r)
			synctest.Wait()
			return b.out.take()[url]
		}
		b.look(t, 1, "a", "b", "c")
		check("http://busy.example/1")
		check("http:///gone/1")
		check("http:///gone/2")
		check("http:///gone/3")
		if len(b.out.events) != 0 {
			t.Fatalf("pages without hosts fail: got %+v", b.out.events)
		}
		n.set(true, "a", "b", "c")
		b.look(t, 2, "a", "b")
		check("http:///there")
		b.look(t, 2, "c")
		if len(b.out.events) != 1 {
			t.Fatalf("a page without a host answers: got %+v", b.out.events)
		}
		if o := check("http://busy.example/2"); o.Class != pipeline.FailBusy || o.Offline {
			t.Errorf("got %+v", o)
		}
		if o := check("http://inner.example/"); o.Class != pipeline.FailAddress || o.Offline {
			t.Errorf("got %+v", o)
		}
		if len(b.out.events) != 1 {
			t.Errorf("got %+v", b.out.events)
		}
		// A host that is too busy does answer.
		time.Sleep(2 * time.Hour) // of the bubble
		check("http://busy.example/1")
		if len(b.out.events) != 2 || b.out.events[1].Event != pipeline.HealthOnline {
			t.Errorf("got %+v", b.out.events)
		}
	})
}

// Hosts that answer are there, though all their pages be gone: those may expire.
func TestGonePagesAreNotOffline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{}, func(context.Context, pipeline.FetchRequest) (pipeline.Response, error) {
			return pipeline.Response{}, &pipeline.FetchError{Class: pipeline.FailStatus, Status: 404, Reason: "HTTP status 404 Not Found"}
		})
		for check := range uint64(3) {
			for _, page := range []string{"https://a.example/", "https://b.example/", "https://c.example/"} {
				b.ask(t, request(page, check))
				time.Sleep(time.Minute) // of the bubble
				synctest.Wait()
				if o := b.out.take()[page]; o.Class != pipeline.FailStatus || o.Offline {
					t.Errorf("got %+v", o)
				}
			}
		}
		if len(b.out.events) != 0 {
			t.Errorf("got events %+v", b.out.events)
		}
	})
}

func TestOfflineEndsWithTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Config{}, func(ctx context.Context, _ pipeline.FetchRequest) (pipeline.Response, error) {
			<-ctx.Done()
			return pipeline.Response{}, ctx.Err()
		})
		b.ask(t, request("http://a.example/", 1), request("http://b.example/", 1), request("http://c.example/", 1))
		synctest.Wait()
		if n := b.health.tracker.pending; n != 3 {
			t.Errorf("%d fetches are under way", n)
		}
		b.stop()
		synctest.Wait()
		if tr := b.health.tracker; tr.pending != 0 || tr.count != 0 || len(b.out.events) != 0 {
			t.Errorf("what was broken off counts: %+v, events %+v", tr, b.out.events)
		}
	})
}
