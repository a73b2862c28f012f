//go:build unix

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

// toggleGuest subscribes the guest to a random page, or cancels its subscription there: by the configuration
// alone, or with the verb too. It changes nothing while the result of an earlier change is not known.
func (d *directory) toggleGuest(l *processRun) error {
	n := d.rng.IntN(d.options.pages)
	p := d.subscriptions.last(guestClient, n)
	if canExpire(n) || p != nil && !p.isSettled() {
		return nil
	}
	ends := p.isOpen()
	if ends {
		p.cancelledAt = time.Now()
	} else {
		d.subscriptions.add(guestClient, n, d.pages.lastAccepted(n))
	}
	d.wanted[n][guestClient] = !ends
	if err := d.configure(); err != nil {
		return err
	}
	d.counters.add("changes")
	if !ends || d.rng.IntN(2) == 0 {
		return d.signalReload(l)
	}
	a, err := d.runVerb(l, "cancel", d.pages.url(n), "--client", guestClient)
	if err == nil && a.code == 0 {
		d.counters.add("cancels")
		p.endedAt = time.Now()
	}
	return err
}

// signalReload tells a running process to read its configuration again, or leaves it to find out.
func (d *directory) signalReload(l *processRun) error {
	if l == nil || d.rng.IntN(2) == 0 || !d.isListening(l) {
		return nil
	}
	d.counters.add("reloads")
	if err := l.cmd.Process.Signal(syscall.SIGHUP); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil // it was killed a moment ago
}

// isListening reports whether the process of l listens already.
func (d *directory) isListening(l *processRun) bool {
	s, err := os.Stat(filepath.Join(d.process.data, "listen"))
	return err == nil && s.ModTime().After(l.startedAt)
}

// listedSubscription is a line that the verb list prints, as far as it matters here.
type listedSubscription struct {
	Kind   string `json:"kind"`
	Page   string `json:"page"`
	Client string `json:"client"`
	State  string `json:"state"`
}

// confirmSubscriptions looks which subscriptions are active, and records that.
func (d *directory) confirmSubscriptions(l *processRun) error {
	a, err := d.runVerb(l, "list", "--format", "json")
	if err != nil || a.code != 0 {
		return err
	}
	stands := map[string]bool{}
	for line := range strings.Lines(string(a.out)) {
		var s listedSubscription
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			return fmt.Errorf("list prints %q: %w", line, err)
		}
		if s.Kind == "subscription" {
			stands[s.Page+" "+s.Client] = s.State == "active"
		}
	}
	for n := range d.options.pages {
		p := d.subscriptions.last(guestClient, n)
		if p == nil || p.isSettled() || stands[d.pages.url(n)+" "+guestClient] != p.isOpen() {
			continue
		}
		if p.isOpen() {
			p.knownAtVersion = d.pages.currentVersion(n)
		} else {
			p.endedAt = time.Now()
		}
	}
	return nil
}

// resumeExpired begins a page anew that was given up, once all its clients know of that.
func (d *directory) resumeExpired(l *processRun) error {
	for n := range d.options.pages {
		if d.givenUp[n] && (d.resuming[n] || d.knowsGivenUp(n)) {
			return d.resumePage(l, n)
		}
	}
	return nil
}

func (d *directory) resumePage(l *processRun, n int) error {
	if !d.resuming[n] {
		d.resuming[n] = true
		d.pages.endFailForever(n)
		for c := range d.wanted[n] {
			if d.wanted[n][c] {
				d.subscriptions.add(c, n, d.pages.lastAccepted(n))
			}
		}
	}
	a, err := d.runVerb(l, "resume", d.pages.url(n))
	if err != nil || a.code != 0 && !a.nothingToDo() {
		return err
	}
	d.counters.add("resumes")
	d.givenUp[n], d.resuming[n] = false, false
	for c := range d.wanted[n] {
		if d.wanted[n][c] {
			d.subscriptions.last(c, n).knownAtVersion = d.pages.currentVersion(n)
		}
	}
	return nil
}

// nothingToDo reports whether the verb says that there is nothing to cancel or resume: an earlier
// attempt did it, although nobody heard of its end.
func (a verbResult) nothingToDo() bool {
	return a.code == 1 && (strings.Contains(a.log, "has no subscription") || strings.Contains(a.log, "no subscription to this page is expired or paused"))
}

// noDeadLetter reports whether the verb says that no dead letter matches the filter.
func (a verbResult) noDeadLetter() bool {
	return a.code == 1 && strings.Contains(a.log, "there is no such dead letter")
}

// keptForLater reports whether the verb says that a receiver did not take what was sent again, which is kept.
func (a verbResult) keptForLater() bool {
	return a.code == 1 && strings.Contains(a.log, "not delivered yet; kept, and tried again")
}

// noStore reports whether the verb says that there is no store yet.
func (a verbResult) noStore() bool {
	return a.code == 2 && (strings.Contains(a.log, "does not exist") || strings.Contains(a.log, "nothing was ever watched"))
}

// knowsGivenUp reports whether every client of page n knows that it was given up.
func (d *directory) knowsGivenUp(n int) bool {
	mails := d.inbox.mailsOf(clients)
	for c := range d.wanted[n] {
		if d.wanted[n][c] && len(timeoutIDs(mails[c], n)) < len(d.pages.histories()[n].expiries) {
			return false
		}
	}
	return true
}

// backup copies the directory. A copy that is complete can be opened.
func (d *directory) backup(l *processRun) error {
	to := filepath.Join(d.dir, "backup")
	defer os.RemoveAll(to)
	a, err := d.runVerb(l, "backup", to)
	if err != nil || a.code != 0 {
		return err
	}
	d.counters.add("backups")
	a, err = d.process.runVerb(0, "list", "--data", to)
	if err == nil && a.code != 0 {
		err = fmt.Errorf("a copy cannot be read: %s", a.log)
	}
	return err
}

// replayDeadLetters replays what the receiver of pickyClient refused.
func (d *directory) replayDeadLetters(l *processRun) error {
	d.inbox.setAcceptsAll(true)
	a, err := d.runVerb(l, "replay", "-c", d.process.config, "--sink", "hook-"+pickyClient)
	if err == nil && a.code == 0 {
		d.counters.add("replays")
	}
	if d.rng.IntN(2) == 0 {
		d.inbox.setAcceptsAll(false)
	}
	return err
}
