// Package match finds the subscriptions whose keywords a change adds or removes. It is the
// stage that turns changes into notifications. Its core, the Matcher, needs neither transport
// nor clock.
//
// A keyword is counted within each group of blocks: it is added if the new side has more
// occurrences than the old, removed if it has fewer. Only occurrences that touch an edit are
// counted; all others are on both sides and cancel out.
//
// All keywords of a document are in one index: a word under its term, a phrase under the pair
// of adjacent words that the fewest other keywords contain. Each entry also says what is
// compared (case, diacritics, stems) and whether stop words are skipped. Only tokens near edits
// are looked up, so the work depends on the change and on its matches, not on the number of
// subscriptions.
//
// History returns the last changes of a page and the notifications that they caused. An
// Explainer says why a change did not match a keyword.
package match

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Config is what New takes. The zero Config is ready to use.
type Config struct {
	// Languages has the stemmers and stop words. Default: text.NewLanguages().
	Languages *text.Languages
	// Logger gets each change that matches a keyword, at level debug. Default: none.
	Logger *slog.Logger
	// Observe gets, after the commit, an observation flow.KindNotification for each notification
	// and flow.KindFiltered for each change that did without its subscriptions.
	Observe flow.Observer
	// Cache is about how many bytes of indexed subscriptions are kept in memory, besides those of the
	// current document. Those that are not used for a minute or two are not kept. Default 64 MiB.
	Cache int64
	// Batch is how many notifications of a change one transaction emits at most. Where a change has
	// more, further transactions follow. Default 1000.
	Batch int
	// Memory bounds the memory for reading large changes. Default: no bound.
	Memory flow.Memory
	// Epoch is a number that changes each time this process becomes the owner of a page: what is in memory of
	// earlier epochs may be old. Default: always 0.
	Epoch func(page string) uint64
	// Later leaves the changes in the backlogs of their pages, for a process that has the configuration.
	Later bool
	// Records returns the names of the sinks that get the change records of a page. It must be safe
	// for concurrent use. Default: none.
	Records func(page string) []string
}

// Processor is the stage. It reads the subscriptions of a page in the state of index, in whose transactions it gets its
// messages.
type Processor struct {
	cfg   Config
	cache *stored.Cache[tableKey, *table]
	runID string // identifies this Processor in filters; see analysisID
	// unstemmed has the languages of which warnUnstemmed has told.
	unstemmed sync.Map
}

var _ flow.Processor = (*Processor)(nil)

// New returns the stage for consumer group flow.GroupMatch, which handles the messages of
// flow.TopicSubscriptions and flow.TopicChanges.
func New(cfg Config) *Processor {
	if cfg.Languages == nil {
		cfg.Languages = text.NewLanguages()
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Cache <= 0 {
		cfg.Cache = 64 << 20
	}
	if cfg.Batch <= 0 {
		cfg.Batch = 1000
	}
	if cfg.Epoch == nil {
		cfg.Epoch = func(string) uint64 { return 0 }
	}
	if cfg.Records == nil {
		cfg.Records = func(string) []string { return nil }
	}
	return &Processor{cfg: cfg, cache: stored.NewCache[tableKey, *table](cfg.Cache), runID: rand.Text()}
}

// memoryPerByte is how many bytes of memory it takes to handle a message, for each byte of its
// body.
const memoryPerByte = 16

// Process handles one message. A change emits a notification for each subscription that it matches and each of its
// receivers, an outage one for each client that is to be told of it. The end of a page clears its state. That a
// subscription began or ended is noted. A body that cannot be decoded is a permanent error, state that cannot be
// decoded one of failure.ClassBroken, and an unknown type that of flow.Message.UnknownType.
func (p *Processor) Process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	free, err := p.cfg.Memory.Take(ctx, memoryPerByte*int64(len(m.Body)))
	if err != nil {
		return err
	}
	defer free()
	switch m.Type {
	case flow.TypeStamp:
		var s *flow.Stamped
		if s, err = decodeBody[flow.Stamped](m); err == nil {
			err = p.handleSubscription(tx, m.Key, s)
		}
	case flow.TypeChange, flow.TypeOutage, flow.TypeEnded:
		err = p.handleInOrder(tx, m)
	case flow.TypeWake:
		err = p.resumeBacklog(tx, m.Key)
	default:
		return m.UnknownType(flow.GroupMatch)
	}
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// decodeBody returns the decoded body of m.
func decodeBody[T any](m flow.Message) (*T, error) {
	b := new(T)
	if err := json.Unmarshal(m.Body, b); err != nil {
		return nil, failure.Permanent(fmt.Errorf("message %s: %w", m.ID, err))
	}
	return b, nil
}

// handleChange emits a batch of the notifications of c. It returns false if there are more.
func (p *Processor) handleChange(tx flow.Tx, key string, c *flow.Change, at *progress) (done bool, err error) {
	if c.Baseline { // it is for programs, and concerns no subscription
		return true, p.emitRecords(tx, c)
	}
	st, r := tx.State(key), recordsOf(tx, key, tableKey{c.Incarnation, c.Document})
	t, err := p.tableFor(tx, key, c, r)
	if err != nil {
		return false, err
	}
	if at.After == "" {
		if err := p.emitRecords(tx, c); err != nil {
			return false, err
		}
		at.Record = ChangeRecord{ID: c.ID, Document: c.Document, Version: c.Version, Check: c.Check, Time: c.Time, Size: c.Size, Muted: isMuted(c)}
	}
	if t == nil {
		tx.OnCommit(func() {
			p.cfg.Observe.Note(flow.Observation{Kind: flow.KindFiltered, Page: c.Page, Document: c.Document, URL: c.URL, ID: c.ID, Time: c.Time})
		})
	} else if done, err := p.emitNotifications(tx, r, c, t, at); err != nil || !done {
		return false, err
	}
	if matched := at.Matched; matched > 0 {
		tx.Emit(flow.Told{Page: key, Incarnation: c.Incarnation, Document: c.Document, Version: c.Version, Time: c.Time}.Message())
		tx.OnCommit(func() {
			p.cfg.Logger.Debug("keywords matched", "url", c.URL, "version", c.Version, "subscriptions", matched, "change", c.ID)
		})
	}
	return true, addToHistory(st, at.Record)
}

// emitRecords emits c as a change record for each sink that gets those of its page.
func (p *Processor) emitRecords(tx flow.Tx, c *flow.Change) error {
	to := p.cfg.Records(c.Page)
	if len(to) == 0 {
		return nil
	}
	n, err := c.Notification()
	if err != nil {
		return err
	}
	for _, sink := range to {
		m, err := flow.Addressed{Receiver: pipeline.Receiver{Sink: sink}, Document: c.Document, Notification: n}.Message()
		if err != nil {
			return err
		}
		tx.Emit(m)
		tx.OnCommit(func() {
			p.cfg.Observe.Note(flow.Observation{Kind: flow.KindNotification, Page: c.Page, Document: c.Document, URL: c.URL, ID: m.ID, N: 1, Time: c.Time})
		})
	}
	return nil
}

// handleEnded deletes the state of an incarnation that ended. It deletes the history too, unless the page is listed as
// expired.
func (p *Processor) handleEnded(tx flow.Tx, key string, e *flow.Ended) error {
	st := tx.State(key)
	if !e.Listed {
		if err := clearHistory(st); err != nil {
			return err
		}
	}
	if err := deleteIncarnation(st, e.Incarnation); err != nil {
		return err
	}
	tx.OnCommit(func() {
		p.cache.Delete(func(k tableKey) bool { return k.incarnation == e.Incarnation })
	})
	return nil
}

// emitNotifications emits notifications of c for the subscriptions of t, from at on. It returns false if it
// stopped because they are enough for one transaction; all of a client are in one where pages
// that link to this one are among them.
func (p *Processor) emitNotifications(tx flow.Tx, r records, c *flow.Change, t *table, at *progress) (done bool, err error) {
	found, edits := t.index.findMatches(c), newEdits(c)
	all, err := t.candidates(r, found, at)
	if err != nil {
		return false, err
	}
	all = candidatesAfter(all, at.After)
	b := batch{p: p, tx: tx, record: &at.Record}
	if len(all) > 0 && all[0].client != "" {
		b.repeats = repeatFilter{}
	}
	for i, next := range all {
		if b.full() && (next.client == "" || next.client != all[i-1].client) {
			return false, nil
		}
		s, err := r.read(t.index.names[next.entry])
		if err != nil {
			return false, err
		}
		if s == nil || c.Version <= s.From || c.Version > s.Until {
			continue
		}
		at.After = next.sortKey
		diffs, omitted := diffsFor(c, edits, s.Subscription, found[next.entry])
		if len(diffs) == 0 {
			continue
		}
		at.Matched++
		if err := b.notifyReceivers(c, s, diffs, omitted); err != nil {
			return false, err
		}
	}
	return true, nil
}

// batch emits the notifications of one transaction.
type batch struct {
	p       *Processor
	tx      flow.Tx
	record  *ChangeRecord
	repeats repeatFilter // nil where none can repeat another
	count   int
	bytes   int
}

func (b *batch) full() bool { return b.count >= b.p.cfg.Batch || b.bytes >= maxBatchBytes }

// notifyReceivers emits a notification of c for s to each of its receivers.
func (b *batch) notifyReceivers(c *flow.Change, s *flow.Stamped, diffs []pipeline.Diff, omitted int) error {
	n := newNotification(c, s.Subscription, diffs, omitted)
	for _, to := range s.Subscription.Receivers() {
		if b.repeats.isRepeat(s, to, n) {
			continue
		}
		n.ID = flow.NotificationID(c.ID, s.Incarnation, to.Sink)
		if err := b.send(s, to, n, s.Subscription.Collected()); err != nil {
			return err
		}
	}
	return nil
}

// newNotification returns the notification of c for s, without an ID.
func newNotification(c *flow.Change, s pipeline.Subscription, diffs []pipeline.Diff, omitted int) pipeline.Notification {
	n := pipeline.Notification{
		Status: pipeline.StatusOK, URL: s.URL, Diffs: diffs, Type: pipeline.NotificationType, Time: c.Time,
		Client: s.WithDefaults().Client, Severity: s.Severity, Channel: s.Channel, Version: c.Version, Title: titleFor(c, s), Language: c.Language, ContentType: c.ContentType, Change: c.ID,
		Tags: s.Tags, Truncated: omitted > 0, Omitted: omitted,
	}
	if s.Value != nil {
		v, _ := s.ValueChange(oldAndNewValue(c))
		n.Value = &v
	}
	if m := c.Muting; hasRestless(s) && !m.IsZero() {
		m.Whole = m.Whole && s.Restless == ""
		n.Muting = &m
	}
	if m := c.MutingWords; hasRestless(s) && s.Restless == pipeline.RestlessMute && !m.IsZero() {
		n.Muting = n.Muting.With(&m)
	}
	return n
}

// oldAndNewValue returns the old and the new text of a document that is a value: one short line.
func oldAndNewValue(c *flow.Change) (before, after string) {
	for _, g := range c.Groups {
		for _, w := range g.Old {
			before += w.Text
		}
		for _, w := range g.New {
			after += w.Text
		}
	}
	return before, after
}

// Preview returns the notifications of changes for s, in their order, as the stage makes them. Their
// IDs are derived from the change and the client.
func Preview(changes []flow.Change, s pipeline.Subscription, languages *text.Languages) []pipeline.Notification {
	var all []pipeline.Notification
	m := NewMatcher([]Entry{{Subscription: s}}, languages)
	for i := range changes {
		for _, found := range m.Match(&changes[i]) {
			n := newNotification(&changes[i], s, found.Diffs, found.Omitted)
			n.ID = flow.NotificationID(n.Change, n.Client, "")
			all = append(all, n)
		}
	}
	return all
}

// send emits n, a notification of s, to one receiver and notes it in the record. With a digest,
// the receiver collects it.
func (b *batch) send(s *flow.Stamped, to pipeline.Receiver, n pipeline.Notification, digest *pipeline.Digest) error {
	addressed := &flow.Addressed{Receiver: to, Document: s.Document, Subscription: s.Incarnation, Notification: n, Digest: digest}
	out, err := addressed.Message()
	if err != nil {
		return err
	}
	b.tx.Emit(out)
	b.count++
	b.bytes += len(out.Body)
	b.record.addNotification(to, n)
	b.tx.OnCommit(func() {
		b.p.cfg.Observe.Note(flow.Observation{Kind: flow.KindNotification, Page: s.Page, Document: s.Document,
			URL: n.URL, ID: out.ID, N: len(n.Diffs), Time: n.Time, Addressed: addressed})
	})
	return nil
}
