package migrate

import (
	"cmp"
	"strings"

	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sources/browser"
)

// readSteps reads the steps that are done in the browser before the page is read.
func (r *Result) readSteps(e *Entry, w watch) {
	var steps []struct {
		Operation string `json:"operation"`
		Selector  string `json:"selector"`
		Value     string `json:"optional_value"`
	}
	w.decodeField("browser_steps", &steps)
	for _, s := range steps {
		selector := strings.TrimSpace(s.Selector)
		isCSS := selector != "" && !strings.HasPrefix(selector, "/") && !strings.HasPrefix(selector, "xpath=")
		switch {
		case s.Operation == "" || s.Operation == "Choose one" || s.Operation == "Goto site":
			// The page is open before the first step.
		case s.Operation == "Wait for seconds":
			r.addLost(e.Name, "browser_steps", "the wait of %s seconds is left out; each step waits until the page has loaded, and wait_for waits for an element", shorten(cmp.Or(strings.TrimSpace(s.Value), "some")))
		case s.Operation == "Click element" && isCSS:
			e.Steps = append(e.Steps, browser.Step{Click: selector})
		case s.Operation == "Enter text in field" && isCSS:
			e.Steps = append(e.Steps, browser.Step{Fill: &browser.Fill{Select: selector, Value: registry.NewSecret(s.Value)}})
		case s.Operation == "Wait for text in element" && isCSS:
			e.Steps = append(e.Steps, browser.Step{WaitFor: selector})
		case s.Operation == "Scroll down":
			e.Steps = append(e.Steps, browser.Step{Scroll: 1})
		default:
			r.addLost(e.Name, "browser_steps", "the step %q is left out; steps are click, fill, wait_for with CSS selectors, and scroll: see docs/browser.md", shorten(strings.TrimSpace(s.Operation+" "+selector)))
		}
	}
	if len(e.Steps) > 0 {
		e.Browser = true
	}
}
