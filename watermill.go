package vokter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
)

// handlers are the Watermill handlers of one Run.
type handlers struct {
	router *message.Router
	// ownsRouter says that Run runs and closes the router. Otherwise the embedding program does.
	ownsRouter bool
	handlers   []handler
	// running is closed when the handlers have started, ended when they have stopped.
	running     <-chan struct{}
	ended       chan struct{}
	markRunning func() // closes running
}

// handler holds the arguments for adding one handler to a router.
type handler struct {
	name, topic string
	subscriber  message.Subscriber
	handle      message.NoPublishHandlerFunc
}

// addHandlers makes the handlers of the stages and of Handle, with the router that will run them.
func (r *run) addHandlers() error {
	running := make(chan struct{})
	w := &handlers{router: r.cfg.Watermill, running: running, markRunning: func() { close(running) }, ended: make(chan struct{})}
	if w.router == nil {
		// Watermill's adapter builds a field map for every line, even where the level is not
		// logged.
		var logger watermill.LoggerAdapter = watermill.NopLogger{}
		if r.cfg.Logger.Enabled(context.Background(), slog.LevelDebug) {
			logger = watermill.NewSlogLoggerWithLevelMapping(r.cfg.Logger, map[slog.Level]slog.Level{slog.LevelInfo: slog.LevelDebug})
		}
		var err error
		if w.router, err = message.NewRouter(message.RouterConfig{CloseTimeout: closeTimeout / 2}, logger); err != nil {
			return err
		}
		w.ownsRouter, w.running = true, w.router.Running()
	}
	consumers := append(r.stages.consumers(), r.extraConsumers...)
	if r.cfg.Mode == ModeCommands {
		// The other stages need a configuration, which this Router may not have. Match leaves to others what needs one.
		consumers = slices.DeleteFunc(consumers, func(c consumer) bool {
			return c.group != flow.GroupIndex && c.group != flow.GroupDiff && c.group != flow.GroupMatch
		})
	}
	for _, b := range consumers {
		w.handlers = append(w.handlers, handler{
			name: r.handlerName(b), topic: b.topic, subscriber: r.transport.Subscriber(b.group),
			handle: r.withWatermillMiddleware(r.newHandler(b.group, b.processor)),
		})
	}
	r.handlers = w
	return nil
}

// handlerName returns the name of b's handler in Watermill, which for example metrics show.
func (r *Router) handlerName(b consumer) string {
	if r.cfg.Name != "" {
		return fmt.Sprintf("vokter.%s.%s.%s", r.cfg.Name, b.group, b.topic)
	}
	return fmt.Sprintf("vokter.%s.%s", b.group, b.topic)
}

// run runs the handlers until ctx is done or the router is closed.
func (w *handlers) run(ctx context.Context) error {
	defer close(w.ended)
	if w.ownsRouter {
		if _, err := w.addToRouter(); err != nil {
			return err
		}
		return w.router.Run(ctx)
	}
	select {
	case <-w.router.Running():
	case <-ctx.Done():
		return nil
	}
	started, err := w.startInSharedRouter(ctx)
	if err != nil {
		return err
	}
	w.markRunning()
	for _, h := range started {
		<-h.Stopped()
	}
	if ctx.Err() == nil {
		return errors.New("the message.Router of Config.Watermill was closed before the Router had ended; close it after Run has returned")
	}
	return nil
}

// joinMu is held while a Router adds its handlers to a router of the program and starts them.
// RunHandlers starts all handlers added so far with the context of its caller, so two Routers
// must not do this at the same time.
var joinMu sync.Mutex

// startInSharedRouter adds the handlers to the running router of the program and runs them.
func (w *handlers) startInSharedRouter(ctx context.Context) ([]*message.Handler, error) {
	joinMu.Lock()
	defer joinMu.Unlock()
	if w.router.IsClosed() {
		return nil, errors.New("the message.Router of Config.Watermill is closed already")
	}
	started, err := w.addToRouter()
	if err != nil {
		return nil, err
	}
	return started, w.router.RunHandlers(ctx)
}

// addToRouter adds the handlers to the router.
func (w *handlers) addToRouter() (added []*message.Handler, err error) {
	defer func() { // Watermill panics
		switch p := recover().(type) {
		case nil:
		case message.DuplicateHandlerNameError:
			err = fmt.Errorf("the message.Router of Config.Watermill has a handler named %q already; give each Router that shares it a Config.Name of its own", p.HandlerName)
		default:
			panic(p)
		}
	}()
	for _, h := range w.handlers {
		added = append(added, w.router.AddConsumerHandler(h.name, h.topic, h.subscriber, h.handle))
	}
	return added, nil
}

// withWatermillMiddleware returns h with Config.WatermillMiddleware around it.
func (r *Router) withWatermillMiddleware(h message.NoPublishHandlerFunc) message.NoPublishHandlerFunc {
	if len(r.cfg.WatermillMiddleware) == 0 {
		return h
	}
	wrapped := func(msg *message.Message) ([]*message.Message, error) { return nil, h(msg) }
	for _, m := range slices.Backward(r.cfg.WatermillMiddleware) {
		wrapped = m(wrapped)
	}
	return func(msg *message.Message) (err error) {
		ctx := msg.Context()
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			// A stage fails only where Run ends; other errors become dead letters. Any other
			// error comes from the middleware.
			if class, _ := failure.ClassOf(err); err != nil && class != failure.ClassBroken && ctx.Err() == nil {
				r.cfg.Logger.Error("a Watermill middleware failed; unless it acknowledged the message, it comes again", "handler", message.HandlerNameFromCtx(ctx), "id", msg.UUID, "err", err)
			}
		}()
		produced, err := wrapped(msg)
		if err == nil && len(produced) > 0 {
			err = errors.New("it returned messages; publish them where they belong, and return none")
		}
		return err
	}
}
