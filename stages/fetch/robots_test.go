package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
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
	gets int
	now  time.Time
}

func (s *robotsSite) get(ctx context.Context, _, _ string) (pipeline.Response, error) {
	s.gets++
	if s.hang {
		<-ctx.Done()
		return pipeline.Response{}, ctx.Err()
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

// class is the class of the error of a check, or "".
func class(err error) string {
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
		{"no robots.txt at all", "<!DOCTYPE html><title>Not found</title>: it is not here", true},
	} {
		_, r := newRobotsSite(c.body)
		err := r.allow(t.Context(), page)
		if want := map[bool]string{true: "", false: pipeline.FailRobots}[c.allowed]; class(err) != want || (err == nil) != c.allowed {
			t.Errorf("%s: %v, want allowed %v", c.name, err, c.allowed)
		}
	}
}

func TestRobotsIsReadOncePerDayAndHost(t *testing.T) {
	s, r := newRobotsSite("User-agent: *\nDisallow: /no\n")
	for range 10 {
		if err := r.allow(t.Context(), "http://example.com/yes"); err != nil {
			t.Fatal(err)
		}
		if err := r.allow(t.Context(), "http://example.com/no"); class(err) != pipeline.FailRobots {
			t.Fatal(err)
		}
	}
	if s.gets != 1 {
		t.Errorf("robots.txt was read %d times", s.gets)
	}
	_ = r.allow(t.Context(), "https://example.com/") // another scheme has rules of its own
	s.now = s.now.Add(robotsFresh)
	_ = r.allow(t.Context(), "http://example.com/yes")
	if s.gets != 3 {
		t.Errorf("robots.txt was read %d times, want 3", s.gets)
	}
}

func TestRobotsThatCannotBeRead(t *testing.T) {
	for status, allowed := range map[int]bool{404: true, 401: true, 410: true, 500: false, 503: false} {
		s, r := newRobotsSite("")
		s.err = &pipeline.FetchError{Class: pipeline.FailStatus, Status: status, Reason: "HTTP status"}
		if err := r.allow(t.Context(), "http://example.com/"); (err == nil) != allowed {
			t.Errorf("status %d: %v", status, err)
		}
	}

	s, r := newRobotsSite("")
	s.err = &pipeline.FetchError{Class: pipeline.FailTimeout, Reason: "too slow"}
	check := func(want string) {
		t.Helper()
		if err := r.allow(t.Context(), "http://example.com/no"); class(err) != want {
			t.Errorf("got %v, want class %q", err, want)
		}
	}
	check(pipeline.FailTimeout)
	check(pipeline.FailTimeout)
	if s.gets != 1 {
		t.Errorf("robots.txt was asked for %d times at once", s.gets)
	}
	s.now = s.now.Add(robotsAgain)
	s.err, s.body = nil, "User-agent: *\nDisallow: /no\n"
	check(pipeline.FailRobots)
	// The host fails again: the last copy holds.
	s.now, s.err = s.now.Add(robotsFresh), errors.New("no route")
	check(pipeline.FailRobots)

	s, r = newRobotsSite("")
	s.err = errors.New("no route")
	check(pipeline.FailNetwork)
	s.now = s.now.Add(robotsGone)
	check("")
}

// TestRobotsThatHang: the host takes connections and does not answer. The copy that was read last holds,
// and only one request in ten minutes waits for another, also where a redirect leads to the host.
func TestRobotsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newRobotsSite("User-agent: *\nDisallow: /no\n")
		allow := func(ctx context.Context, page, want string) {
			t.Helper()
			if err := r.allow(ctx, "http://example.com"+page); class(err) != want {
				t.Errorf("got %v, want class %q", err, want)
			}
		}
		allow(t.Context(), "/yes", "")
		s.hang, s.now = true, s.now.Add(robotsFresh)
		for range 3 {
			allow(t.Context(), "/yes", "")
			allow(t.Context(), "/no", pipeline.FailRobots)
		}
		if s.gets != 2 {
			t.Errorf("robots.txt was asked for %d times", s.gets)
		}
		s.now = s.now.Add(robotsAgain)
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		allow(short, "/yes", "")
		allow(t.Context(), "/yes", "")
		if s.gets != 3 {
			t.Errorf("robots.txt was asked for %d times", s.gets)
		}
		s.now = s.now.Add(robotsAgain)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := r.allow(stopped, "http://example.com/yes"); !errors.Is(err, context.Canceled) {
			t.Errorf("after the stop: got %v", err)
		}
	})
}

func TestRobotsSizeIsBounded(t *testing.T) {
	s, r := newRobotsSite("User-agent: *\nDisallow: /no\n")
	s.body += string(bytes.Repeat([]byte("# filler\n"), maxRobots)) + "Disallow: /\n"
	if err := r.allow(t.Context(), "http://example.com/yes"); err != nil {
		t.Errorf("a rule beyond the bound: %v", err)
	}
	if err := r.allow(t.Context(), "http://example.com/no"); class(err) != pipeline.FailRobots {
		t.Errorf("a rule within the bound: %v", err)
	}
}
