package inspector

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/match"
)

// MaxRecent is how many changes of all pages Recent remembers: the newest ones.
const MaxRecent = 10_000

// Recent finds the newest changes of all pages. It reads the whole state when it is first asked, and
// learns of later changes as an observer. NewRecent makes one. It is safe for concurrent use.
type Recent struct {
	reads    chan readRequest
	runEnded chan struct{} // closed at the end of Run

	mu        sync.Mutex
	recording bool           // Note adds changes: true since the state was first asked for
	readAt    time.Time      // when the state was last read; zero if it was not
	changes   []recentChange // the newest first
}

// readRequest asks for the state to be read. The result goes to done, which has room for it.
type readRequest struct {
	at   time.Time
	done chan error
}

// NewRecent returns a Recent whose Run was not called yet.
func NewRecent() *Recent {
	return &Recent{reads: make(chan readRequest), runEnded: make(chan struct{})}
}

// Run reads the state of s when Changes needs it, until ctx is done. It is called once.
func (r *Recent) Run(ctx context.Context, s Store) error {
	defer close(r.runEnded)
	for {
		select {
		case x := <-r.reads:
			x.done <- r.load(ctx, s, x.at)
		case <-ctx.Done():
			return nil
		}
	}
}

// recentChange names a change and says where it is stored.
type recentChange struct {
	page, document, id string
	version            uint64
	time               time.Time
}

// sortKey returns a string that orders changes by their age. It is the cursor of RecentFilter.After.
func (x recentChange) sortKey() string {
	return x.time.UTC().Format("2006-01-02T15:04:05.000000000") + " " + x.id
}

// compareNewestFirst orders changes by their age, for package slices.
func compareNewestFirst(a, b recentChange) int {
	return cmp.Or(b.time.Compare(a.time), strings.Compare(b.id, a.id))
}

// Note is a flow.Observer.
func (r *Recent) Note(o flow.Observation) {
	if o.Kind != flow.KindChange {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recording {
		r.add(recentChange{o.Page, o.Document, o.ID, uint64(o.N), o.Time})
	}
}

// add adds x unless it is known. r.mu is held.
func (r *Recent) add(x recentChange) {
	i, known := slices.BinarySearchFunc(r.changes, x, compareNewestFirst)
	if known || i >= MaxRecent {
		return
	}
	r.changes = slices.Insert(r.changes[:min(len(r.changes), MaxRecent-1)], i, x)
}

// merge adds xs.
func (r *Recent) merge(xs []recentChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.changes, xs)
	slices.SortFunc(all, compareNewestFirst)
	all = slices.CompactFunc(all, func(a, b recentChange) bool { return compareNewestFirst(a, b) == 0 })
	r.changes = slices.Clone(all[:min(len(all), MaxRecent)])
}

// maxChangesRead is how many changes one call of Changes with a Limit looks at.
const maxChangesRead = 400

// partialWait is how long Changes waits for the state to be read, with RecentFilter.Partial.
const partialWait = 20 * time.Millisecond

// Changes returns the changes that f selects. With a Limit one call looks at 400 changes at most, so that
// it may return fewer than there are, or none, with a Next. The first call has Run read the state. A
// further call has it read again if it is older than maxAge, for a transport whose pages move between
// processes; 0 means never.
func (r *Recent) Changes(ctx context.Context, s Store, f inspect.RecentFilter, maxAge time.Duration) (inspect.RecentChanges, error) {
	found := inspect.RecentChanges{Changes: []inspect.RecentChange{}}
	var err error
	if found.Partial, err = r.ensureRead(ctx, f.Partial, maxAge); err != nil {
		return found, err
	}
	r.mu.Lock()
	all := slices.Clone(r.changes)
	r.mu.Unlock()
	looked := 0
	for i, x := range all {
		if f.After != "" && x.sortKey() >= f.After {
			continue
		}
		if f.Limit > 0 && (len(found.Changes) == f.Limit || looked == maxChangesRead) {
			found.Next = all[i-1].sortKey()
			return found, nil
		}
		looked++
		if err := ctx.Err(); err != nil {
			return found, context.Cause(ctx)
		}
		c, ok, err := x.load(s, f)
		if err != nil {
			return found, err
		}
		if ok {
			found.Changes = append(found.Changes, c)
		}
	}
	return found, nil
}

// ensureRead has Run read the state unless that was done. With partial it does not wait long for it, and
// returns true where the state was never read.
func (r *Recent) ensureRead(ctx context.Context, partial bool, maxAge time.Duration) (bool, error) {
	r.mu.Lock()
	never := r.readAt.IsZero()
	fresh := !never && (maxAge == 0 || time.Since(r.readAt) < maxAge)
	r.recording = true // before the state is read, so that no change is missed
	r.mu.Unlock()
	if fresh {
		return false, nil
	}
	var late <-chan time.Time
	if partial {
		timer := time.NewTimer(partialWait)
		defer timer.Stop()
		late = timer.C
	}
	x := readRequest{time.Now(), make(chan error, 1)}
	select {
	case r.reads <- x:
	case <-late: // the state is being read for somebody else
		return never, nil
	case <-r.runEnded:
		return false, errEnded
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	select {
	case err := <-x.done:
		return false, err
	case <-late:
		return never, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

var errEnded = errors.New("the changes of all pages cannot be read: the pipeline is stopping")

// mergeBatch is how many changes load collects before it merges them.
const mergeBatch = 5000

// load reads the changes of all pages, unless that was done after the time asked.
func (r *Recent) load(ctx context.Context, s Store, asked time.Time) error {
	r.mu.Lock()
	done := r.readAt.After(asked)
	r.mu.Unlock()
	if done {
		return nil
	}
	var found []recentChange
	for page, st := range s.States(flow.GroupMatch, "") {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		records, err := match.History(st)
		if err != nil {
			return err
		}
		for _, c := range records {
			if c.Status == "" {
				found = append(found, recentChange{page, c.Document, c.ID, c.Version, c.Time})
			}
		}
		if len(found) >= mergeBatch {
			r.merge(found)
			found = found[:0]
		}
	}
	r.merge(found)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readAt = time.Now()
	return nil
}

// load returns x as f selects it. It returns false where f does not select it, and where its page
// or document is not watched here any more.
func (x recentChange) load(s Store, f inspect.RecentFilter) (inspect.RecentChange, bool, error) {
	if !s.Owns(x.page) {
		return inspect.RecentChange{}, false, nil
	}
	p, ok, err := loadPage(x.page, s.State(flow.GroupIndex, x.page))
	if err != nil || !ok || !keepClients(&p, "", f.Clients) || !keepTagged(&p, f.Tag) {
		return inspect.RecentChange{}, false, err
	}
	at := slices.IndexFunc(p.Documents, func(d inspect.Document) bool { return d.ID == x.document })
	if at < 0 || f.Tag != "" && !hasSubscriptionTo(&p, x.document) {
		return inspect.RecentChange{}, false, nil
	}
	c := inspect.RecentChange{URL: x.page, Title: p.Documents[at].Title, Change: inspect.Change{
		ID: x.id, Document: x.document, Version: x.version, Time: x.time, Matches: []inspect.Match{},
	}}
	records, err := match.History(s.State(flow.GroupMatch, x.page))
	if err != nil {
		return c, false, err
	}
	if i := slices.IndexFunc(records, func(m match.ChangeRecord) bool { return m.ID == x.id }); i >= 0 {
		c.Size = records[i].Size
		if c.Change, err = changeOf(s, records[i], inspect.ExplainFilter{Client: f.Client, Clients: f.Clients}); err != nil {
			return c, false, err
		}
		if f.Clients != nil {
			c.Omitted = 0
		}
		c.Matches = slices.DeleteFunc(c.Matches, func(m inspect.Match) bool {
			return f.Sink != "" && m.Sink != f.Sink || f.Delivery != "" && m.Delivery != f.Delivery
		})
	}
	return c, f.Client+f.Sink+f.Delivery == "" || len(c.Matches) > 0, nil
}
