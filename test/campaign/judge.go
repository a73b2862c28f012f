//go:build unix

package main

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// verdict is the result of a campaign.
type verdict struct {
	notifications, repeats, lost, wrong int
	digests, collected                  int            // digests, and what they told
	events                              map[string]int // health events, by kind
	details                             []string
}

func (v *verdict) addLost(format string, args ...any) {
	v.lost++
	v.details = append(v.details, "lost: "+fmt.Sprintf(format, args...))
}

func (v *verdict) addWrong(format string, args ...any) {
	v.wrong++
	v.details = append(v.details, "wrong: "+fmt.Sprintf(format, args...))
}

// item is what one notification, or a part of a digest, says: a page went from one version to another, or was
// given up.
type item struct {
	page     int
	from, to int
	timeout  bool
	id       string
	at       time.Time
}

func (i item) String() string {
	what := fmt.Sprintf("%d→%d", i.from, i.to)
	if i.timeout {
		what = "given up"
	}
	return what + " at " + i.at.Format(clockTime)
}

var (
	pagePattern   = regexp.MustCompile(`/page/(\d+)$`)
	markerPattern = regexp.MustCompile(`marker v(\d+)x one(\d+) two(\d+) three(\d+)`)
)

// items returns the items of m: one, or those of a digest.
func (m mail) items() ([]item, error) {
	it := item{id: m.id, at: m.at}
	p := pagePattern.FindStringSubmatch(m.notification.URL)
	if p == nil {
		return nil, fmt.Errorf("unknown URL %q", m.notification.URL)
	}
	it.page, _ = strconv.Atoi(p[1])
	it.timeout = m.notification.Status == "timeout"
	switch {
	case m.id == "" || m.id != m.notification.ID:
		return nil, fmt.Errorf("page %d: its ID is %q in %s", it.page, m.id, m.body)
	case it.timeout && m.notification.Type == "notification" && m.notification.Diffs != nil && len(m.notification.Diffs) == 0:
		return []item{it}, nil
	case m.notification.Status == "ok" && m.notification.Type == "notification" && len(m.notification.Diffs) == 2:
		it, err := it.withDiffs(m.notification.Diffs)
		return []item{it}, err
	case m.notification.Status != "ok" || m.notification.Type != "digest" || len(m.notification.Items) == 0 ||
		len(m.notification.Diffs) != 2*len(m.notification.Items):
		return nil, fmt.Errorf("page %d: unexpected body %s", it.page, m.body)
	}
	var items []item
	for i, part := range m.notification.Items {
		if part.ID == "" || part.Diffs != 2 {
			return nil, fmt.Errorf("page %d: unexpected item in %s", it.page, m.body)
		}
		one, err := it.withDiffs(m.notification.Diffs[2*i : 2*i+2])
		if err != nil {
			return nil, err
		}
		items = append(items, one)
	}
	return items, nil
}

// withDiffs returns i with the versions that the differences of one change name.
func (i item) withDiffs(diffs []diff) (item, error) {
	for _, d := range diffs {
		v := markerPattern.FindStringSubmatch(d.Text)
		if v == nil || v[1] != v[2] || v[2] != v[3] || v[3] != v[4] || d.Keyword != "marker" {
			return i, fmt.Errorf("page %d: unexpected text %q", i.page, d.Text)
		}
		version, _ := strconv.Atoi(v[1])
		switch d.Event {
		case "added":
			i.to = version
		case "removed":
			i.from = version
		}
	}
	if i.from == 0 || i.to == 0 {
		return i, fmt.Errorf("page %d: not one removal and one addition: %v", i.page, diffs)
	}
	return i, nil
}

// timeoutIDs returns the IDs by which mails say that page n was given up.
func timeoutIDs(mails []mail, n int) map[string]bool {
	ids := map[string]bool{}
	for _, m := range mails {
		its, err := m.items()
		if err == nil && its[0].timeout && its[0].page == n {
			ids[m.id] = true
		}
	}
	return ids
}

// evidence is the input of the judge.
type evidence struct {
	pages         []pageHistory
	mails         map[string][]mail
	subscriptions subscriptionHistory
	health        []mail          // what the owner was told
	mayBeLate     map[string]bool // IDs that may come out of order
	// denied counts, by client and ID, how often something was taken although the answer denied it.
	denied   map[string]map[string]int
	kills    int
	timedOut []string                               // what the last life did not do in time
	uptime   func(from, to time.Time) time.Duration // how long the process lived between two times
	// cancelGrace is how long it may live after a cancel and still tell what was pending.
	cancelGrace time.Duration
	// lookGrace is how long after a page was given up another process, which does not know of that yet, may
	// request it.
	lookGrace time.Duration
}

// judge compares the delivered versions with the notifications that arrived.
func judge(e evidence) verdict {
	var v verdict
	for _, client := range slices.Sorted(maps.Keys(e.mails)) {
		bodies := map[string][]byte{}
		said := map[string]string{}
		items := make([][]item, len(e.pages))
		for _, m := range e.mails[client] {
			v.notifications++
			its, err := m.items()
			if err != nil || its[0].page >= len(e.pages) {
				v.addWrong("client %s: %v", client, err)
				continue
			}
			if before, seen := bodies[m.id]; seen {
				if !bytes.Equal(before, m.body) {
					v.addWrong("client %s page %d: ID %s came with two bodies", client, its[0].page, m.id)
				}
				continue
			}
			bodies[m.id] = m.body
			if m.notification.Type == "digest" {
				v.digests++
				v.collected += len(its)
			}
			for _, it := range its {
				name := fmt.Sprint(it.page, it.from, it.to)
				if other, seen := said[name]; seen && !it.timeout {
					v.addWrong("client %s page %d: step %d→%d came under %s and %s", client, it.page, it.from, it.to, other, m.id)
					continue
				}
				said[name] = m.id
				items[it.page] = append(items[it.page], it)
			}
		}
		for n, h := range e.pages {
			c := &sequence{&v, client, n, h, e.subscriptions[client][n], items[n], e}
			c.judge()
		}
	}
	for _, what := range e.timedOut {
		v.addLost("not done in time: %s", what)
	}
	v.judgeRepeats(e)
	v.judgeHealth(e)
	return v
}

// judgeRepeats counts what came more than once, and judges whether that had a reason. A
// delivery is repeated where a kill came between what the receiver took and the commit of
// that, or where the receiver took it and said that it did not. Each receiver is sent one
// thing at a time, and the commit is on disk before the next: so a kill repeats at most one
// delivery to each.
func (v *verdict) judgeRepeats(e evidence) {
	all := map[string][]mail{ownerClient: e.health}
	maps.Copy(all, e.mails)
	unexcused := 0
	by := map[string]int{}
	for _, client := range slices.Sorted(maps.Keys(all)) {
		times := map[string]int{}
		for _, m := range all[client] {
			times[m.id]++
		}
		for _, id := range slices.Sorted(maps.Keys(times)) {
			v.repeats += times[id] - 1
			again := max(times[id]-1-e.denied[client][id], 0)
			unexcused += again
			by[client] += again
			if again > e.kills {
				v.addWrong("client %s: ID %s came %d times; the process was killed %d times, and the receiver denied that it took it %d times",
					client, id, times[id], e.kills, e.denied[client][id])
			}
		}
	}
	if most := e.kills * len(all); unexcused > most {
		v.addWrong("%d repeats (%v), want %d at most: one for each of %d receivers and %d kills", unexcused, by, most, len(all), e.kills)
	}
}
