package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// verdict is what a campaign showed.
type verdict struct {
	versions, notifications, repeats, lost, wrong int
	details                                       []string
}

func (v *verdict) isLost(format string, args ...any) {
	v.lost++
	v.details = append(v.details, "lost: "+fmt.Sprintf(format, args...))
}

func (v *verdict) isWrong(format string, args ...any) {
	v.wrong++
	v.details = append(v.details, "wrong: "+fmt.Sprintf(format, args...))
}

// step is what one notification says: the page went from one version to another.
type step struct{ from, to int }

var (
	pageNumber  = regexp.MustCompile(`/page/(\d+)$`)
	markVersion = regexp.MustCompile(`marker v(\d+)x one(\d+) two(\d+) three(\d+)`)
)

// read returns which page m is about and the step it tells.
func (m mail) read() (int, step, error) {
	var s step
	p := pageNumber.FindStringSubmatch(m.note.URL)
	if p == nil {
		return 0, s, fmt.Errorf("unknown URL %q", m.note.URL)
	}
	n, _ := strconv.Atoi(p[1])
	if m.note.Status != "ok" || len(m.note.Diffs) != 2 || m.id == "" || m.id != m.note.ID {
		return n, s, fmt.Errorf("page %d: unexpected body %s", n, m.body)
	}
	for _, d := range m.note.Diffs {
		v := markVersion.FindStringSubmatch(d.Text)
		if v == nil || v[1] != v[2] || v[2] != v[3] || v[3] != v[4] || d.Keyword != "marker" {
			return n, s, fmt.Errorf("page %d: unexpected text %q", n, d.Text)
		}
		version, _ := strconv.Atoi(v[1])
		switch d.Event {
		case "added":
			s.to = version
		case "removed":
			s.from = version
		}
	}
	if s.from == 0 || s.to == 0 {
		return n, s, fmt.Errorf("page %d: not one removal and one addition: %s", n, m.body)
	}
	return n, s, nil
}

// judge compares what was handed over with what arrived. For each client and page the
// steps, in order of first arrival, must form one chain without gap, along versions
// that were really delivered, through every version that was proved to be taken, up to
// the last; a step may be repeated only under its ID and with its body.
func judge(pages []history, inbox map[string][]mail) verdict {
	var v verdict
	for _, h := range pages {
		v.versions += len(h.delivered)
	}
	clients := make([]string, 0, len(inbox))
	for c := range inbox {
		clients = append(clients, c)
	}
	sort.Strings(clients)
	for _, client := range clients {
		bodies := map[string][]byte{}
		ids := map[string]string{}
		chains := make([][]step, len(pages))
		for _, m := range inbox[client] {
			v.notifications++
			n, s, err := m.read()
			if err != nil || n >= len(pages) {
				v.isWrong("client %s: %v", client, err)
				continue
			}
			if before, seen := bodies[m.id]; seen {
				v.repeats++
				if !bytes.Equal(before, m.body) {
					v.isWrong("client %s page %d: ID %s came with two bodies", client, n, m.id)
				}
				continue
			}
			bodies[m.id] = m.body
			name := fmt.Sprint(n, s)
			if other, seen := ids[name]; seen {
				v.isWrong("client %s page %d: step %d→%d came under %s and %s", client, n, s.from, s.to, other, m.id)
				continue
			}
			ids[name] = m.id
			chains[n] = append(chains[n], s)
		}
		for n, h := range pages {
			v.chain(client, n, h, chains[n])
		}
	}
	return v
}

// chain judges the steps of one page at one client.
func (v *verdict) chain(client string, n int, h history, steps []step) {
	reached := map[int]bool{}
	at := 0
	for i, s := range steps {
		if !h.delivered[s.from] || !h.delivered[s.to] || s.to <= s.from {
			v.isWrong("client %s page %d: step %d→%d was never to be seen", client, n, s.from, s.to)
		}
		switch {
		case i == 0 || s.from == at:
		case s.from > at:
			v.isLost("client %s page %d: nothing was told between %d and %d", client, n, at, s.from)
		default:
			v.isWrong("client %s page %d: step %d→%d came after %d", client, n, s.from, s.to, at)
		}
		reached[s.from], reached[s.to] = true, true
		at = s.to
	}
	for a := range h.accepted {
		if !reached[a] && h.last > 1 {
			v.isLost("client %s page %d: version %d was taken and never told", client, n, a)
		}
	}
	if h.delivered[h.last] && h.last > 1 && at != h.last {
		v.isLost("client %s page %d: the last version is %d, told was %d", client, n, h.last, at)
	}
}

// settled reports whether every client was told of the last version of every page.
func settled(p *pages, b *inbox) bool {
	mails := b.record()
	for n, h := range p.record() {
		if h.last == 1 {
			continue
		}
		for _, ms := range mails {
			told := false
			for _, m := range ms {
				if page, s, err := m.read(); err == nil && page == n && s.to == h.last {
					told = true
				}
			}
			if !told {
				return false
			}
		}
	}
	return true
}

// writeConfig writes the configuration: every page, for every client, to its receiver.
func writeConfig(path string, p *pages, b *inbox) error {
	var s strings.Builder
	s.WriteString("allow: {fetch: [127.0.0.1/32], sinks: [127.0.0.1/32]}\n")
	s.WriteString("fetch: {per_host: {concurrency: 8, rate: 1000/s}}\n")
	s.WriteString("delivery: {retry: [50ms]}\nsinks:\n")
	for _, c := range b.clients {
		fmt.Fprintf(&s, "  hook-%s: {webhook: {url: %q}}\n", c, b.url(c))
	}
	s.WriteString("subscriptions:\n")
	for n := range p.pages {
		for _, c := range b.clients {
			fmt.Fprintf(&s, "  - {url: %q, client: %s, keywords: [marker], sinks: [hook-%s]}\n", p.url(n), c, c)
		}
	}
	return os.WriteFile(path, []byte(s.String()), 0o600)
}
