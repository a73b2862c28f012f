package migrate

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sources/browser"
)

// addRestock adds the subscriptions of a watch of the processor restock_diff: one to the price and one to the
// availability of the offer that the page declares.
func (r *Result) addRestock(e Entry, w watch) error {
	settings := make(watch)
	w.decodeField("restock_settings", &settings)
	of := func(offer string) Entry {
		one := e
		s := &one.Subscription
		if len(s.Select)+len(s.Remove)+len(s.Ignore)+len(s.Keywords) > 0 {
			s.View, s.Keywords, s.MatchCase = pipeline.View{}, nil, false
		}
		s.Events = nil
		s.Value = &pipeline.Value{Offer: offer}
		return one
	}
	for _, field := range []string{"include_filters", "subtractive_selectors", "ignore_text", "trigger_text"} {
		if len(w.listField(field)) > 0 {
			r.addLost(e.Name, field, "the value is read from the offer that the page declares; for another value write value: {pattern: ...} and select")
		}
	}
	if mode := settings.stringField("in_stock_processing"); mode != "off" {
		stock := of(pipeline.OfferAvailability)
		if mode != "all_changes" {
			stock.Subscription.Becomes = "InStock"
		}
		if err := r.add(stock); err != nil {
			return err
		}
	}
	if !settings.boolField("follow_price_changes", true) {
		return nil
	}
	price := of(pipeline.OfferPrice)
	s := &price.Subscription
	// changedetection.io reports a price outside of its limits.
	s.Below, s.Above = pipeline.Amount(settings.numberText("price_change_min")), pipeline.Amount(settings.numberText("price_change_max"))
	if percent := settings.numberText("price_change_threshold_percent"); percent != "" {
		if s.Below+s.Above == "" {
			s.ChangesBy = pipeline.Amount(percent + "%")
		} else {
			r.addLost(e.Name, "price_change_threshold_percent", "the limits below and above decide; write changes_by: %s%% in a subscription of its own for smaller steps", shorten(percent))
		}
	}
	return r.add(price)
}

// numberText returns a field that is a number, or a text with one, as a text; "" if it is empty or 0.
func (w watch) numberText(name string) string {
	var n json.Number
	if !w.decodeField(name, &n) {
		return strings.TrimSpace(w.stringField(name))
	}
	if f, err := n.Float64(); err == nil && f == 0 {
		return ""
	}
	return n.String()
}

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
