package manage

import (
	"context"
	"crypto/subtle"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/vokter/vokter/config"
)

// Access says who may use the API. It can be replaced while the API is served.
type Access struct{ current atomic.Pointer[accessRules] }

// accessRules is a config.API that is ready for use.
type accessRules struct {
	callers     []*caller
	origins     map[string]bool
	crossOrigin *http.CrossOriginProtection
}

// Configure replaces tokens and origins. Connections stay open; their next requests need a token
// that is still valid. Streams of events end whose token was changed or removed.
func (a *Access) Configure(c config.API) error {
	now := &accessRules{origins: make(map[string]bool), crossOrigin: http.NewCrossOriginProtection()}
	var before []*caller
	if old := a.current.Load(); old != nil {
		before = slices.Clone(old.callers)
	}
	for _, t := range c.Tokens {
		same := slices.IndexFunc(before, func(c *caller) bool { return reflect.DeepEqual(c.Token, t) })
		if same < 0 {
			now.callers = append(now.callers, newCaller(t))
			continue
		}
		now.callers = append(now.callers, before[same])
		before = slices.Delete(before, same, same+1)
	}
	for _, o := range c.CORS {
		if err := now.crossOrigin.AddTrustedOrigin(o); err != nil {
			return err
		}
		now.origins[o] = true
	}
	a.current.Store(now)
	for _, c := range before {
		close(c.revoked)
	}
	return nil
}

// caller is who sends a request: a token with its limit.
type caller struct {
	config.Token
	limit   *rate.Limiter // nil: no limit
	revoked chan struct{} // closed when the token is changed or removed
	// streams and previews bound what it does at once, and usage what it has.
	streams, previews slots
	usage             usage
}

func newCaller(t config.Token) *caller {
	c := &caller{
		Token: t, revoked: make(chan struct{}), streams: newSlots(t.Quota.Streams), previews: newSlots(t.Quota.Previews),
		usage: usage{slot: make(chan struct{}, 1)},
	}
	if t.Rate > 0 {
		c.limit = rate.NewLimiter(rate.Limit(t.Rate), max(1, int(math.Ceil(t.Rate))))
	}
	return c
}

// isRevoked reports whether the token was changed or removed.
func (c *caller) isRevoked() bool {
	select {
	case <-c.revoked:
		return true
	default:
		return false
	}
}

// findCaller returns the caller whose token has this hash, or nil. It takes the same time for all tokens.
func findCaller(all []*caller, hash string) *caller {
	var found *caller
	for _, c := range all {
		if subtle.ConstantTimeCompare([]byte(hash), []byte(c.Hash)) == 1 {
			found = c
		}
	}
	return found
}

// checkScopes returns an error where c lacks one of the given scopes.
func (c *caller) checkScopes(scopes []string) error {
	for _, s := range scopes {
		if !slices.Contains(c.Scopes, config.Scope(s)) {
			return fmt.Errorf("the token %q lacks the scope %s", c.Name, s)
		}
	}
	return nil
}

// mayUseClient reports whether c may see and change the subscriptions of client.
func (c *caller) mayUseClient(client string) bool {
	return c.Clients == nil || slices.Contains(c.Clients, client)
}

// mayUseSink reports whether subscriptions that c makes may name sink.
func (c *caller) mayUseSink(sink string) bool {
	return c.Sinks == nil || slices.Contains(c.Sinks, sink)
}

// callerKey is the key of the caller in the context of a request.
type callerKey struct{}

// callerOf returns who sent the request with this context.
func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}
