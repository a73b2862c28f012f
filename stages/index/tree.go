package index

import (
	"cmp"
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
	// Sitemap says that the page is a sitemap, and Index that its URLs are sitemaps. Listed is how
	// many URLs it lists; of those of pages only the first ones that may be watched are in URLs.
	Sitemap bool `cbor:"6,keyasint,omitempty"`
	Index   bool `cbor:"7,keyasint,omitempty"`
	Listed  int  `cbor:"8,keyasint,omitempty"`
	// Modified is the last time at which a sitemap said that the page was modified, in seconds since
	// 1970.
	Modified int64 `cbor:"9,keyasint,omitempty"`
}

// Bounds of the sitemaps of a tree. An index is not to list another one, but some do.
const (
	maxSitemaps     = 500
	maxSitemapDepth = 4 // of pages
)

// treeDay is the time in which at most maxTurnover times MaxPages pages are added to a tree. URLs
// that change with every check, such as those with session IDs, would otherwise replace all pages in
// every round.
const (
	treeDay     = 24 * time.Hour
	maxTurnover = 3
)

// followRules are the rules of a pipeline.Follow, ready for use.
type followRules struct {
	sitemap          bool
	depth, pages     int
	sameHost         bool
	include, exclude []*regexp.Regexp
}

func newFollowRules(s pipeline.Subscription) followRules {
	var f pipeline.Follow
	if s.Follow != nil {
		f = *s.Follow
	}
	if s.Sitemap {
		f.Depth, f.MaxPages = maxSitemapDepth, cmp.Or(f.MaxPages, pipeline.DefaultSitemapPages)
	}
	f = f.WithDefaults()
	r := followRules{sitemap: s.Sitemap, depth: min(f.Depth, pipeline.MaxFollowDepth), pages: min(f.MaxPages, pipeline.MaxFollowPages), sameHost: *f.SameHost}
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

// allowsHost reports whether the host of page may be visited. hosts are those that sameHost permits.
func (r followRules) allowsHost(page string, hosts map[string]bool) bool {
	return !r.sameHost || hosts[hostOf(page)]
}

// allowsLink reports whether a link to page may be followed. hosts are those that sameHost permits.
func (r followRules) allowsLink(page string, hosts map[string]bool) bool {
	if !r.allowsHost(page, hosts) {
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
	t.rules = newFollowRules(state.Subscription)
	t.pages[root].Sitemap = t.rules.sitemap
	return t
}

// followsLinksOf reports whether the links of p are followed.
func (t *tree) followsLinksOf(p *treePage) bool {
	return p.Depth < t.rules.depth && p.Sitemap == t.rules.sitemap
}

// hosts are those to which sameHost restricts the links.
func (t *tree) hosts() map[string]bool {
	hosts := map[string]bool{hostOf(t.root): true}
	if at := t.pages[t.root].At; at != "" {
		hosts[hostOf(at)] = true
	}
	return hosts
}

// storeLinks stores the links of a page. It returns false if the page is not in the tree.
func (t *tree) storeLinks(page string, l flow.Links) bool {
	p := t.pages[page]
	if p == nil {
		return false
	}
	p.Known, p.At, p.URLs, p.More, p.Index, p.Listed = true, l.At, l.URLs, l.More, l.Index && t.rules.sitemap, len(l.URLs)
	if t.rules.sitemap && !l.Index {
		p.URLs = t.candidates(l.URLs)
	}
	return true
}

// candidates returns the URLs that may be watched, but of those that are not watched only as many as
// there can be, and one more: a sitemap may list many times that.
func (t *tree) candidates(urls []string) []string {
	var all []string
	hosts := t.hosts()
	left := t.rules.pages + 1
	for _, url := range urls {
		watched := t.pages[url] != nil
		if !watched && left == 0 || !t.rules.allowsLink(url, hosts) {
			continue
		}
		if !watched {
			left--
		}
		all = append(all, url)
	}
	return all
}

// noteModified notes when the pages of a sitemap were modified. It returns the pages of the tree for which it
// noted a new time, and those of them for which it had noted an earlier one. The others are new, and are
// checked anyway.
func (t *tree) noteModified(l flow.Links) (noted, later []string) {
	for i, at := range l.Modified[:min(len(l.Modified), len(l.URLs))] {
		url := l.URLs[i]
		p := t.pages[url]
		if p == nil || url == t.root || at <= p.Modified {
			continue
		}
		noted = append(noted, url)
		if p.Modified > 0 {
			later = append(later, url)
		}
		p.Modified = at
	}
	return noted, later
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
// pages of the tree. Pages of the tree to which a path still leads stay, unless max_pages was lowered. If
// there is no room for all others, those at the ends of the shortest paths come first.
func (t *tree) grow(now time.Time) treeChange {
	found := t.reachable()
	stay, kept := make(map[string]bool), 0
	for _, url := range found.order {
		switch {
		case t.pages[url] == nil:
		case url == t.root, found.sitemaps[url]: // they do not count
			stay[url] = true
		case kept < t.rules.pages:
			stay[url] = true
			kept++
		}
	}
	var c treeChange
	for _, url := range slices.Sorted(maps.Keys(t.pages)) {
		p, d := t.pages[url], found.depths[url]
		if !stay[url] {
			c.Ended = append(c.Ended, url)
			delete(t.pages, url)
			continue
		}
		if sitemap := found.sitemaps[url]; d != p.Depth || sitemap != p.Sitemap {
			before := t.followsLinksOf(p)
			p.Depth, p.Sitemap = d, sitemap
			c.Depths = append(c.Depths, url)
			if before != t.followsLinksOf(p) {
				c.Moved = append(c.Moved, url)
			}
		}
	}
	if now.Sub(t.Since) >= treeDay || now.Before(t.Since) {
		t.Since, t.Begun = now, 0
	}
	pages, sitemaps := t.count()
	full, fast, tooMany := 0, 0, 0
	most := t.rules.pages
	if t.rules.sitemap {
		most += maxSitemaps
	}
	for _, url := range found.order {
		sitemap := found.sitemaps[url]
		switch {
		case t.pages[url] != nil:
		case sitemap && sitemaps >= maxSitemaps:
			tooMany++
		case !sitemap && pages >= t.rules.pages:
			full++
		case t.Begun >= maxTurnover*most:
			fast++
		default:
			t.Begun++
			t.pages[url] = &treePage{Depth: found.depths[url], Sitemap: sitemap}
			c.Begun = append(c.Begun, url)
			if sitemap {
				sitemaps++
			} else {
				pages++
			}
		}
	}
	before := t.Bounded
	switch t.Bounded = ""; {
	case full > 0 && t.rules.sitemap:
		t.Bounded = fmt.Sprintf("the sitemap lists more pages than max_pages: %d are watched of the %d URLs that were found; raise max_pages, or choose pages with include and exclude", pages, found.listed)
	case tooMany > 0:
		t.Bounded = fmt.Sprintf("the sitemap index lists more than %d sitemaps: %d are not read", maxSitemaps, tooMany)
	case found.more && t.rules.sitemap:
		t.Bounded = fmt.Sprintf("a sitemap lists more than %d URLs, or %d MiB of them, or sitemap indexes list each other; the other pages are not watched", flow.MaxSitemapLinks, flow.MaxSitemapLinksSize>>20)
	case pages == 0 && found.listed > 0:
		t.Bounded = fmt.Sprintf("none of the URLs that the sitemap lists (%d) may be watched: they must be of its host unless same_host is false, and include and exclude must admit them", found.listed)
	case full > 0:
		t.Bounded = fmt.Sprintf("it links to more pages than max_pages: %d are watched, and at least %d are not; raise max_pages, or choose pages with include and exclude", pages, full)
	case fast > 0:
		t.Bounded = fmt.Sprintf("its links change too fast: %d other pages were linked within %v, and %d are not watched; leave out URLs that change with every check with exclude", t.Begun, treeDay, fast)
	case found.more:
		t.Bounded = fmt.Sprintf("a page has more than %d links, or %d KiB of them; the others are not followed", flow.MaxLinks, flow.MaxLinksSize>>10)
	}
	c.Bounded = before == "" && t.Bounded != ""
	return c
}

// count returns how many pages of the tree are pages and how many are sitemaps, without the root.
func (t *tree) count() (pages, sitemaps int) {
	for url, p := range t.pages {
		switch {
		case url == t.root:
		case p.Sitemap:
			sitemaps++
		default:
			pages++
		}
	}
	return pages, sitemaps
}

// reachablePages is what reach finds.
type reachablePages struct {
	// order has the root and the pages that a path of links leads to, the shortest paths first.
	order []string
	// depths are the lengths of the shortest paths, and from the pages with the last links of them.
	depths map[string]int
	from   map[string]string
	// sitemaps are those of the pages that are sitemaps.
	sitemaps map[string]bool
	// more says that a page on a path has more links than are known, and listed is how many pages the
	// sitemaps list.
	more   bool
	listed int
}

// reachable finds the pages that a path of links leads to.
func (t *tree) reachable() reachablePages {
	r := reachablePages{
		order: []string{t.root}, depths: map[string]int{t.root: 0}, from: make(map[string]string),
		sitemaps: map[string]bool{t.root: t.rules.sitemap},
	}
	hosts := t.hosts()
	refused := make(map[string]bool)
	for i := 0; i < len(r.order); i++ {
		from := r.order[i]
		p, d := t.pages[from], r.depths[from]
		if p == nil || d >= t.rules.depth || r.sitemaps[from] != t.rules.sitemap {
			continue // its links are not known, or not followed
		}
		r.more = r.more || p.More
		if p.Index && d == t.rules.depth-1 { // no page of these sitemaps could be watched
			r.more = true
			continue
		}
		if t.rules.sitemap && !p.Index {
			r.listed += p.Listed
		}
		for _, url := range p.URLs {
			if _, seen := r.depths[url]; seen || refused[url] {
				continue
			}
			if p.Index && !t.rules.allowsHost(url, hosts) || !p.Index && !t.rules.allowsLink(url, hosts) {
				refused[url] = true
				continue
			}
			r.depths[url], r.from[url] = d+1, from
			if p.Index {
				r.sitemaps[url] = true
			}
			r.order = append(r.order, url)
		}
	}
	return r
}
