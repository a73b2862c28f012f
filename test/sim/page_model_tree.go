package sim

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// followTree is what must be watched because of one subscription with follow.
type followTree struct {
	id, root string
	span     *subscriptionSpan // the subscription
	pages    map[string]*treePage
	bounded  bool
	// begunCount is how many pages began since the time begunSince.
	begunCount int
	begunSince time.Time
}

// treePage is the root of a followTree, or a page in it.
type treePage struct {
	depth int
	links []string // as they were reported last
}

// Rules of the documentation about pages that are linked.
const (
	followWindow = 24 * time.Hour
	maxTurnover  = 3 // times max_pages pages may begin within a day
)

// rules returns the follow of h with the documented defaults.
func (h *followTree) rules() pipeline.Follow {
	f := *h.span.sub.Follow
	f.Depth = cmp.Or(f.Depth, 1)
	f.MaxPages = cmp.Or(f.MaxPages, 100)
	return f
}

// permitsURL reports whether a link to url may be followed.
func (h *followTree) permitsURL(url string) bool {
	f := h.rules()
	if f.SameHost == nil || *f.SameHost {
		if hostOf(url) != hostOf(h.root) {
			return false
		}
	}
	matches := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(url) }
	return (len(f.Include) == 0 || slices.ContainsFunc(f.Include, matches)) && !slices.ContainsFunc(f.Exclude, matches)
}

// reachablePages returns the pages that paths of links lead to, in the order in which they take precedence,
// and how many links each is away.
func (h *followTree) reachablePages(links func(url string) []string) ([]string, map[string]int) {
	depths := map[string]int{h.root: 0}
	order := []string{h.root}
	level := order
	for d := 1; d <= h.rules().Depth; d++ {
		var next []string
		for _, from := range level {
			for _, to := range links(from) {
				if _, known := depths[to]; !known && h.permitsURL(to) {
					depths[to] = d
					next = append(next, to)
				}
			}
		}
		order = append(order, next...)
		level = next
	}
	return order[1:], depths
}

// Commands that a root sends to a page.
const (
	endFollow    = "end"
	keepFollow   = "end, and deliver what waits"
	beginFollow  = "begin"
	expandFollow = "begin, and report links"
)

// beginCommand returns the command that makes url watched.
func (h *followTree) beginCommand(url string) string {
	if h.pages[url].depth < h.rules().Depth {
		return expandFollow
	}
	return beginFollow
}

// updatePages makes the pages of h those that must be watched now. With all, each of them is told so.
func (h *followTree) updatePages(now time.Time, all bool, d *expectedEffects) {
	order, depths := h.reachablePages(func(url string) []string {
		if p := h.pages[url]; p != nil {
			return p.links
		}
		return nil
	})
	for url, p := range h.pages {
		depth, reached := depths[url]
		switch {
		case !reached:
			delete(h.pages, url)
			d.expectFollow(h, url, endFollow)
		case url != h.root && (p.depth < h.rules().Depth) != (depth < h.rules().Depth):
			p.depth = depth
			d.expectFollow(h, url, h.beginCommand(url))
		default:
			p.depth = depth
		}
	}
	for _, url := range slices.Backward(order) {
		if h.pages[url] != nil && len(h.pages)-1 > h.rules().MaxPages {
			delete(h.pages, url)
			d.expectFollow(h, url, endFollow)
		}
	}
	if now.Before(h.begunSince) || now.Sub(h.begunSince) >= followWindow {
		h.begunSince, h.begunCount = now, 0
	}
	left := 0
	for _, url := range order {
		switch {
		case h.pages[url] != nil:
		case len(h.pages)-1 >= h.rules().MaxPages || h.begunCount >= maxTurnover*h.rules().MaxPages:
			left++
		default:
			h.begunCount++
			h.pages[url] = &treePage{depth: depths[url]}
			d.expectFollow(h, url, h.beginCommand(url))
		}
	}
	if all {
		for url := range h.pages {
			if url != h.root {
				d.expectFollow(h, url, h.beginCommand(url))
			}
		}
	}
	if left > 0 && !h.bounded {
		d.expectHealth(pipeline.HealthFollowBounded, "")
	}
	h.bounded = left > 0
}

// expectFollow says that the root of h must send a command to url.
func (d *expectedEffects) expectFollow(h *followTree, url, command string) {
	d.follows[h.id+" "+url] = command
}

// updateTrees begins, changes and ends the trees of the page as its subscriptions do.
func (t *pageModel) updateTrees(now time.Time, d *expectedEffects) {
	for _, pair := range slices.Sorted(maps.Keys(t.trees)) {
		h := t.trees[pair]
		if r := t.subscriptions[pair]; r != nil && r.sub.Follow != nil {
			continue
		}
		end := endFollow
		if t.expired[pair] != nil {
			end = keepFollow
		}
		for url := range h.pages {
			if url != h.root {
				d.expectFollow(h, url, end)
			}
		}
		delete(t.trees, pair)
	}
	for _, pair := range slices.Sorted(maps.Keys(t.subscriptions)) {
		r := t.subscriptions[pair]
		h := t.trees[pair]
		if r.sub.Follow == nil || h != nil && h.span == r {
			continue
		}
		if h == nil {
			h = &followTree{id: flow.FollowID(t.url, r.life.id, r.sub.Client), root: t.url, pages: map[string]*treePage{t.url: {}}, span: r}
			t.trees[pair] = h
			t.world.stats.FollowTrees++
		}
		h.span = r
		h.updatePages(now, true, d)
	}
}

// applyLinks applies the links that a page reports to the trees that it is in.
func (t *pageModel) applyLinks(e indexEntry, d *expectedEffects) error {
	found, err := flow.LinksFoundFrom(e.message)
	if err != nil {
		return err
	}
	for _, pair := range slices.Sorted(maps.Keys(t.trees)) {
		h := t.trees[pair]
		if p := h.pages[found.Page]; p != nil {
			p.links = found.URLs
			h.updatePages(e.now, false, d)
		}
	}
	return nil
}

// applyFollow carries out the command of a root.
func (t *pageModel) applyFollow(c flow.FollowCommand, position string, d *expectedEffects) {
	pair := t.pairNameIn(c.Subscription, &c.Followed)
	if c.End {
		pair = t.pairNameOfTree(c.ID)
	}
	r, x := t.subscriptions[pair], t.expired[pair]
	switch {
	case c.End:
		if r != nil {
			t.stopSpan(pair).cancelled = !c.Kept
		}
		for _, ended := range []*subscriptionSpan{r, x} {
			if ended != nil && !c.Kept {
				ended.expectWithdrawn(d, nil)
			}
		}
		delete(t.expired, pair)
		t.dropUnwatched()
	case r == nil && x != nil && equalSubscriptions(x.sub, c.Subscription):
		x.followed = &c.Followed // what expired stays so until it is changed or resumed
	case r != nil:
		t.predecessor = t.stopSpan(pair)
		t.addSpan(c.Subscription, flow.OriginFollow, r.incarnation, position, &c.Followed)
		t.dropUnwatched()
	default:
		t.world.stats.LinkedPages++
		t.addSpan(c.Subscription, flow.OriginFollow, position, position, &c.Followed)
	}
}

// pairNameOfTree names the subscription that is part of the tree id, if there is one.
func (t *pageModel) pairNameOfTree(id string) string {
	for _, all := range []map[string]*subscriptionSpan{t.subscriptions, t.expired} {
		for pair, r := range all {
			if r.followed != nil && r.followed.ID == id {
				return pair
			}
		}
	}
	return ""
}

// isFollowApplied reports whether what c asks for is so already.
func (t *pageModel) isFollowApplied(c flow.FollowCommand) bool {
	if c.End {
		return t.pairNameOfTree(c.ID) == ""
	}
	pair := t.pairNameIn(c.Subscription, &c.Followed)
	r, x := t.subscriptions[pair], t.expired[pair]
	return r != nil && equalSubscriptions(r.sub, c.Subscription) && *r.followed == c.Followed ||
		r == nil && x != nil && equalSubscriptions(x.sub, c.Subscription) && *x.followed == c.Followed
}

// hidesFailures reports whether nobody is told of failures of the page: it is only linked to, and was never read.
func (t *pageModel) hidesFailures() bool {
	for _, r := range t.subscriptions {
		if r.followed == nil {
			return false
		}
	}
	for _, l := range slices.AppendSeq(slices.Collect(maps.Values(t.documents)), maps.Values(t.resting)) {
		if len(l.versions) > 0 {
			return false
		}
	}
	return len(t.keep) == 0 && len(t.subscriptions) > 0
}

// wantsLinks reports whether a tree wants the links of the page; with keep, whether it may later.
func (t *pageModel) wantsLinks(keep bool) bool {
	for _, r := range t.subscriptions {
		switch {
		case r.followed == nil && r.sub.Follow != nil, r.followed != nil && (keep || r.followed.Links):
			return true
		}
	}
	return false
}

// verifyTrees checks that each tree ends with the pages that links lead to, and that no other page is
// watched because of it.
func (w *world) verifyTrees(truths []*pageModel) error {
	pages := make(map[string]*pageModel)
	trees := make(map[string]*followTree)
	for _, t := range truths {
		pages[t.url] = t
		for _, h := range t.trees {
			trees[h.id] = h
		}
	}
	for _, h := range trees {
		if err := w.verifyTree(h, pages); err != nil {
			return fmt.Errorf("%s, client %s, follow %s: %w", h.root, h.span.sub.Client, asJSON(h.span.sub.Follow), err)
		}
	}
	for _, t := range truths {
		for _, all := range []map[string]*subscriptionSpan{t.subscriptions, t.expired} {
			for _, r := range all {
				if r.followed == nil {
					continue
				}
				if h := trees[r.followed.ID]; h == nil || h.pages[t.url] == nil {
					return fmt.Errorf("%s is watched for client %s because of %s, which does not lead to it", t.url, r.sub.Client, r.followed.Root)
				}
			}
		}
	}
	return nil
}

func (w *world) verifyTree(h *followTree, pages map[string]*pageModel) error {
	order, depths := h.reachablePages(func(url string) []string {
		t := pages[url]
		r := t.subscriptions[t.pairNameOfTree(h.id)]
		if url == h.root || r != nil && r.followed.Links {
			return w.siteByURL(url).current.links
		}
		if p := h.pages[url]; p != nil && r == nil {
			return p.links // it expired: its links are as they were
		}
		return nil
	})
	for url := range h.pages {
		if _, reached := depths[url]; !reached {
			return fmt.Errorf("%s is watched, but no path leads to it", url)
		}
		if url != h.root && pages[url].pairNameOfTree(h.id) == "" {
			return fmt.Errorf("%s should be watched, and is not", url)
		}
	}
	n, most := len(h.pages)-1, h.rules().MaxPages
	switch {
	case n > most:
		return fmt.Errorf("%d pages are watched, at most %d may be", n, most)
	case n == len(order), n == most, h.begunCount >= maxTurnover*most:
	default:
		return fmt.Errorf("%d pages are watched, want %d: %v", n, min(len(order), most), order)
	}
	w.stats.LinkedPagesAtEnd += n
	return nil
}

// isRepeat reports whether r is part of a tree, and another notification of the change to v to the same
// client and sink says what says wants: r must not repeat it.
func (t *pageModel) isRepeat(r *subscriptionSpan, v version, sink string, all map[notificationKey]*publishedNotification, says func(*publishedNotification) bool) bool {
	for _, q := range t.spans {
		if q == r || r.followed == nil || q.life != r.life || q.sub.Client != r.sub.Client || v.n <= q.from || q.until < v.n {
			continue
		}
		if n := all[notificationKey{q.life.id, q.incarnation, q.sub.Client, sink, v.n}]; n != nil && says(n) {
			return true
		}
	}
	return false
}
