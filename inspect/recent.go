package inspect

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/match"
)

// MaxRecent is how many changes of all pages Recent remembers: the newest ones.
const MaxRecent = 10_000

// RecentFilter selects changes of all pages. Empty fields select all.
type RecentFilter struct {
	// Client selects the changes that notified this client, and only its notifications.
	Client string `json:"client,omitempty"`
	// Sink and Delivery select the changes with a notification to this sink, whose delivery is in this
	// state (one of the Delivery constants), and only these notifications.
	Sink     string `json:"sink,omitempty"`
	Delivery string `json:"delivery,omitempty"`
	// Tag selects the changes of the documents that a subscription with this tag watches.
	Tag string `json:"tag,omitempty"`
	// Clients restricts the changes to documents that these clients watch, and the notifications to
	// theirs. Nil means no restriction.
	Clients []string `json:"clients,omitempty"`
	// After and Limit select a part of the changes: at most Limit of those behind After, the newest
	// first. A Limit of 0 means all.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// RecentChange is a change of a page.
type RecentChange struct {
	URL   string `json:"url"`
	Title string `json:"title,omitempty"` // of the current version
	// Size is how much changed. It is zero where that is not known yet.
	Size flow.Size `json:"size,omitzero"`
	Change
}

// Recent finds the newest changes of all pages. It reads the whole state once, and then learns of
// changes as an observer. It is safe for concurrent use.
type Recent struct {
	reading sync.Mutex // held while the state is read

	mu   sync.Mutex
	read time.Time // when the state was last read
	all  []recent  // the newest first
}

// recent is a change and where it is.
type recent struct {
	page, document, id string
	version            uint64
	time               time.Time
}

// key orders changes by their age.
func (x recent) key() string {
	return x.time.UTC().Format("2006-01-02T15:04:05.000000000") + " " + x.id
}

func newest(a, b recent) int {
	return cmp.Or(b.time.Compare(a.time), strings.Compare(b.id, a.id))
}

// Note is a flow.Observer.
func (r *Recent) Note(o flow.Observation) {
	if o.Kind != flow.KindChange {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read.IsZero() {
		r.add(recent{o.Page, o.Document, o.ID, uint64(o.N), o.Time})
	}
}

// add adds x unless it is known. r.mu is held.
func (r *Recent) add(x recent) {
	i, known := slices.BinarySearchFunc(r.all, x, newest)
	if known || i >= MaxRecent {
		return
	}
	r.all = slices.Insert(r.all[:min(len(r.all), MaxRecent-1)], i, x)
}

// Changes returns the changes that f selects, the newest first. If there may be more than f.Limit,
// next is the value of f.After with which the list goes on; otherwise it is empty. The first call
// reads the state of all pages that had a change. A further call reads it again if it is older than
// maxAge, for a transport whose pages move between processes; 0 means never.
func (r *Recent) Changes(ctx context.Context, s Store, f RecentFilter, maxAge time.Duration) (found []RecentChange, next string, err error) {
	found = []RecentChange{}
	if err := r.refresh(ctx, s, maxAge); err != nil {
		return found, "", err
	}
	r.mu.Lock()
	all := slices.Clone(r.all)
	r.mu.Unlock()
	for i, x := range all {
		if f.After != "" && x.key() >= f.After {
			continue
		}
		if f.Limit > 0 && len(found) == f.Limit {
			return found, all[i-1].key(), nil
		}
		if err := ctx.Err(); err != nil {
			return found, "", context.Cause(ctx)
		}
		c, ok, err := x.change(s, f)
		if err != nil {
			return found, "", err
		}
		if ok {
			found = append(found, c)
		}
	}
	return found, "", nil
}

// refresh reads the state unless that was done.
func (r *Recent) refresh(ctx context.Context, s Store, maxAge time.Duration) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.mu.Lock()
	fresh := !r.read.IsZero() && (maxAge == 0 || time.Since(r.read) < maxAge)
	if !fresh && r.read.IsZero() {
		r.read = time.Unix(0, 0) // from now on changes are noted
	}
	r.mu.Unlock()
	if fresh {
		return nil
	}
	err := r.load(ctx, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read = time.Now(); err != nil {
		r.read = time.Time{}
	}
	return err
}

// load reads the changes of all pages.
func (r *Recent) load(ctx context.Context, s Store) error {
	for page, st := range s.States(flow.GroupMatch, "") {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		records, err := match.History(st)
		if err != nil {
			return err
		}
		r.mu.Lock()
		for _, c := range records {
			if c.Expired == "" {
				r.add(recent{page, c.Document, c.ID, c.Version, c.Time})
			}
		}
		r.mu.Unlock()
	}
	return nil
}

// change returns x as f selects it. It returns false where f does not select it, and where its page
// or document is not watched here any more.
func (x recent) change(s Store, f RecentFilter) (RecentChange, bool, error) {
	if !s.Owns(x.page) {
		return RecentChange{}, false, nil
	}
	p, ok, err := load(x.page, s.State(flow.GroupIndex, x.page))
	if err != nil || !ok || !p.only("", f.Clients) || !p.tagged(f.Tag) {
		return RecentChange{}, false, err
	}
	at := slices.IndexFunc(p.Documents, func(d Document) bool { return d.ID == x.document })
	if at < 0 || f.Tag != "" && !p.subscribed(x.document) {
		return RecentChange{}, false, nil
	}
	c := RecentChange{URL: x.page, Title: p.Documents[at].Title, Change: Change{
		ID: x.id, Document: x.document, Version: x.version, Time: x.time, Matches: []Match{},
	}}
	records, err := match.History(s.State(flow.GroupMatch, x.page))
	if err != nil {
		return c, false, err
	}
	if i := slices.IndexFunc(records, func(m match.ChangeRecord) bool { return m.ID == x.id }); i >= 0 {
		c.Size = records[i].Size
		if c.Change, err = change(s, records[i], ExplainFilter{Client: f.Client, Clients: f.Clients}); err != nil {
			return c, false, err
		}
		if f.Clients != nil {
			c.Omitted = 0
		}
		c.Matches = slices.DeleteFunc(c.Matches, func(m Match) bool {
			return f.Sink != "" && m.Sink != f.Sink || f.Delivery != "" && m.Delivery != f.Delivery
		})
	}
	return c, f.Client+f.Sink+f.Delivery == "" || len(c.Matches) > 0, nil
}
