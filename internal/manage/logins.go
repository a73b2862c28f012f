package manage

import (
	"cmp"
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/time/rate"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
)

const (
	// loginsFile has the sessions, the password and the secret of the feed, readable by its owner only.
	loginsFile = "logins"
	// SessionLifetime is how long a session lasts.
	SessionLifetime = 30 * 24 * time.Hour
	// maxSessions is how many sessions one token has at once. Its oldest one ends if there are more, so
	// that nobody logs out others.
	maxSessions = 50
	// LinkLifetime is how long a link works that logs in once.
	LinkLifetime = time.Hour
	// minPassword is the least length of a password, in characters.
	minPassword = 10
	// minToken is the least length of a token.
	minToken = 20
	// passwordRounds is the work for one password, a quarter of a second; it may grow, as each hash names its own.
	passwordRounds = 600_000
)

// Logins are how people log in to the web page: with the token of the data directory, with a link that works once, or
// with a password. They and the sessions are kept in the data directory, so that they outlive the process. What is a
// secret of somebody else is kept as a hash.
type Logins struct {
	dir string // empty: all is in memory

	mu    sync.Mutex
	kept  keptLogins
	owner *caller              // with the token of the data directory; nil: there is none
	token string               // of owner
	links map[string]time.Time // by the hash of a code, when it expires
	// passwordMu is held while a password is tried, one at a time, and tries bounds how many are.
	passwordMu sync.Mutex
	tries      *rate.Limiter
}

// keptLogins is the content of the file.
type keptLogins struct {
	Password *passwordHash `json:"password,omitempty"`
	// Feed is the secret of the feed of all changes. It stands in an address that the page shows.
	Feed     string             `json:"feed"`
	Sessions map[string]session `json:"sessions"` // by the hash of their ID
}

// passwordHash is a password as PBKDF2 with SHA-256 hashes it.
type passwordHash struct {
	Rounds int    `json:"rounds"`
	Salt   []byte `json:"salt"`
	Hash   []byte `json:"hash"`
}

// session is one login. It holds the hash of the token, so that it ends with the token.
type session struct {
	Token   string    `json:"token"`
	Started time.Time `json:"started"`
}

// OpenLogins reads the logins of the data directory dir. Without a directory they are in memory, and there is no token.
// A token that others could read or guess is replaced, which log says. Nothing is written before [Announce].
func OpenLogins(dir string, log *slog.Logger) (*Logins, error) {
	l := &Logins{dir: dir, links: make(map[string]time.Time), tries: rate.NewLimiter(rate.Every(2*time.Second), 5)}
	if dir != "" {
		b, err := os.ReadFile(filepath.Join(dir, loginsFile))
		if err == nil {
			err = json.Unmarshal(b, &l.kept)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the logins in the data directory cannot be read: %w; remove %s, and everybody logs in again", err, filepath.Join(dir, loginsFile))
		}
		token, err := ReadToken(dir)
		if err == nil && len(token) < minToken {
			err = fmt.Errorf("%w is too short", ErrToken)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("the token of the data directory is replaced, so that everybody logs in again", "reason", err)
			token = ""
		}
		l.setToken(cmp.Or(token, NewToken()))
	}
	l.kept.Feed = cmp.Or(l.kept.Feed, rand.Text())
	if l.kept.Sessions == nil {
		l.kept.Sessions = make(map[string]session)
	}
	return l, nil
}

// setToken makes token that of the data directory.
func (l *Logins) setToken(token string) { l.token, l.owner = token, newOwner(token) }

// keep writes the token and the logins to the data directory, which the process owns by now.
func (l *Logins) keep() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == "" {
		return nil
	}
	return errors.Join(ReplaceFile(filepath.Join(l.dir, tokenFile), l.token, 0o600), l.save())
}

// save writes the logins. The caller holds mu.
func (l *Logins) save() error {
	if l.dir == "" {
		return nil
	}
	b, err := json.Marshal(l.kept)
	if err != nil {
		return err
	}
	return ReplaceFile(filepath.Join(l.dir, loginsFile), string(b), 0o600)
}

// callers returns the owner of the data directory, if there is one.
func (l *Logins) callers() []*caller {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner == nil {
		return nil
	}
	return []*caller{l.owner}
}

// Feed returns the secret of the feed of all changes, or "" where it would not outlive the process.
func (l *Logins) Feed() string {
	if l.dir == "" {
		return ""
	}
	return l.kept.Feed
}

// Begin begins a session with the token of this hash, and returns its ID. An error says that it ends with the process.
func (l *Logins) Begin(token string) (id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest, count := "", 0
	for key, one := range l.kept.Sessions {
		switch {
		case time.Since(one.Started) > SessionLifetime:
			delete(l.kept.Sessions, key)
		case one.Token == token:
			if count++; count == 1 || one.Started.Before(l.kept.Sessions[oldest].Started) {
				oldest = key
			}
		}
	}
	if count >= maxSessions {
		delete(l.kept.Sessions, oldest)
	}
	id = rand.Text()
	l.kept.Sessions[config.HashToken(id)] = session{token, time.Now()}
	return id, l.save()
}

// Session returns the hash of the token of a session, or "" if there is no such session.
func (l *Logins) Session(id string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.kept.Sessions[config.HashToken(id)]
	if !ok || time.Since(one.Started) > SessionLifetime {
		return ""
	}
	return one.Token
}

// End ends a session.
func (l *Logins) End(id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.kept.Sessions, config.HashToken(id))
	return l.save()
}

// NewLink returns the code of a link that logs in once, as who has the token of the data directory.
func (l *Logins) NewLink() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	code := rand.Text()
	l.links[config.HashToken(code)] = time.Now().Add(LinkLifetime)
	return code
}

// Redeem returns the hash of the token that the code of a link stands for, or "" if it is used or too old.
func (l *Logins) Redeem(code string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, ok := l.links[config.HashToken(code)]
	delete(l.links, config.HashToken(code))
	if !ok || time.Now().After(until) || l.owner == nil {
		return ""
	}
	return l.owner.Hash
}

// ErrTooManyTries says that a password was tried too often.
var ErrTooManyTries = errors.New("passwords were tried too often; wait a few seconds, or log in with the token")

// HasPassword reports whether there is a password.
func (l *Logins) HasPassword() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.Password != nil
}

// Try returns the hash of the token that password stands for, or "" if it is wrong or there is none.
func (l *Logins) Try(password string) (string, error) {
	l.mu.Lock()
	known, owner := l.kept.Password, l.owner
	l.mu.Unlock()
	if known == nil || owner == nil {
		return "", nil
	}
	if !l.tries.Allow() {
		return "", ErrTooManyTries
	}
	l.passwordMu.Lock()
	defer l.passwordMu.Unlock()
	hash, err := pbkdf2.Key(sha256.New, password, known.Salt, known.Rounds, sha256.Size)
	if err != nil || subtle.ConstantTimeCompare(hash, known.Hash) != 1 {
		return "", err
	}
	return owner.Hash, nil
}

// setPassword replaces the password. An empty one removes it.
func (l *Logins) setPassword(password string) error {
	if l.dir == "" {
		return &pipeline.FieldError{Field: "password", Reason: "there is no data directory to keep it in; start with --data DIR"}
	}
	var made *passwordHash
	if password != "" {
		if utf8.RuneCountInString(password) < minPassword {
			return &pipeline.FieldError{Field: "password", Reason: fmt.Sprintf("it is too short; give at least %d characters", minPassword)}
		}
		made = &passwordHash{Rounds: passwordRounds, Salt: make([]byte, 16)}
		_, _ = rand.Read(made.Salt) // never fails
		var err error
		if made.Hash, err = pbkdf2.Key(sha256.New, password, made.Salt, made.Rounds, sha256.Size); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Password = made
	return l.save()
}

// renew replaces the token of the data directory. All sessions with it end.
func (l *Logins) renew() (token string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == "" {
		return "", &pipeline.FieldError{Field: "token", Reason: "there is no data directory to keep it in; start with --data DIR"}
	}
	if token, err = RenewToken(l.dir); err != nil {
		return "", err
	}
	close(l.owner.revoked)
	l.setToken(token)
	return token, nil
}

// ReadToken returns the token of the data directory dir.
func ReadToken(dir string) (string, error) { return readToken(filepath.Join(dir, tokenFile)) }

// RenewToken replaces the token of the data directory dir, which no process uses, and returns the new one.
func RenewToken(dir string) (string, error) {
	token := NewToken()
	return token, ReplaceFile(filepath.Join(dir, tokenFile), token, 0o600)
}

// addLogins adds the routes that change how people log in.
func (a *api) addLogins() {
	// Who logs in that way may do everything, so the caller must be allowed to as well.
	mayEverything := func(ctx context.Context) error {
		if err := callerOf(ctx).checkScopes([]string{string(config.ScopeRead), string(config.ScopeWrite)}); err != nil {
			return &huma.ErrorModel{Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Detail: err.Error()}
		}
		return nil
	}
	type passwordInput struct{ Body client.Password }
	addNoContent(a, route{
		method: http.MethodPost, path: "/password", id: "set-password", scope: config.ScopeAdmin, allClients: true,
		summary: "Sets the password of the web page", beforeRunning: true,
		description: fmt.Sprintf("Who logs in with it may do everything. It has at least %d characters and is kept as a hash in the data directory. An empty one removes it.", minPassword),
	}, func(ctx context.Context, in *passwordInput) error {
		if err := mayEverything(ctx); err != nil {
			return err
		}
		return a.logins.setPassword(in.Body.Password)
	})
	add(a, route{
		method: http.MethodPost, path: "/token", id: "renew-token", scope: config.ScopeAdmin, allClients: true, summary: "Replaces the token of the data directory",
		description: "The old one is not valid any more, and all sessions on the web page that began with it, or with the password, end.", beforeRunning: true,
	}, func(ctx context.Context, _ *struct{}) (t client.Token, err error) {
		if err = mayEverything(ctx); err == nil {
			t.Token, err = a.logins.renew()
		}
		return t, err
	})
}
