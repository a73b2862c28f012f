package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// messages are the texts of the lines of a log.
func messages(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		_, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		b.WriteString(text + "\n")
	}
	return b.String()
}

const shop = `<html lang="en"><title>The Lantern Shop</title><p>In stock: two lanterns. Out of stock: the third.</p></html>`

func TestBaselineSaysWhatWasRead(t *testing.T) {
	p := newPage(t, shop)
	dir := t.TempDir()
	args := []string{"watch", "--data", dir, "--allow", loopback, "--every", "1h", "--log-format", "text", "--ignore-case", p.URL, "stock", "out of stok", "zeus"}
	const keywords = `"stock" is on the page now, 2 times
warning: "out of stok" is not on the page now: "stok" is not there, but "stock" is: is it misspelled?
"zeus" is not on the page now
`
	for _, read := range []string{
		`read "The Lantern Shop", 12 words: this is the baseline; changes are reported from now on: ` + p.URL + " (check every 1h)\n" + keywords,
		`read "The Lantern Shop", 12 words; changes are reported from now on: ` + p.URL + " (check every 1h)\n" + keywords,
	} {
		s := start(t, args...)
		s.await(t, &s.err, "zeus")
		s.stop()
		if code := <-s.ended; code != 0 || !strings.Contains(messages(s.err.String()), read) || s.out.String() != "" {
			t.Errorf("exit code %d, printed %q, logged\n%s\nwant\n%s", code, &s.out, &s.err, read)
		}
	}
}

func TestNothingIsStemmed(t *testing.T) {
	p := newPage(t, "<p>x1</p>")
	r := vs(t, "watch", "--data", t.TempDir(), "--allow", loopback, "--checks", "1", "--stem", p.URL, "x1")
	if r.code != 0 || !strings.Contains(r.stderr, "nothing is stemmed: ") {
		t.Errorf("got %+v", r)
	}
}

// TestCrontab is what cron would mail.
func TestCrontab(t *testing.T) {
	p := newPage(t, shop)
	dir := t.TempDir()
	watch := func(extra ...string) result {
		return vs(t, append([]string{"watch", "--data", dir, "--allow", loopback, "--checks", "1", p.URL, "sold out"}, extra...)...)
	}
	if r := watch(); r.code != 0 || r.stdout != "" || !strings.Contains(r.stderr, "this is the baseline") || !strings.Contains(r.stderr, "is not on the page now") {
		t.Errorf("the first run: got %+v", r)
	}
	if r := watch(); r != (result{}) {
		t.Errorf("nothing happened: got %+v", r)
	}
	p.set(http.StatusOK, strings.Replace(shop, "In stock", "Sorry, sold out", 1))
	r := watch()
	lines := strings.Split(r.stdout, "\n")
	if r.code != 0 || r.stderr != "" || len(lines) != 4 || !strings.Contains(lines[0], "  The Lantern Shop  ") || !strings.HasPrefix(lines[1], "  + sold out  Sorry, sold out") {
		t.Errorf("a change: got %+v", r)
	}
	p.set(http.StatusNotFound, "gone")
	for range 2 {
		if r := watch(); r != (result{1, "", "vokter-stream: the last check of " + p.URL + "/ failed: HTTP status 404 Not Found\n"}) {
			t.Errorf("a page that is gone: got %+v", r)
		}
	}
	p.set(http.StatusOK, shop)
	if r := watch("--format", "json"); r.code != 0 || r.stderr != "" || len(notifications(t, r.stdout)) != 1 {
		t.Errorf("JSON: got %+v", r)
	}
}

// TestWatchTakesTurns checks that a run of one check waits for the data directory.
func TestWatchTakesTurns(t *testing.T) {
	p := newPage(t, shop)
	dir := filepath.Join(t.TempDir(), "d")
	first := start(t, "watch", "--data", dir, "--allow", loopback, p.URL, "stock")
	first.await(t, &first.err, "is on the page now")
	second := start(t, "watch", "--data", dir, "--allow", loopback, "--checks", "1", "--log-level", "info", p.URL, "lanterns")
	second.await(t, &second.err, "waiting for it")
	first.stop()
	<-first.ended
	if code := <-second.ended; code != 0 || strings.Count(second.err.String(), "waiting for it") != 1 {
		t.Errorf("exit code %d, %s", code, &second.err)
	}
}

// TestWatchEndsWithItsPage checks that nothing goes on once there is nothing to watch.
func TestWatchEndsWithItsPage(t *testing.T) {
	p := newPage(t, "")
	p.set(http.StatusNotFound, "gone")
	r := vs(t, "watch", "--allow", loopback, "--every", "0s", p.URL, "x")
	if r.code != 1 || !strings.Contains(r.stdout, "given up after 10 failed checks in a row; the last one: HTTP status 404 Not Found\n") ||
		!strings.HasSuffix(r.stderr, "vokter-stream: "+errGivenUp.Error()+"\n") {
		t.Errorf("got %+v", r)
	}
}
