package manage

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/time/rate"
)

// Scope is a group of routes that a token may use.
type Scope string

// The scopes. None includes another one.
const (
	Read  Scope = "read"  // pages, subscriptions, texts, notifications
	Write Scope = "write" // subscribe, cancel, pause, resume, check
	Admin Scope = "admin" // what concerns the whole process: backups, replays, receivers
)

// Token is a bearer token as the server knows it: only its hash.
type Token struct {
	// Name names the token in logs.
	Name string
	// Hash is the hash of the token as HashToken returns it.
	Hash string
	// Scopes are the scopes of the token.
	Scopes []Scope
	// Clients are the clients whose subscriptions the token can see and change. Nil means all.
	Clients []string
	// Sinks are the sinks that its subscriptions may name. Nil means all.
	Sinks []string
	// Rate is how many requests a second are answered, after a burst of as many. 0 means no limit.
	Rate int
}

// hashPrefix begins a hash and names its function. A token has at least 128 random bits, so that a
// slow function would protect nothing.
const hashPrefix = "sha256:"

// HashToken returns the hash of a token, as configurations hold it.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// CheckHash returns an error where hash is not what HashToken returns.
func CheckHash(hash string) error {
	digits, ok := strings.CutPrefix(hash, hashPrefix)
	if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != sha256.Size || strings.ToLower(digits) != digits {
		return errors.New("is not the hash of a token; vokter-stream token new makes a token and its hash")
	}
	return nil
}

// caller is who sends a request: a token with its limit.
type caller struct {
	Token
	limit *rate.Limiter
}

// callers are the tokens of a server.
type callers []*caller

func newCallers(tokens []Token) callers {
	var all callers
	for _, t := range tokens {
		c := &caller{Token: t}
		if t.Rate > 0 {
			c.limit = rate.NewLimiter(rate.Limit(t.Rate), t.Rate)
		}
		all = append(all, c)
	}
	return all
}

// find returns the caller with a token, or nil. It takes the same time for all tokens.
func (all callers) find(token string) *caller {
	hash := []byte(HashToken(token))
	var found *caller
	for _, c := range all {
		if subtle.ConstantTimeCompare(hash, []byte(c.Hash)) == 1 {
			found = c
		}
	}
	return found
}

// may returns an error where c has none of the given scopes.
func (c *caller) may(scopes []string) error {
	for _, s := range scopes {
		if !slices.Contains(c.Scopes, Scope(s)) {
			return fmt.Errorf("the token %q lacks the scope %s", c.Name, s)
		}
	}
	return nil
}

// owns reports whether c may see and change the subscriptions of client.
func (c *caller) owns(client string) bool {
	return c.Clients == nil || slices.Contains(c.Clients, client)
}

// delivers reports whether subscriptions that c makes may name sink.
func (c *caller) delivers(sink string) bool { return c.Sinks == nil || slices.Contains(c.Sinks, sink) }

type callerKey struct{}

// callerOf returns who sent the request with this context.
func callerOf(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}
