package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline/registry"
)

// API has the settings of the management API.
type API struct {
	// Tokens are the tokens that callers may send, besides the one in the data directory.
	Tokens []Token
	// CORS are the origins of web sites whose pages may use the API from a browser, such as
	// https://vokter.example.com.
	CORS []string
}

// Scope is a group of routes of the management API.
type Scope string

// The scopes. None includes another one.
const (
	ScopeRead  Scope = "read"  // pages, subscriptions, texts, notifications
	ScopeWrite Scope = "write" // subscribe, cancel, pause, resume, check
	ScopeAdmin Scope = "admin" // what concerns the whole process: backups, retries, replays
)

// Token is a token of the management API, of which only the hash is kept.
type Token struct {
	// Name names the token in messages.
	Name string
	// Hash is the hash of the token, as HashToken returns it.
	Hash string
	// Scopes say what may be done with it, at least one.
	Scopes []Scope
	// Clients are the clients whose subscriptions it can see and change. Nil means all.
	Clients []string
	// Sinks are the sinks that its new subscriptions may name. Nil means all.
	Sinks []string
	// Rate is how many requests a second are answered, on average. 0 means no limit.
	Rate float64
	// Quota limits how much the token may have, and what it may do at the same time.
	Quota Quota
}

// Quota limits what a token takes of a process. 0 means no limit.
type Quota struct {
	// Subscriptions, Pages and Hosts are how many the subscriptions of the token's clients may be, and of how
	// many pages and hosts, whoever made them. Linked pages count with the most that may be followed.
	Subscriptions int `yaml:"subscriptions"`
	Pages         int `yaml:"pages"`
	Hosts         int `yaml:"hosts"`
	// Streams and Previews are how many streams of events are open, and pages are tried, at once.
	Streams  int `yaml:"streams"`
	Previews int `yaml:"previews"`
}

const (
	// hashPrefix begins a hash and names its function. A token is random, so that a slow function
	// would protect nothing.
	hashPrefix = "sha256:"
	// minTokenLength is the least length of a token, in characters.
	minTokenLength = 20
	// defaultTokenRate is the default of Token.Rate.
	defaultTokenRate = 100
	// defaultStreams and defaultPreviews are the defaults of Token.Quota for a token with clients, so that
	// it leaves some to others.
	defaultStreams, defaultPreviews = 16, 2
)

// HashToken returns the hash of a token.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// checkHash returns an error where hash is not what HashToken returns.
func checkHash(hash string) error {
	digits, ok := strings.CutPrefix(hash, hashPrefix)
	if b, err := hex.DecodeString(digits); !ok || err != nil || len(b) != sha256.Size || strings.ToLower(digits) != digits {
		return errors.New("it is not the hash of a token; vokter-stream token new makes a token and its hash")
	}
	return nil
}

// apiSection is the shape of the section "api".
type apiSection struct {
	CORS   []string                 `yaml:"cors"`
	Tokens map[string]apiTokenEntry `yaml:"tokens"`
}

type apiTokenEntry struct {
	Hash    string          `yaml:"hash"`
	Token   registry.Secret `yaml:"token"`
	Scopes  []string        `yaml:"scopes"`
	Clients []string        `yaml:"clients"`
	Sinks   []string        `yaml:"sinks"`
	Rate    rate            `yaml:"rate"`
	Quota   Quota           `yaml:"quota"`
}

// convertAPI returns the settings in f.
func (d *decoder) convertAPI(f *yamlFile) API {
	if _, given := d.positions.get("api"); given && f.Listen == "" {
		d.failPath("api", "api: there is no listen, so that nobody reaches the API; add one such as listen: 127.0.0.1:9000")
	}
	a := API{CORS: f.API.CORS}
	for i, origin := range a.CORS {
		if err := http.NewCrossOriginProtection().AddTrustedOrigin(origin); err != nil {
			d.failPath(fmt.Sprintf("api.cors[%d]", i), "api.cors: %q is not an origin; write one such as https://vokter.example.com", origin)
		}
	}
	owners := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(f.API.Tokens)) {
		path := joinPath("api.tokens", name)
		if d.brokenPaths[path] {
			continue
		}
		t := d.convertToken(path, name, f.API.Tokens[name], slices.Collect(maps.Keys(f.Sinks)))
		if other := owners[t.Hash]; other != "" && t.Hash != "" {
			d.failPath(path, "%s: it is the same token as %s; make another one with vokter-stream token new", path, other)
		}
		owners[t.Hash] = name
		a.Tokens = append(a.Tokens, t)
	}
	return a
}

// convertToken checks the token t at path.
func (d *decoder) convertToken(path, name string, t apiTokenEntry, sinks []string) Token {
	given := func(key string) bool { _, ok := d.positions.get(joinPath(path, key)); return ok }
	out := Token{Name: name, Hash: t.Hash, Clients: t.Clients, Sinks: t.Sinks, Rate: defaultTokenRate, Quota: t.Quota}
	if t.Clients != nil {
		out.Quota.Streams, out.Quota.Previews = cmp.Or(out.Quota.Streams, defaultStreams), cmp.Or(out.Quota.Previews, defaultPreviews)
	}
	for _, q := range []struct {
		key string
		n   int
	}{
		{"subscriptions", t.Quota.Subscriptions}, {"pages", t.Quota.Pages}, {"hosts", t.Quota.Hosts}, {"streams", t.Quota.Streams}, {"previews", t.Quota.Previews},
	} {
		if at := path + ".quota." + q.key; q.n < 1 && given("quota."+q.key) {
			d.failPath(at, "%s: must be at least 1, not %d; leave it out for the default", at, q.n)
		}
	}
	if t.Rate > 0 {
		out.Rate = float64(t.Rate)
	}
	switch {
	case given("hash") && !t.Token.IsZero():
		d.failPath(path, "%s: give hash or a token, not both", path)
	case given("hash"):
		if err := checkHash(t.Hash); err != nil {
			d.failPath(joinPath(path, "hash"), "%s.hash: %v", path, err)
		}
	case t.Token.IsZero():
		d.failPath(path, "%s: it has no hash; write vokter-stream token new, or name a file with token_file", path)
	case len(t.Token.Reveal()) < minTokenLength:
		d.failPath(path, "%s: the token is too short to be safe; make one of at least %d characters with vokter-stream token new", path, minTokenLength)
	default:
		out.Hash = HashToken(t.Token.Reveal())
	}
	if len(t.Scopes) == 0 {
		d.failPath(path, "%s: it has no scopes; add scopes: [read], or write and admin as well", path)
	}
	known := []string{string(ScopeRead), string(ScopeWrite), string(ScopeAdmin)}
	for i, s := range t.Scopes {
		if !slices.Contains(known, s) {
			d.failPath(fmt.Sprintf("%s.scopes[%d]", path, i), "%s.scopes: unknown scope %q; %s", path, s, nearest.Hint(s, known))
		}
		out.Scopes = append(out.Scopes, Scope(s))
	}
	if given("clients") && len(t.Clients) == 0 {
		d.failPath(joinPath(path, "clients"), "%s.clients: it names nobody; leave it out for all clients", path)
	}
	if given("sinks") && len(t.Sinks) == 0 {
		d.failPath(joinPath(path, "sinks"), "%s.sinks: it names no sink; leave it out for all sinks", path)
	}
	for i, s := range t.Sinks {
		if !slices.Contains(sinks, s) {
			d.failPath(fmt.Sprintf("%s.sinks[%d]", path, i), "%s.sinks: no sink is named %q; %s", path, s, nearest.Hint(s, sinks))
		}
	}
	return out
}
