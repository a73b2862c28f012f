package sim

import (
	"time"

	snowball "github.com/kljensen/snowball/english"

	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
	"github.com/vokter/vokter/test/oracle"
)

// buildStages makes the stages anew, as a process that starts does.
func (w *world) buildStages(p *process) {
	w.slowConsumer = pick(w.rng, consumers)
	clock := func() time.Time { return w.now }
	cfg := delivery.Config{
		Sinks: map[string]pipeline.Sink{"flaky": batchSink(2), "down": batchSink(100), pickySink: batchSink(5)},
		Now:   clock, Jitter: w.rng.Float64,
		Policy: delivery.Policy{DeadAfter: w.policy.deadAfter, ExpireAfter: w.policy.expireAfter}, Epoch: p.tenureOf,
		Hand: func(a delivery.Attempt) {
			w.handAttempt(p, a)
			p.attempts = append(p.attempts, attempt{Attempt: a})
			if w.cfg.DuplicateAttempts {
				p.attempts = append(p.attempts, attempt{Attempt: a})
			}
		},
	}
	p.delivery = delivery.NewDelivery(cfg)
	expireAfter := w.expireAfter
	if w.cfg.ExpireDelay != 0 && expireAfter > 0 {
		expireAfter += w.cfg.ExpireDelay
	}
	batch := 0 // the default, which no change of a simulated page exceeds
	if w.cfg.Seed%3 == batchRemainder {
		batch = 2
	}
	matcher := match.New(match.Config{Batch: batch, Epoch: p.tenureOf})
	p.processors = map[consumer]flow.Processor{
		consumers[0]:     index.New(index.Config{Now: clock, Current: true, Expire: pipeline.Expire{After: expireAfter, Retry: w.expireRetry}, Epoch: p.tenureOf}),
		consumers[1]:     w.fetchProcessor(p),
		deliveryConsumer: p.delivery,
		consumers[3]:     delivery.NewDeadLetters(delivery.DeadConfig{Now: clock}),
		consumers[4]:     w.healthProcessor(),
		{Group: flow.GroupDiff, Topic: flow.TopicSnapshots}:      diff.New(diff.Config{}),
		{Group: flow.GroupMatch, Topic: flow.TopicSubscriptions}: matcher,
		{Group: flow.GroupMatch, Topic: flow.TopicChanges}:       matcher,
	}
	if w.cfg.WrapProcessor != nil {
		for c, stage := range p.processors {
			p.processors[c] = w.cfg.WrapProcessor(c.Group, stage)
		}
	}
}

// batchRemainder is what remains of the seeds, divided by 3, in whose runs changes are told in small batches.
const batchRemainder = 0

// languageOf returns what the oracle knows of a language; nil is no language.
func languageOf(tag string) *oracle.Language {
	if tag == "en" || tag == "en-GB" {
		return englishLanguage
	}
	return nil
}

var englishLanguage = newEnglish(func(word string) string { return snowball.Stem(word, true) })
