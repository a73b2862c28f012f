package web

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline/flow"
)

// entriesPerList is how many entries a list shows at once.
const entriesPerList = 50

// searchBudget is how long one list looks for pages that match. A link goes on behind the last one.
const searchBudget = 20 * time.Millisecond

// pagesView is the list of watched pages.
type pagesView struct {
	client.Pages
	Search, State, Client, Tag string
	States                     []string
	// First says that the list begins here.
	First bool
}

// Full reports whether the list has as many pages as it can.
func (v pagesView) Full() bool { return len(v.Pages.Pages) >= entriesPerList }

func showPages(r *request) (any, error) {
	v := pagesView{
		Search: strings.TrimSpace(r.form.Get("q")), State: r.form.Get("state"), Client: strings.TrimSpace(r.form.Get("client")), Tag: strings.TrimSpace(r.form.Get("tag")),
		States: []string{inspect.StateActive, inspect.StateFailing, inspect.StateDormant, inspect.StatePaused, inspect.StateExpired},
		First:  r.form.Get("cursor") == "",
	}
	f := inspect.ListFilter{Contains: v.Search, State: v.State, Client: v.Client, Tag: v.Tag, After: r.form.Get("cursor"), Limit: entriesPerList}
	for until := time.Now().Add(searchBudget); ; {
		part, err := r.api.Pages(r.Context(), f)
		if err != nil {
			return v, err
		}
		v.Next = part.Next
		v.Pages.Pages = append(v.Pages.Pages, part.Pages...)
		if f.After, f.Limit = v.Next, entriesPerList-len(v.Pages.Pages); v.Next == "" || f.Limit <= 0 || time.Now().After(until) {
			return v, nil
		}
	}
}

// pageView is one watched page with the timeline of one of its documents.
type pageView struct {
	inspect.Page
	// History has the versions of the document. It is nil where there is none, for the reason NoHistory.
	History   *inspect.History
	NoHistory string
	// Curve draws the values of History, if they are numbers or a few words.
	Curve *curve
}

func showPage(r *request) (any, error) {
	p, err := requestedPage(r)
	if err != nil {
		return nil, err
	}
	v := pageView{Page: p}
	document := r.form.Get("document")
	if document == "" && len(p.Documents) > 0 {
		first := max(0, slices.IndexFunc(p.Documents, func(d inspect.Document) bool { return d.View.Value != nil && !d.View.Value.Text() }))
		document = p.Documents[first].ID // one of numbers, if there is one
	}
	if document == "" {
		v.NoHistory = "No version is stored."
		return v, nil
	}
	h, err := r.api.Versions(r.Context(), p.URL, inspect.DocumentFilter{Document: document})
	if err != nil {
		v.NoHistory = sentence(err.Error())
		return v, nil
	}
	v.History, v.Curve = &h, drawCurve(h, p.Subscriptions, time.Now())
	return v, nil
}

// requestedPage returns the page that r names.
func requestedPage(r *request) (inspect.Page, error) {
	url := strings.TrimSpace(r.form.Get("url"))
	if url == "" {
		return inspect.Page{}, &redirect{to: "/"}
	}
	found, err := r.api.Pages(r.Context(), inspect.ListFilter{URL: url})
	if err != nil {
		return inspect.Page{}, err
	}
	if len(found.Pages) == 0 {
		return inspect.Page{}, &flow.Refusal{Code: flow.CodeNotFound, Message: url + " is not watched"}
	}
	return found.Pages[0], nil
}

// showWhy shows the last checks of a page and what became of its last changes.
func showWhy(r *request) (any, error) {
	return r.api.Explain(r.Context(), r.form.Get("url"), inspect.ExplainFilter{Client: r.form.Get("client")})
}

// gauge is a metric with its labels as text.
type gauge struct {
	Name, Labels, Help string
	Value              float64
}

// processView is the state of the process.
type processView struct {
	client.Process
	Gauges []gauge
	// Password reports whether there is a password to log in with.
	Password bool
}

func showProcess(r *request) (any, error) {
	p, err := r.api.Process(r.Context())
	v := processView{Process: p, Password: r.site.api.Logins().HasPassword()}
	if r.bearer.Clients() != nil {
		return v, err // the figures count for all clients, and name their sinks
	}
	for _, g := range r.site.gauges() {
		if g.Histogram != nil || g.Value == 0 && len(g.Labels) > 0 {
			continue // it is for graphs
		}
		var labels []string
		for name, value := range g.Labels {
			labels = append(labels, name+" "+value)
		}
		slices.Sort(labels)
		v.Gauges = append(v.Gauges, gauge{g.Name, strings.Join(labels, ", "), g.Help, g.Value})
	}
	slices.SortStableFunc(v.Gauges, func(a, b gauge) int { return cmp.Compare(a.Name+a.Labels, b.Name+b.Labels) })
	return v, err
}

// deliveriesView is a part of the list of notifications of all pages.
type deliveriesView struct {
	client.Deliveries
	Sink, State, Client string
	States              []string
	First               bool
}

func showDeliveries(r *request) (any, error) {
	v := deliveriesView{
		Sink: strings.TrimSpace(r.form.Get("sink")), State: r.form.Get("state"), Client: strings.TrimSpace(r.form.Get("client")),
		States: []string{inspect.DeliveryPending, inspect.DeliveryDigest, inspect.DeliveryDelivered, inspect.DeliveryDead, inspect.DeliveryDropped, inspect.DeliveryUnrouted},
		First:  r.form.Get("cursor") == "",
	}
	var err error
	v.Deliveries, err = r.api.Deliveries(r.Context(), "", inspect.RecentFilter{Client: v.Client, Sink: v.Sink, Delivery: v.State, After: r.form.Get("cursor"), Limit: entriesPerList, Partial: true})
	return v, err
}

// deadLettersView is a part of the list of dead letters.
type deadLettersView struct {
	client.DeadLetters
	Sink string
}

func showDeadLetters(r *request) (any, error) {
	v := deadLettersView{Sink: r.form.Get("sink")}
	var err error
	v.DeadLetters, err = r.api.DeadLettersPart(r.Context(), flow.DeadFilter{Sink: v.Sink, Messages: true}, r.form.Get("cursor"), entriesPerList)
	return v, err
}
