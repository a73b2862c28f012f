package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// visit subscribes the guest to a page, or ends that: by the configuration alone, or with
// the verb too. What was changed before must be known to stand.
func (d *directory) visit(l *life) error {
	n := d.dice.IntN(d.o.pages)
	p := d.ledger.last(guest, n)
	if mortal(n) || p != nil && !p.settled() {
		return nil
	}
	ends := p.open()
	if ends {
		p.asked = time.Now()
	} else {
		d.ledger.begin(guest, n, d.pages.taken(n))
	}
	d.wanted[n][guest] = !ends
	if err := d.configure(); err != nil {
		return err
	}
	d.did.add("changes")
	if !ends || d.dice.IntN(2) == 0 {
		return d.reload(l)
	}
	a, err := d.verb(l, "cancel", d.pages.url(n), "--client", guest)
	if err == nil && a.code == 0 {
		d.did.add("cancels")
		p.ended = time.Now()
	}
	return err
}

// reload tells a running process to read its configuration again, or leaves it to find out.
func (d *directory) reload(l *life) error {
	if l == nil || d.dice.IntN(2) == 0 || !d.listening(l) {
		return nil
	}
	d.did.add("reloads")
	if err := l.cmd.Process.Signal(syscall.SIGHUP); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil // it was killed a moment ago
}

// listening reports whether the process of l is so far that it listens.
func (d *directory) listening(l *life) bool {
	s, err := os.Stat(filepath.Join(d.process.data, "listen"))
	return err == nil && s.ModTime().After(l.from)
}

// listed is a line that the verb list prints, as far as it matters here.
type listed struct {
	Kind   string `json:"kind"`
	Page   string `json:"page"`
	Client string `json:"client"`
	State  string `json:"state"`
}

// confirm looks which subscriptions stand.
func (d *directory) confirm(l *life) error {
	a, err := d.verb(l, "list", "--format", "json")
	if err != nil || a.code != 0 {
		return err
	}
	stands := map[string]bool{}
	for line := range strings.Lines(string(a.out)) {
		var s listed
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			return fmt.Errorf("list prints %q: %w", line, err)
		}
		if s.Kind == "subscription" {
			stands[s.Page+" "+s.Client] = s.State == "active"
		}
	}
	for n := range d.o.pages {
		p := d.ledger.last(guest, n)
		if p == nil || p.settled() || stands[d.pages.url(n)+" "+guest] != p.open() {
			continue
		}
		if p.open() {
			p.stood = d.pages.now(n)
		} else {
			p.ended = time.Now()
		}
	}
	return nil
}

// resume begins a page anew that was given up, once all its clients know of that.
func (d *directory) resume(l *life) error {
	for n := range d.o.pages {
		if d.given[n] && (d.resuming[n] || d.told(n)) {
			return d.resumePage(l, n)
		}
	}
	return nil
}

func (d *directory) resumePage(l *life, n int) error {
	if !d.resuming[n] {
		d.resuming[n] = true
		d.pages.save(n)
		for c := range d.wanted[n] {
			if d.wanted[n][c] {
				d.ledger.begin(c, n, d.pages.taken(n))
			}
		}
	}
	a, err := d.verb(l, "resume", d.pages.url(n))
	if err != nil || a.code != 0 && !a.absent() {
		return err
	}
	d.did.add("resumes")
	d.given[n], d.resuming[n] = false, false
	for c := range d.wanted[n] {
		if d.wanted[n][c] {
			d.ledger.last(c, n).stood = d.pages.now(n)
		}
	}
	return nil
}

// absent reports whether the answer says that there is nothing that could be cancelled or
// resumed: an earlier attempt, though nobody heard of its end, did it.
func (a answer) absent() bool {
	return a.code == 1 && (strings.Contains(a.log, "has no subscription") || strings.Contains(a.log, "no subscription to this page is expired or paused"))
}

// empty reports whether the answer says that no dead letter matches the filter.
func (a answer) empty() bool {
	return a.code == 1 && strings.Contains(a.log, "there is no such dead letter")
}

// unborn reports whether the answer says that there is no store yet.
func (a answer) unborn() bool {
	return a.code == 2 && (strings.Contains(a.log, "does not exist") || strings.Contains(a.log, "nothing was ever watched"))
}

// told reports whether every client of page n knows that it was given up.
func (d *directory) told(n int) bool {
	mails := d.inbox.record(clients)
	for c := range d.wanted[n] {
		if d.wanted[n][c] && len(timeouts(mails[c], n)) < len(d.pages.record()[n].dooms) {
			return false
		}
	}
	return true
}

// backup copies the directory. A copy that is complete can be opened.
func (d *directory) backup(l *life) error {
	to := filepath.Join(d.dir, "backup")
	defer os.RemoveAll(to)
	a, err := d.verb(l, "backup", to)
	if err != nil || a.code != 0 {
		return err
	}
	d.did.add("backups")
	a, err = d.process.verb(0, "list", "--data", to)
	if err == nil && a.code != 0 {
		err = fmt.Errorf("a copy cannot be read: %s", a.log)
	}
	return err
}

// replay brings back what picky refused.
func (d *directory) replay(l *life) error {
	d.inbox.please(true)
	a, err := d.verb(l, "replay", "-c", d.process.config, "--sink", "hook-"+picky)
	if err == nil && a.code == 0 {
		d.did.add("replays")
	}
	if d.dice.IntN(2) == 0 {
		d.inbox.please(false)
	}
	return err
}
