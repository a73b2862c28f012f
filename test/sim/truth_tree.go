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

// hierarchy is what must be watched because of one subscription with follow.
type hierarchy struct {
	id, root string
	of       *record // the subscription
	pages    map[string]*linked
	bounded  bool
	// begun is how many pages began since the time since.
	begun int
	since time.Time
}

// linked is the root of a hierarchy, or a page that it follows.
type linked struct {
	depth int
	links []string // as they were reported last
}

// Rules of the documentation about pages that are linked.
const (
	followDay   = 24 * time.Hour
	followTurns = 3 // times max_pages pages may begin within a day
)

// rules returns the follow of h with the documented defaults.
func (h *hierarchy) rules() pipeline.Follow {
	f := *h.of.sub.Follow
	f.Depth = cmp.Or(f.Depth, 1)
	f.MaxPages = cmp.Or(f.MaxPages, 100)
	return f
}

// permits reports whether a link to url may be followed.
func (h *hierarchy) permits(url string) bool {
	f := h.rules()
	if f.SameHost == nil || *f.SameHost {
		if hostOf(url) != hostOf(h.root) {
			return false
		}
	}
	matches := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(url) }
	return (len(f.Include) == 0 || slices.ContainsFunc(f.Include, matches)) && !slices.ContainsFunc(f.Exclude, matches)
}

// reach returns the pages that paths of links lead to, in the order in which they take precedence,
// and how many links each is away.
func (h *hierarchy) reach(links func(url string) []string) ([]string, map[string]int) {
	depths := map[string]int{h.root: 0}
	order := []string{h.root}
	level := order
	for d := 1; d <= h.rules().Depth; d++ {
		var next []string
		for _, from := range level {
			for _, to := range links(from) {
				if _, known := depths[to]; !known && h.permits(to) {
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

// command says which command makes url watched.
func (h *hierarchy) command(url string) string {
	if h.pages[url].depth < h.rules().Depth {
		return expandFollow
	}
	return beginFollow
}

// grow makes the pages of h those that must be watched now. With all, each of them is told so.
func (h *hierarchy) grow(now time.Time, all bool, d *deeds) {
	order, depths := h.reach(func(url string) []string {
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
			d.follow(h, url, endFollow)
		case url != h.root && (p.depth < h.rules().Depth) != (depth < h.rules().Depth):
			p.depth = depth
			d.follow(h, url, h.command(url))
		default:
			p.depth = depth
		}
	}
	for _, url := range slices.Backward(order) {
		if h.pages[url] != nil && len(h.pages)-1 > h.rules().MaxPages {
			delete(h.pages, url)
			d.follow(h, url, endFollow)
		}
	}
	if now.Before(h.since) || now.Sub(h.since) >= followDay {
		h.since, h.begun = now, 0
	}
	left := 0
	for _, url := range order {
		switch {
		case h.pages[url] != nil:
		case len(h.pages)-1 >= h.rules().MaxPages || h.begun >= followTurns*h.rules().MaxPages:
			left++
		default:
			h.begun++
			h.pages[url] = &linked{depth: depths[url]}
			d.follow(h, url, h.command(url))
		}
	}
	if all {
		for url := range h.pages {
			if url != h.root {
				d.follow(h, url, h.command(url))
			}
		}
	}
	if left > 0 && !h.bounded {
		d.tell(pipeline.HealthFollowBounded, "")
	}
	h.bounded = left > 0
}

// follow says that the root of h must send a command to url.
func (d *deeds) follow(h *hierarchy, url, command string) { d.follows[h.id+" "+url] = command }

// grows makes the trees of the page follow what became of its subscriptions.
func (t *truth) grows(now time.Time, d *deeds) {
	for _, pair := range slices.Sorted(maps.Keys(t.trees)) {
		h := t.trees[pair]
		if r := t.subs[pair]; r != nil && r.sub.Follow != nil {
			continue
		}
		end := endFollow
		if t.expired[pair] != nil {
			end = keepFollow
		}
		for url := range h.pages {
			if url != h.root {
				d.follow(h, url, end)
			}
		}
		delete(t.trees, pair)
	}
	for _, pair := range slices.Sorted(maps.Keys(t.subs)) {
		r := t.subs[pair]
		h := t.trees[pair]
		if r.sub.Follow == nil || h != nil && h.of == r {
			continue
		}
		if h == nil {
			h = &hierarchy{id: flow.FollowID(t.url, r.life.id, r.sub.Client), root: t.url, pages: map[string]*linked{t.url: {}}, of: r}
			t.trees[pair] = h
			t.w.stats.Trees++
		}
		h.of = r
		h.grow(now, true, d)
	}
}

// reported takes the links that a page reports to the trees that it is in.
func (t *truth) reported(e entry, d *deeds) error {
	found, err := flow.LinksFoundFrom(e.message)
	if err != nil {
		return err
	}
	for _, pair := range slices.Sorted(maps.Keys(t.trees)) {
		h := t.trees[pair]
		if p := h.pages[found.Page]; p != nil {
			p.links = found.URLs
			h.grow(e.now, false, d)
		}
	}
	return nil
}

// followed carries out the command of a root.
func (t *truth) followed(c flow.FollowCommand, position string, d *deeds) {
	pair := t.pairOf(c.Subscription, &c.Followed)
	if c.End {
		pair = t.pairIn(c.ID)
	}
	r, x := t.subs[pair], t.expired[pair]
	switch {
	case c.End:
		if r != nil {
			t.stop(pair).cancelled = !c.Kept
		}
		for _, ended := range []*record{r, x} {
			if ended != nil && !c.Kept {
				ended.withdraw(d, nil)
			}
		}
		delete(t.expired, pair)
		t.tidy()
	case r == nil && x != nil && equal(x.sub, c.Subscription):
		x.followed = &c.Followed // what expired stays so until it is changed or resumed
	case r != nil:
		t.stopped = t.stop(pair)
		t.add(c.Subscription, flow.OriginFollow, r.incarnation, position, &c.Followed)
		t.tidy()
	default:
		t.w.stats.Linked++
		t.add(c.Subscription, flow.OriginFollow, position, position, &c.Followed)
	}
}

// pairIn names the subscription that is part of the tree id, if there is one.
func (t *truth) pairIn(id string) string {
	for _, all := range []map[string]*record{t.subs, t.expired} {
		for pair, r := range all {
			if r.followed != nil && r.followed.ID == id {
				return pair
			}
		}
	}
	return ""
}

// follows reports whether what c wants is so already.
func (t *truth) follows(c flow.FollowCommand) bool {
	if c.End {
		return t.pairIn(c.ID) == ""
	}
	pair := t.pairOf(c.Subscription, &c.Followed)
	r, x := t.subs[pair], t.expired[pair]
	return r != nil && equal(r.sub, c.Subscription) && *r.followed == c.Followed ||
		r == nil && x != nil && equal(x.sub, c.Subscription) && *x.followed == c.Followed
}

// silent reports whether failures of the page are no news: it is only linked to, and was never read.
func (t *truth) silent() bool {
	for _, r := range t.subs {
		if r.followed == nil {
			return false
		}
	}
	for _, l := range slices.AppendSeq(slices.Collect(maps.Values(t.docs)), maps.Values(t.resting)) {
		if len(l.versions) > 0 {
			return false
		}
	}
	return len(t.keep) == 0 && len(t.subs) > 0
}

// linking reports whether a tree wants the links of the page; with keep, whether it may later.
func (t *truth) linking(keep bool) bool {
	for _, r := range t.subs {
		switch {
		case r.followed == nil && r.sub.Follow != nil, r.followed != nil && (keep || r.followed.Links):
			return true
		}
	}
	return false
}

// verifyTrees checks that each tree ends with the pages that links lead to, and that no other page is
// watched because of it.
func (w *world) verifyTrees(truths []*truth) error {
	pages := make(map[string]*truth)
	trees := make(map[string]*hierarchy)
	for _, t := range truths {
		pages[t.url] = t
		for _, h := range t.trees {
			trees[h.id] = h
		}
	}
	for _, h := range trees {
		if err := w.verifyTree(h, pages); err != nil {
			return fmt.Errorf("%s, client %s, follow %s: %w", h.root, h.of.sub.Client, asJSON(h.of.sub.Follow), err)
		}
	}
	for _, t := range truths {
		for _, all := range []map[string]*record{t.subs, t.expired} {
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

func (w *world) verifyTree(h *hierarchy, pages map[string]*truth) error {
	order, depths := h.reach(func(url string) []string {
		t := pages[url]
		r := t.subs[t.pairIn(h.id)]
		if url == h.root || r != nil && r.followed.Links {
			return w.site(url).body.links
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
		if url != h.root && pages[url].pairIn(h.id) == "" {
			return fmt.Errorf("%s should be watched, and is not", url)
		}
	}
	n, most := len(h.pages)-1, h.rules().MaxPages
	switch {
	case n > most:
		return fmt.Errorf("%d pages are watched, at most %d may be", n, most)
	case n == len(order), n == most, h.begun >= followTurns*most:
	default:
		return fmt.Errorf("%d pages are watched, want %d: %v", n, min(len(order), most), order)
	}
	w.stats.Leaves += n
	return nil
}

// repeats reports whether r is part of a tree, and another notification of the change to v to the same
// client and sink says what says wants: r must not repeat it.
func (t *truth) repeats(r *record, v version, sink string, all map[about]*told, says func(*told) bool) bool {
	for _, q := range t.records {
		if q == r || r.followed == nil || q.life != r.life || q.sub.Client != r.sub.Client || v.n <= q.from || q.until < v.n {
			continue
		}
		if n := all[about{q.life.id, q.incarnation, q.sub.Client, sink, v.n}]; n != nil && says(n) {
			return true
		}
	}
	return false
}
