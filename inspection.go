package vokter

import (
	"context"
	"runtime"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/inspector"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// semaphore bounds how many calls work at the same time; more of them wait.
type semaphore chan struct{}

// acquire waits for a slot, or until ctx is done.
func (t semaphore) acquire(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release frees a slot.
func (t semaphore) release() { <-t }

// maxComparisons returns how many calls may compare or search stored versions at once. It leaves
// processors to the stages.
func maxComparisons() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// read returns what do reads of the committed state. It waits until the Router runs and slots, unless they are nil,
// have room, and fails once Run has ended.
func read[T any](ctx context.Context, r *Router, slots semaphore, do func() (T, error)) (out T, err error) {
	if err := r.waitReadable(ctx); err != nil {
		return out, err
	}
	if slots != nil {
		if err := slots.acquire(ctx); err != nil {
			return out, err
		}
		defer slots.release()
	}
	out, err = do()
	return out, r.stoppedIfClosing(err)
}

// List returns the pages that are watched or expired, as far as f selects them, and their receivers. Without a URL,
// client or tag in f it adds all other receivers with notifications or dead letters, and with f.Sinks the configured
// sinks. Each page is as it was at some moment during the call; what other processes own is left out. List fails with
// inspect.ErrElsewhere where f.URL is such a page, and where f.URL is not a URL. It waits until the Router runs, and
// fails once Run has ended, as all that follow do.
func (r *Router) List(ctx context.Context, f inspect.ListFilter) (inspect.Listing, error) {
	return read(ctx, r, nil, func() (inspect.Listing, error) {
		l, err := inspector.List(ctx, r.transport, f, r.sinkNames())
		r.markPaused(l.Receivers)
		return l, err
	})
}

// markPaused sets the state of those receivers whose sink is paused: whatever else is known of them, they get nothing.
func (r *Router) markPaused(receivers []inspect.Receiver) {
	for i := range receivers {
		if r.isPaused(receivers[i].Sink) {
			receivers[i].State = inspect.StatePaused
		}
	}
}

func (r *Router) isPaused(sink string) bool {
	return r.liveConfig.Load().Delivery.Receivers[sink].Paused
}

// Receivers returns the receivers of List. Without a URL, client or tag in f it reads no page, so that it leaves out
// receivers without a notification or dead letter that are no configured sink.
func (r *Router) Receivers(ctx context.Context, f inspect.ListFilter) ([]inspect.Receiver, error) {
	return read(ctx, r, nil, func() ([]inspect.Receiver, error) {
		all, err := inspector.Receivers(ctx, r.transport, f, r.sinkNames())
		r.markPaused(all)
		return all, err
	})
}

// Pages returns the pages of List. If there may be more than f.Limit, next is the value of f.After with which the list
// goes on. With a Limit one call looks at 400 to 4,000 pages at most, so that it may return fewer pages than there are,
// or none, with a next. Only one list is made at a time, to leave processors to the stages.
func (r *Router) Pages(ctx context.Context, f inspect.ListFilter) (pages []inspect.Page, next string, err error) {
	slots := r.listSlots
	if f.URL != "" {
		slots = nil
	}
	pages, err = read(ctx, r, slots, func() (found []inspect.Page, err error) {
		found, next, err = inspector.Pages(ctx, r.transport, f)
		return found, err
	})
	return pages, next, err
}

// Explain returns what the last checks of the page of url found, what happened to its last changes,
// and why keywords did not match in the last change of their document. It fails where url is not a URL, with a
// *flow.Refusal of CodeNotFound where the page is neither watched nor expired, and with inspect.ErrElsewhere where another
// process owns the page. It compares texts again, which may take some seconds; only one call works at a time, to leave
// processors to the stages.
func (r *Router) Explain(ctx context.Context, url string, f inspect.ExplainFilter) (inspect.Explanation, error) {
	return read(ctx, r, r.explainSlots, func() (inspect.Explanation, error) {
		return inspector.Explain(ctx, r.transport, r.languages, url, f)
	})
}

// Deliveries returns the notifications of the last changes of the page of url with their
// deliveries, the newest change first. It fails like Explain.
func (r *Router) Deliveries(ctx context.Context, url string, f inspect.ExplainFilter) ([]inspect.Change, error) {
	return read(ctx, r, nil, func() ([]inspect.Change, error) { return inspector.Deliveries(r.transport, url, f) })
}

// recentMaxAge is how old the list of recent changes may be where processes share the pages: changes of
// pages that came from another process are not observed.
const recentMaxAge = time.Minute

// Recent returns the newest changes of all pages, the newest first. If there
// may be more than f.Limit, it says so.
func (r *Router) Recent(ctx context.Context, f inspect.RecentFilter) (inspect.RecentChanges, error) {
	maxAge := recentMaxAge
	if r.cfg.Transport == nil {
		maxAge = 0
	}
	return read(ctx, r, nil, func() (inspect.RecentChanges, error) { return r.recent.Changes(ctx, r.transport, f, maxAge) })
}

// Versions returns the stored versions of a document of the page of url, the newest first, with how
// much changed and the notifications that followed. The filter f chooses one of several documents of the page. Versions
// fails where url is not a URL, with a *flow.Refusal of CodeNotFound where the page or the document is not watched, with
// one of CodeConflict where f does not choose among several documents, and with inspect.ErrElsewhere where another process
// owns the page. A Router of ModeCommands answers for a data
// directory that no other process runs. Config.Retention says which versions are kept.
func (r *Router) Versions(ctx context.Context, url string, f inspect.DocumentFilter) (inspect.History, error) {
	return read(ctx, r, nil, func() (inspect.History, error) { return inspector.Versions(ctx, r.transport, url, f) })
}

// Text returns version n of a document of the page of url with its text; 0 means the current
// version. It fails like Versions, and with a *flow.Refusal of CodeNotFound where the version is not
// stored.
func (r *Router) Text(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Text, error) {
	return read(ctx, r, nil, func() (inspect.Text, error) { return inspector.VersionText(r.transport, url, n, f) })
}

// Screenshot returns the picture of the page that is stored with version n of a document of the page of
// url; 0 means the current version. It fails like Text, and with a *flow.Refusal of CodeNotFound where
// there is no picture.
func (r *Router) Screenshot(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Screenshot, error) {
	return read(ctx, r, nil, func() (inspect.Screenshot, error) { return inspector.VersionScreenshot(r.transport, url, n, f) })
}

// Diff compares two stored versions of a document of the page of url, as the pipeline does: blocks that belong together
// are in one Row, and differences are runs of words. Of a feed whose items are watched, two successive versions show only
// what was new. It fails like Text. As many calls of Diff, Occurrences and Changes work at a time as there are processors, divided
// by two, to leave processors to the stages.
func (r *Router) Diff(ctx context.Context, url string, f inspect.DiffFilter) (inspect.Difference, error) {
	return read(ctx, r, r.compareSlots, func() (inspect.Difference, error) {
		return inspector.Diff(ctx, r.transport, r.stages.memory, url, f)
	})
}

// Occurrences returns where the stored versions of a document of the page of url contain term, a word
// or a phrase; the newest version comes first. If its words may be in any order, each of them is an occurrence. It fails
// like Text, and with a *pipeline.FieldError where term or a
// field of f is invalid.
func (r *Router) Occurrences(ctx context.Context, url, term string, f inspect.OccurrenceFilter) (inspect.Occurrences, error) {
	return read(ctx, r, r.compareSlots, func() (inspect.Occurrences, error) {
		return inspector.FindOccurrences(ctx, r.transport, r.stages.memory, r.languages, url, term, f)
	})
}

// Changes compares the stored versions of a document of the page of url again and returns the
// changes between them, the oldest first, or the last so many of them; with 0 all. It fails like Versions.
func (r *Router) Changes(ctx context.Context, url string, f inspect.DocumentFilter, last int) (inspect.ChangeHistory, error) {
	return read(ctx, r, r.compareSlots, func() (inspect.ChangeHistory, error) {
		return inspector.Changes(ctx, r.transport, r.stages.memory, url, f, last)
	})
}

// maxPreviews is how many pages Preview fetches at once.
const maxPreviews = 4

// Preview fetches the page of s once and returns the text that s would watch, with the places of its
// keywords. Nothing is stored, and s needs no sink. With source it also returns the body of the page. It
// fails with all mistakes joined where s is invalid, and with a *pipeline.FetchError where the page
// cannot be fetched or read, for example because a selector matches nothing. It waits until the Router
// runs, and while other previews are made.
func (r *Router) Preview(ctx context.Context, s pipeline.Subscription, source bool) (inspect.Preview, error) {
	s.Sinks = []string{"none"}
	s = s.WithDefaults()
	if err := CheckSubscription(s); err != nil {
		return inspect.Preview{}, err
	}
	page, err := pageurl.Canonical(s.URL)
	if err != nil {
		return inspect.Preview{}, err
	}
	return read(ctx, r, r.previewSlots, func() (inspect.Preview, error) {
		o, err := r.stages.fetch.Preview(ctx, page, s.View)
		if err != nil {
			return inspect.Preview{}, err
		}
		return inspector.PreviewOf(o, s, r.languages, source)
	})
}

// Summary returns the counts of what the Router has done since Run started.
func (r *Router) Summary() inspect.Summary {
	s := r.tally.Summary()
	s.Pending = int(r.keptNotifications.Load())
	return s
}
