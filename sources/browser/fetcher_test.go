package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	httpsource "github.com/vokter/vokter/sources/http"
)

// website is a page at /, and what the browser asked of it and its neighbours.
type website struct {
	*httptest.Server
	asked atomic.Int64
}

func newWebsite(t *testing.T, handler func(w http.ResponseWriter, r *http.Request)) *website {
	t.Helper()
	s := &website{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// fetcher returns a Fetcher with a browser that may open this server alone, as page says. It skips
// the test where there is no browser.
func (s *website) fetcher(t *testing.T, page Page, change func(*Config)) *Fetcher {
	t.Helper()
	addr, err := netip.ParseAddrPort(strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Pages: map[string]Page{s.URL + "/": page}, NoSandbox: os.Geteuid() == 0, Timeout: time.Minute,
		Allow: []netip.Prefix{netip.PrefixFrom(addr.Addr(), 32)}, UserAgent: "vokter/test",
	}
	if change != nil {
		change(&c)
	}
	if _, err := c.Find(); err != nil && c.Path == "" {
		t.Skip(err)
	}
	f, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// request asks f for the page at url as a Router does.
func request(f *Fetcher, url string) pipeline.FetchRequest {
	return pipeline.FetchRequest{URL: url, Next: httpsource.New(httpsource.Config{Allow: f.config.Allow})}
}

func fetchText(t *testing.T, f *Fetcher, url string) (string, error) {
	t.Helper()
	resp, err := f.Fetch(t.Context(), request(f, url))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// classOfError returns the class of a failed fetch.
func classOfError(err error) string {
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		return e.Class
	}
	return fmt.Sprintf("%T %v", err, err)
}

// TestScripts renders a page whose price comes by a request of its script.
func TestScripts(t *testing.T) {
	t.Parallel()
	s := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/price":
			if !strings.Contains(r.UserAgent(), "Chrome") || !strings.HasSuffix(r.UserAgent(), " vokter/test") {
				t.Errorf("user agent %q", r.UserAgent())
			}
			io.WriteString(w, "95.00 EUR")
		default:
			io.WriteString(w, `<!doctype html><html lang="en"><p id="p">…</p><script>fetch("/price").then(r=>r.text()).then(x=>{p.textContent=x})</script>`)
		}
	})
	for _, mode := range []Mode{Rendered, Auto} {
		body, err := fetchText(t, s.fetcher(t, Page{Mode: mode}, nil), s.URL+"/")
		if err != nil || !strings.Contains(body, "95.00 EUR") || !strings.Contains(body, `lang="en"`) {
			t.Errorf("%s: %v, %s", mode, err, body)
		}
	}
	if body, err := fetchText(t, s.fetcher(t, Page{}, nil), s.URL+"/"); err != nil || strings.Contains(body, "95.00") {
		t.Errorf("without the browser: %v, %s", err, body)
	}
}

// TestScreenshots takes a picture of a page if the settings say so. A page full of noise
// has one of less quality.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	s := newWebsite(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `<p>Noise</p><canvas id="c" width="600" height="1500"></canvas><script>
			const x = c.getContext("2d"), d = x.createImageData(600, 1500), a = new Uint32Array(d.data.buffer);
			for (let i = 0, n = 1; i < a.length; i++) { n = n * 1664525 + 1013904223 | 0; a[i] = n | 0xff000000 }
			x.putImageData(d, 0, 0)</script>`)
	})
	for _, on := range []bool{false, true} {
		f := s.fetcher(t, Page{Mode: Rendered}, func(c *Config) { c.Screenshots = on })
		resp, err := f.Fetch(t.Context(), request(f, s.URL+"/"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		switch kind := http.DetectContentType(resp.Screenshot); {
		case !on && resp.Screenshot != nil:
			t.Errorf("without the setting there is a picture of %d bytes", len(resp.Screenshot))
		case on && (kind != "image/webp" || len(resp.Screenshot) > pipeline.MaxScreenshot):
			t.Errorf("got %d bytes of %s", len(resp.Screenshot), kind)
		}
	}
	plain := newWebsite(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<h1>Price 95 EUR</h1>") })
	f := plain.fetcher(t, Page{Mode: Rendered}, func(c *Config) { c.Screenshots = true })
	resp, err := f.Fetch(t.Context(), request(f, plain.URL+"/"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if kind := http.DetectContentType(resp.Screenshot); kind != "image/webp" {
		t.Errorf("got %d bytes of %s", len(resp.Screenshot), kind)
	}
}

// TestSteps logs in by a form and opens what is behind it. Each check logs in again.
func TestSteps(t *testing.T) {
	t.Parallel()
	s := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := r.Cookie("session")
		switch {
		case r.Method == http.MethodPost:
			if r.FormValue("user") == "ann" && r.FormValue("pass") == "tops3cret" {
				http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
			}
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case err == nil:
			io.WriteString(w, `<p id="inside">Members pay 80.00 EUR.</p>`)
		default:
			io.WriteString(w, `<form method="post"><input name="user"><input name="pass" type="password"><button>Go</button></form>`)
		}
	})
	steps := []Step{
		{Fill: &Fill{"input[name=user]", registry.NewSecret("ann")}}, {Fill: &Fill{"input[name=pass]", registry.NewSecret("tops3cret")}},
		{Click: "button"}, {WaitFor: "#inside"}, {Scroll: 1},
	}
	f := s.fetcher(t, Page{Mode: Rendered, Steps: steps}, nil)
	for range 2 {
		if body, err := fetchText(t, f, s.URL+"/"); err != nil || !strings.Contains(body, "80.00 EUR") {
			t.Fatalf("%v, %s", err, body)
		}
	}
	steps[1].Fill.Value = registry.NewSecret("wrong")
	_, err := fetchText(t, s.fetcher(t, Page{Mode: Rendered, Steps: steps}, func(c *Config) { c.Timeout = 8 * time.Second }), s.URL+"/")
	// A busy machine may not come to step 4.
	if classOfError(err) != pipeline.FailTimeout || !regexp.MustCompile(`waited too long for step [1-4] \(.+\); browser\.timeout is 8s`).MatchString(err.Error()) {
		t.Errorf("an element that does not appear: %v", err)
	}
}

// TestHostilePages ends those that ask for too much, and only those.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, page string
		want       string // class, or text
		limit      Limit  // that ends it
		bounds     func(*Config)
	}{
		{name: "many tabs", page: `<p>here</p><script>for(let i=0;i<500;i++)window.open("/x"+i)</script>`, want: "here"},
		{name: "never loads", page: `<p>here</p><img src="/hang">`, want: pipeline.FailTimeout, limit: LimitTimeout, bounds: func(c *Config) { c.Timeout = 3 * time.Second }},
		{name: "script without end", page: `<p>here</p><script>for(;;);</script>`, want: pipeline.FailTimeout, limit: LimitTimeout, bounds: func(c *Config) { c.Timeout = 3 * time.Second }},
		{name: "memory", page: `<p>here</p><script>a=[];for(;;)a.push(new Uint8Array(1<<20).fill(7))</script>`, want: pipeline.FailTooLarge, limit: LimitMemory, bounds: func(c *Config) { c.Memory = 400 << 20 }},
		{name: "many requests", page: `<p>here</p><script>for(let i=0;i<1000;i++)fetch("/x"+i)</script>`, want: pipeline.FailTooLarge, limit: LimitRequests},
		{name: "dialogs", page: `<p>here</p><script>alert(1);confirm(2);document.querySelector("p").textContent="after them"</script>`, want: "after them"},
		{name: "large", page: `<p id="p"></p><script>p.textContent="x".repeat(11<<20)</script>`, want: pipeline.FailTooLarge, limit: LimitSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hang := make(chan struct{})
			s := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/hang":
					select {
					case <-hang:
					case <-r.Context().Done():
					}
				case "/":
					io.WriteString(w, c.page)
				default:
					io.WriteString(w, "<p>another</p>")
				}
			})
			defer close(hang)
			f := s.fetcher(t, Page{Mode: Rendered}, c.bounds)
			body, err := fetchText(t, f, s.URL+"/")
			stats := f.Stats()
			for _, l := range Limits {
				if n := stats.Ended[l]; n != 0 && l != c.limit || n != 1 && l == c.limit {
					t.Errorf("the limit %s counts %d pages", l, n)
				}
			}
			if stats.Opened != 1 || stats.Open != 0 || stats.Waiting != 0 || stats.Memory != 0 {
				t.Errorf("afterwards it counts %+v", stats)
			}
			if err != nil && classOfError(err) != c.want || err == nil && !strings.Contains(body, c.want) {
				t.Errorf("%v, %.200s; want %s", err, body, c.want)
			}
		})
	}
}

// TestForbiddenAddresses neither connects to private addresses for a page, nor to one that a
// watched page redirects to, nor opens files.
func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	var connected atomic.Int64
	private, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skip("there is no second loopback address: ", err)
	}
	defer private.Close()
	go func() {
		for {
			c, err := private.Accept()
			if err != nil {
				return
			}
			connected.Add(1)
			c.Close()
		}
	}()
	inner := private.Addr().String()
	s := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			fmt.Fprintf(w, `<p>here</p><p id="q"></p><script>
				for (const u of ["http://%[1]s/","https://%[1]s/","ws://%[1]s/","http://169.254.169.254/latest/meta-data/","file:///etc/passwd"])
					try { u.startsWith("ws") ? new WebSocket(u) : fetch(u,{mode:"no-cors"}).then(()=>q.textContent+="reac"+"hed "+u,()=>0) } catch(e) {}
				new RTCPeerConnection({iceServers:[{urls:"turn:%[1]s?transport=tcp",username:"a",credential:"b"}]}).createDataChannel("x")
			</script><iframe src="http://%[1]s/"></iframe><iframe src="file:///etc/passwd"></iframe><link rel="preconnect" href="http://%[1]s">`, inner)
		}
	})
	body, err := fetchText(t, s.fetcher(t, Page{Mode: Rendered}, nil), s.URL+"/")
	if err != nil || !strings.Contains(body, "here") || strings.Contains(body, "reached") {
		t.Errorf("%v, %s", err, body)
	}
	away := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+inner+"/", http.StatusFound)
	})
	if _, err := fetchText(t, away.fetcher(t, Page{Mode: Rendered}, nil), away.URL+"/"); err == nil {
		t.Error("a redirect to a private address was followed")
	}
	f := s.fetcher(t, Page{Mode: Rendered}, nil)
	f.SetPages(map[string]Page{"http://" + inner + "/": {Mode: Rendered}})
	if _, err := fetchText(t, f, "http://"+inner+"/"); classOfError(err) != pipeline.FailAddress {
		t.Errorf("a page with a private address: %v", err)
	}
	if n := connected.Load(); n > 0 {
		t.Errorf("there were %d connections to a private address", n)
	}
}

// TestAnswers returns the status of the page as the fetcher without a browser does.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "<p>gone</p>")
		case "/busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/data":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"price":1}`)
		default:
			http.Redirect(w, r, "/gone", http.StatusFound)
		}
	})
	f := s.fetcher(t, Page{}, nil)
	f.SetPages(map[string]Page{s.URL + "/gone": {Mode: Rendered}, s.URL + "/busy": {Mode: Rendered}, s.URL + "/data": {Mode: Rendered}, s.URL + "/": {Mode: Rendered}})
	if _, err := fetchText(t, f, s.URL+"/gone"); classOfError(err) != pipeline.FailStatus || !strings.Contains(err.Error(), "404") {
		t.Errorf("404: %v", err)
	}
	_, err := fetchText(t, f, s.URL+"/busy")
	if e, ok := errors.AsType[*pipeline.FetchError](err); !ok || e.Class != pipeline.FailBusy || e.RetryAfter != 7*time.Second {
		t.Errorf("429: %v", err)
	}
	if body, err := fetchText(t, f, s.URL+"/data"); err != nil || body != `{"price":1}` {
		t.Errorf("JSON: %v, %s", err, body)
	}
	no := errors.New("no")
	asking := request(f, s.URL+"/")
	asking.Redirect = func(context.Context, string) error { return no }
	_, err = f.Fetch(t.Context(), asking)
	if err == nil {
		t.Error("a redirect that is not permitted was followed")
	}
}

// TestUnavailable says what to do where the browser cannot be started, and that it is not the page's fault.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	s := newWebsite(t, func(http.ResponseWriter, *http.Request) {})
	f := s.fetcher(t, Page{Mode: Rendered}, func(c *Config) { c.Path, c.NoSandbox = "/nonexistent/chromium", true })
	if _, err := fetchText(t, f, s.URL+"/"); classOfError(err) != pipeline.FailBusy || !strings.Contains(err.Error(), "/nonexistent/chromium") {
		t.Errorf("a missing browser: %v", err)
	}
	f = s.fetcher(t, Page{Mode: Rendered}, func(c *Config) { c.Path, c.NoSandbox = "/bin/false", true })
	if _, err := fetchText(t, f, s.URL+"/"); classOfError(err) != pipeline.FailBusy || !strings.Contains(err.Error(), "/bin/false did not start") {
		t.Errorf("a browser that ends at once: %v", err)
	}
	if s.asked.Load() > 0 {
		t.Error("the page was asked for")
	}
}

// TestNothingIsLeft: while a page is open it is counted, one more waits, and afterwards no file of the
// browser is there, which is killed at the end.
func TestNothingIsLeft(t *testing.T) {
	dir := useTempDir(t)
	asked, hang := make(chan struct{}, 2), make(chan struct{})
	s := newWebsite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			asked <- struct{}{}
			<-hang
		}
		io.WriteString(w, "<p>here</p>")
	})
	f := s.fetcher(t, Page{Mode: Rendered}, func(c *Config) { c.Tabs = 1 })
	done := make(chan error, 2)
	for range 2 {
		go func() { _, err := fetchText(t, f, s.URL+"/"); done <- err }()
	}
	<-asked
	for s := f.Stats(); s.Waiting != 1 || s.Memory == 0 && runtime.GOOS == "linux"; s = f.Stats() {
		time.Sleep(10 * time.Millisecond)
	}
	if s := f.Stats(); s.Open != 1 || s.Opened != 1 || len(fileNames(t, dir)) != 1 {
		t.Errorf("while a page is open: %+v, %q", s, fileNames(t, dir))
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := f.Fetch(short, request(f, s.URL+"/")); classOfError(err) != pipeline.FailBusy || f.Stats().Ended[LimitTabs] != 1 {
		t.Errorf("without a tab: %v, %+v", err, f.Stats())
	}
	close(hang)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if s := f.Stats(); s.Open != 0 || s.Waiting != 0 || s.Opened != 2 || s.Memory != 0 || len(fileNames(t, dir)) != 0 {
		t.Errorf("afterwards: %+v, %q", s, fileNames(t, dir))
	}
}

func TestShell(t *testing.T) {
	long := strings.Repeat("word ", minDocumentWords)
	for page, want := range map[string]bool{
		`<div id="root"></div><script src="app.js"></script>`:                    true,
		`<script>` + long + `</script><noscript>` + long + `</noscript>Loading…`: true,
		`<p>` + long + `</p><script></script>`:                                   false,
		`<p>short</p>`:                                                           false,
		``:                                                                       false,
	} {
		if got := isShell([]byte(page)); got != want {
			t.Errorf("%.60q: %v, want %v", page, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for want, p := range map[string]Page{
		`fetch: "chrome" is not known; write http, browser or auto`:                 {Mode: "chrome"},
		"steps: they need the browser; add fetch: browser":                          {Mode: Auto, Steps: []Step{{Scroll: 1}}},
		"steps[0]: it has 0 of wait_for, click, fill and scroll; write exactly one": {Mode: Rendered, Steps: []Step{{}}},
		"steps[0]: it has 2 of wait_for, click, fill and scroll; write exactly one": {Mode: Rendered, Steps: []Step{{Click: "a", Scroll: 2}}},
		`steps[0].click: "a[" is not a CSS selector`:                                {Mode: Rendered, Steps: []Step{{Click: "a["}}},
		"steps[0].fill: it has no select; add the CSS selector of the field":        {Mode: Rendered, Steps: []Step{{Fill: &Fill{}}}},
		"steps[0].scroll: 51 is not between 1 and 50 screens":                       {Mode: Rendered, Steps: []Step{{Scroll: 51}}},
	} {
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := (Page{Mode: Rendered, Steps: []Step{{WaitFor: "#a"}}}).Check(); err != nil {
		t.Error(err)
	}
	if err := (Config{Tabs: 65, Memory: 1, Timeout: time.Millisecond}).Check(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
}
