package index

import (
	"cmp"
	"log/slog"
	"sync"

	"github.com/vokter/vokter/pipeline/pageurl"
)

// hostLog writes the log of checks that fail. A failure that repeats is logged once. Where one page of a host after the
// other fails with the same class, and none answers in between, one line for the host stands for the others.
type hostLog struct {
	log   *slog.Logger
	mu    sync.Mutex
	hosts map[string]*failingHost
}

// failingHost is a host with pages that fail.
type failingHost struct {
	// class is that of the last failures in a row of different pages, empty if a page answered since.
	class string
	// down says that the line for the host was written, dormant and expired the same of a line about that.
	down, dormant, expired bool
	// pages are the failing ones. The log names those that are true.
	pages map[string]bool
}

// checked logs the complete check c of page.
func (l *hostLog) checked(page string, c checkDone) {
	host := hostOf(page)
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hosts[host]
	if c.Class == "" {
		l.answered(page, host, c.Before, h)
		return
	}
	if h == nil || host == "" {
		h = &failingHost{pages: make(map[string]bool)}
	}
	named, known := h.pages[page]
	alone := h.class != c.Class || len(h.pages) == 0 || known && len(h.pages) == 1
	switch {
	case c.Class == c.Before && (named || !known), known && h.down && h.class == c.Class:
		return
	case alone:
		h.class, h.down = c.Class, false
		h.pages[page] = true
		l.log.Warn("check failed", "page", pageurl.Redacted(page), "class", c.Class, "reason", c.Reason)
	case h.down:
		h.pages[page] = false
	default:
		h.down, h.pages[page] = true, false
		l.log.Warn("no page of a host can be read; those that fail from now on are not named one by one", "host", host,
			"page", pageurl.Redacted(page), "class", c.Class, "reason", c.Reason)
	}
	if host != "" {
		if l.hosts == nil {
			l.hosts = make(map[string]*failingHost)
		}
		l.hosts[host] = h
	}
}

// answered logs that a check of page succeeded. before is the class of the check before, h its host.
func (l *hostLog) answered(page, host, before string, h *failingHost) {
	named := true
	if h != nil {
		if h.down {
			l.log.Info("a host answers again", "host", host, "pages", len(h.pages))
		}
		h.class, h.down, h.dormant, h.expired = "", false, false, false
		var known bool
		named, known = h.pages[page]
		named = named || !known
		l.forget(page, host)
	}
	if before != "" && named {
		l.log.Info("check succeeded again", "page", pageurl.Redacted(page))
	}
}

// forget forgets a page that is not failing any more.
func (l *hostLog) forget(page, host string) {
	if h := l.hosts[host]; h != nil {
		if delete(h.pages, page); len(h.pages) == 0 {
			delete(l.hosts, host)
		}
	}
}

// dormantNow logs that page is dormant.
func (l *hostLog) dormantNow(page string, d pageDormant) {
	host := hostOf(page)
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.hosts[host]; h != nil && h.down {
		if !h.dormant {
			h.dormant = true
			l.log.Warn("the pages of a host are dormant: they are checked ever more rarely", "host", host, "failures", d.Failures, "class", d.Class, "reason", d.Reason)
		}
		return
	}
	l.log.Warn("page is dormant: it is checked ever more rarely", "page", pageurl.Redacted(page), "failures", d.Failures, "class", d.Class, "reason", d.Reason)
}

// ended logs that page ended, and why if it expired.
func (l *hostLog) ended(page string, e *Expiry) {
	host := hostOf(page)
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hosts[host]
	switch {
	case e == nil:
	case h == nil || !h.down:
		l.log.Warn("page expired", "page", pageurl.Redacted(page), "failures", e.Failures, "class", e.Class, "reason", cmp.Or(e.Reason, e.Class))
	case !h.expired:
		h.expired = true
		l.log.Warn("a page of a host expired; those that expire from now on are not named one by one", "host", host, "page", pageurl.Redacted(page), "failures", e.Failures, "class", e.Class, "reason", cmp.Or(e.Reason, e.Class))
	}
	l.forget(page, host)
}
