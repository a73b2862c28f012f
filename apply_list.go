package vokter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/stages/index"
)

// SubscriptionList is a list of subscriptions for ApplyList.
type SubscriptionList struct {
	// Origin names the list: at most 64 letters, digits, dots, hyphens and underscores.
	Origin string
	// Subscriptions are all that the list has.
	Subscriptions []pipeline.Subscription
	// Refused are subscriptions that the caller refuses, by their index, with the reasons.
	Refused map[int]error
	// Clients restricts the list to subscriptions of these clients: those of others are refused, or stay. Nil means all
	// clients.
	Clients []string
	// DryRun changes nothing; the report says what would change.
	DryRun bool
}

// originName is the pattern of SubscriptionList.Origin.
var originName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Apply sets the list called origin to subscriptions. It adds those that are new, changes those that differ, and cancels
// those that an earlier call gave and this one does not; an empty list cancels all. Everything else stays: what Subscribe made,
// the Config, and other lists. One that changes keeps its baseline, as in Change, and a paused one stays paused.
//
// A subscription that is invalid, that is given twice, or whose document the client watches by a subscription from
// elsewhere, is refused alone: the report says why, and of its client no subscription of the list to its page is
// cancelled. The subscriptions of a page change together. A call that fails can have changed some pages; the same call
// again makes the rest.
//
// Apply is much faster than one call of Subscribe for each subscription. It waits as Subscribe does, for at most 5 seconds
// in which no page is decided, and fails like Subscribe. Where processes share the pages it returns a *flow.Refusal, unless
// this one owns all lanes: it does not know which subscriptions of the list the others have.
func (r *Router) Apply(ctx context.Context, origin string, subscriptions []pipeline.Subscription) (flow.ApplyReport, error) {
	return r.ApplyList(ctx, SubscriptionList{Origin: origin, Subscriptions: subscriptions})
}

// ApplyList is Apply with further settings.
func (r *Router) ApplyList(ctx context.Context, l SubscriptionList) (flow.ApplyReport, error) {
	if !originName.MatchString(l.Origin) {
		return flow.ApplyReport{}, &pipeline.FieldError{Field: "origin", Reason: fmt.Sprintf("%q is no name of a list; give at most 64 letters, digits, dots, hyphens and underscores, and a letter or digit first", l.Origin)}
	}
	if err := r.waitForCommands(ctx); err != nil {
		return flow.ApplyReport{}, err
	}
	if err := r.checkLanes(); err != nil {
		return flow.ApplyReport{}, err
	}
	r.lists.Lock()
	defer r.lists.Unlock()
	a := &listApplication{
		Router: r, SubscriptionList: l, origin: flow.ListOrigin(l.Origin), entries: make([]flow.Applied, len(l.Subscriptions)),
		places: make(map[[2]string]int), pages: make(map[[2]string]*pageEntries),
	}
	a.settled = r.lists.settled[a.origin] && r.transport.Gained() == nil
	if !l.DryRun {
		delete(r.lists.settled, a.origin)
	}
	if err := a.sort(); err != nil {
		return flow.ApplyReport{}, err
	}
	if err := a.send(ctx); err != nil {
		return flow.ApplyReport{}, err
	}
	if !l.DryRun {
		r.lists.settled[a.origin] = true
	}
	return a.report(), nil
}

// checkLanes returns an error where this process does not know the state of all pages.
func (r *Router) checkLanes() error {
	var all, known float64
	for _, g := range r.transport.Gauges() {
		switch g.Name {
		case flow.GaugeLanes:
			all = g.Value
		case flow.GaugeLanesOwned:
			known += g.Value
		case flow.GaugeLanesRestoring:
			known -= g.Value
		}
	}
	if known == all {
		return nil
	}
	return &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("this process knows the pages of %.0f of %.0f lanes, and a list needs all: "+
		"other processes have the rest, or it is still being restored; apply the list while one process runs, or put the subscriptions into the configuration of all", known, all)}
}

// lists has lists of subscriptions applied one after another.
type lists struct {
	sync.Mutex
	// settled are the origins whose last list this process applied to the end. Commands of
	// the others may be under way, and the state of a page can still change.
	settled map[string]bool
}

// listApplication is one call of ApplyList.
type listApplication struct {
	*Router
	SubscriptionList
	origin  string
	settled bool
	// entries are what became of each of Subscriptions, and removed of those that the list does not have.
	entries, removed []flow.Applied
	// places are the indexes of subscriptions by document and client.
	places map[[2]string]int
	// pages are what the list has of a page, by page and, where Clients are set, client; order are their keys.
	pages map[[2]string]*pageEntries
	order [][2]string
}

// pageEntries are the entries of a list about one page, as a command and by their indexes.
type pageEntries struct {
	command flow.ApplyCommand
	indexes []int
	done    bool // no command is needed any more
}

// at returns the entries for page and client.
func (a *listApplication) at(page, client string) *pageEntries {
	key := [2]string{page, ""}
	if a.Clients != nil {
		key[1] = client
	}
	p := a.pages[key]
	if p == nil {
		p = &pageEntries{command: flow.ApplyCommand{URL: page, Origin: a.origin, Client: key[1], DryRun: a.DryRun, Reply: a.transport.Gained() != nil}}
		a.pages[key] = p
		a.order = append(a.order, key)
	}
	return p
}

// sort groups the list by page and refuses what is invalid.
func (a *listApplication) sort() error {
	for i, s := range a.Subscriptions {
		s = s.WithDefaults()
		page, err := pageurl.Canonical(s.URL)
		e := flow.Applied{Entry: i + 1, URL: pageurl.Redacted(s.URL), Client: s.Client}
		if err == nil {
			e.Document = flow.DocumentID(page, s.View)
		}
		key := [2]string{e.Document, s.Client}
		first, twice := a.places[key]
		foreign := a.Clients != nil && !slices.Contains(a.Clients, s.Client)
		why := a.Refused[i]
		switch {
		case why != nil:
		case foreign:
			why = fmt.Errorf("client: %q is none of the clients that this list is for", s.Client)
		case twice:
			why = fmt.Errorf("client %q already watches this document by subscription %d of the list", s.Client, first+1)
		default:
			why = a.checkSubscription(s)
		}
		if why != nil {
			e.Outcome, e.Reason = flow.AppliedRefused, why.Error()
		}
		a.entries[i] = e
		if err != nil || twice || foreign {
			continue
		}
		p := a.at(page, s.Client)
		if why != nil {
			p.command.Spared = append(p.command.Spared, s.Client)
			continue
		}
		a.places[key] = i
		p.indexes = append(p.indexes, i)
		p.command.Subscriptions = append(p.command.Subscriptions, s)
	}
	if a.Clients != nil {
		return nil
	}
	for _, p := range a.pages {
		b, err := json.Marshal(p.command.Subscriptions)
		if err != nil {
			return fmt.Errorf("encoding the subscriptions to %s: %w", pageurl.Redacted(p.command.URL), err)
		}
		p.command.Digest = xxhash.Sum64(b)
	}
	return nil
}

// send looks at the pages that have subscriptions of the list, publishes commands to those of which the list has something
// else or nothing, and to its other pages, and notes what became of them.
func (a *listApplication) send(ctx context.Context) error {
	b := a.newBatch(a.note)
	defer b.close()
	for page, st := range a.transport.States(flow.GroupIndex, "") {
		if err := a.look(page, st); err != nil {
			return fmt.Errorf("reading page %s: %w", page, err)
		}
	}
	for _, key := range a.order {
		if p := a.pages[key]; !p.done {
			if err := b.add(ctx, key[0], flow.TypeApply, p.command); err != nil {
				return err
			}
		}
	}
	return b.finish(ctx)
}

// look notes which command page needs if it has subscriptions of the list. st is the state of the page.
func (a *listApplication) look(page string, st flow.State) error {
	origins, err := index.Origins(st)
	digest, ok := origins[a.origin]
	if err != nil || !ok {
		return err
	}
	if a.Clients == nil {
		p := a.at(page, "")
		if p.done = a.settled && digest != 0 && p.command.Digest == digest && len(p.command.Spared) == 0; p.done {
			for _, i := range p.indexes {
				a.entries[i].Outcome = flow.AppliedUnchanged
			}
		}
		return nil
	}
	clients, err := index.ClientsOf(st, a.origin)
	for _, client := range clients {
		if slices.Contains(a.Clients, client) {
			a.at(page, client) // its subscriptions end where the list has none of it
		}
	}
	return err
}

// note notes the decision about a command to page.
func (a *listApplication) note(page string, d flow.Decision) error {
	if err := d.Err(); err != nil {
		return fmt.Errorf("%s: %w", page, err) // cannot happen: the subscriptions were checked
	}
	for _, of := range d.Applied {
		if i, ok := a.places[[2]string{of.Document, of.Client}]; ok {
			a.entries[i].Outcome, a.entries[i].Reason = of.Outcome, of.Reason
			continue
		}
		of.URL = page
		a.removed = append(a.removed, of)
	}
	return nil
}

// report returns what became of all subscriptions.
func (a *listApplication) report() flow.ApplyReport {
	slices.SortFunc(a.removed, func(x, y flow.Applied) int {
		return cmp.Or(cmp.Compare(x.URL, y.URL), cmp.Compare(x.Client, y.Client), cmp.Compare(x.Document, y.Document))
	})
	r := flow.ApplyReport{Subscriptions: make([]flow.Applied, 0, len(a.entries)+len(a.removed))}
	for _, of := range append(a.entries, a.removed...) {
		r.Add(of)
	}
	return r
}
