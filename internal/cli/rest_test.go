package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRestAPI subscribes over the REST API to a running program and to one that was started again.
func TestRestAPI(t *testing.T) {
	t.Parallel()
	got := make(chan string, 10)
	client := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got <- r.Header.Get("Content-Type") + " " + string(b)
	}))
	defer client.Close()
	p := newPage(t, "<p>The Greek giant sleeps.</p>")
	data := filepath.Join(t.TempDir(), "d")
	run := func(format string) (*startedApp, func(path, body string) string) {
		t.Helper()
		config := file(t, "c.yaml", fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nrest: {listen: 127.0.0.1:0, format: %s, token: none}\nfetch: {min_interval: 10ms, per_host: {rate: 1000/s}}\n", data, format))
		s := start(t, "run", "-c", config, "--allow", loopback)
		serving := regexp.MustCompile(`serving the REST API" address=(\S+)`)
		waitFor(t, "the REST API", func() bool { return serving.MatchString(s.err.String()) })
		base := "http://" + serving.FindStringSubmatch(s.err.String())[1] + "/vokter/v1/"
		return s, func(path, body string) string {
			t.Helper()
			resp, err := http.Post(base+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%d %s", resp.StatusCode, b)
		}
	}
	stop := func(s *startedApp) {
		t.Helper()
		s.stop()
		if code := <-s.ended; code != 0 {
			t.Fatalf("ended with %d: %s", code, &s.err)
		}
	}
	pair := fmt.Sprintf(`"documentUrl":%q,"clientUrl":%q`, p.URL, client.URL)

	s, post := run("v1")
	if got, want := post("subscribe", "{"+pair+`,"keywords":["Argus Panoptes","the greek"],"interval":1}`), `200 {"code":0,"message":""}`; got != want {
		t.Fatalf("got %s", got)
	}
	waitFor(t, "the first version", func() bool { return p.count() > 1 })
	p.set(http.StatusOK, "<p>The giant Argus Panoptes sleeps.</p>")
	if got, want := <-got, `application/json {"status":"ok","url":"`+p.URL+`","diffs":[{"action":"deleted","keyword":"the greek","snippet":"The Greek giant sleeps."},`+
		`{"action":"inserted","keyword":"Argus Panoptes","snippet":"The giant Argus Panoptes sleeps."}]}`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	stop(s)

	s, post = run("documented")
	p.set(http.StatusOK, "<p>The giant sleeps.</p>")
	if got, want := <-got, `application/json {"status":"ok","url":"`+p.URL+`","diffs":[{"event":"removed","keyword":"Argus Panoptes","text":"Argus Panoptes","snippet":"The giant Argus Panoptes sleeps."`; !strings.HasPrefix(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := post("subscribe", "{"+pair+`,"keywords":["zeus"]}`); !strings.HasPrefix(got, "409 ") {
		t.Errorf("after a restart: %s", got)
	}
	if got, want := post("cancel", "{"+pair+"}"), `200 {"code":0,"message":""}`; got != want {
		t.Errorf("got %s", got)
	}
	stop(s)
}

// TestURLsOfClientsAreSinks holds that retry knows the sinks that the REST API makes.
func TestURLsOfClientsAreSinks(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{"": "no sink is named", "rest: {listen: 127.0.0.1:0, token: none}\n": "no such notification is pending"} {
		s := newTestSetup(t, more)
		s.check(t, "<p>Zeus.</p>")
		r := runCLI(t, "retry", "-c", s.config, "--sink", "http://example.com/in")
		if !strings.Contains(r.stderr, want) {
			t.Errorf("with %q: got %+v", more, r)
		}
	}
}
