package vokter

import (
	"slices"

	"github.com/vokter/vokter/pipeline/pageurl"
)

// changeSinks says which sinks get the change records of which pages.
type changeSinks struct {
	config *Config
	// pages are those with sinks of their own besides the ones of all pages, by canonical URL. Each
	// sink is listed once.
	pages map[string][]string
}

// newChangeSinks returns the changeSinks of c, which is valid. A page that several documents list has the sinks of
// the first of them that names any.
func newChangeSinks(c *Config) *changeSinks {
	s := &changeSinks{config: c, pages: make(map[string][]string)}
	for _, d := range c.Documents {
		if len(d.Changes) == 0 {
			continue
		}
		page, err := pageurl.Canonical(d.URL)
		if err != nil || s.pages[page] != nil {
			continue
		}
		all := slices.Concat(c.Changes, d.Changes)
		slices.Sort(all)
		s.pages[page] = slices.Compact(all)
	}
	return s
}

// changeSinks returns the sinks that get the change records of a page, each once. It is called for each
// change, so it reads the configuration only once.
func (r *Router) changeSinks(page string) []string {
	c := r.liveConfig.Load()
	s := r.cachedChangeSinks.Load()
	if s == nil || s.config != c {
		s = newChangeSinks(c)
		r.cachedChangeSinks.Store(s)
	}
	if sinks := s.pages[page]; sinks != nil {
		return sinks
	}
	return c.Changes
}
