package contract

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/test/kafkatest"
)

// linkedPages is how many pages a linkedSite has.
const linkedPages = 20

// linkedSite is a site of pages /p/0 to /p/19, of which page n links to 4n+1 to 4n+4, to the page before
// it and to itself. It takes the notifications of its changes.
type linkedSite struct {
	*testing.T
	server *httptest.Server

	mu      sync.Mutex
	texts   [linkedPages]string
	cut     map[int]bool        // pages that no other page links to
	held    [linkedPages]string // the text that the last request said to have
	gets    [linkedPages]int
	told    map[string][]string // by text: the IDs of the notifications
	changed chan struct{}       // closed with the next request or notification
}

func newLinkedSite(t *testing.T) *linkedSite {
	s := &linkedSite{T: t, cut: make(map[int]bool), told: make(map[string][]string), changed: make(chan struct{})}
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

func (s *linkedSite) url(n int) string { return fmt.Sprintf("%s/p/%d", s.server.URL, n) }

func (s *linkedSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/p/"))
	if err != nil || n < 0 || n >= linkedPages {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "<p>This is page %d.</p><p>%s</p>", n, s.texts[n])
	for _, to := range []int{n, n - 1, 4*n + 1, 4*n + 2, 4*n + 3, 4*n + 4} {
		if to >= 0 && to < linkedPages && !s.cut[to] {
			fmt.Fprintf(&b, `<a href="/p/%d">go on</a> `, to)
		}
	}
	s.gets[n]++
	etag := strconv.Quote(s.texts[n] + fmt.Sprint(len(s.cut)))
	s.held[n] = r.Header.Get("If-None-Match")
	s.notify()
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Type", "text/html")
	if s.held[n] == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	fmt.Fprint(w, b.String())
}

// notify wakes who awaits something. s.mu is held.
func (s *linkedSite) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Deliver takes a notification. The same one may come again.
func (s *linkedSite) Deliver(_ context.Context, n pipeline.Notification) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range n.Diffs {
		if d.Event != pipeline.Added {
			continue
		}
		if ids := s.told[d.Snippet]; !slices.Contains(ids, n.ID) {
			s.told[d.Snippet] = append(ids, n.ID)
		}
	}
	s.notify()
	return nil
}

// await waits until is is true.
func (s *linkedSite) await(what string, is func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	for {
		s.mu.Lock()
		done, changed := is(), s.changed
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			s.Fatalf("%s did not come; the pages were fetched %v times", what, s.gets)
		}
	}
}

// change gives the pages new texts, and waits until those of want were told.
func (s *linkedSite) change(word string, want []int) {
	s.Helper()
	text := func(n int) string { return fmt.Sprintf("%s %d", word, n) }
	s.mu.Lock()
	for n := range linkedPages {
		s.texts[n] = text(n)
	}
	s.mu.Unlock()
	for _, n := range want {
		s.await(fmt.Sprintf("the change %s of page %d", word, n), func() bool { return len(s.told[text(n)]) > 0 })
	}
}

// start starts a process that watches the site with others. Owns reports whether it owns a page.
func (s *linkedSite) start(brokers []string, prefix string) (owns func(n int) bool, stop func()) {
	s.Helper()
	transport, err := kafka.New(kafka.Config{Brokers: brokers, Prefix: prefix, Lanes: 8, Replication: 1, SessionTimeout: 6 * time.Second})
	if err != nil {
		s.Fatal(err)
	}
	every := 200 * time.Millisecond
	r, err := vokter.New(vokter.Config{
		Transport: transport, Sinks: map[string]pipeline.Sink{"site": s}, Every: &every,
		Fetch: vokter.FetchConfig{
			Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Concurrency: 8, Rate: 1000,
		},
		Subscriptions: []pipeline.Subscription{{
			URL: s.url(0), Client: "c", Keywords: []string{"one", "two", "three", "four"}, Events: []pipeline.Event{pipeline.Added}, Sinks: []string{"site"},
			Follow: &pipeline.Follow{Depth: 3},
		}},
	})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	select {
	case <-r.Running():
	case err := <-ended:
		s.Fatalf("Run: %v", err)
	}
	owns = func(n int) bool { return transport.Owns(s.url(n)) }
	return owns, sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("Run: %v", err)
		}
	})
}

// TestFollowOnKafka: a tree of linked pages reaches over all lanes and processes. Each change of each page
// is told once, also after a process left and another one came, and pages end with the links to them.
func TestFollowOnKafka(t *testing.T) {
	t.Parallel()
	kafkatest.OnBoth(t, followOnKafka)
}

func followOnKafka(t *testing.T, brokers []string, prefix string) {
	s := newLinkedSite(t)
	var all []int
	for n := range linkedPages {
		all = append(all, n)
	}
	held := func() bool { return !slices.Contains(s.held[:], "") }
	shared := func(a, b func(int) bool) func() bool { // each of two processes owns pages
		return func() bool { return held() && slices.ContainsFunc(all, a) && slices.ContainsFunc(all, b) }
	}
	first, stop := s.start(brokers, prefix)
	defer stop()
	second, stopSecond := s.start(brokers, prefix)
	defer stopSecond()
	s.await("the baseline of each page, in two processes", shared(first, second))
	s.change("one", all)
	stop()
	third, stopThird := s.start(brokers, prefix)
	defer stopThird()
	s.change("two", all)
	s.await("pages of the third process", shared(second, third))
	s.change("three", all)

	s.mu.Lock()
	s.cut[5] = true
	s.mu.Unlock()
	s.await("the end of page 5", func() bool {
		if s.gets[5] > 0 {
			s.gets[0], s.gets[5] = 0, 0
		}
		return s.gets[0] > 20 // times since page 5 was fetched
	})
	s.change("four", slices.DeleteFunc(slices.Clone(all), func(n int) bool { return n == 5 }))
	s.mu.Lock()
	defer s.mu.Unlock()
	for text, ids := range s.told {
		if len(ids) != 1 {
			t.Errorf("%q was told %d times", text, len(ids))
		}
	}
	if want := 4*linkedPages - 1; len(s.told) != want {
		t.Errorf("%d changes were told, want %d", len(s.told), want)
	}
}
