package manage

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

const (
	// recountInterval is for how long the subscriptions of a token are not counted again.
	recountInterval = time.Minute
	// recountPause is the least time between two counts: a count reads all pages.
	recountPause = time.Second
)

// slots bounds what a token does at once. Nil means no bound.
type slots chan struct{}

func newSlots(n int) slots {
	if n <= 0 {
		return nil
	}
	return make(slots, n)
}

// acquire takes a slot, which release gives back. It returns false if there is none.
func (s slots) acquire() bool {
	if s == nil {
		return true
	}
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) release() {
	if s != nil {
		<-s
	}
}

// tooManyAtOnce returns the problem of who, who does n things of a kind already. what names them, and setting the
// setting that bounds them.
func tooManyAtOnce(who *caller, n int, what, setting string) error {
	return huma.ErrorWithHeaders(&huma.ErrorModel{
		Title: http.StatusText(http.StatusTooManyRequests), Status: http.StatusTooManyRequests,
		Detail: fmt.Sprintf("the token %q may have %d %s at once, and has them; end one, or ask the operator to raise quota.%s of the token", who.Name, n, what, setting),
	}, http.Header{"Retry-After": {"5"}})
}

// usage is what the subscriptions of a token's clients take. Its slot is held while one is added.
type usage struct {
	slot    chan struct{}
	counted time.Time
	claims  []claim
}

// claim is what one subscription takes.
type claim struct {
	client, document, page, host string
	// origin is that of a subscription that was counted.
	origin string
	// linked is how many pages it may watch besides its own.
	linked int
}

func newClaim(s pipeline.Subscription) claim {
	page, err := pageurl.Canonical(s.URL)
	if err != nil {
		page = s.URL // it is refused later
	}
	c := claim{client: s.Client, document: flow.DocumentOf(page, s), page: page, host: page}
	if u, err := url.Parse(page); err == nil {
		c.host = u.Host
	}
	if f := s.Follow; f != nil {
		c.linked = f.WithDefaults().MaxPages
	}
	if s.Sitemap {
		c.linked = pipeline.DefaultSitemapPages
		if s.Follow != nil {
			c.linked = cmp.Or(s.Follow.MaxPages, c.linked)
		}
	}
	return c
}

// totals counts what claims take.
type totals struct {
	subscriptions, linked int
	pages, hosts          map[string]int
}

func newTotals(claims []claim) totals {
	t := totals{pages: make(map[string]int), hosts: make(map[string]int)}
	for _, c := range claims {
		t.add(c, 1)
	}
	return t
}

// add adds n (1 or -1) of c.
func (t *totals) add(c claim, n int) {
	t.subscriptions, t.linked = t.subscriptions+n, t.linked+n*c.linked
	if t.pages[c.page] += n; t.pages[c.page] == 0 {
		delete(t.pages, c.page)
	}
	if t.hosts[c.host] += n; t.hosts[c.host] == 0 {
		delete(t.hosts, c.host)
	}
}

// figures are how many subscriptions, pages and hosts claims take.
type figures struct{ subscriptions, pages, hosts int }

func (t *totals) figures() figures {
	return figures{t.subscriptions, t.linked + len(t.pages), len(t.hosts)}
}

// hasSubscriptionQuota reports whether the subscriptions of who are bounded.
func (who *caller) hasSubscriptionQuota() bool {
	q := who.Quota
	return q.Subscriptions > 0 || q.Pages > 0 || q.Hosts > 0
}

// begin waits for the slot of u, which done gives back.
func (u *usage) begin(ctx context.Context) (done func(), err error) {
	select {
	case u.slot <- struct{}{}:
		return func() { <-u.slot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// subscribeWithin calls subscribe, which adds s for who in place of the subscription of s.Client to the document
// replaced, if there is one. It returns a problem instead where s would pass the quota of the token.
func (a *api) subscribeWithin(ctx context.Context, who *caller, s pipeline.Subscription, replaced string, subscribe func() error) error {
	if !who.hasSubscriptionQuota() {
		return subscribe()
	}
	u := &who.usage
	done, err := u.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	c := newClaim(s)
	var next []claim
	add := func() error {
		next = slices.DeleteFunc(slices.Clone(u.claims), func(x claim) bool {
			return x.client == c.client && (x.document == c.document || x.document == replaced)
		})
		has := len(next) < len(u.claims) && replaced == ""
		if next = append(next, c); has {
			return nil // the pipeline answers it
		}
		before, after := newTotals(u.claims), newTotals(next)
		return checkQuota(who, s, before.figures(), after.figures())
	}
	if time.Since(u.counted) > recountInterval {
		if err := a.count(ctx, who); err != nil {
			return err
		}
	}
	err = add()
	if err != nil && time.Since(u.counted) > recountPause { // some may be cancelled by now
		if err := a.count(ctx, who); err != nil {
			return err
		}
		err = add()
	}
	if err != nil {
		return err
	}
	if err := subscribe(); err != nil {
		return err
	}
	u.claims = next
	return nil
}

// count counts the subscriptions of the clients of who.
func (a *api) count(ctx context.Context, who *caller) error {
	var claims []claim
	f := inspect.ListFilter{Clients: who.Clients, Limit: 1000}
	for {
		pages, next, err := a.service.Pages(ctx, f)
		if err != nil {
			return err
		}
		for _, p := range pages {
			for _, s := range p.Subscriptions {
				if s.FollowedFrom == "" {
					c := newClaim(s.Subscription)
					c.origin = s.Origin
					claims = append(claims, c)
				}
			}
		}
		if f.After = next; next == "" {
			break
		}
	}
	who.usage.claims, who.usage.counted = claims, time.Now()
	return nil
}

// checkQuota returns a problem where what is taken after s was added passes the quota of who. before is what was taken.
func checkQuota(who *caller, s pipeline.Subscription, before, after figures) error {
	q := who.Quota
	refused := func(format string, args ...any) error {
		return &huma.ErrorModel{
			Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden,
			Detail: fmt.Sprintf("the token %q "+format, append([]any{who.Name}, args...)...) + " of the token",
		}
	}
	switch {
	case q.Subscriptions > 0 && after.subscriptions > q.Subscriptions && after.subscriptions > before.subscriptions:
		return refused("may have %d subscriptions, and has %d; cancel one, or ask the operator to raise quota.subscriptions", q.Subscriptions, before.subscriptions)
	case q.Pages > 0 && after.pages > q.Pages && after.pages > before.pages:
		linked := ""
		if after.pages > after.subscriptions {
			linked = ", since linked pages count with follow.max_pages"
		}
		return refused("may watch %d pages, has %d, and would have %d%s; cancel a subscription, or ask the operator to raise quota.pages", q.Pages, before.pages, after.pages, linked)
	case q.Hosts > 0 && after.hosts > q.Hosts && after.hosts > before.hosts:
		return refused("may watch pages of %d hosts, and has %d; cancel a subscription, or ask the operator to raise quota.hosts", q.Hosts, before.hosts)
	case q.Hosts > 0 && s.Follow != nil && s.Follow.SameHost != nil && !*s.Follow.SameHost:
		return refused("may watch pages of %d hosts, and links would lead to any; leave out same_host: false, or ask the operator to remove quota.hosts", q.Hosts)
	}
	return nil
}
