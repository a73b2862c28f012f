package cli

import (
	"net/http"
	"strings"
	"testing"
)

// TestListSinks has a sink that took something and fails since, and one that nothing was sent to.
func TestListSinks(t *testing.T) {
	s := newSetup(t, "listen: 127.0.0.1:0\n")
	s.check(t, "<p>Zeus. In stock.</p>")
	s.hook.answers <- http.StatusOK
	s.check(t, "<p>Zeus. Out of stock.</p>")
	s.hook.answers <- http.StatusServiceUnavailable
	s.check(t, "<p>Zeus. In stock.</p>")

	check := func(where string, args ...string) {
		t.Helper()
		args = append([]string{"list", "--sinks"}, args...)
		found := objects(t, vs(t, append(args, "--format", "json")...))
		if len(found) != 1 || len(found["receiver"]) != 2 {
			t.Fatalf("%s: got %v", where, found)
		}
		hook, out := found["receiver"][0], found["receiver"][1]
		if hook["sink"] != "hook" || hook["health"] != "failing" || hook["state"] != "failing" || hook["pending"] != 1.0 || hook["last_error"] != "answered 503 Service Unavailable" ||
			hook["last_success"] == nil || hook["last_failure"] == nil || hook["since"] != hook["last_failure"] {
			t.Errorf("%s: got %v", where, hook)
		}
		if out["sink"] != "out" || out["health"] != "never_used" || out["used"] != false || out["pending"] != 0.0 || out["last_success"] != nil {
			t.Errorf("%s: got %v", where, out)
		}
		r := vs(t, args...)
		if r.code != 0 || strings.Count(r.stdout, "\n") != 3 || !strings.Contains(r.stdout, "\nhook  failing since ") || !strings.Contains(r.stdout, "\nout   never used") {
			t.Errorf("%s: got %+v", where, r)
		}
	}
	check("a stopped directory", "-c", s.config)

	// What is only in the configuration is no part of other lists, nor of the directory.
	for _, args := range [][]string{{"list", "--data", s.data}, {"list", "--sinks", "--data", s.data}, {"list", "--sinks", "--client", "legal", "-c", s.config}} {
		if r := vs(t, args...); r.code != 0 || !strings.Contains(r.stdout, "hook") || strings.Contains(r.stdout, "out  ") {
			t.Errorf("%v: got %+v", args, r)
		}
	}

	run := start(t, "run", "-c", s.config, "--allow", loopback)
	run.listening(t, s.data)
	check("a running process", "--data", s.data)
	check("a running process, with its configuration", "-c", s.config)
	run.stop()
	if code := <-run.ended; code != 0 {
		t.Errorf("exit code %d, stderr %s", code, &run.err)
	}
}
