package vokter

import (
	"context"

	"github.com/vokter/vokter/inspect"
)

// Versions returns the stored versions of a document of the page of url, the newest first, with how
// much changed and the notifications that followed; see [inspect.Versions] for the errors. The
// filter f chooses one of several documents of the page. Versions waits until the Router runs, and
// fails once Run has ended. A Router of ModeCommands answers for a data directory that no other
// process runs. Config.Retention says which versions are kept.
func (r *Router) Versions(ctx context.Context, url string, f inspect.DocumentFilter) (inspect.History, error) {
	if err := r.waitReadable(ctx); err != nil {
		return inspect.History{Versions: []inspect.Version{}}, err
	}
	h, err := inspect.Versions(ctx, r.transport, url, f)
	return h, r.stoppedIfClosing(err)
}

// Text returns version n of a document of the page of url with its text; 0 means the current
// version. It fails like Versions, and with a *flow.Refusal of CodeNotFound where the version is not
// stored.
func (r *Router) Text(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Text, error) {
	if err := r.waitReadable(ctx); err != nil {
		return inspect.Text{}, err
	}
	t, err := inspect.VersionText(r.transport, url, n, f)
	return t, r.stoppedIfClosing(err)
}

// Screenshot returns the picture of the page that is stored with version n of a document of the page of
// url; 0 means the current version. It fails like Text, and with a *flow.Refusal of CodeNotFound where
// there is no picture.
func (r *Router) Screenshot(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Screenshot, error) {
	if err := r.waitReadable(ctx); err != nil {
		return inspect.Screenshot{}, err
	}
	s, err := inspect.VersionScreenshot(r.transport, url, n, f)
	return s, r.stoppedIfClosing(err)
}

// Diff compares two stored versions of a document of the page of url; see [inspect.Diff]. It fails
// like Text. As many calls of Diff, Occurrences and Changes work at a time as there are processors, divided
// by two, to leave processors to the stages.
func (r *Router) Diff(ctx context.Context, url string, f inspect.DiffFilter) (inspect.Difference, error) {
	if err := r.waitReadable(ctx); err != nil {
		return inspect.Difference{Rows: []inspect.Row{}}, err
	}
	if err := r.compareSlots.acquire(ctx); err != nil {
		return inspect.Difference{Rows: []inspect.Row{}}, err
	}
	defer r.compareSlots.release()
	d, err := inspect.Diff(ctx, r.transport, r.stages.memory, url, f)
	return d, r.stoppedIfClosing(err)
}

// Occurrences returns where the stored versions of a document of the page of url contain term; see
// [inspect.FindOccurrences]. It fails like Text, and with a *pipeline.FieldError where term or a
// field of f is invalid.
func (r *Router) Occurrences(ctx context.Context, url, term string, f inspect.OccurrenceFilter) (inspect.Occurrences, error) {
	if err := r.waitReadable(ctx); err != nil {
		return inspect.Occurrences{Term: term, Versions: []uint64{}, Occurrences: []inspect.Occurrence{}}, err
	}
	if err := r.compareSlots.acquire(ctx); err != nil {
		return inspect.Occurrences{Term: term, Versions: []uint64{}, Occurrences: []inspect.Occurrence{}}, err
	}
	defer r.compareSlots.release()
	o, err := inspect.FindOccurrences(ctx, r.transport, r.stages.memory, r.languages, url, term, f)
	return o, r.stoppedIfClosing(err)
}

// Changes compares the stored versions of a document of the page of url again and returns the
// changes between them, the oldest first, or the last so many of them; see [inspect.Changes]. It fails like Versions.
func (r *Router) Changes(ctx context.Context, url string, f inspect.DocumentFilter, last int) (inspect.ChangeHistory, error) {
	if err := r.waitReadable(ctx); err != nil {
		return inspect.ChangeHistory{}, err
	}
	if err := r.compareSlots.acquire(ctx); err != nil {
		return inspect.ChangeHistory{}, err
	}
	defer r.compareSlots.release()
	h, err := inspect.Changes(ctx, r.transport, r.stages.memory, url, f, last)
	return h, r.stoppedIfClosing(err)
}
