package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
)

// When a loaded page counts as complete.
const (
	// idleTime is how long a page must have no open request.
	idleTime = 500 * time.Millisecond
	// maxIdleWait is how long a page may take to become quiet. One that never does is read as it is.
	maxIdleWait = 5 * time.Second
	// memoryInterval is how often the memory of the browser is measured.
	memoryInterval = 250 * time.Millisecond
)

// The size of the window in pixels.
const (
	windowWidth  = 1280
	windowHeight = 1024
)

// renderedPage is a page that the browser has opened.
type renderedPage struct {
	url, mime, html string
	screenshot      []byte
}

// tab is one page in a browser of its own.
type tab struct {
	fetcher    *Fetcher
	request    pipeline.FetchRequest
	ctx        context.Context // chromedp's
	end        context.CancelCauseFunc
	proxy      *proxy
	frame      cdp.FrameID // of the page itself
	waitingFor string      // for the reason of a timeout

	mu              sync.Mutex
	openRequests    map[network.RequestID]bool
	requestCount    int
	response        *network.Response // of the page itself
	answered        cdp.LoaderID      // whose document response is
	failed          string            // why the page itself could not be loaded at last
	requestsChanged chan struct{}     // signals changes of openRequests
}

// openPage opens r with the browser at path, does the steps and reads the page.
func (f *Fetcher) openPage(ctx context.Context, path string, r pipeline.FetchRequest, steps []Step) (*renderedPage, error) {
	bounded, end := context.WithCancelCause(ctx)
	defer end(nil)
	p, err := newProxy(bounded, f.config.Allow, end)
	if err != nil {
		return nil, unavailableError(err)
	}
	defer p.close()
	profile, err := newProfile()
	if err != nil {
		return nil, unavailableError(err)
	}
	defer profile.remove()
	f.counts.update(func(s *Stats) { s.Opened++ })
	var output outputTail
	allocated, wait := chromedp.NewExecAllocator(bounded, f.processOptions(path, p.addr, profile, &output)...)
	defer wait()
	page, cancel := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {}), chromedp.WithLogf(func(string, ...any) {}))
	defer cancel()
	t := &tab{fetcher: f, request: r, ctx: page, end: end, proxy: p, waitingFor: "the browser to start", openRequests: make(map[network.RequestID]bool), requestsChanged: make(chan struct{}, 1)}
	if err := chromedp.Do(page); err != nil {
		if bounded.Err() != nil {
			return nil, t.failureReason(ctx, bounded, err)
		}
		return nil, unavailableError(fmt.Errorf("the browser %s did not start: %s", path, cmp.Or(output.String(), err.Error())))
	}
	if process := chromedp.FromContext(page).Browser.Process(); process != nil {
		defer killGroup(process.Pid)
		measured, stop := context.WithCancel(bounded)
		var measuring sync.WaitGroup
		measuring.Go(func() { t.limitMemory(measured, process.Pid) })
		defer measuring.Wait()
		defer stop()
	}
	doc, err := t.read(steps)
	if err != nil {
		return nil, t.failureReason(ctx, bounded, err)
	}
	return doc, nil
}

// processOptions are those of the process of one page.
func (f *Fetcher) processOptions(path, proxy string, profile *profile, output io.Writer) []chromedp.ExecAllocatorOption {
	return append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) { ownGroup(cmd) }),
		chromedp.CombinedOutput(output),
		chromedp.UserDataDir(filepath.Join(profile.dir, "data")),
		chromedp.Env(profile.env()...),
		chromedp.ProxyServer("http://"+proxy),
		// By default loopback goes past the proxy.
		chromedp.Flag("proxy-bypass-list", "<-loopback>"),
		// What does not go through an HTTP proxy would go past it.
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("force-webrtc-ip-handling-policy", "disable_non_proxied_udp"),
		chromedp.Flag("no-sandbox", f.config.NoSandbox),
		chromedp.Flag("disable-popup-blocking", false),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("mute-audio", true),
		chromedp.WindowSize(windowWidth, windowHeight),
	)
}

// read opens the page, does the steps and returns what there is then.
func (t *tab) read(steps []Step) (*renderedPage, error) {
	t.waitingFor = "the page to load"
	if err := t.prepare(); err != nil {
		return nil, err
	}
	err := chromedp.Do(t.ctx, chromedp.Navigate(t.request.URL))
	t.mu.Lock()
	answer := t.response
	t.mu.Unlock()
	if answer != nil { // without a body it is an error as well
		if failed := statusError(answer); failed != nil {
			return nil, failed
		}
	}
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, &pipeline.FetchError{Class: pipeline.FailNetwork, Reason: "the browser got no page"}
	}
	doc := &renderedPage{mime: answer.MimeType}
	if !isHTML(doc.mime) {
		return doc, nil
	}
	t.waitUntilIdle()
	for i, s := range steps {
		t.waitingFor = fmt.Sprintf("step %d (%.100s)", i+1, s)
		if err := t.doStep(s); err != nil {
			return nil, err
		}
		t.waitUntilIdle()
	}
	t.waitingFor = "the page to be read"
	if doc.url, err = chromedp.Run(t.ctx, chromedp.Location()); err != nil {
		return nil, err
	}
	if doc.html, err = t.readHTML(); err != nil {
		return nil, err
	}
	if int64(len(doc.html)) > t.fetcher.config.MaxBody {
		return nil, &pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the page is larger than %d bytes", t.fetcher.config.MaxBody), Err: LimitSize}
	}
	if t.fetcher.config.Screenshots {
		doc.screenshot = t.screenshot()
	}
	return doc, nil
}

// maxReads is how often a page is read that leads elsewhere meanwhile.
const maxReads = 5

// readHTML returns the document of the page as it is now. It fails where that is an error page, of the browser or of
// a server: a script of the page may have led there.
func (t *tab) readHTML() (string, error) {
	for range maxReads {
		before, err := t.currentDocument()
		if err != nil {
			return "", err
		}
		text, err := chromedp.Run(t.ctx, chromedp.Evaluate[string](fmt.Sprintf("document.documentElement.outerHTML.slice(0, %d)", t.fetcher.config.MaxBody+1)))
		if err != nil {
			return "", err
		}
		after, err := t.currentDocument()
		if err != nil {
			return "", err
		}
		if before == after {
			return text, nil
		}
	}
	return "", &pipeline.FetchError{Class: pipeline.FailRedirect, Reason: fmt.Sprintf("the page led elsewhere each time it was read, %d times", maxReads)}
}

// currentDocument returns the ID of the document that the page has now, or why that is an error page.
func (t *tab) currentDocument() (cdp.LoaderID, error) {
	tree, err := chromedp.Call(t.ctx, cdppage.GetFrameTree, cdp.Empty{})
	if err != nil {
		return "", err
	}
	f := tree.FrameTree.Frame
	t.mu.Lock()
	answer, failed := t.response, t.failed
	if t.answered != f.LoaderID {
		answer = nil
	}
	t.mu.Unlock()
	if f.UnreachableURL != "" || strings.HasPrefix(f.URL, "chrome-error:") {
		t.waitingFor = "a page that this one has led to"
		return "", errors.New(cmp.Or(failed, "it cannot be reached"))
	}
	if answer != nil {
		if err := statusError(answer); err != nil {
			return "", err
		}
	}
	return f.LoaderID, nil
}

// statusError returns the error for a page whose status is not a success, or nil.
func statusError(resp *network.Response) error {
	status := int(resp.Status)
	switch {
	case status == http.StatusTooManyRequests:
		e := &pipeline.FetchError{Class: pipeline.FailBusy, Status: status, Reason: "HTTP status 429 Too Many Requests"}
		for name, value := range resp.Headers {
			if strings.EqualFold(name, "Retry-After") {
				e.RetryAfter, _ = outbound.RetryAfter(fmt.Sprint(value), time.Now())
			}
		}
		return e
	case status < 200 || status > 299:
		return &pipeline.FetchError{Class: pipeline.FailStatus, Status: status, Reason: strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", status, http.StatusText(status)))}
	}
	return nil
}

// prepare makes the tab listen, and forbids what a watched page does not need.
func (t *tab) prepare() error {
	own := chromedp.FromContext(t.ctx).Target.TargetID
	t.frame = cdp.FrameID(own) // a tab and its first frame have one ID
	if err := chromedp.Listen(t.ctx, t.handleEvent); err != nil {
		return err
	}
	err := chromedp.ListenBrowser(t.ctx, func(event any) {
		if e, ok := event.(*target.EventTargetCreated); ok && e.TargetInfo.Type == "page" && e.TargetInfo.TargetID != own {
			go func() {
				_, _ = chromedp.CallBrowser(t.ctx, target.CloseTarget, target.CloseTargetParams{TargetID: e.TargetInfo.TargetID})
			}()
		}
	})
	if err != nil {
		return err
	}
	// The browser asks for the password with the first request, that of the page, and keeps it.
	handle := true
	if _, err := chromedp.Call(t.ctx, fetch.Enable, fetch.EnableParams{
		Patterns: []*fetch.RequestPattern{{ResourceType: network.ResourceTypeDocument}}, HandleAuthRequests: &handle,
	}); err != nil {
		return err
	}
	_, err = chromedp.CallBrowser(t.ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{Behavior: cdpbrowser.SetDownloadBehaviorBehaviorDeny})
	if err != nil || t.fetcher.config.UserAgent == "" {
		return err
	}
	version, err := chromedp.CallBrowser(t.ctx, cdpbrowser.GetVersion, struct{}{})
	if err != nil {
		return err
	}
	_, err = chromedp.Call(t.ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: version.UserAgent + " " + t.fetcher.config.UserAgent})
	return err
}

// handleEvent handles an event of the tab. It must not wait.
func (t *tab) handleEvent(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		t.countRequest(e.RequestID, true)
		if e.RedirectResponse != nil && e.Type == network.ResourceTypeDocument && string(e.RequestID) == string(e.LoaderID) && t.request.Redirect != nil {
			go func() {
				if err := t.request.Redirect(t.ctx, e.Request.URL); err != nil {
					t.end(err)
				}
			}()
		}
	case *network.EventResponseReceived:
		if string(e.RequestID) == string(e.LoaderID) && e.FrameID == t.frame {
			t.mu.Lock()
			t.response, t.answered = e.Response, e.LoaderID
			t.mu.Unlock()
		}
	case *fetch.EventRequestPaused:
		go t.continueRequest(e)
	case *fetch.EventAuthRequired:
		go t.authenticate(e)
	case *network.EventLoadingFinished:
		t.countRequest(e.RequestID, false)
	case *network.EventLoadingFailed:
		t.countRequest(e.RequestID, false)
		if e.Type == network.ResourceTypeDocument && !e.Canceled {
			t.mu.Lock()
			t.failed = e.ErrorText
			t.mu.Unlock()
		}
	case *cdppage.EventJavascriptDialogOpening:
		go func() {
			_, _ = chromedp.Call(t.ctx, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{})
		}()
	}
}

// continueRequest lets the request of a document go on, after the proxy knows where the page itself goes.
func (t *tab) continueRequest(e *fetch.EventRequestPaused) {
	if u, err := url.Parse(e.Request.URL); err == nil && u.Host != "" && e.FrameID == t.frame {
		t.proxy.enter(t.ctx, u.Hostname())
	}
	_, _ = chromedp.Call(t.ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID}) // the request may be cancelled
}

// authenticate tells the browser the password of the proxy. A website gets none.
func (t *tab) authenticate(e *fetch.EventAuthRequired) {
	answer := fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseCancelAuth}
	if e.AuthChallenge.Source == fetch.AuthChallengeSourceProxy {
		answer = fetch.AuthChallengeResponse{Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: proxyUser, Password: t.proxy.password}
	}
	_, _ = chromedp.Call(t.ctx, fetch.ContinueWithAuth, fetch.ContinueWithAuthParams{RequestID: e.RequestID, AuthChallengeResponse: &answer})
}

// countRequest notes that a request began or ended.
func (t *tab) countRequest(id network.RequestID, begins bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !begins {
		delete(t.openRequests, id)
	} else if t.requestCount++; t.requestCount > maxConnections {
		t.end(&pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: "the page made more than 500 requests", Err: LimitRequests})
	} else {
		t.openRequests[id] = true
	}
	select {
	case t.requestsChanged <- struct{}{}:
	default:
	}
}

// waitUntilIdle waits until the page has had no open request for idleTime, and at most maxIdleWait.
func (t *tab) waitUntilIdle() {
	latest := time.NewTimer(maxIdleWait)
	defer latest.Stop()
	quiet := time.NewTimer(idleTime)
	defer quiet.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-latest.C:
			return
		case <-quiet.C:
			return
		case <-t.requestsChanged:
			t.mu.Lock()
			busy := len(t.openRequests) > 0
			t.mu.Unlock()
			if busy {
				quiet.Stop()
			} else {
				quiet.Reset(idleTime)
			}
		}
	}
}

// doStep does one step.
func (t *tab) doStep(s Step) error {
	switch {
	case s.WaitFor != "":
		return chromedp.Do(t.ctx, chromedp.WaitVisible(chromedp.CSS(s.WaitFor)))
	case s.Click != "":
		return chromedp.Do(t.ctx, chromedp.Click(chromedp.CSS(s.Click), chromedp.NodeVisible))
	case s.Fill != nil:
		return t.fill(s.Fill)
	}
	for range s.Scroll {
		if err := chromedp.Do(t.ctx, chromedp.Evaluate[chromedp.Void]("window.scrollBy(0, window.innerHeight)")); err != nil {
			return err
		}
		t.waitUntilIdle()
	}
	return nil
}

// failureReason returns the error that says why the page failed: a bound that it passed, the time, the
// network, or err.
func (t *tab) failureReason(ctx, bounded context.Context, err error) error {
	if cause := context.Cause(bounded); cause != nil && ctx.Err() == nil {
		return cause // of the proxy, of Redirect, or of the memory
	}
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return timeoutError(ctx, fmt.Sprintf("the browser waited too long for %s; browser.timeout is %v", t.waitingFor, t.fetcher.config.Timeout))
	}
	failed := t.proxy.connectionError()
	if refused, ok := errors.AsType[*outbound.AddressError](failed); ok {
		return &pipeline.FetchError{Class: pipeline.FailAddress, Reason: refused.Permit("fetch"), Err: refused}
	}
	if errors.Is(failed, errOutside) || errors.Is(failed, errMoved) {
		return &pipeline.FetchError{Class: pipeline.FailAddress, Reason: failed.Error(), Err: failed}
	}
	return &pipeline.FetchError{Class: classOf(err), Reason: "the browser failed at " + t.waitingFor + ": " + strings.TrimPrefix(err.Error(), "page load error "), Err: err}
}

// classOf returns the class of an error of Chromium's network. The names are those of
// net/base/net_error_list.h.
func classOf(err error) string {
	text := err.Error()
	for part, class := range map[string]string{
		"ERR_NAME_": pipeline.FailDNS, "ERR_CONNECTION_REFUSED": pipeline.FailRefused, "ERR_CERT_": pipeline.FailTLS, "ERR_SSL_": pipeline.FailTLS,
		"ERR_TOO_MANY_REDIRECTS": pipeline.FailRedirect, "ERR_TIMED_OUT": pipeline.FailTimeout,
	} {
		if strings.Contains(text, part) {
			return class
		}
	}
	return pipeline.FailNetwork
}

// limitMemory ends the page when its browser, whose first process is pid, uses too much memory.
func (t *tab) limitMemory(ctx context.Context, pid int) {
	every := time.NewTicker(memoryInterval)
	defer every.Stop()
	var last int64
	count := func(used int64) {
		t.fetcher.counts.update(func(s *Stats) { s.Memory += used - last })
		last = used
	}
	defer count(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			used := memoryOf(pid)
			count(used)
			if used > int64(t.fetcher.config.Memory) {
				t.end(&pipeline.FetchError{Class: pipeline.FailTooLarge, Reason: fmt.Sprintf("the page needs more than the %d MiB of memory of browser.memory", t.fetcher.config.Memory>>20), Err: LimitMemory})
				killGroup(pid)
				return
			}
		}
	}
}

// outputTail keeps the end of what is written to it.
type outputTail struct {
	mu   sync.Mutex
	text []byte
}

func (t *outputTail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - 4096; over > 0 {
		t.text = t.text[over:]
	}
	return len(b), nil
}

// String returns the last line that says something.
func (t *outputTail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return fmt.Sprintf("%.300s", strings.TrimSpace(lines[len(lines)-1]))
}
