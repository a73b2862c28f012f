package cli

import (
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
)

func TestHowPushedPagesAreShown(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := &results{now: now}
	for want, p := range map[string]inspect.Page{
		"not pushed yet": {Pushed: true},
		"pushed, the last time " + when(now, now):  {Pushed: true, LastCheck: now},
		"not checked yet":                          {},
		"1 check, the last " + when(now, now) + "": {Checks: 1, LastCheck: now},
	} {
		if got := r.checks(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if checkName(0) != "a push" || checkName(3) != "check 3" {
		t.Errorf("got %q and %q", checkName(0), checkName(3))
	}
}
