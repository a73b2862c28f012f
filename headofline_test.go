package vokter

import (
	"github.com/vokter/vokter/pipeline"

	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"testing"
)

// hosts serves handler on n loopback ports of its own: n hosts.
func hosts(t *testing.T, n int, handler http.HandlerFunc) []string {
	t.Helper()
	s := &http.Server{Handler: handler}
	t.Cleanup(func() { s.Close() })
	var urls []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go s.Serve(l)
		urls = append(urls, "http://"+l.Addr().String()+"/")
	}
	return urls
}

func TestHangingHostsStopNobody(t *testing.T) {
	release := make(chan struct{})
	var held atomic.Int64
	hanging := hosts(t, 64, func(_ http.ResponseWriter, r *http.Request) {
		held.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	free := hosts(t, 1000, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintln(w, "free")
	})
	cfg := Config{
		Sinks: map[string]pipeline.Sink{"box": newMailbox()},
		Fetch: FetchConfig{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}},
	}
	watch := func(url string) {
		cfg.Subscriptions = append(cfg.Subscriptions, pipeline.Subscription{URL: url, Keywords: []string{"x"}, Sinks: []string{"box"}})
	}
	for _, u := range hanging {
		for i := range 3 { // several pages each, so that they hold all that a host may have
			watch(fmt.Sprintf("%s%d", u, i))
		}
	}
	for _, u := range free {
		watch(u)
	}
	r, stop := lives(t, cfg)
	defer stop()
	waitFor(t, func() bool { return r.Summary().Versions == len(free) })
	if held.Load() < int64(len(hanging)) {
		t.Errorf("%d of %d hanging hosts were asked", held.Load(), len(hanging))
	}
	if c := r.Summary().Counts; c.Checks != len(free) || c.Failed != 0 {
		t.Errorf("summary %+v, want %d checks: nobody waits for those that hang", c, len(free))
	}
}
