package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
)

// TestWatch is the life of a watcher that cron runs.
func TestWatch(t *testing.T) {
	t.Parallel()
	p := newPage(t, "<p>Zeus. In stock.</p>")
	dir := filepath.Join(t.TempDir(), "not", "there", "yet")
	watch := func(extra ...string) result {
		return runCLI(t, append([]string{"watch", "--data", dir, "--allow", loopback, "--checks", "1", "--format", "json",
			p.URL + "/a.html", "out of stock"}, extra...)...)
	}
	seen := map[string]bool{}
	for i, c := range []struct {
		body string
		want pipeline.Event
	}{
		{"<p>Zeus. In stock.</p>", ""},
		{"<p>Zeus. Out of stock.</p>", pipeline.Added},
		{"<p>Zeus. Out of stock.</p>", ""},
		{"<p>Zeus. In stock.</p>", pipeline.Removed},
		{"<p>Zeus. Out of stock.</p>", pipeline.Added},
	} {
		p.set(http.StatusOK, c.body)
		r := watch()
		if r.code != 0 {
			t.Fatalf("run %d: got %+v", i, r)
		}
		if p.count() != i+1 {
			t.Fatalf("run %d: %d GETs", i, p.count())
		}
		all := notifications(t, r.stdout)
		if c.want == "" {
			if len(all) != 0 {
				t.Errorf("run %d: got %s", i, r.stdout)
			}
			continue
		}
		if len(all) != 1 || len(all[0].Diffs) != 1 {
			t.Fatalf("run %d: got %s", i, r.stdout)
		}
		d := all[0].Diffs[0]
		if d.Event != c.want || d.Keyword != "out of stock" || !strings.Contains(d.Text, "Out of") || seen[all[0].ID] || all[0].URL != p.URL+"/a.html" {
			t.Errorf("run %d: got %s", i, r.stdout)
		}
		seen[all[0].ID] = true
	}
}

// TestWatchValue: the first check says which value it read.
func TestWatchValue(t *testing.T) {
	p := newPage(t, `<title>Lamp</title><p class="price">1.299,00 €</p>`)
	expectExit(t, 0, "read \\\"Lamp\\\", value 1299.00 EUR: this is the baseline", "watch", p.URL, "--value", ".price", "--below", "1000", "--allow", loopback, "--checks", "1")
	expectExit(t, 0, "the value meets the condition \\\"below 2000\\\" already", "watch", p.URL, "--value", ".price", "--below", "2000", "--allow", loopback, "--checks", "1")
}

// TestWatchHelp: the flags stand in groups.
func TestWatchHelp(t *testing.T) {
	r := runCLI(t, "watch", "--help")
	from := 0
	for _, want := range []string{"\nWhat is reported, how and to whom:\n", "--interval", "\nThe page:\n", "--header", "\nParts of the page:\n", "--select", "\nFlags:\n", "--data"} {
		at := strings.Index(r.stdout[from:], want)
		if at < 0 {
			t.Fatalf("%q does not follow:\n%s", want, r.stdout)
		}
		from += at
	}
}

// TestWatchEveryChange: without a keyword each change is printed as a difference that people can
// read.
func TestWatchEveryChange(t *testing.T) {
	p := newPage(t, "<title>Shop</title><p>Price: €10 today</p>", "<title>Shop</title><p>Price: €12 today</p>",
		"<title>Shop</title><p>Price: €12 today</p><p>new &#27;[2Jpaint</p>")
	r := runCLI(t, "watch", "--allow", loopback, "--checks", "3", "--every", "0s", "--match-case", p.URL)
	if r.code != 0 || !strings.Contains(r.stdout, "\n  ~ Price: €[-10-] {+12+} today\n") || !strings.Contains(r.stdout, "\n  + {+new [2Jpaint+}\n") {
		t.Errorf("got %+v", r)
	}
	if want := "--match-case has no effect without keywords"; !strings.Contains(r.stderr, want) {
		t.Errorf("got %s, want %q in it", r.stderr, want)
	}
}

func TestWatchRefusedAddress(t *testing.T) {
	p := newPage(t, "<p>x</p>")
	r := runCLI(t, "watch", "--data", t.TempDir(), "--checks", "1", p.URL, "x")
	if r.code != 1 || !strings.Contains(r.stderr, "failed: 127.0.0.1 is not a public address; permit it with --allow 127.0.0.1/32") || strings.Contains(r.stderr, "allow: {") || r.stdout != "" || p.count() != 0 {
		t.Errorf("got %+v after %d GETs", r, p.count())
	}
}

func TestWatchFailedCheck(t *testing.T) {
	t.Parallel()
	p := newPage(t, "<p>x</p>")
	p.set(http.StatusNotFound, "gone")
	dir := t.TempDir()
	watch := func() result {
		return runCLI(t, "watch", "--data", dir, "--allow", loopback, "--checks", "1", p.URL, "x")
	}
	if r := watch(); r.code != 1 || !strings.Contains(r.stderr, "the last check of "+p.URL+"/ failed: ") || !strings.Contains(r.stderr, "404") {
		t.Errorf("got %+v", r)
	}
	p.set(http.StatusForbidden, "no")
	if r := watch(); r.code != 1 || !strings.Contains(r.stderr, "watch sends credentials with --user, --header or --cookie") {
		t.Errorf("got %+v", r)
	}
	p.set(http.StatusOK, "<p>x</p>")
	if r := watch(); r.code != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestWatchOnlyItsPage watches two pages in one data directory.
func TestWatchOnlyItsPage(t *testing.T) {
	t.Parallel()
	a, b := newPage(t, "<p>one</p>"), newPage(t, "<p>one</p>")
	dir := t.TempDir()
	watch := func(p *changingPage, extra ...string) []pipeline.Notification {
		r := runCLI(t, append([]string{"watch", "--data", dir, "--allow", loopback, "--checks", "1", "--format", "json", p.URL, "two"}, extra...)...)
		if r.code != 0 {
			t.Fatalf("got %+v", r)
		}
		return notifications(t, r.stdout)
	}
	watch(a)
	watch(b)
	if a.count() != 1 || b.count() != 1 {
		t.Fatalf("%d and %d GETs, want 1 each", a.count(), b.count())
	}
	a.set(http.StatusOK, "<p>two</p>")
	b.set(http.StatusOK, "<p>two</p>")
	if got := watch(b); len(got) != 1 || a.count() != 1 {
		t.Errorf("got %+v, %d GETs of the other page", got, a.count())
	}
	// The subscription to the first page outlived the runs for the second.
	if got := watch(a); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
	// Other options of the same pair replace the earlier ones.
	a.set(http.StatusOK, "<p>three</p>")
	if got := watch(a, "--events", "added"); len(got) != 0 {
		t.Errorf("got %+v, want nothing about what was removed", got)
	}
}

// TestWatchRefusesTheDirectoryOfRun: it would attempt what waits for the sinks of the configuration, and leave a
// subscription there. It is refused at once, whether that process runs or not.
func TestWatchRefusesTheDirectoryOfRun(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	watch := []string{"watch", s.page.URL, "--data", s.data, "--allow", loopback, "--checks", "1"}
	const want = "and watch would change what that does next; name another directory, or add the page to that one: vokter-stream subscribe "
	run := start(t, "run", "-c", s.config, "--allow", loopback)
	waitFor(t, "the pipeline at work", func() bool { return originOf(s.data) != "" })
	expectExit(t, 2, want, watch...)
	run.stop()
	<-run.ended
	expectExit(t, 2, want, watch...)
	if found := objects(t, runCLI(t, "list", "--data", s.data, "--format", "json")); len(found["subscription"]) != 1 {
		t.Errorf("got %v", found)
	}
}

func TestWatchFlags(t *testing.T) {
	p := newPage(t, `<main><p>Old</p></main><nav>x</nav>`)
	dir := t.TempDir()
	watch := func() result {
		return runCLI(t, "watch", "--data", dir, "--allow", loopback, "--checks", "1", "--format", "json", p.URL, "House of the Gods",
			"--stem", "--filter-stopwords", "--ignore-diacritics", "--match", "terms", "--moved", "--language", "en", "--client", "me",
			"--snippet-offset", "5", "--select", "main", "--remove", "{from: .ad, to: .end}", "--ignore", "[0-9]+ visitors",
			"--interval", "1h", "--events", "added,removed", "--confirm", "1")
	}
	if r := watch(); r.code != 0 || r.stdout != "" {
		t.Fatalf("got %+v", r)
	}
	p.set(http.StatusOK, `<main><p>Old god houses, 12 visitors</p><p class=ad>house god</p><p class=end>end</p></main><nav>house god</nav>`)
	r := watch()
	all := notifications(t, r.stdout)
	if len(all) != 1 || all[0].Client != "me" || len(all[0].Diffs) != 1 || !strings.Contains(all[0].Diffs[0].Text, "god houses") {
		t.Errorf("got %+v", r)
	}
}

func TestWarningsOfWatch(t *testing.T) {
	p := newPage(t, "<p>one</p>")
	const forgets, never = "nothing is remembered", "can report nothing"
	watch := func(args ...string) string {
		r := runCLI(t, append([]string{"watch", "--allow", loopback, "--every", "0s", p.URL, "one"}, args...)...)
		if r.code != 0 {
			t.Errorf("%v: got %+v", args, r)
		}
		return r.stderr
	}
	if log := watch("--checks", "1"); !strings.Contains(log, never) || strings.Contains(log, forgets) {
		t.Errorf("one check: %s", log)
	}
	log := watch("--checks", "2", "--stem", "--filter-stopwords", "--language", "ja")
	for _, want := range []string{forgets, "--stem has no effect", "--filter-stopwords has no effect", "only for "} {
		if !strings.Contains(log, want) || strings.Contains(log, never) {
			t.Errorf("two checks: %q is not in %s", want, log)
		}
	}
	const assumed = "language: en (assumed, since the page declares none and none is detected); if it is another, name it with --language TAG"
	if log := watch("--checks", "3", "--stem"); strings.Count(log, assumed) != 1 {
		t.Errorf("not once %q in %s", assumed, log)
	}
	if log := watch("--checks", "1", "--data", t.TempDir()); strings.Contains(log, "level=WARN") {
		t.Errorf("with a data directory: %s", log)
	}
}

// TestRaisedInterval checks that watch says how often it really checks.
func TestRaisedInterval(t *testing.T) {
	p := newPage(t, "<p>one</p>")
	s := start(t, "watch", "--allow", loopback, "--interval", "5s", p.URL, "one")
	s.await(t, &s.err, "check_every=10s")
	s.stop()
	if code := <-s.ended; code != 0 {
		t.Errorf("exit code %d, stderr %s", code, &s.err)
	}
}

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
	t.Parallel()
	p := newPage(t, shop)
	dir := t.TempDir()
	args := []string{"watch", "--data", dir, "--allow", loopback, "--every", "1h", "--log-format", "text", p.URL, "stock", "out of stok", "zeus"}
	const keywords = `"stock" is on the page now, 2 times; reported when it appears again or goes; for changes beside it add --near row
warning: "out of stok" is not on the page now: "stok" is not there, but "stock" is: is it misspelled?
"zeus" is not on the page now
`
	for _, read := range []string{
		`read "The Lantern Shop", 12 words: this is the baseline; changes are reported from now on: ` + p.URL + " (check every 1h)\nlanguage: en (declared by the page)\n" + keywords,
		`read "The Lantern Shop", 12 words; changes are reported from now on: ` + p.URL + " (check every 1h)\nlanguage: en (declared by the page)\n" + keywords,
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
	p := newPage(t, "<html lang=ja><p>x1</p></html>")
	r := runCLI(t, "watch", "--data", t.TempDir(), "--allow", loopback, "--checks", "1", "--stem", p.URL, "x1")
	if r.code != 0 || !strings.Contains(r.stderr, "nothing is stemmed: ") {
		t.Errorf("got %+v", r)
	}
}

// TestBaselineSaysThatOnlyTheCaseDiffers: case is ignored unless --match-case is given.
func TestBaselineSaysThatOnlyTheCaseDiffers(t *testing.T) {
	p := newPage(t, shop)
	args := []string{"watch", "--allow", loopback, "--checks", "1", "--log-format", "text", p.URL, "Lanterns", "in stock: Two"}
	if r := runCLI(t, args...); !strings.Contains(messages(r.stderr), `"Lanterns" is on the page now`) || !strings.Contains(r.stderr, `"in stock: Two" is on the page now`) {
		t.Errorf("got %s", r.stderr)
	}
	r := runCLI(t, append(args, "--match-case")...)
	for _, want := range []string{
		`"Lanterns" is not on the page now, but "lanterns" is: leave out --match-case`,
		`"in stock: Two" is not on the page now, but "In stock: two" is: leave out --match-case`,
	} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("got %s, want %q in it", r.stderr, want)
		}
	}
	expectExit(t, 2, `unknown flag --ignore-case; that is the default, and "--match-case" turns it off`, append(args, "--ignore-case")...)
}

// TestWatchForWhatIsNotThereYet: --expect absent takes a page that is not found for a baseline, and says so.
func TestWatchForWhatIsNotThereYet(t *testing.T) {
	t.Parallel()
	p := newPage(t, "gone")
	p.set(http.StatusNotFound, "gone")
	args := []string{"watch", "--data", t.TempDir(), "--allow", loopback, "--checks", "1", p.URL}
	expectExit(t, 1, "HTTP status 404 Not Found", args...)
	args = append(args, "--expect", "absent")
	expectExit(t, 0, "there is no text yet: this is the baseline", args...)
	p.set(http.StatusOK, "<p>The programme of 2027")
	expectExit(t, 0, "The programme of 2027", args...)
	expectExit(t, 2, `--expect: "gone" is not known; write absent`, append(args, "--expect", "gone")...)
	expectExit(t, 2, "--expect: what is absent has no value", append(args, "--value", "p")...)
}

// TestCrontab is what cron would mail.
func TestCrontab(t *testing.T) {
	t.Parallel()
	p := newPage(t, shop)
	dir := t.TempDir()
	watch := func(extra ...string) result {
		return runCLI(t, append([]string{"watch", "--data", dir, "--allow", loopback, "--checks", "1", p.URL, "sold out"}, extra...)...)
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
	if r.code != 0 || r.stderr != "" || len(lines) != 4 || !strings.Contains(lines[0], "  The Lantern Shop  ") || !strings.HasPrefix(lines[1], "  + sold out  [-In stock-] {+Sorry, sold out+}") {
		t.Errorf("a change: got %+v", r)
	}
	p.set(http.StatusNotFound, "gone")
	if r := watch(); r != (result{1, "", "vokter-stream: the last check of " + p.URL + "/ failed: HTTP status 404 Not Found\n"}) {
		t.Errorf("a page that is gone: got %+v", r)
	}
	for run := 2; run <= 12; run++ {
		switch r := watch(); {
		case run == 10 && (r.code != 1 || r.stderr != "" || !strings.Contains(r.stdout, "this page cannot be read: 10 checks in a row failed")):
			t.Errorf("the timeout: got %+v", r)
		case run != 10 && r != (result{code: 1}):
			t.Errorf("run %d of a page that is still gone: got %+v", run, r)
		}
	}
	p.set(http.StatusOK, shop)
	if r := watch("--format", "json"); r.code != 0 || r.stderr != "vokter-stream: "+p.URL+"/ answers again\n" || len(notifications(t, r.stdout)) != 2 {
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

// TestWatchEndsWithItsPage: a page that nobody wants to be tried again ends the run that watches it.
func TestWatchEndsWithItsPage(t *testing.T) {
	p := newPage(t, "")
	p.set(http.StatusNotFound, "gone")
	r := runCLI(t, "watch", "--allow", loopback, "--every", "0s", "--expire-retry", "never", p.URL, "x")
	if r.code != 1 || !strings.Contains(r.stdout, "given up after 10 failed checks in a row; the last one: HTTP status 404 Not Found\n") ||
		!strings.HasSuffix(r.stderr, "vokter-stream: "+errPageExpired.Error()+"\n") {
		t.Errorf("got %+v", r)
	}
}
