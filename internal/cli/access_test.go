package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWatchAccess: the flags reach the page, from the command line and from files, and are not printed.
func TestWatchAccess(t *testing.T) {
	t.Parallel()
	proxied := false
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied = proxied || r.URL.IsAbs()
		user, password, _ := r.BasicAuth()
		c, err := r.Cookie("sid")
		if r.Header.Get("X-Key") != "secret-1" || r.Header.Get("X-Other") != "secret-2" || user != "ann" || password != "secret:3" || err != nil || c.Value != "secret-4" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>Inside</title><p>welcome</p>"))
	}))
	t.Cleanup(page.Close)
	for name, args := range map[string][]string{
		"given":     {"--header", "X-Key: secret-1", "--header", "X-Other: secret-2", "--user", "ann:secret:3", "--cookie", "a=b; sid=secret-4"},
		"from file": {"--header", "@" + file(t, "h", "X-Key: secret-1\nX-Other: secret-2\n"), "--user", "@" + file(t, "u", "ann:secret:3\n"), "--cookie", "@" + file(t, "c", "sid=secret-4\n")},
		"by proxy": {"--header", "X-Key: secret-1", "--header", "X-Other: secret-2", "--user", "ann:secret:3", "--cookie", "sid=secret-4",
			"--proxy", "@" + file(t, "p", page.URL+"\n")},
	} {
		args = append([]string{"watch", page.URL, "--allow", "127.0.0.1/32", "--data", t.TempDir(), "--checks", "1", "--log-level", "info"}, args...)
		r := runCLI(t, args...)
		if r.code != 0 || !strings.Contains(r.stderr, "Inside") || strings.Contains(r.stdout+r.stderr, "secret") {
			t.Errorf("%s: got %+v", name, r)
		}
	}
	if !proxied {
		t.Error("no request came through the proxy")
	}
}

func TestMistakesInWatchAccess(t *testing.T) {
	none := t.TempDir() + "/none"
	for want, args := range map[string][]string{
		"--header: it is not a name":                       {"--header", "secret"},
		"--header b c:":                                    {"--header", "b c: secret"},
		"--cookie: it is not a list":                       {"--cookie", "secret"},
		"--user: it is not a name":                         {"--user", "secret"},
		"--cookie: the file " + none + " does not exist\n": {"--cookie", "@" + none},
		"cannot be read: is a directory\n":                 {"--header", "@" + t.TempDir()},
		"--user: the file":                                 {"--user", "@" + file(t, "empty", "\n")},
		"--proxy:":                                         {"--proxy", "ftp://x:secret@127.0.0.1"},
		"are for pages over http and h":                    {"--header", "A: secret", "file:///etc/hosts"},
	} {
		if len(args) == 2 {
			args = append(args, "https://example.com/")
		}
		r := runCLI(t, append([]string{"watch"}, args...)...)
		if r.code != 2 || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, "secret") {
			t.Errorf("%v: got %+v, want %q", args, r, want)
		}
	}
}
