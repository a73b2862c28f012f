package manage

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/config"
)

// openLogins returns the logins of dir as a process has them that owns it.
func openLogins(t *testing.T, dir string) *Logins {
	t.Helper()
	l, err := OpenLogins(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.keep(); err != nil {
		t.Fatal(err)
	}
	return l
}

// begin begins a session that is kept.
func begin(t *testing.T, l *Logins, token string) string {
	t.Helper()
	id, err := l.Begin(token)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestSessionsOfOneToken: logging in very often ends the sessions of that token, and no others.
func TestSessionsOfOneToken(t *testing.T) {
	l := openLogins(t, "")
	admin, first, last := begin(t, l, "admin"), begin(t, l, "tenant"), ""
	for range 2000 {
		last = begin(t, l, "tenant")
	}
	if l.Session(admin) != "admin" || l.Session(first) != "" || l.Session(last) != "tenant" || len(l.kept.Sessions) != 1+maxSessions {
		t.Errorf("there are %d sessions; of the admin %q, of the first %q, of the last %q", len(l.kept.Sessions), l.Session(admin), l.Session(first), l.Session(last))
	}
}

// TestLoginsLast: token, sessions and password outlive the process; what is kept shows none of the secrets of users.
func TestLoginsLast(t *testing.T) {
	dir := t.TempDir()
	l := openLogins(t, dir)
	const password = "a long sentence"
	if err := l.setPassword(password); err != nil {
		t.Fatal(err)
	}
	id, ended := begin(t, l, l.owner.Hash), begin(t, l, l.owner.Hash)
	if err := l.End(ended); err != nil {
		t.Fatal(err)
	}
	again := openLogins(t, dir)
	hash, err := again.Try(password)
	if again.token != l.token || again.Session(id) != l.owner.Hash || again.Session(ended) != "" || hash != l.owner.Hash || err != nil || again.Feed() != l.Feed() {
		t.Errorf("after a restart: token %v, session %q, ended session %q, password %q, %v", again.token == l.token, again.Session(id), again.Session(ended), hash, err)
	}
	for _, name := range []string{loginsFile, tokenFile} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		info, statErr := os.Stat(filepath.Join(dir, name))
		if err != nil || statErr != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(b), id) || strings.Contains(string(b), password) {
			t.Errorf("%s: %v, %v, %s", name, err, info.Mode(), b)
		}
	}
	renewed, err := again.renew()
	if token, readErr := ReadToken(dir); err != nil || readErr != nil || token != renewed || renewed == l.token || again.owner.Hash != config.HashToken(renewed) {
		t.Errorf("renewed: %q, %q, %v, %v", renewed, token, err, readErr)
	}
	if err := os.WriteFile(filepath.Join(dir, loginsFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLogins(dir, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "everybody logs in again") {
		t.Errorf("a broken file: got %v", err)
	}
}

// TestLinksAndPasswords: a link works once and within its time; a wrong password logs nobody in, and is tried seldom.
func TestLinksAndPasswords(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := openLogins(t, dir)
		code, late := l.NewLink(), l.NewLink()
		if l.Redeem("another") != "" || l.Redeem(code) != l.owner.Hash || l.Redeem(code) != "" {
			t.Error("a link does not work exactly once")
		}
		time.Sleep(LinkLifetime + time.Second)
		if l.Redeem(late) != "" {
			t.Error("a link works when its time is over")
		}
		if hash, err := l.Try(""); hash != "" || err != nil {
			t.Errorf("without a password: got %q, %v", hash, err)
		}
		if err := l.setPassword("short"); err == nil || !strings.Contains(err.Error(), "at least 10 characters") {
			t.Errorf("a short password: got %v", err)
		}
		if err := l.setPassword("a long sentence"); err != nil {
			t.Fatal(err)
		}
		l.kept.Password.Rounds = 1 // time stands still while it is hashed
		var err error
		for range 20 {
			var hash string
			if hash, err = l.Try("a wrong sentence"); hash != "" {
				t.Fatal("a wrong password logs in")
			}
		}
		if !errors.Is(err, ErrTooManyTries) {
			t.Errorf("20 tries: got %v", err)
		}
		if _, err := l.Try("a long sentence"); !errors.Is(err, ErrTooManyTries) {
			t.Errorf("the right one among them: got %v", err)
		}
		time.Sleep(time.Minute)
		if err := l.setPassword(""); err != nil || l.HasPassword() {
			t.Errorf("removed: %v", err)
		}
	})
	l := openLogins(t, "")
	if err := l.setPassword("a long sentence"); err == nil {
		t.Error("a password without a data directory is accepted")
	}
	if _, err := l.renew(); err == nil || l.Redeem(l.NewLink()) != "" || l.Feed() != "" {
		t.Errorf("in memory: %v", err)
	}
}
