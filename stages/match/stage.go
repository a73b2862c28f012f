package match

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/vokter/vokter/pipeline"
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
	Memory pipeline.Memory
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
// are errors of pipeline.ClassNotYet, bodies that cannot be read permanent ones, state that
// cannot be read is of pipeline.ClassBroken. Types that are not known are a
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
		err = handle(m, func(c *pipeline.Change) error { return p.change(tx, m, c) })
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
		return pipeline.Permanent(fmt.Errorf("message %s: %w", m.ID, err))
	}
	return f(&body)
}

func (p *Processor) change(tx flow.Tx, m flow.Message, c *pipeline.Change) error {
	if err := Check(c); err != nil {
		return pipeline.Permanent(err)
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
