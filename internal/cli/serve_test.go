package cli

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var printedLink = regexp.MustCompile(`(?m)^open (http://\S+/login\?once=\S+)\n`)

// awaitLink returns the link that s prints.
func awaitLink(t *testing.T, s *startedApp) string {
	t.Helper()
	s.await(t, &s.out, "open http://")
	found := printedLink.FindStringSubmatch(s.out.String())
	if found == nil || s.out.String() != found[0] {
		t.Fatalf("it prints %q", &s.out)
	}
	return found[1]
}

// person is somebody with a browser.
type person struct{ *http.Client }

func newPerson(t *testing.T) person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return person{&http.Client{Jar: jar}}
}

// open returns where a page is that was opened, and its text.
func (p person) open(t *testing.T, address string) (path, body string) {
	t.Helper()
	return readPage(t, p.Client, newRequest(t, http.MethodGet, address))
}

// send sends a form of the page at base.
func (p person) send(t *testing.T, base, path string, form url.Values) (to, body string) {
	t.Helper()
	r := newRequest(t, http.MethodPost, base+path)
	r.Body = io.NopCloser(strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", base)
	return readPage(t, p.Client, r)
}

func readPage(t *testing.T, c *http.Client, r *http.Request) (path, body string) {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Request.URL.Path, string(b)
}

// TestServe: one command and one URL are enough to watch a page; who logged in stays so after a restart, until the token
// is renewed.
func TestServe(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	data := filepath.Join(mustUserDirectory(t), "")
	p := newPage(t, "<title>Lamps</title><main>A lamp that lights a whole room, for 49 euros.</main>")
	run := start(t, "serve", "--listen", "127.0.0.1:0", "--allow", loopback)
	link := awaitLink(t, run)
	base := strings.TrimSuffix(link[:strings.Index(link, "/login")], "/")
	me, late := newPerson(t), newPerson(t)
	if path, body := me.open(t, link); path != "/" || !strings.Contains(body, "<h1>Watch a page</h1>") {
		t.Fatalf("the link leads to %s: %s", path, body)
	}
	if path, body := late.open(t, link); path != "/login" || !strings.Contains(body, "was used already") {
		t.Errorf("the link leads a second time to %s: %s", path, body)
	}
	if path, body := me.open(t, link); path != "/" || strings.Contains(body, "was used already") {
		t.Errorf("who is logged in comes by the link to %s", path)
	}
	if path, body := me.send(t, base, "/do/watch", url.Values{"url": {p.URL}}); path != "/" || !strings.Contains(body, "every change of its part main") {
		t.Fatalf("watch: %s %s", path, body)
	}
	waitFor(t, "the baseline", func() bool { return strings.Contains(runCLI(t, "show", p.URL).stdout, "49 euros") })
	p.set(http.StatusOK, "<title>Lamps</title><main>A lamp that lights a whole room, for 39 euros.</main>")
	if _, body := me.send(t, base, "/do/check", url.Values{"url": {p.URL}, "back": {"/"}}); !strings.Contains(body, "The page is checked now") {
		t.Errorf("check: %s", body)
	}
	feed := regexp.MustCompile(`/feeds/[A-Z0-9]+/atom.xml`)
	path := ""
	waitFor(t, "the change on the page", func() bool {
		_, body := me.open(t, base+"/changes")
		path = feed.FindString(body)
		return strings.Contains(body, "default to inbox") && strings.Contains(body, "39")
	})
	if _, body := late.open(t, base+path); !strings.Contains(body, "+ A lamp that lights a whole room, for 39 euros.") {
		t.Errorf("the feed at %s has %s", path, body)
	}
	if _, body := me.send(t, base, "/do/password", url.Values{"password": {"a long sentence"}, "back": {"/process"}}); !strings.Contains(body, "The password is set") {
		t.Errorf("password: %s", body)
	}
	token := strings.TrimSpace(runCLI(t, "token").stdout)
	run.stop()
	<-run.ended

	run = start(t, "serve", "--listen", strings.TrimPrefix(base, "http://"), "--allow", loopback)
	again := awaitLink(t, run)
	if path, body := me.open(t, base+"/"); path != "/" || !strings.Contains(body, p.URL) {
		t.Errorf("after a restart: %s %s", path, body)
	}
	for _, secret := range []string{token, "a long sentence"} {
		other := newPerson(t)
		if path, body := other.send(t, base, "/login", url.Values{"token": {secret}}); path != "/" || !strings.Contains(body, "Log out") {
			t.Errorf("with %q: %s %s", secret, path, body)
		}
	}
	if got := strings.TrimSpace(runCLI(t, "token", "--data", data).stdout); got != token {
		t.Errorf("the token of a running process: got %q, want %q", got, token)
	}
	renewed := strings.TrimSpace(runCLI(t, "token", "renew").stdout)
	if _, body := me.open(t, base+"/"); !strings.Contains(body, "<h1>Log in</h1>") || renewed == token || renewed == "" {
		t.Errorf("with the new token %q the old session shows %s", renewed, body)
	}
	if path, _ := me.open(t, again); path != "/" {
		t.Errorf("the link of the second start leads to %s", path)
	}
	run.stop()
	<-run.ended
	if got := runCLI(t, "token", "renew"); got.code != 0 || strings.TrimSpace(got.stdout) == renewed {
		t.Errorf("renewed where no process runs: %+v", got)
	}
}

func mustUserDirectory(t *testing.T) string {
	t.Helper()
	dir, err := userDirectory()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestServeKeepsWhatAFileMade: serve on the data directory of a configuration leaves the subscriptions of the file alone.
func TestServeKeepsWhatAFileMade(t *testing.T) {
	t.Parallel()
	s := newTestSetup(t, "")
	s.check(t, "<p>one</p>")
	run := start(t, "serve", "--listen", "127.0.0.1:0", "--data", s.data, "--allow", loopback)
	awaitLink(t, run)
	if r := runCLI(t, "list", "--data", s.data); !strings.Contains(r.stdout, s.page.URL) {
		t.Errorf("it lists %+v", r)
	}
	run.stop()
	<-run.ended
}

// TestDemoWeb: the demo's web page has the story of a month.
func TestDemoWeb(t *testing.T) {
	t.Parallel()
	run := start(t, "demo", "--web", "--listen", "127.0.0.1:0")
	link := awaitLink(t, run)
	me := newPerson(t)
	me.open(t, link)
	_, body := me.open(t, link[:strings.Index(link, "/login")]+"/changes")
	for _, want := range []string{"The Lantern Shop", "Terms of the Lantern Shop", "24.50 EUR", "25 days ago"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in %s", want, body)
		}
	}
	run.stop()
	if code := <-run.ended; code != 0 {
		t.Errorf("it ends with %d: %s", code, &run.err)
	}
}
