package web

import (
	"context"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// TestInABrowser opens each page in Chromium, at the width of a desk and of a phone, in light and in
// dark, with hostile text and a very long word: nothing of the text runs, the policy refuses nothing of
// ours, and no page is wider than the window.
func TestInABrowser(t *testing.T) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Skip("there is no Chromium; apt-get install chromium")
	}
	b := logIn(t, &fake{source: watched + "<p>" + strings.Repeat("W", 10_000), long: strings.Repeat("W", 10_000)}, "")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("no-sandbox", true))...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()

	var mu sync.Mutex
	var wrong []string
	at := "/login"
	complain := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		wrong = append(wrong, at+": "+what)
	}
	if err := chromedp.Do(ctx); err != nil {
		t.Skip("Chromium does not start: ", err)
	}
	if err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *cdppage.EventJavascriptDialogOpening:
			complain("a dialog: " + e.Message)
		case *runtime.EventExceptionThrown:
			complain("an exception: " + e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if strings.Contains(e.Entry.Text, "Content Security Policy") {
				complain(e.Entry.Text)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, struct{}{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(b.base+"/login"), chromedp.SendKeys("input[name=token]", aToken+"\n"), chromedp.WaitVisible("nav")); err != nil {
		t.Fatal(err)
	}
	all := append(paths(t), "/diff?view=side&url="+url.QueryEscape(pageURL), "/page?url=https://example.com/")
	for _, window := range []struct {
		width  int64
		scheme string
	}{{1280, "light"}, {390, "dark"}} {
		for _, path := range all {
			mu.Lock()
			at = path
			mu.Unlock()
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: window.scheme}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := chromedp.Do(ctx, chromedp.EmulateViewport(window.width, 900), chromedp.Navigate(b.base+path)); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			title, err := chromedp.Run(ctx, chromedp.Title())
			if err != nil {
				t.Fatal(err)
			}
			over, err := chromedp.Run(ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth - innerWidth"))
			if err != nil {
				t.Fatal(err)
			}
			if over > 0 {
				t.Errorf("%s: at %d pixels the page is %d too wide", path, window.width, over)
			}
			if title == "" {
				t.Errorf("%s: the page has no title", path)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, w := range wrong {
		t.Error(w)
	}
}
