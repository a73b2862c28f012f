package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/pipeline"
)

// robotsSite answers requests for robots.txt.
type robotsSite struct {
	body string
	err  error
	hang bool // until the request ends
	mad  bool // it panics
	gets int
	now  time.Time
}

func (s *robotsSite) get(ctx context.Context, _, _ string) (pipeline.Response, error) {
	s.gets++
	if s.hang {
		<-ctx.Done()
		return pipeline.Response{}, ctx.Err()
	}
	if s.mad {
		panic("of a fetcher")
	}
	if s.err != nil {
		return pipeline.Response{}, s.err
	}
	return pipeline.Response{Status: 200, Body: io.NopCloser(strings.NewReader(s.body))}, nil
}

func newRobotsSite(body string) (*robotsSite, *robots) {
	s := &robotsSite{body: body, now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	return s, newRobots("vokter/1.0 (+https://example.com)", func() time.Time { return s.now }, time.Second, s.get)
}

// classOf is the class of the error of a check, or "".
func classOf(err error) string {
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		return e.Class
	}
	return ""
}

func TestRobotsRules(t *testing.T) {
	const page = "http://example.com/dir/page?q=1"
	for _, c := range []struct {
		name, body string
		allowed    bool
	}{
		{"empty", "", true},
		{"everything", "User-agent: *\nDisallow: /\n", false},
		{"nothing", "User-agent: *\nDisallow:\n", true},
		{"a directory", "user-agent: *\r\ndisallow: /dir/ # comment\r\n", false},
		{"another directory", "User-agent: *\nDisallow: /other/\n", true},
		{"the longer rule wins", "User-agent: *\nDisallow: /\nAllow: /dir/\n", true},
		{"a pattern", "User-agent: *\nDisallow: /*?q=\n", false},
		{"a rule for us", "User-agent: *\nDisallow: /\n\nUser-agent: Vokter\nDisallow: /other\n", true},
		{"a rule for others", "User-agent: otherbot\nDisallow: /\n", true},
		{"several names", "User-agent: otherbot\nUser-agent: vokter\nDisallow: /dir\n", false},
		{"lines that mean nothing", "\ufeffDisallow: /early\n<html>\nNoindex: /x\nUser-agent: *\nCrawl-delay: many\nDisallow: /dir\n", false},
		{"a pattern begins where the path begins", "User-agent: *\nDisallow: /page*q\n", true},
		{"a pattern within", "User-agent: *\nDisallow: *page*q\n", false},
		{"the end", "User-agent: *\nDisallow: /dir/page$\nDisallow: /*=1$\nAllow: /dir/page?q=\n", true},
		{"another end", "User-agent: *\nDisallow: /dir/page$\nDisallow: /dir/*2$\n", true},
		{"equal length", "User-agent: *\nDisallow: /dir\nAllow: /dir\n", true},
		{"two groups for us", "User-agent: vokter\nAllow: /dir/\nUser-agent: *\nDisallow: /\nUser-agent: vokter/1.0\nDisallow: /dir/page\n", false},
		{"our name with more behind it", "User-agent: Vokter bot\nDisallow: /\n", false},
		{"a group without rules ends", "User-agent: vokter\nDisallow:\nUser-agent: otherbot\nDisallow: /\n", true},
		{"the beginning of our name", "User-agent: v\nDisallow: /\n", true},
		{"another spelling", "User-agent: *\nDisallow: /%64ir/\n", false},
		{"no robots.txt at all", "<!DOCTYPE html><title>Not found</title>: it is not here", true},
	} {
		_, r := newRobotsSite(c.body)
		err := r.checkAllowed(t.Context(), page)
		if want := map[bool]string{true: "", false: pipeline.FailRobots}[c.allowed]; classOf(err) != want || (err == nil) != c.allowed {
			t.Errorf("%s: %v, want allowed %v", c.name, err, c.allowed)
		}
	}
}

func TestRobotsIsReadOncePerDayAndHost(t *testing.T) {
	s, r := newRobotsSite("User-agent: *\nDisallow: /no\n")
	for range 10 {
		if err := r.checkAllowed(t.Context(), "http://example.com/yes"); err != nil {
			t.Fatal(err)
		}
		if err := r.checkAllowed(t.Context(), "http://example.com/no"); classOf(err) != pipeline.FailRobots {
			t.Fatal(err)
		}
	}
	if s.gets != 1 {
		t.Errorf("robots.txt was read %d times", s.gets)
	}
	_ = r.checkAllowed(t.Context(), "https://example.com/") // another scheme has rules of its own
	s.now = s.now.Add(robotsMaxAge)
	_ = r.checkAllowed(t.Context(), "http://example.com/yes")
	if s.gets != 3 {
		t.Errorf("robots.txt was read %d times, want 3", s.gets)
	}
}

func TestRobotsThatCannotBeRead(t *testing.T) {
	for status, allowed := range map[int]bool{404: true, 401: true, 410: true, 500: false, 503: false} {
		s, r := newRobotsSite("")
		s.err = &pipeline.FetchError{Class: pipeline.FailStatus, Status: status, Reason: "HTTP status"}
		if err := r.checkAllowed(t.Context(), "http://example.com/"); (err == nil) != allowed {
			t.Errorf("status %d: %v", status, err)
		}
	}

	s, r := newRobotsSite("")
	s.err = &pipeline.FetchError{Class: pipeline.FailTimeout, Reason: "too slow"}
	check := func(want string) {
		t.Helper()
		if err := r.checkAllowed(t.Context(), "http://example.com/no"); classOf(err) != want {
			t.Errorf("got %v, want class %q", err, want)
		}
	}
	check(pipeline.FailTimeout)
	check(pipeline.FailTimeout)
	if s.gets != 1 {
		t.Errorf("robots.txt was asked for %d times at once", s.gets)
	}
	s.now = s.now.Add(robotsRetryAfter)
	s.err, s.body = nil, "User-agent: *\nDisallow: /no\n"
	check(pipeline.FailRobots)
	// The host fails again: the last copy holds.
	s.now, s.err = s.now.Add(robotsMaxAge), errors.New("no route")
	check(pipeline.FailRobots)

	s, r = newRobotsSite("")
	s.err = errors.New("no route")
	check(pipeline.FailNetwork)
	s.now = s.now.Add(robotsAllowAllAfter)
	check("")
}

// TestRobotsThatHang: the host takes connections and does not answer. The copy that was read last holds,
// and only one request in ten minutes waits for another, also where a redirect leads to the host.
func TestRobotsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newRobotsSite("User-agent: *\nDisallow: /no\n")
		allow := func(ctx context.Context, page, want string) {
			t.Helper()
			if err := r.checkAllowed(ctx, "http://example.com"+page); classOf(err) != want {
				t.Errorf("got %v, want class %q", err, want)
			}
		}
		allow(t.Context(), "/yes", "")
		s.hang, s.now = true, s.now.Add(robotsMaxAge)
		for range 3 {
			allow(t.Context(), "/yes", "")
			allow(t.Context(), "/no", pipeline.FailRobots)
		}
		if s.gets != 2 {
			t.Errorf("robots.txt was asked for %d times", s.gets)
		}
		s.now = s.now.Add(robotsRetryAfter)
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		allow(short, "/yes", "")
		allow(t.Context(), "/yes", "")
		if s.gets != 3 {
			t.Errorf("robots.txt was asked for %d times", s.gets)
		}
		s.now = s.now.Add(robotsRetryAfter)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := r.checkAllowed(stopped, "http://example.com/yes"); !errors.Is(err, context.Canceled) {
			t.Errorf("after the stop: got %v", err)
		}
	})
}

func TestRobotsThatPanics(t *testing.T) {
	s, r := newRobotsSite("")
	s.mad = true
	if err := r.checkAllowed(t.Context(), "http://example.com/"); classOf(err) != pipeline.FailUnreadable {
		t.Errorf("got %v", err)
	}
}

func TestRobotsSizeIsBounded(t *testing.T) {
	s, r := newRobotsSite("User-agent: *\nDisallow: /no\n")
	s.body += string(bytes.Repeat([]byte("# filler\n"), maxRobots)) + "Disallow: /\n"
	if err := r.checkAllowed(t.Context(), "http://example.com/yes"); err != nil {
		t.Errorf("a rule beyond the bound: %v", err)
	}
	if err := r.checkAllowed(t.Context(), "http://example.com/no"); classOf(err) != pipeline.FailRobots {
		t.Errorf("a rule within the bound: %v", err)
	}
}

// TestRobotsMemoryIsBounded: a host can name very many programs, each with very many rules.
func TestRobotsMemoryIsBounded(t *testing.T) {
	var names, rules strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&names, "User-agent: bot%d\n", i)
		fmt.Fprintf(&rules, "Disallow: /%d*a\n", i)
	}
	_, r := newRobotsSite(names.String() + "User-agent: vokter\n" + rules.String() + "Disallow: /" + strings.Repeat("*a", 100_000) + "\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := r.checkAllowed(t.Context(), "http://example.com/2999/"+strings.Repeat("a", 1000))
	runtime.ReadMemStats(&after)
	if classOf(err) != pipeline.FailRobots {
		t.Errorf("got %v", err)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 16<<20 {
		t.Errorf("a robots.txt of %d bytes took %d bytes", names.Len()+rules.Len(), taken)
	}
}

// TestRobotsOfManyHosts: the hosts of one website can be very many, each with a large robots.txt.
func TestRobotsOfManyHosts(t *testing.T) {
	_, r := newRobotsSite("User-agent: *\n" + strings.Repeat("Disallow: /something\n", maxRobots/len("Disallow: /something\n")-1))
	for i := range 60 {
		if err := r.checkAllowed(t.Context(), fmt.Sprintf("http://%d.example.com/something", i)); classOf(err) != pipeline.FailRobots {
			t.Fatal(err)
		}
	}
	size := 0
	for _, h := range r.hosts {
		size += h.rules.size()
	}
	if size != r.size || size > maxRobotsMemory || len(r.hosts) < 2 {
		t.Errorf("%d hosts take %d bytes, and are said to take %d", len(r.hosts), size, r.size)
	}
	if r.hosts["http://59.example.com"] == nil {
		t.Error("the host that was read last is forgotten")
	}
}
