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
	"slices"

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
	// Cache is how many indexed subscriptions are kept in memory, besides those of the current
	// document. Default 200,000, about 100 MB.
	Cache int
	// Memory bounds the memory for reading large changes. Default: no bound.
	Memory flow.Memory
}

// Processor is the stage. It stores the stamped subscriptions of each page in the page's state.
// Messages of its two topics may be handled at the same time: a change deletes only what no
// stamp writes again, which are ended records, and all records of an incarnation after its last
// stamp.
type Processor struct {
	cfg   Config
	cache *cache
	run   string // identifies this Processor in filters; see analysis
}

var _ flow.Processor = (*Processor)(nil)

// New returns the stage for consumer group flow.GroupMatch, which handles the messages of
// flow.TopicSubscriptions and flow.TopicChanges.
func New(cfg Config) *Processor {
	if cfg.Languages == nil {
		cfg.Languages = text.NewLanguages()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Cache <= 0 {
		cfg.Cache = 200_000
	}
	return &Processor{cfg: cfg, cache: newCache(cfg.Cache), run: rand.Text()}
}

// memoryFor is how many bytes of memory it takes to handle a message, for each byte of its
// body.
const memoryFor = 16

// Process handles one message. A stamped subscription is stored in the page's table. A change
// emits a notification for each subscription that it matches and each of its receivers. The end
// of a page clears its table; if the page expired, it emits a timeout notification for each
// client. A change or an end that names a stamp which has not arrived yet is an error of
// failure.ClassNotYet. A body that cannot be decoded is a permanent error, state that cannot be
// decoded one of failure.ClassBroken, and an unknown type that of flow.Message.UnknownType.
func (p *Processor) Process(ctx context.Context, tx flow.Tx, m flow.Message) error {
	free, err := p.cfg.Memory.Take(ctx, memoryFor*int64(len(m.Body)))
	if err != nil {
		return err
	}
	defer free()
	switch m.Type {
	case flow.TypeStamp:
		err = handle(m, func(s *flow.Stamped) error { return applyStamp(tx.State(m.Key), s) })
	case flow.TypeChange:
		err = handle(m, func(c *flow.Change) error { return p.change(tx, m, c) })
	case flow.TypeEnded:
		err = handle(m, func(e *flow.Ended) error { return p.ended(tx, m, e) })
	default:
		return m.UnknownType(flow.GroupMatch)
	}
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// handle calls f with the body of m.
func handle[T any](m flow.Message, f func(*T) error) error {
	var body T
	if err := json.Unmarshal(m.Body, &body); err != nil {
		return failure.Permanent(fmt.Errorf("message %s: %w", m.ID, err))
	}
	return f(&body)
}

func (p *Processor) change(tx flow.Tx, m flow.Message, c *flow.Change) error {
	if err := checkWindows(c); err != nil {
		return failure.Permanent(err)
	}
	st := tx.State(m.Key)
	applied, err := waitFor(st, c.Incarnation, c.Stamp)
	if err != nil {
		return err
	}
	t, err := p.table(st, c, applied)
	if err != nil {
		return err
	}
	r := ChangeRecord{ID: c.ID, Document: c.Document, Version: c.Version, Check: c.Check, Time: c.Time, Size: c.Size}
	matched := 0
	if t == nil {
		tx.OnCommit(func() {
			p.cfg.Observe.Note(flow.Observation{Kind: flow.KindFiltered, Page: c.Page, Document: c.Document, URL: c.URL, ID: c.ID, Time: c.Time})
		})
	} else if matched, err = p.notify(tx, c, t, &r); err != nil {
		return err
	}
	if matched > 0 {
		tx.OnCommit(func() {
			p.cfg.Logger.Debug("keywords matched", "url", c.URL, "version", c.Version, "subscriptions", matched, "change", c.ID)
		})
	}
	return remember(st, r)
}

// ended notifies the clients of a page that expired, and deletes the state of the page's
// incarnation. It deletes the history too, unless the page is listed as expired.
func (p *Processor) ended(tx flow.Tx, m flow.Message, e *flow.Ended) error {
	st := tx.State(m.Key)
	if _, err := waitFor(st, e.Incarnation, e.Stamp); err != nil {
		return err
	}
	if e.Expiry != nil {
		if err := p.timeOut(tx, st, e); err != nil {
			return err
		}
	}
	if !e.Listed {
		if err := clearHistory(st); err != nil {
			return err
		}
	}
	if err := forget(st, e.Incarnation); err != nil {
		return err
	}
	tx.OnCommit(func() { p.cache.drop(e.Incarnation) })
	return nil
}

// notify emits the notifications of c for the subscriptions of t and notes them in r. It
// returns how many subscriptions matched.
func (p *Processor) notify(tx flow.Tx, c *flow.Change, t *table, r *ChangeRecord) (int, error) {
	matched := 0
	matches := ownFirst(t.matcher.Match(c), t.records)
	told := newRepeats(matches, t.records)
	for _, found := range matches {
		s := t.records[found.ID]
		if c.Version <= s.From || c.Version > s.Until {
			continue
		}
		matched++
		n := pipeline.Notification{
			Status: pipeline.StatusOK, URL: s.Subscription.URL, Diffs: found.Diffs, Type: pipeline.NotificationType, Time: c.Time,
			Client: s.Subscription.WithDefaults().Client, Version: c.Version, Title: c.Title, Language: c.Language, ContentType: c.ContentType, Change: c.ID,
			Truncated: found.Omitted > 0, Omitted: found.Omitted,
		}
		for _, to := range s.Subscription.Receivers() {
			if told.note(s, to, n) {
				continue
			}
			n.ID = flow.NotificationID(c.ID, s.Incarnation, to.Sink)
			if err := p.send(tx, s, to, n, s.Subscription.Digest, r); err != nil {
				return matched, err
			}
		}
	}
	return matched, nil
}

// timeOut emits one timeout notification for each client and receiver of an expired page. Its
// ID names the smallest incarnation of the client's subscriptions that ended with the page and
// name that receiver, so that cancelling that subscription withdraws it.
func (p *Processor) timeOut(tx flow.Tx, st flow.State, e *flow.Ended) error {
	over, err := expiredRecords(st, e.Incarnation)
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("given up after %d failed checks in a row; the last one: %s", e.Expiry.Failures, cmp.Or(e.Expiry.Reason, e.Expiry.Class))
	r := ChangeRecord{Time: e.Expiry.Time, Expired: reason}
	type recipient struct {
		client   string
		receiver pipeline.Receiver
	}
	done := map[recipient]bool{}
	for _, s := range over {
		client := s.Subscription.WithDefaults().Client
		n := pipeline.Notification{
			Status: pipeline.StatusTimeout, URL: s.Subscription.URL, Diffs: []pipeline.Diff{}, Type: pipeline.NotificationType,
			Time: e.Expiry.Time, Client: client, Reason: reason,
		}
		for _, to := range s.Subscription.Receivers() {
			if done[recipient{client, to}] {
				continue
			}
			done[recipient{client, to}] = true
			n.ID = flow.TimeoutID(e.Page, e.Incarnation, e.Expiry.Lineage, s.Incarnation, to.Sink)
			if err := p.send(tx, s, to, n, nil, &r); err != nil {
				return err
			}
		}
	}
	return remember(st, r)
}

// expiredRecords returns the subscriptions that ended because the page expired, sorted by
// client and then by incarnation.
func expiredRecords(st flow.State, incarnation string) ([]*flow.Stamped, error) {
	var all []*flow.Stamped
	for _, v := range st.Scan(name(expired, incarnation, "")) {
		if v.Err != nil {
			return nil, v.Err
		}
		s := new(flow.Stamped)
		if err := get(v.Bytes, s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *flow.Stamped) int {
		return cmp.Or(cmp.Compare(a.Subscription.WithDefaults().Client, b.Subscription.WithDefaults().Client), cmp.Compare(a.Incarnation, b.Incarnation))
	})
	return all, nil
}

// send emits n, a notification of s, to one receiver and notes it in r. With a digest, the
// receiver collects it.
func (p *Processor) send(tx flow.Tx, s *flow.Stamped, to pipeline.Receiver, n pipeline.Notification, digest *pipeline.Digest, r *ChangeRecord) error {
	out, err := flow.Addressed{Receiver: to, Document: s.Document, Subscription: s.Incarnation, Notification: n, Digest: digest}.Message()
	if err != nil {
		return err
	}
	tx.Emit(out)
	r.note(to, n)
	tx.OnCommit(func() {
		p.cfg.Observe.Note(flow.Observation{Kind: flow.KindNotification, Page: s.Page, Document: s.Document,
			URL: n.URL, ID: out.ID, N: len(n.Diffs), Time: n.Time})
	})
	return nil
}
