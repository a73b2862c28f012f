package inspect

import (
	"cmp"
	"slices"
	"sync"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Counts are counts of what happened since Run started.
type Counts struct {
	// Checks counts the checks of pages: Unchanged of them found nothing new, and Failed of them failed.
	Checks    int `json:"checks"`
	Unchanged int `json:"unchanged"`
	Failed    int `json:"failed"`
	// Versions counts the versions of documents that were found, baselines among them.
	Versions int `json:"versions"`
	// Changes counts the versions that differ from the one before.
	Changes int `json:"changes"`
	// Filtered counts the changes that touched no keyword as a filter showed, so that their
	// subscriptions were not read.
	Filtered int `json:"filtered,omitempty"`
	// Notifications counts those that changes made: Delivered were delivered, and Dead were given up.
	Notifications int `json:"notifications"`
	Delivered     int `json:"delivered"`
	Dead          int `json:"dead"`
	// Pushed counts the pushed pages that were read, Unwatched those that nobody watches, and
	// Repeated those that were pushed again under the same ID.
	Pushed    int `json:"pushed,omitempty"`
	Unwatched int `json:"unwatched,omitempty"`
	Repeated  int `json:"repeated,omitempty"`
	// Unhandled counts the messages that could not be handled and became dead letters, such as
	// pushed pages that cannot be read.
	Unhandled int `json:"unhandled,omitempty"`
}

// Summary is what a Router has done since Run started, in total and for each document. Documents of
// pages whose last subscription was cancelled count in the total only.
type Summary struct {
	Counts
	// Pending is how many notifications were not delivered when Run ended, including those of
	// earlier runs. They are kept. Notifications in digests do not count.
	Pending int `json:"pending,omitempty"`
	// Documents are in the order of their pages.
	Documents []DocumentSummary `json:"documents"`
}

// DocumentSummary is what happened to one document. Its checks are those of its page.
type DocumentSummary struct {
	// URL is the canonical address of the page.
	URL string `json:"url"`
	// Document is the ID of the document.
	Document string `json:"document"`
	Counts
	// LastError is why the last check failed or was not made; empty if it succeeded.
	LastError string `json:"last_error,omitempty"`
	// StillFailing says that all failed checks of this run followed failed ones, so that LastError is no news.
	// Recovered says that a check succeeded after one that failed.
	StillFailing bool `json:"still_failing,omitempty"`
	Recovered    bool `json:"recovered,omitempty"`
}

// Tally counts the observations of the stages. It is safe for concurrent use.
type Tally struct {
	mu    sync.Mutex
	total [kindCount]int
	pages map[string]*pageTally
}

// pageTally is kept small, since there is one for each page.
type pageTally struct {
	// The checks are the page's, whatever documents it has.
	checks, unchanged, failed, pushed uint32
	lastError                         string
	began, recovered                  bool // a failure began, or ended
	documents                         []documentTally
}

type documentTally struct {
	id     string
	counts [kindCount]uint32
}

// NewTally returns a Tally with all counts at zero.
func NewTally() *Tally { return &Tally{pages: make(map[string]*pageTally)} }

// Note counts one observation. It is a [flow.Observer].
func (t *Tally) Note(o flow.Observation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kind := slices.Index(countedKinds[:], o.Kind)
	if kind >= 0 {
		t.total[kind]++
	}
	if o.Page == "" {
		return
	}
	if o.Kind == flow.KindEnded {
		if o.Text == "" {
			delete(t.pages, o.Page) // or pages that come and go would add up
		}
		return
	}
	p := t.pages[o.Page]
	if p == nil {
		p = new(pageTally)
		t.pages[o.Page] = p
	}
	d := p.forDocument(o.Document)
	switch o.Kind {
	case flow.KindCheck:
		p.lastError = ""
		p.recovered = p.recovered || o.N > 0
		p.checks++
	case flow.KindUnchanged:
		p.unchanged++
	case flow.KindFailed:
		p.lastError = o.Text
		p.began = p.began || o.N == 0
		p.failed++
	case flow.KindPushed:
		p.pushed++
	case flow.KindHeld:
		p.lastError = o.Text
	default:
		if d != nil && kind >= 0 {
			d.counts[kind]++
		}
	}
}

// forDocument returns the tally of the document with that ID, which may be new; nil if id is empty.
func (p *pageTally) forDocument(id string) *documentTally {
	if id == "" {
		return nil
	}
	for i := range p.documents {
		if p.documents[i].id == id {
			return &p.documents[i]
		}
	}
	p.documents = append(p.documents, documentTally{id: id})
	return &p.documents[len(p.documents)-1]
}

// kindCount is how many kinds countedKinds has.
const kindCount = 13

// countedKinds are the kinds of the observations that are counted, those of most observations first.
var countedKinds = [kindCount]string{
	flow.KindCheck, flow.KindUnchanged, flow.KindFailed, flow.KindVersion, flow.KindChange, flow.KindFiltered, flow.KindNotification,
	flow.KindDelivered, flow.KindDead, flow.KindPushed, flow.KindUnwatched, flow.KindRepeated, flow.KindUnhandled,
}

// toCounts returns the counts n, which are in the order of countedKinds.
func toCounts[N int | uint32](n [kindCount]N) Counts {
	return Counts{
		Checks: int(n[0]), Unchanged: int(n[1]), Failed: int(n[2]), Versions: int(n[3]), Changes: int(n[4]), Filtered: int(n[5]), Notifications: int(n[6]),
		Delivered: int(n[7]), Dead: int(n[8]), Pushed: int(n[9]), Unwatched: int(n[10]), Repeated: int(n[11]), Unhandled: int(n[12]),
	}
}

// Counts returns the counts for all pages.
func (t *Tally) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return toCounts(t.total)
}

// Summary returns the counts for all pages and for each document.
func (t *Tally) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Summary{Counts: toCounts(t.total), Documents: []DocumentSummary{}}
	for url, p := range t.pages {
		if len(p.documents) == 0 {
			p.forDocument(flow.DocumentID(url, pipeline.View{}))
		}
		for _, d := range p.documents {
			ds := DocumentSummary{URL: url, Document: d.id, Counts: toCounts(d.counts), LastError: p.lastError, StillFailing: p.lastError != "" && p.failed > 0 && !p.began, Recovered: p.recovered}
			ds.Checks, ds.Unchanged, ds.Failed, ds.Pushed = int(p.checks), int(p.unchanged), int(p.failed), int(p.pushed)
			s.Documents = append(s.Documents, ds)
		}
	}
	slices.SortFunc(s.Documents, func(a, b DocumentSummary) int {
		return cmp.Or(cmp.Compare(a.URL, b.URL), cmp.Compare(a.Document, b.Document))
	})
	return s
}

// Gauges returns c as metrics, without Failed, Delivered and Dead: a [Meter] has those with labels.
func (c Counts) Gauges() []flow.Gauge {
	return []flow.Gauge{
		counter("vokter_checks_total", "Checks of pages.", c.Checks),
		counter("vokter_checks_unchanged_total", "Checks that found nothing new.", c.Unchanged),
		counter("vokter_versions_total", "Versions of documents that were found.", c.Versions),
		counter("vokter_changes_total", "Changes between two versions.", c.Changes),
		counter("vokter_changes_filtered_total", "Changes that touched no keyword as a filter showed, so that their subscriptions were not read.", c.Filtered),
		counter("vokter_notifications_total", "Notifications that changes made.", c.Notifications),
		counter("vokter_unhandled_messages_total", "Messages that could not be handled, such as pages that were pushed and cannot be read.", c.Unhandled),
		counter("vokter_pushed_total", "Pages that were pushed and read.", c.Pushed),
		counter("vokter_pushed_unwatched_total", "Pages that were pushed and dropped, since nobody watches them.", c.Unwatched),
		counter("vokter_pushed_repeated_total", "Pages that were pushed and dropped, since they came again under the same ID.", c.Repeated),
	}
}

func counter(name, help string, n int) flow.Gauge {
	return flow.Gauge{Name: name, Help: help, Value: float64(n)}
}
