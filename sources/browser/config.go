package browser

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"github.com/andybalholm/cascadia"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Mode says how a page is fetched.
type Mode string

// Modes.
const (
	// HTTP fetches the page with one request. It is the default.
	HTTP Mode = "http"
	// Rendered opens the page in the browser.
	Rendered Mode = "browser"
	// Auto fetches the page with one request, and opens it in the browser where the answer is HTML
	// with scripts and fewer than 50 words.
	Auto Mode = "auto"
)

// Bounds of a Page.
const (
	// MaxSteps is the largest number of steps of a page.
	MaxSteps = 20
	// maxScroll is the largest number of screens that one step scrolls.
	maxScroll = 50
)

// Page says how one page is fetched.
type Page struct {
	// Mode is HTTP if it is empty.
	Mode Mode
	// Steps are done in order after the page is loaded and before it is read. They need Mode
	// Rendered.
	Steps []Step
}

// Step is one step in the browser. Exactly one field is set.
type Step struct {
	// WaitFor is a CSS selector. The step waits until an element that matches is visible.
	WaitFor string `yaml:"wait_for"`
	// Click is a CSS selector. The step waits for the element, and clicks it.
	Click string `yaml:"click"`
	// Fill types a text into a field.
	Fill *Fill `yaml:"fill"`
	// Scroll is how many screens to scroll down, 1 to 50.
	Scroll int `yaml:"scroll"`
}

// Fill says what is typed where.
type Fill struct {
	// Select is the CSS selector of the field.
	Select string `yaml:"select"`
	// Value is the text. Logs and errors do not show it.
	Value registry.Secret `yaml:"value"`
}

// String returns what the step does, without the value of a field.
func (s Step) String() string {
	switch {
	case s.WaitFor != "":
		return "wait_for " + s.WaitFor
	case s.Click != "":
		return "click " + s.Click
	case s.Fill != nil:
		return "fill " + s.Fill.Select
	}
	return fmt.Sprintf("scroll %d", s.Scroll)
}

// Config configures a Fetcher. The zero Config is right for pages on the public internet, where
// Debian's package chromium, or Chrome, is installed.
type Config struct {
	// Path is the program of Chromium or Chrome. Default: the first of chromium, chromium-browser,
	// google-chrome and google-chrome-stable in PATH.
	Path string `yaml:"path"`
	// Tabs is how many pages are open at once, 1 to 64. Each has a process of its own. Default 2.
	Tabs int `yaml:"tabs"`
	// Memory is how much memory the browser may use for one page, in bytes. A page that needs more
	// fails. It is measured on Linux only. Default 1 GiB.
	Memory registry.Size `yaml:"memory"`
	// Timeout is how long a page may take, with its steps, within the timeout of the fetch. Default
	// 25 s.
	Timeout time.Duration `yaml:"timeout"`
	// NoSandbox switches off Chromium's sandbox, which does not work for the user root, nor in many
	// containers. A page that breaks out of the renderer has the rights of this process then.
	NoSandbox bool `yaml:"no_sandbox"`
	// Screenshots stores a picture of the page with each version that a page from the browser makes.
	Screenshots bool `yaml:"screenshots"`
	// Pages says by URL how pages are fetched. Pages that are not in it are fetched with one request.
	Pages map[string]Page
	// Allow lists networks that the browser may connect to besides public addresses.
	Allow []netip.Prefix
	// UserAgent is appended to the browser's own. Default: nothing is.
	UserAgent string
	// MaxBody is the size of the largest page, in bytes. 0 means 10 MiB.
	MaxBody int64
}

// Check returns all that is wrong with c as joined *pipeline.FieldErrors, or nil. It does not look at
// Pages.
func (c Config) Check() error {
	var bad outbound.Mistakes
	if c.Tabs < 0 || c.Tabs > 64 {
		bad.Addf("tabs", "%d is not between 1 and 64", c.Tabs)
	}
	if c.Memory != 0 && c.Memory < 64<<20 {
		bad.Addf("memory", "a browser needs at least 64MiB")
	}
	if c.Timeout < 0 || c.Timeout > 0 && c.Timeout < time.Second {
		bad.Addf("timeout", "%v is less than 1s", c.Timeout)
	}
	return bad.Err()
}

// Check returns all that is wrong with p as joined *pipeline.FieldErrors, or nil. Their fields begin
// with fetch or steps.
func (p Page) Check() error {
	var bad outbound.Mistakes
	switch p.Mode {
	case "", HTTP, Rendered, Auto:
	default:
		bad.Addf("fetch", "%.40q is not known; write http, browser or auto", string(p.Mode))
	}
	if len(p.Steps) > 0 && p.Mode != Rendered {
		bad.Addf("steps", "they need the browser; add fetch: browser")
	}
	if len(p.Steps) > MaxSteps {
		bad.Addf("steps", "%d are too many; write at most %d", len(p.Steps), MaxSteps)
	}
	for i, s := range p.Steps {
		s.check(fmt.Sprintf("steps[%d]", i), &bad)
	}
	return bad.Err()
}

// check adds what is wrong with s, the field at, to bad.
func (s Step) check(at string, bad *outbound.Mistakes) {
	kinds := 0
	for _, set := range []bool{s.WaitFor != "", s.Click != "", s.Fill != nil, s.Scroll != 0} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		bad.Addf(at, "it has %d of wait_for, click, fill and scroll; write exactly one", kinds)
		return
	}
	css := func(field, selector string) {
		if _, err := cascadia.ParseGroup(selector); err != nil {
			bad.Addf(at+"."+field, "%q is not a CSS selector: %v", selector, err)
		}
	}
	switch {
	case s.WaitFor != "":
		css("wait_for", s.WaitFor)
	case s.Click != "":
		css("click", s.Click)
	case s.Fill != nil:
		if s.Fill.Select == "" {
			bad.Addf(at+".fill", "it has no select; add the CSS selector of the field")
			return
		}
		css("fill.select", s.Fill.Select)
	case s.Scroll < 0 || s.Scroll > maxScroll:
		bad.Addf(at+".scroll", "%d is not between 1 and %d screens", s.Scroll, maxScroll)
	}
}

// programNames are the programs that Find looks for.
var programNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// errNoBrowser says how to get a browser.
var errNoBrowser = errors.New("no Chromium or Chrome is installed; install one (Debian: apt install chromium), or name its program in browser.path")

// Find returns the program of the browser that c uses, or an error that says what to install.
func (c Config) Find() (string, error) {
	if c.Path != "" {
		path, err := exec.LookPath(c.Path)
		if err != nil {
			return "", &pipeline.FieldError{Field: "path", Reason: err.Error()}
		}
		return path, nil
	}
	for _, name := range programNames {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// errSandboxAsRoot says why the sandbox cannot work.
var errSandboxAsRoot = errors.New("the sandbox of Chromium does not work for the user root; run as another user, or switch it off with no_sandbox if the pages are trusted")

// Ready returns why no page can be opened: the browser is missing, or it cannot run as this user.
func (c Config) Ready() error {
	_, err := c.readyPath()
	return err
}

// readyPath returns the program of the browser.
func (c Config) readyPath() (path string, err error) {
	if path, err = c.Find(); err != nil {
		return "", err
	}
	if !c.NoSandbox && os.Geteuid() == 0 {
		return "", errSandboxAsRoot
	}
	return path, nil
}

// NeedsBrowser reports whether the browser may be needed for p.
func (p Page) NeedsBrowser() bool { return p.Mode == Rendered || p.Mode == Auto }
