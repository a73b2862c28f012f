package router_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline/flow"
)

// TestAcknowledgedWithoutHandler puts middleware that acknowledges for its handler on the router of the
// program: the change is told, or a dead letter and an error name the handler that did not get it.
func TestAcknowledgedWithoutHandler(t *testing.T) {
	refuse := func(typ string) message.HandlerMiddleware {
		return func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				if msg.Metadata.Get("ce_type") == typ {
					return nil, errors.New("refused")
				}
				return next(msg)
			}
		}
	}
	// These do what PoisonQueue and Deduplicator of Watermill do.
	poison := func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			produced, err := next(msg)
			if err != nil {
				return nil, nil // it is in another topic now
			}
			return produced, nil
		}
	}
	var seen sync.Map
	dedup := func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) ([]*message.Message, error) {
			if _, known := seen.LoadOrStore(message.HandlerNameFromCtx(msg.Context())+msg.Metadata.Get("ce_type"), true); known {
				return nil, nil
			}
			return next(msg)
		}
	}
	for name, test := range map[string]struct {
		around []message.HandlerMiddleware
		lost   string // the handler whose dead letter is expected; empty: the change is told
	}{
		"PoisonQueue, a change":       {[]message.HandlerMiddleware{poison, refuse(flow.TypeChange)}, "vokter.match.changes"},
		"PoisonQueue, a notification": {[]message.HandlerMiddleware{poison, refuse(flow.TypeAddressed)}, "vokter.delivery.notifications"},
		"PoisonQueue, wakes":          {[]message.HandlerMiddleware{poison, refuse(flow.TypeWake)}, ""},
		"PoisonQueue, dead letters":   {[]message.HandlerMiddleware{poison, refuse(flow.TypeDeadLetter), refuse(flow.TypeChange)}, "vokter.match.changes"},
		"Deduplicator":                {[]message.HandlerMiddleware{dedup}, "vokter.fetch.requests"},
		"a context of its own": {[]message.HandlerMiddleware{poison, func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				if msg.Metadata.Get("ce_type") == flow.TypeChange {
					msg = message.NewMessage(msg.UUID, msg.Payload)
				}
				return next(msg)
			}
		}}, "vokter.match.changes"},
	} {
		t.Run(name, func(t *testing.T) {
			mills, _, _ := startSharedRouter(t)
			mills.AddMiddleware(test.around...)
			go mills.Run(t.Context())
			s, box, log := newSite(t, "<p>Zeus is in stock</p>"), newMailbox(), new(lockedBuffer)
			cfg := changingConfig(s, watchConfig(s, box, "", "out of stock"))
			cfg.Watermill, cfg.Checks, cfg.Logger = mills, 0, slog.New(slog.NewTextHandler(log, nil))
			every := 20 * time.Millisecond
			cfg.Every = &every
			r, stop := startRouter(t, cfg)
			if test.lost == "" {
				<-box.arrived
				stop()
				return
			}
			waitFor(t, "a dead letter", func() bool {
				letters, err := r.DeadLetters(t.Context(), flow.DeadFilter{Messages: true})
				return err == nil && len(letters) > 0 && strings.Contains(letters[0].Reason, test.lost)
			})
			waitFor(t, "its count", func() bool { return r.Summary().Unhandled > 0 })
			stop()
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "handler="+test.lost) {
				t.Errorf("no error names the handler: %s", log.String())
			}
		})
	}
}

// TestUnhandledCheckFails: the page of a request that its handler did not get has a failed check, and is checked again,
// also where the failure does not get through either.
func TestUnhandledCheckFails(t *testing.T) {
	for name, types := range map[string][]string{
		"the first request": {flow.TypeRequest}, "the first outcome": {flow.TypeOutcome}, "both": {flow.TypeRequest, flow.TypeOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen sync.Map
			s, box := newSite(t, "<p>Zeus is in stock</p>"), newMailbox()
			cfg := watchConfig(s, box, "", "out of stock")
			every := 20 * time.Millisecond
			cfg.Checks, cfg.Every = 0, &every
			cfg.WatermillMiddleware = []message.HandlerMiddleware{func(next message.HandlerFunc) message.HandlerFunc {
				return func(msg *message.Message) ([]*message.Message, error) {
					typ := msg.Metadata.Get("ce_type")
					if _, known := seen.LoadOrStore(typ, true); !known && slices.Contains(types, typ) {
						return nil, nil
					}
					return next(msg)
				}
			}}
			r, stop := startRouter(t, cfg)
			defer stop()
			waitFor(t, "a check after the failed one", func() bool {
				e, err := r.Explain(t.Context(), s.URL+"/a", inspect.ExplainFilter{})
				failed := func(c inspect.Check) bool { return strings.Contains(c.Reason, "without calling the handler vokter.") }
				return err == nil && slices.IndexFunc(e.Checks, failed) > 0
			})
		})
	}
}

// TestMiddlewareKeepsFromStage: what a middleware of Config.Middleware does not pass on is a dead letter.
func TestMiddlewareKeepsFromStage(t *testing.T) {
	for name, keep := range map[string]flow.Middleware{
		"nil": func(next flow.Processor) flow.Processor {
			return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
				if m.Type == flow.TypeChange {
					return nil
				}
				return next.Process(ctx, tx, m)
			})
		},
		"a context of its own": func(next flow.Processor) flow.Processor {
			return flow.ProcessorFunc(func(_ context.Context, tx flow.Tx, m flow.Message) error {
				return next.Process(context.Background(), tx, m)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, box := newSite(t, "<p>Zeus is in stock</p>"), newMailbox()
			cfg := changingConfig(s, watchConfig(s, box, "", "out of stock"))
			cfg.Checks = 0
			cfg.Middleware[flow.GroupMatch] = []flow.Middleware{keep}
			r, stop := startRouter(t, cfg)
			defer stop()
			waitFor(t, "a dead letter", func() bool {
				letters, err := r.DeadLetters(t.Context(), flow.DeadFilter{Messages: true})
				return err == nil && len(letters) > 0 && strings.Contains(letters[0].Reason, "Config.Middleware")
			})
		})
	}
}

// TestRejectedAgainAndAgain puts middleware on the router of the program that lets no message through: an error and
// Ready name a handler.
func TestRejectedAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, around := range map[string]message.HandlerMiddleware{
		"a copy without the context": func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) { return next(msg.Copy()) }
		},
		"another context": func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				msg.SetContext(context.Background())
				return next(msg)
			}
		},
		"messages": func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				_, err := next(msg)
				return []*message.Message{message.NewMessage("a", nil)}, err
			}
		},
		"an error": func(message.HandlerFunc) message.HandlerFunc {
			return func(*message.Message) ([]*message.Message, error) { return nil, errors.New("refused") }
		},
		"an error in the middle of a chain": func(next message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				if msg.Metadata.Get("ce_type") == flow.TypeChange {
					return nil, errors.New("refused")
				}
				return next(msg)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mills, _, _ := startSharedRouter(t)
			var off atomic.Bool
			mills.AddMiddleware(func(next message.HandlerFunc) message.HandlerFunc {
				bad := around(next)
				return func(msg *message.Message) ([]*message.Message, error) {
					if off.Load() {
						return next(msg)
					}
					return bad(msg)
				}
			})
			go mills.Run(t.Context())
			s, box, log := newSite(t, "<p>Zeus is in stock</p>"), newMailbox(), new(lockedBuffer)
			cfg := changingConfig(s, watchConfig(s, box, "", "out of stock"))
			cfg.Watermill, cfg.Checks, cfg.Logger = mills, 0, slog.New(slog.NewTextHandler(log, nil))
			r, stop := startRouter(t, cfg)
			waitFor(t, "Ready", func() bool {
				return r.Ready() != nil && strings.Contains(r.Ready().Error(), "rejects a message of the handler vokter.")
			})
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "handler=vokter.") {
				t.Errorf("no error names the handler: %s", log.String())
			}
			off.Store(true)
			waitFor(t, "the end of the rejections", func() bool { return r.Ready() == nil })
			stop()
		})
	}
}
