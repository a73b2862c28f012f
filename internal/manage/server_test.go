package manage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestHostile holds requests that must not be carried out to their answers.
func TestHostile(t *testing.T) {
	const target = `{"url":"https://example.com/","client":"c"}`
	for name, c := range map[string]struct {
		method, path, body string
		header             map[string]string
		status             int
	}{
		"rebinding":                {"GET", "/pages", "", map[string]string{"Host": "evil.example:9000"}, 403},
		"rebinding by address":     {"GET", "/pages", "", map[string]string{"Host": "192.168.1.7"}, 403},
		"rebinding looks local":    {"POST", "/cancel", target, map[string]string{"Host": "127.0.0.1.evil.example"}, 403},
		"cross-origin":             {"POST", "/cancel", target, map[string]string{"Origin": "https://evil.example"}, 403},
		"cross-site":               {"POST", "/replay", "{}", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"same site, other origin":  {"POST", "/resume", target, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"cross-site image":         {"GET", "/backup", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"preflight":                {"OPTIONS", "/cancel", "", map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}, 403},
		"GET of a command":         {"GET", "/cancel", target, nil, 405},
		"POST of a list":           {"POST", "/pages", "{}", nil, 405},
		"DELETE":                   {"DELETE", "/pages", "", nil, 405},
		"unknown route":            {"GET", "/secrets", "", nil, 404},
		"form":                     {"POST", "/cancel", "url=x", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415},
		"JSON as text":             {"POST", "/cancel", target, map[string]string{"Content-Type": "text/plain"}, 415},
		"huge body":                {"POST", "/cancel", `{"url":"` + strings.Repeat("x", maxBody) + `"}`, nil, 413},
		"huge tail":                {"POST", "/cancel", target + strings.Repeat(" ", maxBody), nil, 413},
		"unknown field":            {"POST", "/cancel", `{"url":"https://example.com/","client":"c","force":true}`, nil, 422},
		"unknown field of filters": {"POST", "/replay", `{"sinks":"x"}`, nil, 422},
		"two objects":              {"POST", "/replay", `{} {}`, nil, 400},
		"no object":                {"POST", "/replay", `[]`, nil, 422},
		"no body":                  {"POST", "/replay", ``, nil, 400},
		"wrong type":               {"POST", "/cancel", `{"url":7}`, nil, 422},
		"no URL":                   {"POST", "/resume", `{}`, nil, 422},
		"no client":                {"POST", "/cancel", `{"url":"https://example.com/"}`, nil, 422},
		"query at a command":       {"POST", "/cancel?client=c", target, nil, 422},
		"unknown parameter":        {"GET", "/pages?ulr=x", "", nil, 422},
		"parameter twice":          {"GET", "/pages?client=a&client=b", "", nil, 400},
		"malformed query":          {"GET", "/pages?client=%zz", "", nil, 400},
		"explain nothing":          {"GET", "/explain", "", nil, 422},
		"no time":                  {"GET", "/dead-letters?since=yesterday", "", nil, 422},
		"path up":                  {"GET", "/explain?url=../../etc/passwd", "", nil, 422},
		"no cursor":                {"GET", "/pages?cursor=!", "", nil, 422},
		"no limit":                 {"GET", "/pages?limit=1001", "", nil, 422},
		"no state":                 {"GET", "/pages?state=good", "", nil, 422},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			_, base := serve(t, f)
			status, header, body := send(t, c.method, base+client.Prefix+c.path, c.body, c.header)
			var e client.Problem
			if err := json.Unmarshal(body, &e); err != nil || status != c.status || e.Status != c.status || e.Detail == "" || header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("got %d %s, %v, want %d", status, body, err, c.status)
			}
			if len(f.asked) > 0 {
				t.Errorf("it was carried out: %v", f.asked)
			}
		})
	}
}

// TestToken: without the token nothing is told and nothing is done, not even which routes
// there are.
func TestToken(t *testing.T) {
	const target = `{"url":"https://example.com/","client":"c"}`
	for name, given := range map[string]string{
		"none": "", "another": "Bearer " + strings.ToLower(aToken), "empty": "Bearer ", "part": "Bearer " + aToken[1:], "longer": "Bearer " + aToken + "A",
		"bare": aToken, "another scheme": "Basic " + aToken, "two": "Bearer x " + aToken,
	} {
		f := &fake{copied: "the store"}
		_, base := serve(t, f)
		for path, method := range map[string]string{
			client.Prefix + "/backup": "GET", client.Prefix + "/pages": "GET", client.Prefix + "/process": "GET", client.Prefix + "/cancel": "POST", client.Prefix + "/no": "GET", "/": "GET", "/debug/pprof/": "GET",
		} {
			status, header, body := send(t, method, base+path, target, map[string]string{"Authorization": given})
			var e client.Problem
			if err := json.Unmarshal(body, &e); err != nil || status != 401 || e.Type != client.ProblemUnauthorized || !strings.HasPrefix(header.Get("WWW-Authenticate"), "Bearer ") {
				t.Errorf("%s, %s: got %d %s %v", name, path, status, body, header)
			}
		}
		if len(f.asked) > 0 {
			t.Errorf("%s: it was carried out: %v", name, f.asked)
		}
	}
	_, base := serve(t, &fake{})
	if status, _, _ := send(t, "GET", base+client.Prefix+"/pages", "", map[string]string{"Authorization": "bearer " + aToken}); status != 200 {
		t.Errorf("a scheme in lower case: got %d", status)
	}
	none, err := New(&fake{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if status, _, body := send(t, "GET", serveURL(t, none)+client.Prefix+"/pages", "", map[string]string{"Authorization": "Bearer "}); status != 403 || !strings.Contains(string(body), "data directory") {
		t.Errorf("a process without a token: got %d %s", status, body)
	}
}

func serveURL(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// TestHosts: a name may point at a loopback address only where a web page made it do so;
// elsewhere a process is asked for under whatever name its address has.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		at, host string
		want     int
	}{
		{"127.0.0.1", "evil.example:9000", 403}, {"::1", "evil.example:9000", 403}, {"127.0.0.1", "localhost:9000", 200},
		{"192.0.2.7", "vokter.example:9000", 200}, {"192.0.2.7", "192.0.2.7:9000", 200}, {"2001:db8::7", "[2001:db8::7]:9000", 200},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, client.Prefix+"/pages", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(c.at), Port: 9000}))
		r.Host = c.host
		r.Header.Set("Authorization", "Bearer "+aToken)
		newAPIOf(t, &fake{}, config.API{}).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s at %s: got %d %s, want %d", c.host, c.at, w.Code, w.Body, c.want)
		}
	}
}

// send sends one request with the token; an entry Host of header is its Host.
func send(t *testing.T, method, url, body string, header map[string]string) (int, http.Header, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	r.Header.Set("Authorization", "Bearer "+aToken)
	for k, v := range header {
		if k == "Host" {
			r.Host = v
			continue
		}
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, b
}

func TestLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:9000": true, "127.0.0.1": true, "localhost:80": true, "LOCALHOST": true, "[::1]:9000": true, "[::1]": true, "127.8.8.8": true,
		"": false, "example.com": false, "10.0.0.1:80": false, "localhost.example.com": false, "127.0.0.1.nip.io:80": false, "[::]:80": false, "0.0.0.0": false, "2130706433": false,
	} {
		if got := isLocalHost(host); got != want {
			t.Errorf("local(%q) = %v, want %v", host, got, want)
		}
	}
}

// slow is a Service whose handlers work until their time is over.
type slow struct{ *fake }

func (slow) EachDeadLetter(ctx context.Context, _ flow.DeadFilter) iter.Seq2[flow.DeadLetter, error] {
	return func(yield func(flow.DeadLetter, error) bool) {
		<-ctx.Done()
		yield(flow.DeadLetter{}, ctx.Err())
	}
}

func (slow) Explain(ctx context.Context, _ string, _ inspect.ExplainFilter) (inspect.Explanation, error) {
	<-ctx.Done()
	return inspect.Explanation{}, context.Cause(ctx)
}

// TestTooLong: a request that takes too long is not the fault of the server.
func TestTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, path := range []string{"/dead-letters", "/explain?url=https://example.com/"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, client.Prefix+path, nil)
			r.Host = "localhost"
			r.Header.Set("Authorization", "Bearer "+aToken)
			newAPIOf(t, slow{&fake{}}, config.API{}).ServeHTTP(w, r)
			if w.Code != 503 || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "longer than 30s") {
				t.Errorf("%s: got %d %v %s", path, w.Code, w.Header(), w.Body)
			}
		}
	})
}

func TestStatuses(t *testing.T) {
	down := errors.New("the disk has too little room")
	for name, c := range map[string]struct {
		f      fake
		status int
		code   string
		retry  bool
	}{
		"not found": {fake{err: &flow.Refusal{Code: flow.CodeNotFound, Message: "none"}}, 404, client.ProblemNotFound, false},
		"conflict":  {fake{err: &flow.Refusal{Code: flow.CodeConflict, Message: "one"}}, 409, client.ProblemConflict, false},
		"refused":   {fake{err: &flow.Refusal{Code: flow.CodeFormat, Message: "bad"}}, 422, "", false},
		"busy":      {fake{err: flow.ErrBusy}, 503, client.ProblemBusy, true},
		"no room":   {fake{err: down, down: down}, 503, client.ProblemUnavailable, true},
		"broken":    {fake{err: errBroken}, 500, "", false},
	} {
		_, base := serve(t, &c.f)
		for _, path := range []string{"/pages", "/receivers", "/explain?url=https://example.com/", "/dead-letters", "/backup"} {
			status, header, body := send(t, "GET", base+client.Prefix+path, "", nil)
			var e client.Problem
			if err := json.Unmarshal(body, &e); err != nil || status != c.status || e.Type != c.code || (header.Get("Retry-After") != "") != c.retry {
				t.Errorf("%s %s: got %d %s %v, want %d %s", name, path, status, body, header, c.status, c.code)
			}
		}
	}
}

// TestEmptyLists checks that nothing is [] and not null.
func TestEmptyLists(t *testing.T) {
	_, base := serve(t, &fake{})
	for path, want := range map[string]string{"/pages": `{"pages":[]}`, "/receivers": `{"receivers":[]}`, "/dead-letters": `{"dead_letters":[]}`} {
		if _, _, body := send(t, "GET", base+client.Prefix+path, "", nil); strings.TrimSpace(string(body)) != want {
			t.Errorf("%s: got %s, want %s", path, body, want)
		}
	}
}

// TestAnswersOutliveTheLimitsOfTheServer serves with a limit that is over at once.
func TestAnswersOutliveTheLimitsOfTheServer(t *testing.T) {
	s := httptest.NewUnstartedServer(newAPIOf(t, &fake{copied: "a tar stream"}, config.API{}))
	s.Config.WriteTimeout = time.Nanosecond
	s.Start()
	defer s.Close()
	for _, path := range []string{"/pages", "/backup"} {
		if status, _, body := send(t, "GET", s.URL+client.Prefix+path, "", nil); status != 200 || len(body) == 0 {
			t.Errorf("%s: got %d %q", path, status, body)
		}
	}
}

// TestOneBackupAtATime: each takes the room of a copy.
func TestOneBackupAtATime(t *testing.T) {
	began, end := make(chan struct{}, 1), make(chan struct{})
	f := &fake{copied: "a tar stream", copying: func() {
		began <- struct{}{}
		<-end
	}}
	c, base := serve(t, f)
	first := make(chan error, 1)
	go func() { first <- c.Backup(t.Context(), new(bytes.Buffer)) }()
	<-began
	if err := c.Backup(t.Context(), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), "another backup is being made; try again") {
		t.Errorf("a second one: got %v", err)
	}
	if status, header, _ := send(t, "GET", base+client.Prefix+"/backup", "", nil); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("a second one: got %d, %v", status, header)
	}
	close(end)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := c.Backup(t.Context(), new(bytes.Buffer)); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestCloseWaitsForBackups, which remove what they made when they end, and refuses others.
func TestCloseWaitsForBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		a := newAPIOf(t, &fake{copied: "a tar stream", copying: func() { <-end }}, config.API{})
		backup := func() int {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, client.Prefix+"/backup", nil)
			r.Host = "127.0.0.1"
			r.Header.Set("Authorization", "Bearer "+aToken)
			a.ServeHTTP(w, r)
			return w.Code
		}
		ended, closed := make(chan int, 1), make(chan struct{})
		go func() { ended <- backup() }()
		synctest.Wait()
		go func() {
			defer close(closed)
			a.Close()
			a.Close() // does nothing more
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("it did not wait")
		default:
		}
		close(end)
		if code := <-ended; code != http.StatusOK {
			t.Errorf("the backup was answered %d", code)
		}
		<-closed
		if code := backup(); code != http.StatusServiceUnavailable {
			t.Errorf("after the end: %d", code)
		}
	})
}
