package match

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// A change that matches very many subscriptions is not handled in one transaction: the
// transaction would be large, and other pages of the lane would wait for it. Each transaction
// emits one batch of notifications and wakes the page for the next one. Messages of the page
// that arrive meanwhile wait in its backlog, behind the change. Subscriptions that end meanwhile are kept
// until it is empty.
//
//	backlog        the numbers of the messages in it, and how far the first one is
//	backlog NUMBER a message
const backlogName = "backlog"

// maxBatchBytes bounds the notifications of one transaction, besides Config.Batch.
const maxBatchBytes = 8 << 20

// backlog is the messages of a page that wait, the first of them half done. It is empty where
// First equals Next.
type backlog struct {
	First    uint64   `json:"first"`
	Next     uint64   `json:"next"`
	Progress progress `json:"at"` // of the first one
}

// progress is how far the notifications of a change are.
type progress struct {
	After string `json:"after"` // the sort key of the last subscription done; see candidate
	// ByClient says that the sort keys begin with clients. It stays as the first batch found it, although
	// subscriptions come and go meanwhile.
	ByClient bool         `json:"by_client,omitempty"`
	Matched  int          `json:"matched"`
	Record   ChangeRecord `json:"record"`
}

// backlogMessage is a message in a backlog.
type backlogMessage struct {
	ID   string          `json:"id"`
	Type string          `json:"type"`
	Body json.RawMessage `json:"body"`
}

func backlogMessageName(n uint64) string { return stateName(backlogName, fmt.Sprintf("%016x", n)) }

func readBacklog(st flow.State) (b backlog, err error) {
	v, ok, err := st.Get(backlogName)
	if err != nil || !ok {
		return b, err
	}
	return b, decodeValue(v, &b)
}

func (b *backlog) empty() bool { return b.First == b.Next }

// push adds m.
func (b *backlog) push(st flow.State, m flow.Message) error {
	if err := storeValue(st, backlogMessageName(b.Next), backlogMessage{m.ID, m.Type, m.Encoded()}); err != nil {
		return err
	}
	b.Next++
	return b.store(st)
}

// pop removes the first message.
func (b *backlog) pop(st flow.State) error {
	if err := st.Delete(backlogMessageName(b.First)); err != nil {
		return err
	}
	b.First++
	b.Progress = progress{}
	if b.empty() {
		return st.Delete(backlogName)
	}
	return b.store(st)
}

func (b *backlog) store(st flow.State) error { return storeValue(st, backlogName, b) }

// first returns the first message.
func (b *backlog) first(st flow.State, key string) (flow.Message, error) {
	v, ok, err := st.Get(backlogMessageName(b.First))
	if err != nil {
		return flow.Message{}, err
	}
	if !ok {
		return flow.Message{}, failure.Broken(fmt.Errorf("state: message %d of the backlog is missing", b.First))
	}
	var w backlogMessage
	if err := decodeValue(v, &w); err != nil {
		return flow.Message{}, err
	}
	return flow.Message{ID: w.ID, Key: key, Type: w.Type, Body: w.Body}, nil
}

// handleInOrder handles a change or an end, or adds it to the backlog of its page.
func (p *Processor) handleInOrder(tx flow.Tx, m flow.Message) error {
	st := tx.State(m.Key)
	b, err := readBacklog(st)
	if err != nil {
		return err
	}
	work, err := p.decode(m)
	if err != nil {
		return err
	}
	if !b.empty() {
		return b.push(st, m)
	}
	if !p.cfg.Later || work.change == nil {
		done, err := p.continueWork(tx, m.Key, work, &b.Progress)
		if err != nil || done {
			return err
		}
	}
	wakeNow(tx, m.Key)
	return b.push(st, m)
}

// resumeBacklog continues with the backlog of the page key.
func (p *Processor) resumeBacklog(tx flow.Tx, key string) error {
	st := tx.State(key)
	b, err := readBacklog(st)
	if err != nil || b.empty() {
		return err
	}
	m, err := b.first(st, key)
	if err != nil {
		return err
	}
	work, err := p.decode(m)
	if err != nil {
		return err
	}
	done, err := p.continueWork(tx, key, work, &b.Progress)
	switch {
	case err != nil:
		return err
	case done:
		err = b.pop(st)
	default:
		err = b.store(st)
	}
	switch {
	case err != nil:
		return err
	case !b.empty():
		wakeNow(tx, key)
		return nil
	}
	return p.forgetEnded(tx, st)
}

// forgetEnded deletes the ended subscriptions, since nothing is due to them any more.
func (p *Processor) forgetEnded(tx flow.Tx, st flow.State) error {
	names, err := deleteUnder(st, stateName(kindEnded, ""))
	tx.OnCommit(func() {
		for _, n := range names {
			parts := strings.SplitN(n, nul, 4)
			p.noteEdits(tableKey{parts[1], parts[2]}, parts[3:])
		}
	})
	return err
}

// wakeNow wakes key at once.
func wakeNow(tx flow.Tx, key string) { tx.WakeAt(key, time.Unix(1, 0)) }

// work is what a message of a page asks for: one of the three.
type work struct {
	change *flow.Change
	outage *flow.Outage
	ended  *flow.Ended
}

func (p *Processor) decode(m flow.Message) (w work, err error) {
	switch m.Type {
	case flow.TypeOutage:
		w.outage, err = decodeBody[flow.Outage](m)
		return w, err
	case flow.TypeEnded:
		w.ended, err = decodeBody[flow.Ended](m)
		return w, err
	}
	c, err := flow.ChangeFrom(m)
	if err != nil {
		return w, err
	}
	if m.Body != nil { // middleware and other programs may have written it
		if err := checkWindows(&c); err != nil {
			return w, failure.Permanent(err)
		}
	}
	w.change = &c
	return w, nil
}

// continueWork continues w from at. It returns false if w is not done yet. at then is where to go
// on.
func (p *Processor) continueWork(tx flow.Tx, key string, w work, at *progress) (done bool, err error) {
	switch {
	case w.outage != nil:
		return p.handleOutage(tx, key, w.outage, at)
	case w.ended != nil:
		return true, p.handleEnded(tx, key, w.ended)
	}
	return p.handleChange(tx, key, w.change, at)
}

// candidate is a subscription that a change matches, or whose client is told of an outage. The candidates
// are handled in the order of their sort keys. Of those with one sort key at most one is due.
type candidate struct {
	sortKey    string
	client     string // only where it decides about repeats
	entry      int32  // of the table
	recordName string // its name, for one that ended with its page
}

func (c candidate) compare(d candidate) int { return cmp.Compare(c.sortKey, d.sortKey) }

// candidatesAfter returns the candidates whose sort key is after the given one.
func candidatesAfter(all []candidate, after string) []candidate {
	i, _ := slices.BinarySearchFunc(all, after, func(c candidate, after string) int {
		if c.sortKey > after {
			return 1
		}
		return -1
	})
	return all[i:]
}

// candidates returns the subscriptions of t that are in found, in the order in which they are notified: by name, so
// that one that ends between two batches keeps its place. Where some are there because other pages link to this one,
// the order is by client, and the subscriptions that a client made come before these. It decides between the two orders
// if nothing was done before at, and then stores in at which one it is.
func (t *table) candidates(r records, found map[int32][]finding, at *progress) ([]candidate, error) {
	all := make([]candidate, 0, len(found))
	followed := false
	for _, e := range slices.Sorted(maps.Keys(found)) { // so that most names are in order
		n := t.index.names[e]
		followed = followed || t.followed[n]
		n, _, _ = strings.Cut(n, nul)
		all = append(all, candidate{sortKey: n, entry: e})
	}
	if at.After == "" {
		at.ByClient = followed
	}
	for i := range all {
		if !at.ByClient {
			break
		}
		c := &all[i]
		s, err := r.read(t.index.names[c.entry])
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		kind := "1 made"
		if s.Followed != nil {
			kind = "2 followed"
		}
		c.client = s.Subscription.WithDefaults().Client
		c.sortKey = stateName(c.client, kind, c.sortKey)
	}
	slices.SortFunc(all, candidate.compare)
	return all, nil
}
