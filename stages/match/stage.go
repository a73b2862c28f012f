package match

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text"
)

// Config is what New takes. The zero Config is ready to use.
type Config struct {
	// Languages knows stemmers and stop words. Default: text.NewLanguages().
	Languages *text.Languages
	// Logger is told of each change that touches a keyword, at level debug. Default: nobody.
	Logger *slog.Logger
	// Observe hears of each notification, as pipeline.KindNotification, once it is committed.
	Observe pipeline.Observer
	// Cache is how many subscriptions are kept in memory, indexed, beside those of the
	// document at hand. Default 200,000, about 100 MB.
	Cache int
}

// Processor is the stage. It keeps the stamped subscriptions of each page in the page's
// state, in which the handlers of the two topics write different names, so that they can
// run at the same time.
type Processor struct {
	cfg   Config
	cache *cache
	run   string // tells this run from earlier ones, in filters only
}

var _ pipeline.Processor = (*Processor)(nil)

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

// Process handles one message: a stamped subscription goes into the page's table; a change
// emits a notification for each subscription that it touches and each of its receivers;
// the end of a page clears its table. Changes and ends that name a stamp which has not come yet are
// errors of pipeline.ClassNotYet; what cannot be read, and types that are not known, are
// permanent errors.
func (p *Processor) Process(_ context.Context, tx pipeline.Tx, m pipeline.Message) error {
	var err error
	switch m.Type {
	case pipeline.TypeStamp:
		err = handle(m, func(s *pipeline.Stamped) error { return applyStamp(tx.State(m.Key), s) })
	case pipeline.TypeChange:
		err = handle(m, func(c *pipeline.Change) error { return p.change(tx, m, c) })
	case pipeline.TypeEnded:
		err = handle(m, func(e *pipeline.Ended) error { return p.ended(tx, m, e) })
	default:
		err = pipeline.Permanent(fmt.Errorf("message %s: type %q is not known", m.ID, m.Type))
	}
	if err != nil {
		return fmt.Errorf("match: %w", err)
	}
	return nil
}

// handle calls f with the body of m.
func handle[T any](m pipeline.Message, f func(*T) error) error {
	var body T
	if err := json.Unmarshal(m.Body, &body); err != nil {
		return pipeline.Permanent(fmt.Errorf("message %s: %w", m.ID, err))
	}
	return f(&body)
}

func (p *Processor) change(tx pipeline.Tx, m pipeline.Message, c *pipeline.Change) error {
	if err := Check(c); err != nil {
		return pipeline.Permanent(err)
	}
	st := tx.State(m.Key)
	applied, err := waitFor(st, c.Incarnation, c.Stamp)
	if err != nil {
		return err
	}
	t, err := p.table(st, c, applied)
	if err != nil || t == nil {
		return err
	}
	sent := 0
	for _, found := range t.matcher.Match(c) {
		s := t.records[found.ID]
		if c.Version <= s.From || c.Version > s.Until {
			continue
		}
		n := pipeline.Notification{
			Status: pipeline.StatusOK, URL: s.Subscription.URL, Diffs: found.Diffs, Type: "notification", Time: c.Time,
			Client: s.Subscription.WithDefaults().Client, Version: c.Version, Title: c.Title, Language: c.Language, Change: c.ID,
			Truncated: found.Truncated,
		}
		if err := p.send(tx, s, n); err != nil {
			return err
		}
		sent++
	}
	if sent > 0 {
		tx.OnCommit(func() {
			p.cfg.Logger.Debug("keywords touched", "url", c.URL, "version", c.Version, "subscriptions", sent, "change", c.ID)
		})
	}
	return nil
}

// send emits n to every receiver of s, once each.
func (p *Processor) send(tx pipeline.Tx, s *pipeline.Stamped, n pipeline.Notification) error {
	seen := make(map[pipeline.Receiver]bool, len(s.Subscription.Sinks))
	for _, sink := range s.Subscription.Sinks {
		r := pipeline.Receiver{Sink: sink}
		if seen[r] {
			continue
		}
		seen[r] = true
		n.ID = pipeline.NotificationID(n.Change, s.Incarnation, r.ID())
		a := pipeline.Addressed{Receiver: r, Document: s.Document, Subscription: s.Incarnation, Notification: n}
		out, err := a.Message()
		if err != nil {
			return err
		}
		tx.Emit(out)
		tx.OnCommit(func() {
			p.cfg.Observe.Note(pipeline.Observation{Kind: pipeline.KindNotification, Page: s.Page, Document: s.Document,
				URL: n.URL, ID: out.ID, N: len(n.Diffs), Time: n.Time})
		})
	}
	return nil
}

// ended forgets what the state holds of an incarnation of a page.
func (p *Processor) ended(tx pipeline.Tx, m pipeline.Message, e *pipeline.Ended) error {
	st := tx.State(m.Key)
	if _, err := waitFor(st, e.Incarnation, e.Stamp); err != nil {
		return err
	}
	if err := forget(st, e.Incarnation); err != nil {
		return err
	}
	tx.OnCommit(func() { p.cache.drop(e.Incarnation) })
	return nil
}
