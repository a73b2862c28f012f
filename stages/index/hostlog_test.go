package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// street is a desk with several pages.
type street struct {
	*desk
	log      bytes.Buffer
	requests map[string]flow.Request // the last of each page
}

// newStreet returns a desk on which each of the pages has a subscription with that Expire, and waits for a check.
func newStreet(t *testing.T, e pipeline.Expire, pages ...string) *street {
	s := &street{requests: make(map[string]flow.Request)}
	s.desk = newDesk(t, Config{Logger: slog.New(slog.NewTextHandler(&s.log, nil))})
	for _, url := range pages {
		b, err := json.Marshal(flow.SubscribeCommand{Origin: "api", Subscription: pipeline.Subscription{
			URL: url, Client: "c", Keywords: []string{"stock"}, Sinks: []string{"s"}, Expire: e,
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.handle(flow.Message{ID: url, Topic: flow.TopicDocuments, Key: url, Type: flow.TypeSubscribe, Body: b})
		s.requests[url] = s.request
	}
	return s
}

// check brings the outcome of a check of each page that is due next: a failure of class, or without one a text.
func (s *street) check(class string, pages ...string) {
	s.Helper()
	for _, url := range pages {
		for s.requests[url].Page == "" {
			w, ok := s.store.Wake(url)
			if !ok {
				s.Fatalf("%s has no wake", url)
			}
			s.now = latest(s.now, w.At)
			for _, m := range s.store.Due(s.now) {
				s.request = flow.Request{}
				if s.handle(m); s.request.Page != "" {
					s.requests[s.request.Page] = s.request
				}
			}
		}
		o := fetched(s.requests[url], 0, english)
		if class != "" {
			o = flow.Outcome{Incarnation: o.Incarnation, Check: o.Check, Nonce: o.Nonce, Kind: flow.OutcomeFailed, Class: class, Reason: "why"}
		}
		o.Page, o.Time = url, s.now
		s.requests[url] = flow.Request{}
		s.handle(o.Message())
	}
}

// lines returns what was logged since the last call, each as its message and the page or host.
func (s *street) lines() (all []string) {
	for line := range strings.Lines(s.log.String()) {
		_, line, _ = strings.Cut(line, "msg=")
		var kept []string
		for i, f := range strings.Split(strings.TrimSpace(line), " ") {
			if name, _, attr := strings.Cut(f, "="); !attr || i == 0 || name == "host" || name == "page" || name == "pages" {
				kept = append(kept, f)
			}
		}
		all = append(all, strings.Join(kept, " "))
	}
	s.log.Reset()
	return all
}

func (s *street) want(when string, lines ...string) {
	s.Helper()
	if got := s.lines(); !slices.Equal(got, lines) {
		s.Errorf("%s: the log has\n%s\nwant\n%s", when, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

func TestAHostThatFailsIsOneLine(t *testing.T) {
	var pages []string
	for i := range 5 {
		pages = append(pages, fmt.Sprintf("https://shop.example/%d", i))
	}
	other := "https://other.example/"
	s := newStreet(t, pipeline.Expire{After: 3, Retry: 24 * time.Hour}, append(pages, other)...)
	s.check("", append(pages, other)...)
	s.lines() // of the baselines
	s.check(pipeline.FailRefused, pages...)
	s.check("", other)
	s.want("all pages of a host fail",
		`"check failed" page=https://shop.example/0`,
		`"no page of a host can be read; those that fail from now on are not named one by one" host=shop.example page=https://shop.example/1`)
	s.check(pipeline.FailRefused, pages...)
	s.want("they fail again")
	s.check(pipeline.FailRefused, pages...)
	s.want("they are dormant", `"the pages of a host are dormant: they are checked ever more rarely" host=shop.example`)
	s.check("", pages[3])
	s.want("one answers", `"a host answers again" host=shop.example pages=5`)
	s.check(pipeline.FailRefused, pages[4])
	s.want("another one does not", `"check failed" page=https://shop.example/4`)
	s.check("", pages...)
	s.want("all answer", `"check succeeded again" page=https://shop.example/0`, `"check succeeded again" page=https://shop.example/4`)
}

func TestPagesOfAHostExpire(t *testing.T) {
	pages := []string{"https://shop.example/a", "https://shop.example/b", "https://shop.example/c"}
	s := newStreet(t, pipeline.Expire{After: 2, Retry: -1}, pages...)
	s.check("", pages...)
	s.lines()
	s.check(pipeline.FailTimeout, pages...)
	s.lines()
	s.check(pipeline.FailTimeout, pages...)
	s.want("given up", `"a page of a host expired; those that expire from now on are not named one by one" host=shop.example page=https://shop.example/a`)
}

func TestOnePageOfAHostFails(t *testing.T) {
	pages := []string{"https://shop.example/a", "https://shop.example/b"}
	s := newStreet(t, pipeline.Expire{After: 3, Retry: 24 * time.Hour}, pages...)
	s.check("", pages...)
	s.lines()
	for range 3 {
		s.check(pipeline.FailStatus, pages[0])
		s.check("", pages[1])
	}
	s.want("the other one answers", `"check failed" page=https://shop.example/a`,
		`"page is dormant: it is checked ever more rarely" page=https://shop.example/a`)
	s.check(pipeline.FailTLS, pages[0])
	s.want("for another reason", `"check failed" page=https://shop.example/a`)
	s.check("", pages[0])
	s.want("it answers", `"check succeeded again" page=https://shop.example/a`)
}
