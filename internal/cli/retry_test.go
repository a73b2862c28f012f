package cli

import (
	"testing"
)

// TestRetryOfAStoppedDirectory tries by itself what waits, and says what still does.
func TestRetryOfAStoppedDirectory(t *testing.T) {
	s := newSetup(t, "")
	here := []string{"-c", s.config, "--allow", loopback}
	s.check(t, "<p>Zeus. In stock.</p>")
	s.hook.answers <- 503
	s.check(t, "<p>Zeus. Out of stock.</p>")

	expect(t, 2, "name the sinks with -c FILE", "retry", "--data", s.data)
	expect(t, 1, "no sink is named \"hock\"; there are: hook, out", append(here, "retry", "--sink", "hock")...)
	expect(t, 1, "nothing waits to be delivered there", append(here, "retry", "https://example.com/")...)
	s.hook.answers <- 503
	expect(t, 1, "sink hook: 1 notification is still waiting: answered 503", append(here, "retry", s.page.URL)...)
	s.hook.answers <- 200
	expect(t, 0, "1 notification is waiting; to try now: vokter-stream retry --sink hook -c ", append(here, "sink", "test", "hook")...)
	s.hook.answers <- 200
	expect(t, 0, "hook: nothing waits any more", append(here, "retry", "--sink", "hook")...)
	expect(t, 1, "nothing waits to be delivered there", append(here, "retry")...)
}

// TestResumeOfASink begins anew what ended with a sink.
func TestResumeOfASink(t *testing.T) {
	s := newSetup(t, "")
	s.check(t, "<p>Zeus. In stock.</p>")
	s.hook.answers <- 410
	s.check(t, "<p>Zeus. Out of stock.</p>")

	s.hook.answers <- 200
	expect(t, 0, "vokter-stream resume --sink hook -c ", "sink", "test", "hook", "-c", s.config, "--allow", loopback)
	expect(t, 2, "leave it or --sink out", "resume", "--all", "--sink", "hook", "--data", s.data)
	expect(t, 2, "without one", "resume", "--all", s.page.URL, "--data", s.data)
	expect(t, 1, "nothing that expired is to be resumed", "resume", "--sink", "out", "--data", s.data)
	expect(t, 0, "is watched again for client legal", "resume", "--sink", "hook", "--data", s.data)
	expect(t, 1, "nothing that expired is to be resumed", "resume", "--all", "--data", s.data)
}
