// Package match finds whose keywords a change touches: the stage that turns changes into
// notifications, and its core, the Matcher, which needs neither transport nor clock.
//
// A keyword is counted within each group of blocks: it is added where the new side holds
// more occurrences than the old, removed where it holds fewer. Only occurrences that touch
// an edit are counted; all others stand on both sides, so the balance is the same.
//
// All keywords of a document are in one index: a word under its term, a phrase under the
// pair of neighbours that the fewest other keywords have, tagged by what is compared
// (case, marks, stems) and whether stop words are passed over. Only tokens near
// edits are looked up, so that the work depends on the change and on what it touches, not
// on how many subscriptions there are.
//
// What the last changes of a page told whom is kept, see History; an Explainer says of a
// keyword why a change did not touch it.
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
	// Languages knows stemmers and stop words. Default: text.NewLanguages().
	Languages *text.Languages
	// Logger is told of each change that touches a keyword, at level debug. Default: nobody.
	Logger *slog.Logger
	// Observe hears of each notification, as pipeline.KindNotification, once it is committed.
	Observe flow.Observer
	// Cache is how many subscriptions are kept in memory, indexed, beside those of the
	// document at hand. Default 200,000, about 100 MB.
	Cache int
	// Memory bounds what reading large changes takes. Default: no bound.
	Memory flow.Memory
}

// Processor is the stage. It keeps the stamped subscriptions of each page in the page's
// state. The handlers of the two topics can run at the same time: what a stamp writes, the
// other one deletes only where no stamp can write it again, which are the records that ended
// and, behind the last stamp of an incarnation, all that there is of it.
type Processor struct {
	cfg   Config
	cache *cache
	run   string // tells this run from earlier ones, in filters only
}

var _ flow.Processor = (*Processor)(nil)

// New returns the stage for consumer group pipeline.GroupMatch. It is to be given the
// messages of pipeline.TopicSubscriptions and pipeline.TopicChanges.
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

// memoryFor is how many bytes handling a message takes for each byte of its body.
const memoryFor = 16

// Process handles one message: a stamped subscription goes into the page's table; a change
// emits a notification for each subscription that it touches and each of its receivers;
// the end of a page clears its table, and where the page was given up emits a timeout
// notification for each client. Changes and ends that name a stamp which has not come yet
// are errors of failure.ClassNotYet, bodies that cannot be read permanent ones, state that
// cannot be read is of failure.ClassBroken. Types that are not known are a
// pipeline.Message.UnknownType.
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
	r := ChangeRecord{ID: c.ID, Document: c.Document, Version: c.Version, Check: c.Check, Time: c.Time}
	told := 0
	if t != nil {
		if told, err = p.tell(tx, c, t, &r); err != nil {
			return err
		}
	}
	if told > 0 {
		tx.OnCommit(func() {
			p.cfg.Logger.Debug("keywords touched", "url", c.URL, "version", c.Version, "subscriptions", told, "change", c.ID)
		})
	}
	return remember(st, r)
}

// ended tells the clients of a page that was given up, and forgets what the state holds of
// an incarnation of a page. The history of a page that is not listed as expired goes too.
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

// tell emits what c says to the subscriptions of t and notes it in r. It returns how many
// subscriptions are told.
func (p *Processor) tell(tx flow.Tx, c *flow.Change, t *table, r *ChangeRecord) (int, error) {
	told := 0
	for _, found := range t.matcher.Match(c) {
		s := t.records[found.ID]
		if c.Version <= s.From || c.Version > s.Until {
			continue
		}
		told++
		n := pipeline.Notification{
			Status: pipeline.StatusOK, URL: s.Subscription.URL, Diffs: found.Diffs, Type: pipeline.NotificationType, Time: c.Time,
			Client: s.Subscription.WithDefaults().Client, Version: c.Version, Title: c.Title, Language: c.Language, Change: c.ID,
			Truncated: found.Omitted > 0, Omitted: found.Omitted,
		}
		for _, to := range s.Subscription.Receivers() {
			n.ID = flow.NotificationID(c.ID, s.Incarnation, to.Sink)
			if err := p.send(tx, s, to, n, s.Subscription.Digest, r); err != nil {
				return told, err
			}
		}
	}
	return told, nil
}

// timeOut tells each client of the page once at each receiver that it was given up: in the
// name of the smallest incarnation of those of its subscriptions that ended with the page
// and name that receiver, so that a withdrawal of it takes this back as well.
func (p *Processor) timeOut(tx flow.Tx, st flow.State, e *flow.Ended) error {
	over, err := expiredRecords(st, e.Incarnation)
	if err != nil {
		return err
	}
	reason := fmt.Sprintf("given up after %d failed checks in a row; the last one: %s", e.Expiry.Failures, cmp.Or(e.Expiry.Reason, e.Expiry.Class))
	r := ChangeRecord{Time: e.Expiry.Time, Expired: reason}
	type ear struct {
		client   string
		receiver pipeline.Receiver
	}
	told := map[ear]bool{}
	for _, s := range over {
		client := s.Subscription.WithDefaults().Client
		n := pipeline.Notification{
			Status: pipeline.StatusTimeout, URL: s.Subscription.URL, Diffs: []pipeline.Diff{}, Type: pipeline.NotificationType,
			Time: e.Expiry.Time, Client: client, Reason: reason,
		}
		for _, to := range s.Subscription.Receivers() {
			if told[ear{client, to}] {
				continue
			}
			told[ear{client, to}] = true
			n.ID = flow.TimeoutID(e.Page, e.Incarnation, e.Expiry.Lineage, s.Incarnation, to.Sink)
			if err := p.send(tx, s, to, n, nil, &r); err != nil {
				return err
			}
		}
	}
	return remember(st, r)
}

// expiredRecords returns the subscriptions that ended because the page was given up, by
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

// send emits n, which s hears, to one receiver and notes it in r. It is collected there where
// digest says so.
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
