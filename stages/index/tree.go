package index

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// tree is what a subscription that follows links knows of the pages that it watches. The zero tree
// is not usable; newTree makes one.
type tree struct {
	treeState
	root  string
	rules followRules
	// pages are the root and the followed pages, by URL.
	pages map[string]*treePage
}

// treeState is what is stored of a tree beside its pages.
type treeState struct {
	// Subscription is the subscription that follows links.
	Subscription pipeline.Subscription `json:"subscription"`
	// Bounded says why linked pages are not watched that could be; empty if there are none.
	Bounded string `json:"bounded,omitempty"`
	// Begun is how many pages were added since Since.
	Begun int       `json:"begun,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// treePage is the root or a followed page.
type treePage struct {
	// Depth is how many links the page is away from the root.
	Depth int `cbor:"1,keyasint,omitempty"`
	// Known says that the page reported its links: URLs, in the order of the document. At is where
	// it was found after redirects, and More says that it has more links.
	Known bool     `cbor:"2,keyasint,omitempty"`
	At    string   `cbor:"3,keyasint,omitempty"`
	URLs  []string `cbor:"4,keyasint,omitempty"`
	More  bool     `cbor:"5,keyasint,omitempty"`
}

// treeDay is the time in which at most treeTurns times MaxPages pages are added to a tree. URLs
// that change with every check, such as those with session IDs, would otherwise replace all pages in
// every round.
const (
	treeDay   = 24 * time.Hour
	treeTurns = 3
)

// followRules are the rules of a pipeline.Follow, ready for use.
type followRules struct {
	depth, pages     int
	sameHost         bool
	include, exclude []*regexp.Regexp
}

func newFollowRules(f pipeline.Follow) followRules {
	f = f.WithDefaults()
	r := followRules{depth: min(f.Depth, pipeline.MaxFollowDepth), pages: min(f.MaxPages, pipeline.MaxFollowPages), sameHost: *f.SameHost}
	compile := func(patterns []string) (all []*regexp.Regexp) {
		for _, p := range patterns {
			if re, err := regexp.Compile(p); err == nil { // Validate has seen it
				all = append(all, re)
			}
		}
		return all
	}
	r.include, r.exclude = compile(f.Include), compile(f.Exclude)
	return r
}

// allow reports whether a link to page may be followed. hosts are those that sameHost permits.
func (r followRules) allow(page string, hosts map[string]bool) bool {
	if r.sameHost && !hosts[hostOf(page)] {
		return false
	}
	matches := func(list []*regexp.Regexp) bool {
		for _, re := range list {
			if re.MatchString(page) {
				return true
			}
		}
		return false
	}
	return (len(r.include) == 0 || matches(r.include)) && !matches(r.exclude)
}

// hostOf returns the host and port of a canonical URL. The default ports of http and https are the
// same.
func hostOf(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return ""
	}
	return u.Host
}

func newTree(root string, state treeState, pages map[string]*treePage) *tree {
	t := &tree{treeState: state, root: root, pages: pages}
	if t.pages == nil {
		t.pages = map[string]*treePage{root: {}}
	}
	var f pipeline.Follow
	if state.Subscription.Follow != nil {
		f = *state.Subscription.Follow
	}
	t.rules = newFollowRules(f)
	return t
}

// expands reports whether the links of p are followed.
func (t *tree) expands(p *treePage) bool { return p.Depth < t.rules.depth }

// report stores the links of a page. It returns false if the page is not in the tree.
func (t *tree) report(page string, l flow.Links) bool {
	p := t.pages[page]
	if p == nil {
		return false
	}
	p.Known, p.At, p.URLs, p.More = true, l.At, l.URLs, l.More
	return true
}

// treeChange is what grow changed.
type treeChange struct {
	// Begun and Ended are the pages that came and went, Moved those whose links are followed now and
	// were not before, or the reverse.
	Begun, Ended, Moved []string
	// Depths are the pages whose depth changed.
	Depths []string
	// Bounded says that the tree has reached a bound and had not before.
	Bounded bool
}

// grow finds the pages that a path of links leads to, the shortest paths first, and makes them the
// pages of the tree. Pages of the tree to which a path still leads stay. If there is no room for all
// others, those at the ends of the shortest paths come first.
func (t *tree) grow(now time.Time) treeChange {
	found := t.reach()
	var c treeChange
	for _, url := range slices.Sorted(maps.Keys(t.pages)) {
		p := t.pages[url]
		d, reached := found.depths[url]
		if !reached {
			c.Ended = append(c.Ended, url)
			delete(t.pages, url)
			continue
		}
		if d != p.Depth {
			before := t.expands(p)
			p.Depth = d
			c.Depths = append(c.Depths, url)
			if before != t.expands(p) {
				c.Moved = append(c.Moved, url)
			}
		}
	}
	if now.Sub(t.Since) >= treeDay || now.Before(t.Since) {
		t.Since, t.Begun = now, 0
	}
	full, fast := 0, 0
	for _, url := range found.order {
		switch {
		case t.pages[url] != nil:
		case len(t.pages) > t.rules.pages: // the root does not count
			full++
		case t.Begun >= treeTurns*t.rules.pages:
			fast++
		default:
			t.Begun++
			t.pages[url] = &treePage{Depth: found.depths[url]}
			c.Begun = append(c.Begun, url)
		}
	}
	before := t.Bounded
	switch t.Bounded = ""; {
	case full > 0:
		t.Bounded = fmt.Sprintf("it links to more pages than max_pages: %d are watched, and at least %d are not; raise max_pages, or choose pages with include and exclude", len(t.pages)-1, full)
	case fast > 0:
		t.Bounded = fmt.Sprintf("its links change too fast: %d other pages were linked within %v, and %d are not watched; leave out URLs that change with every check with exclude", t.Begun, treeDay, fast)
	case found.more:
		t.Bounded = fmt.Sprintf("a page has more than %d links, or %d KiB of them; the others are not followed", flow.MaxLinks, flow.MaxLinksSize>>10)
	}
	c.Bounded = before == "" && t.Bounded != ""
	return c
}

// reached is what reach finds.
type reached struct {
	// order has the root and the pages that a path of links leads to, the shortest paths first.
	order []string
	// depths are the lengths of the shortest paths, and from the pages with the last links of them.
	depths map[string]int
	from   map[string]string
	// more says that a page on a path has more links than are known.
	more bool
}

// reach finds the pages that a path of links leads to.
func (t *tree) reach() reached {
	r := reached{order: []string{t.root}, depths: map[string]int{t.root: 0}, from: make(map[string]string)}
	hosts := map[string]bool{hostOf(t.root): true}
	if at := t.pages[t.root].At; at != "" {
		hosts[hostOf(at)] = true
	}
	refused := make(map[string]bool)
	for i := 0; i < len(r.order); i++ {
		from := r.order[i]
		p, d := t.pages[from], r.depths[from]
		if p == nil || d >= t.rules.depth {
			continue // its links are not known, or not followed
		}
		r.more = r.more || p.More
		for _, url := range p.URLs {
			if _, seen := r.depths[url]; seen || refused[url] {
				continue
			}
			if !t.rules.allow(url, hosts) {
				refused[url] = true
				continue
			}
			r.depths[url], r.from[url] = d+1, from
			r.order = append(r.order, url)
		}
	}
	return r
}
