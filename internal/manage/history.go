package manage

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/vokter/vokter/inspect"
)

// Historian returns the stored versions of documents.
type Historian interface {
	// Versions returns the stored versions of a document of the page of url.
	Versions(ctx context.Context, url string, f inspect.DocumentFilter) (inspect.History, error)
	// Text returns version n of a document of the page of url, or the current one for 0.
	Text(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (inspect.Text, error)
	// Diff compares two versions of a document of the page of url.
	Diff(ctx context.Context, url string, f inspect.DiffFilter) (inspect.Difference, error)
	// Occurrences returns where the versions of a document of the page of url contain term.
	Occurrences(ctx context.Context, url, term string, f inspect.OccurrenceFilter) (inspect.Occurrences, error)
}

// documentQuery names the parameters that choose a document.
var documentQuery = []string{"url", "document", "client", "select"}

// documentOf returns the query of r, in which the parameters known are allowed as well, and the
// document that it chooses.
func documentOf(r *http.Request, known ...string) (url.Values, inspect.DocumentFilter, error) {
	q, err := query(r, append(known, documentQuery...)...)
	if err == nil {
		err = checkURL(q.Get("url"))
	}
	return q, inspect.DocumentFilter{Document: q.Get("document"), Client: q.Get("client"), Select: q.Get("select")}, err
}

// number returns the parameter name of q, a whole number of at least 0, or 0 if it is missing.
func number(q url.Values, name string) (uint64, error) {
	if q.Get(name) == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 63)
	if err != nil {
		return 0, invalid("%s: %q is not a whole number", name, q.Get(name))
	}
	return n, nil
}

func (a *api) versions(w *writer, r *http.Request) error {
	q, f, err := documentOf(r)
	if err != nil {
		return err
	}
	h, err := a.service.Versions(r.Context(), q.Get("url"), f)
	if err != nil {
		return err
	}
	return w.reply(h)
}

func (a *api) text(w *writer, r *http.Request) error {
	q, f, err := documentOf(r, "version")
	if err != nil {
		return err
	}
	n, err := number(q, "version")
	if err != nil {
		return err
	}
	t, err := a.service.Text(r.Context(), q.Get("url"), n, f)
	if err != nil {
		return err
	}
	return w.reply(t)
}

func (a *api) diff(w *writer, r *http.Request) error {
	q, document, err := documentOf(r, "from", "to", "context")
	if err != nil {
		return err
	}
	f := inspect.DiffFilter{DocumentFilter: document}
	if f.From, err = number(q, "from"); err != nil {
		return err
	}
	if f.To, err = number(q, "to"); err != nil {
		return err
	}
	if text := q.Get("context"); text != "" {
		if f.Context, err = strconv.Atoi(text); err != nil {
			return invalid("context: %q is not a whole number; write -1 for the whole text", text)
		}
	}
	d, err := a.service.Diff(r.Context(), q.Get("url"), f)
	if err != nil {
		return err
	}
	return w.reply(d)
}

func (a *api) occurrences(w *writer, r *http.Request) error {
	q, document, err := documentOf(r, "term", "version", "ignore_case", "ignore_diacritics", "stem", "filter_stopwords", "match", "language", "snippet_offset", "limit")
	if err != nil {
		return err
	}
	f := inspect.OccurrenceFilter{DocumentFilter: document, Match: q.Get("match"), Language: q.Get("language")}
	for name, into := range map[string]*bool{
		"ignore_case": &f.IgnoreCase, "ignore_diacritics": &f.IgnoreDiacritics, "stem": &f.Stem, "filter_stopwords": &f.FilterStopwords,
	} {
		if *into, err = flag(q, name); err != nil {
			return err
		}
	}
	if f.Version, err = number(q, "version"); err != nil {
		return err
	}
	limit, err := number(q, "limit")
	if err != nil {
		return err
	}
	f.Limit = int(limit)
	if q.Has("snippet_offset") {
		n, err := number(q, "snippet_offset")
		if err != nil {
			return err
		}
		offset := int(n)
		f.SnippetOffset = &offset
	}
	o, err := a.service.Occurrences(r.Context(), q.Get("url"), q.Get("term"), f)
	if err != nil {
		return err
	}
	return w.reply(o)
}

// documentValues returns the query for a document.
func documentValues(page string, f inspect.DocumentFilter, pairs ...string) url.Values {
	return values(append(pairs, "url", page, "document", f.Document, "client", f.Client, "select", f.Select)...)
}

// Versions implements Historian.
func (c *Client) Versions(ctx context.Context, url string, f inspect.DocumentFilter) (h inspect.History, err error) {
	return h, c.get(ctx, "/versions", documentValues(url, f), &h)
}

// Text implements Historian.
func (c *Client) Text(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (t inspect.Text, err error) {
	return t, c.get(ctx, "/text", documentValues(url, f, "version", decimal(n)), &t)
}

// Diff implements Historian.
func (c *Client) Diff(ctx context.Context, url string, f inspect.DiffFilter) (d inspect.Difference, err error) {
	q := documentValues(url, f.DocumentFilter, "from", decimal(f.From), "to", decimal(f.To))
	q.Set("context", strconv.Itoa(f.Context))
	return d, c.get(ctx, "/diff", q, &d)
}

// Occurrences implements Historian.
func (c *Client) Occurrences(ctx context.Context, url, term string, f inspect.OccurrenceFilter) (o inspect.Occurrences, err error) {
	q := documentValues(url, f.DocumentFilter, "term", term, "version", decimal(f.Version), "match", f.Match, "language", f.Language, "limit", decimal(uint64(f.Limit)))
	for name, set := range map[string]bool{
		"ignore_case": f.IgnoreCase, "ignore_diacritics": f.IgnoreDiacritics, "stem": f.Stem, "filter_stopwords": f.FilterStopwords,
	} {
		if set {
			q.Set(name, "true")
		}
	}
	if f.SnippetOffset != nil {
		q.Set("snippet_offset", strconv.Itoa(*f.SnippetOffset))
	}
	return o, c.get(ctx, "/occurrences", q, &o)
}

// decimal returns n for a query, empty if n is 0.
func decimal(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}
