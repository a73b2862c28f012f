package index

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// follow begins, changes or ends the subscription to a page that others link to.
type follow struct {
	flow.FollowCommand
	// Existing is the subscription that an earlier command began, if any; Expired is it if it
	// expired.
	Existing *flow.Stamped
	Expired  *ExpiredSubscription
}

func (follow) action() {}

// keepLinks stores the links of the page and reports them to the pages that follow links to it. Nil
// Links delete what is stored.
type keepLinks struct{ Links *flow.Links }

// reportLinks reports the stored links to Root.
type reportLinks struct{ Root string }

func (keepLinks) output()   {}
func (reportLinks) output() {}

// followCommand decodes a command of the root of a tree, and loads the subscription that it is
// about.
func followCommand(st flow.State, p *Page, page string, m flow.Message) (action, *flow.Refusal, error) {
	c, err := flow.FollowCommandFrom(m)
	if err != nil {
		return nil, malformedCommand(err), nil
	}
	if r := checkURL(page, c.URL); r != nil {
		return nil, r, nil
	}
	if !c.End {
		if !c.Subscription.Sitemap {
			c.Subscription.Follow = nil
		}
		if r := checkSubscription(page, c.Subscription); r != nil {
			return nil, r, nil
		}
	}
	do := follow{FollowCommand: c}
	if p.Followed > 0 {
		all, err := Subscriptions(st)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range all {
			if s.Followed != nil && s.Followed.ID == c.ID {
				do.Existing = &s
			}
		}
	}
	if p.Expired > 0 {
		all, err := Expired(st)
		if err != nil {
			return nil, nil, err
		}
		for _, x := range all {
			if x.Followed != nil && x.Followed.ID == c.ID {
				do.Expired = &x
			}
		}
	}
	return do, nil, nil
}

// follow carries out a command of the root of a tree. It reports whether anything changed.
func (a *applier) follow(f follow) bool {
	e, x := f.Existing, f.Expired
	switch {
	case f.End:
		why := flow.EndCancelled
		if f.Kept {
			why = flow.EndPaused
		}
		if e != nil {
			a.endSubscription(*e, why)
		}
		if x != nil {
			a.removeExpired(*x)
			if !f.Kept {
				a.withdrawNotifications(x.Stamped, nil)
			}
		}
		if e == nil && x == nil {
			return false
		}
		a.removeUnwatched()
	case e != nil && equalSubscriptions(e.Subscription, f.Subscription) && *e.Followed == f.Followed:
		return false
	case e == nil && x != nil && equalSubscriptions(x.Subscription, f.Subscription):
		// It stays expired until it is changed or resumed.
		if *x.Followed == f.Followed {
			return false
		}
		x.Followed = &f.Followed
		a.emit(storeExpired{*x})
	case e != nil:
		a.changeSubscription(*e, f.Subscription, flow.OriginFollow, &f.Followed)
		a.removeUnwatched()
	default:
		var former []flow.Former
		if x != nil {
			a.removeExpired(*x)
			former = formerReceivers(x.Stamped, f.Subscription, a.Position)
		}
		a.addSubscription(f.Subscription, flow.OriginFollow, a.Position, former, &f.Followed, time.Time{})
	}
	return true
}

// linkRoot returns the page that wants to know the links of the page of s, or "".
func linkRoot(s flow.Stamped) string {
	switch {
	case s.Followed != nil && s.Followed.Links:
		return s.Followed.Root
	case s.Followed == nil && followsLinks(s.Subscription):
		return s.Page
	}
	return ""
}

// followsLinks reports whether s watches other pages than its own.
func followsLinks(s pipeline.Subscription) bool { return s.Follow != nil || s.Sitemap }

// countFollow adds n (1 or -1) to the counts of what s asks of its page beside checks.
func (a *applier) countFollow(s flow.Stamped, n int) {
	p := a.p
	if s.Followed != nil {
		p.Followed += n
	}
	root := linkRoot(s)
	if root == "" {
		return
	}
	p.Linking += n
	switch {
	case n > 0 && p.LinksHash != "":
		a.emit(reportLinks{root})
	case n > 0:
		p.Soon = true // bodyStandsFor has it fetched in full
	}
}

// storesLinks reports whether the links of p are stored: somebody wants to know them, or may later,
// when a shorter way to the page is found. A limited run would not fetch the page again then.
func (p *Page) storesLinks() bool { return p.Linking > 0 || p.Followed > 0 }

// dropUnusedLinks deletes the stored links if nobody needs them any more.
func (a *applier) dropUnusedLinks() {
	if p := a.p; !p.storesLinks() && p.LinksHash != "" {
		p.LinksHash = ""
		a.emit(keepLinks{})
	}
}

// noteLinks notes the links that a check found. A page that looks replaced keeps its links: the pages that
// it links to would end otherwise, and lose what changes until it is back.
func (a *applier) noteLinks(o flow.Outcome) {
	p := a.p
	if o.Links == nil || !p.storesLinks() || p.Open.Replaced {
		return
	}
	b, err := json.Marshal(o.Links)
	if err != nil {
		return // it was decoded from JSON
	}
	sum := sha256.Sum256(b)
	if hash := hex.EncodeToString(sum[:16]); hash != p.LinksHash {
		p.LinksHash = hash
		a.emit(keepLinks{o.Links})
	}
}

// onlyFollowed reports whether p is watched only because other pages link to it.
func (p *Page) onlyFollowed() bool {
	n := 0
	for _, d := range p.Documents {
		n += d.Subscriptions
	}
	return p.Followed > 0 && p.Followed == n && len(p.Keep) == 0
}

// isDeadLink reports whether p has no version, or is a file that is missing, and is watched only because other pages
// link to it. That is a mistake of these pages, and no news. A sitemap that cannot be read hides pages, so it is
// news. A file that was removed from a folder is no news either: its watch ends when the folder is read again.
func (p *Page) isDeadLink() bool {
	return p.onlyFollowed() && (p.Trouble == pipeline.FailMissing || !slices.ContainsFunc(p.Documents, func(d Document) bool { return d.TextHash != "" || d.View.Sitemap }))
}

// storeLinks stores the links of a page and reports them to the roots of the trees that it is in.
func (s *Stage) storeLinks(tx flow.Tx, st flow.State, m flow.Message, l *flow.Links) error {
	if l == nil {
		return st.Delete(linksName)
	}
	if err := setValue(st, linksName, l); err != nil {
		return err
	}
	all, err := Subscriptions(st)
	if err != nil {
		return err
	}
	roots := make(map[string]bool)
	for _, sub := range all {
		root := linkRoot(sub)
		if root == "" || roots[root] {
			continue
		}
		roots[root] = true
		s.reportLinks(tx, m, root, *l)
	}
	return nil
}

// reportStoredLinks reports the stored links of a page to one root.
func (s *Stage) reportStoredLinks(tx flow.Tx, st flow.State, m flow.Message, root string) error {
	l, err := getValue[flow.Links](st, linksName)
	if err != nil || l == nil {
		return err
	}
	s.reportLinks(tx, m, root, *l)
	return nil
}

func (s *Stage) reportLinks(tx flow.Tx, m flow.Message, root string, l flow.Links) {
	out := flow.LinksFound{Root: root, Page: m.Key, Links: l}.Message(m.ID, s.cfg.Now())
	if s.cfg.Checks > 0 && s.cfg.Owned(root) {
		s.run.reportSent(out.ID, m.Key, root) // before the commit: the report may be handled at once
	}
	tx.Emit(out)
}

// handleLinks handles the links of a page that the trees of the page m.Key may have.
func (s *Stage) handleLinks(tx flow.Tx, m flow.Message) error {
	found, err := flow.LinksFoundFrom(m)
	if err != nil {
		return err
	}
	st := tx.State(m.Key)
	var ids []string
	for name, v := range st.Scan(treesName) {
		if v.Err != nil {
			return v.Err
		}
		ids = append(ids, name[len(treesName):])
	}
	for _, id := range ids {
		t, err := loadTree(st, m.Key, id)
		if err != nil {
			return err
		}
		if t == nil || !t.storeLinks(found.Page, found.Links) {
			continue
		}
		if err := storeTreePage(st, id, found.Page, t.pages[found.Page]); err != nil {
			return err
		}
		if err := s.growTree(tx, st, m, id, t, false); err != nil {
			return err
		}
		if err := s.checkModified(tx, st, m, id, t, found.Links); err != nil {
			return err
		}
	}
	if s.cfg.Checks > 0 { // after the pages that the report adds are expected
		tx.OnCommit(func() { s.run.reportHandled(m.ID) })
	}
	return nil
}

// checkModified requests a check of the pages of t that were modified since their last check, as the sitemap l
// says. A limited run checks all pages anyway.
func (s *Stage) checkModified(tx flow.Tx, st flow.State, m flow.Message, id string, t *tree, l flow.Links) error {
	noted, later := t.noteModified(l)
	for _, url := range noted {
		if err := storeTreePage(st, id, url, t.pages[url]); err != nil {
			return err
		}
	}
	if s.cfg.Checks > 0 {
		return nil
	}
	for _, url := range later {
		tx.Emit(flow.ModifiedMessage(url, time.Unix(t.pages[url].Modified, 0).UTC(), m.ID+"/"+id, s.cfg.Now()))
	}
	return nil
}

// updateTree makes the tree of r, a subscription of the page that was just stamped, follow the rules of
// r. It ends the tree if r follows no links.
func (s *Stage) updateTree(tx flow.Tx, st flow.State, m flow.Message, r flow.Stamped) error {
	id := flow.FollowID(r.Page, r.Document, r.Subscription.Client)
	t, err := loadTree(st, r.Page, id)
	if err != nil {
		return err
	}
	if !followsLinks(r.Subscription) || r.Until != flow.Forever {
		if t == nil {
			return nil
		}
		return s.endTree(tx, st, m, id, t, r.Until != flow.Forever && r.End != flow.EndCancelled)
	}
	if t == nil {
		t = newTree(r.Page, treeState{Subscription: r.Subscription}, nil)
		if err := storeTreePage(st, id, r.Page, t.pages[r.Page]); err != nil {
			return err
		}
	}
	state := t.treeState
	state.Subscription = r.Subscription
	t = newTree(r.Page, state, t.pages)
	return s.growTree(tx, st, m, id, t, true)
}

// endTree ends a tree. Kept is that of the FollowCommands.
func (s *Stage) endTree(tx flow.Tx, st flow.State, m flow.Message, id string, t *tree, kept bool) error {
	for _, url := range slices.Sorted(maps.Keys(t.pages)) {
		if url != t.root {
			s.emitEndFollow(tx, m, id, t, url, kept)
		}
	}
	if err := clearNames(st, treePagesName+id+"/"); err != nil {
		return err
	}
	return st.Delete(treesName + id)
}

// growTree adds the pages that a path of links leads to, and ends the others. With changed, all pages
// get the subscription of t, which changed.
func (s *Stage) growTree(tx flow.Tx, st flow.State, m flow.Message, id string, t *tree, changed bool) error {
	c := t.grow(s.cfg.Now().UTC())
	for _, url := range c.Ended {
		s.emitEndFollow(tx, m, id, t, url, false)
		if err := st.Delete(treePageName(id, url)); err != nil {
			return err
		}
	}
	for _, url := range slices.Concat(c.Begun, c.Depths) {
		if err := storeTreePage(st, id, url, t.pages[url]); err != nil {
			return err
		}
	}
	told := slices.Concat(c.Begun, c.Moved)
	if changed {
		told = slices.Sorted(maps.Keys(t.pages))
	}
	for _, url := range told {
		if url != t.root {
			s.emitFollow(tx, m, id, t, url)
		}
	}
	if c.Bounded {
		tx.Emit(flow.HealthMessage(pipeline.Health{
			ID: flow.HealthID(pipeline.HealthFollowBounded, m.ID+"/"+id, 0), Event: pipeline.HealthFollowBounded, Time: s.cfg.Now(),
			URL: t.root, Client: t.Subscription.Client, Reason: t.Bounded,
		}))
		tx.OnCommit(func() {
			s.cfg.Logger.Warn("not all linked pages are watched", "page", t.root, "client", t.Subscription.Client, "reason", t.Bounded)
		})
	}
	return setValue(st, treesName+id, t.treeState)
}

// emitFollow tells a page of t that it is watched, and how.
func (s *Stage) emitFollow(tx flow.Tx, m flow.Message, id string, t *tree, url string) {
	sub := t.Subscription
	sub.URL, sub.Sitemap, sub.Title = url, t.pages[url].Sitemap, "" // a linked page has its own title
	if !sub.Sitemap {
		sub.Follow = nil // a sitemap keeps it: it reports again when the rules change, see candidates
	}
	c := flow.FollowCommand{
		URL: url, Followed: flow.Followed{Root: t.root, ID: id, Links: t.followsLinksOf(t.pages[url])}, Subscription: sub,
	}
	tx.Emit(c.Message(m.ID, s.cfg.Now()))
	if s.cfg.Checks > 0 && s.cfg.Owned(url) {
		tx.OnCommit(func() { s.Expect(url) })
	}
}

// emitEndFollow tells a page that t does not watch it any more.
func (s *Stage) emitEndFollow(tx flow.Tx, m flow.Message, id string, t *tree, url string, kept bool) {
	c := flow.FollowCommand{URL: url, Followed: flow.Followed{Root: t.root, ID: id}, End: true, Kept: kept}
	tx.Emit(c.Message(m.ID, s.cfg.Now()))
}

// followedFrom reports whether the page whose state st is is followed from a page for which root is
// true.
func followedFrom(st flow.State, p *Page, root func(page string) bool) (bool, error) {
	if p.Followed == 0 {
		return false, nil
	}
	all, err := Subscriptions(st)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all, func(s flow.Stamped) bool { return s.Followed != nil && root(s.Followed.Root) }), nil
}

// FollowedFrom reports whether the page whose state st is is watched because a page for which root
// is true follows links to it.
func FollowedFrom(st flow.State, root func(page string) bool) (bool, error) {
	p, err := Load(st)
	if err != nil {
		return false, err
	}
	return followedFrom(st, &p, root)
}

// LinkedPage is a page that is watched because other pages link to it.
type LinkedPage struct {
	URL string `json:"url"`
	// From is a page that links to it, on a shortest path from the page of the subscription. Depth is
	// the number of links on this path.
	From  string `json:"from"`
	Depth int    `json:"depth"`
}

// Tree returns the linked pages that s, a subscription of the page whose state st is, watches: the
// shortest paths first, and then in the order of the links. Bounded says why other linked pages are
// not watched; it is empty if all are.
func Tree(st flow.State, s flow.Stamped) (pages []LinkedPage, bounded string, err error) {
	if !followsLinks(s.Subscription) || s.Followed != nil {
		return nil, "", nil
	}
	t, err := loadTree(st, s.Page, flow.FollowID(s.Page, s.Document, s.Subscription.Client))
	if err != nil || t == nil {
		return nil, "", err
	}
	found := t.reachable()
	for _, url := range found.order {
		if url != t.root && t.pages[url] != nil {
			pages = append(pages, LinkedPage{url, found.from[url], found.depths[url]})
		}
	}
	return pages, t.Bounded, nil
}

// loadTree returns the tree with the given ID of the page root, or nil.
func loadTree(st flow.State, root, id string) (*tree, error) {
	state, err := getValue[treeState](st, treesName+id)
	if err != nil || state == nil {
		return nil, err
	}
	pages := make(map[string]*treePage)
	prefix := treePagesName + id + "/"
	for name, v := range st.Scan(prefix) {
		if v.Err != nil {
			return nil, v.Err
		}
		p := new(treePage)
		if err := decode(v.Bytes, p); err != nil {
			return nil, err
		}
		pages[name[len(prefix):]] = p
	}
	if pages[root] == nil {
		pages[root] = new(treePage)
	}
	return newTree(root, *state, pages), nil
}

func storeTreePage(st flow.State, id, page string, p *treePage) error {
	b, err := encode(*p)
	if err != nil {
		return err
	}
	return st.Set(treePageName(id, page), b)
}
