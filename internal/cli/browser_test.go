package cli

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// mailServer takes mails on loopback.
type mailServer struct {
	port  string
	mu    sync.Mutex
	mails []string
}

func newMailServer(t *testing.T) *mailServer {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	m := new(mailServer)
	_, m.port, _ = net.SplitHostPort(l.Addr().String())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go m.take(c)
		}
	}()
	return m
}

// take answers one connection.
func (m *mailServer) take(c net.Conn) {
	defer c.Close()
	in := bufio.NewScanner(c)
	fmt.Fprint(c, "220 mail\r\n")
	for in.Scan() {
		switch verb := strings.ToUpper(in.Text()); {
		case strings.HasPrefix(verb, "DATA"):
			fmt.Fprint(c, "354 go on\r\n")
			var mail strings.Builder
			for in.Scan() && in.Text() != "." {
				mail.WriteString(in.Text() + "\n")
			}
			m.mu.Lock()
			m.mails = append(m.mails, mail.String())
			m.mu.Unlock()
			fmt.Fprint(c, "250 taken\r\n")
		case strings.HasPrefix(verb, "QUIT"):
			fmt.Fprint(c, "221 bye\r\n")
			return
		default:
			fmt.Fprint(c, "250 ok\r\n")
		}
	}
}

// count returns how many mails came.
func (m *mailServer) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.mails)
}

// screens is a folder for pictures of the pages, which somebody wants to look at.
var screens = os.Getenv("VOKTER_SCREENS")

// startChromium returns a context with a tab, or skips the test.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no Chromium; apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("no-sandbox", true))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Skip("Chromium does not start: ", err)
	}
	return ctx
}

// takePictures takes pictures of what the tab shows, if somebody wants them.
func takePictures(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if screens == "" {
		return
	}
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			}); err != nil {
				t.Fatal(err)
			}
			if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)); err != nil {
				t.Fatal(err)
			}
			shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(screens, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)), shot.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatal(err)
	}
}

// TestFirstHourInABrowser is what somebody does first, in Chromium: log in by the printed link, watch a page by its URL,
// add a receiver of mails by its form, see a change in the title of the tab, and still be logged in after a restart.
func TestFirstHourInABrowser(t *testing.T) {
	ctx := startChromium(t)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	mail := newMailServer(t)
	p := newPage(t, "<title>Lamps</title><nav>Home</nav><main><h1>Lamp</h1><p>A lamp that lights a whole room, for 49 euros.</p></main>")
	run := start(t, "serve", "--listen", "127.0.0.1:0", "--allow", loopback)
	link := awaitLink(t, run)
	base := link[:strings.Index(link, "/login")]
	do := func(what string, actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			var body, at string
			at, _ = chromedp.Run(ctx, chromedp.Location())
			body, _ = chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
			t.Fatalf("%s: %v, at %s: %s", what, err, at, body)
		}
	}
	shows := func(text string) func() bool {
		return func() bool {
			body, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.title + document.body.innerText"))
			return err == nil && strings.Contains(body, text)
		}
	}
	do("the link", chromedp.Navigate(link), chromedp.WaitVisible("form.watch"))
	takePictures(ctx, t, "first")
	do("one URL", chromedp.SendKeys("form.watch input[name=url]", p.URL+"\n"), chromedp.WaitVisible("ul.list"))
	waitFor(t, "the note", shows("every change of its part main"))
	waitFor(t, "the baseline", func() bool { return strings.Contains(runCLI(t, "show", p.URL).stdout, "49 euros") })
	p.set(http.StatusOK, "<title>Lamps</title><nav>Away</nav><main><h1>Lamp</h1><p>A lamp that lights a whole room, for 39 euros.</p></main>")
	if r := runCLI(t, "check", p.URL); r.code != 0 {
		t.Fatalf("check: %+v", r)
	}
	waitFor(t, "the count in the title of the tab", shows("(1) Pages"))
	takePictures(ctx, t, "changed")
	do("the change", chromedp.Click("#live a"), chromedp.WaitVisible("article.change"))
	waitFor(t, "the words", shows("39 euros"))
	takePictures(ctx, t, "changes")

	do("receivers", chromedp.Navigate(base+"/receivers"), chromedp.WaitVisible("select[name=kind]"), chromedp.SetValue("select[name=kind]", "email"), chromedp.Click("main button.primary"), chromedp.WaitVisible("form.receiver"))
	takePictures(ctx, t, "form")
	do("a mistake", chromedp.SendKeys(`[name="o.host"]`, "localhost"), chromedp.SendKeys(`[name="o.from"]`, "nobody"), chromedp.SendKeys(`[name="o.to"]`, "ann@example.com"), chromedp.Click("details summary"),
		chromedp.SendKeys(`[name="o.port"]`, mail.port), chromedp.SendKeys(`[name="o.tls"]`, "none"), chromedp.Click("button[name=test]"), chromedp.WaitVisible(".option .reason"))
	takePictures(ctx, t, "mistake")
	do("mended", chromedp.SetValue(`[name="o.from"]`, "vokter@example.com"), chromedp.Click("button[name=test]"), chromedp.WaitVisible("ul.list"))
	waitFor(t, "the note about the test", shows("The test message of email is delivered"))
	if n := mail.count(); n != 1 {
		t.Errorf("%d mails came, want a test", n)
	}
	takePictures(ctx, t, "receivers")
	run.stop()
	<-run.ended

	run = start(t, "serve", "--listen", strings.TrimPrefix(base, "http://"), "--allow", loopback)
	awaitLink(t, run)
	do("after a restart", chromedp.Navigate(base+"/receivers"), chromedp.WaitVisible("ul.list"))
	waitFor(t, "the receiver", shows("email"))
	do("the page", chromedp.Navigate(base+"/page?url="+p.URL), chromedp.WaitVisible("#main"))
	takePictures(ctx, t, "page")
	do("process", chromedp.Navigate(base+"/process"), chromedp.WaitVisible("table.wide"))
	takePictures(ctx, t, "process")
	do("subscribe", chromedp.Navigate(base+"/subscribe"), chromedp.WaitVisible("form.subscribe"))
	takePictures(ctx, t, "subscribe")
	do("logout", chromedp.Click("header button"), chromedp.WaitVisible("form.login"))
	takePictures(ctx, t, "login")
	run.stop()
	<-run.ended
}
