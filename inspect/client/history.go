package client

import (
	"context"
	"strconv"

	"github.com/vokter/vokter/inspect"
)

// Versions returns the stored versions of a document of the page of url, the newest first.
func (c *Client) Versions(ctx context.Context, url string, f inspect.DocumentFilter) (h inspect.History, err error) {
	return h, c.get(ctx, "/versions", query(f, "url", url), &h)
}

// Text returns version n of a document of the page of url, or the current one for 0.
func (c *Client) Text(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (t inspect.Text, err error) {
	return t, c.get(ctx, "/text", query(f, "url", url, "version", formatNonZero(n)), &t)
}

// Screenshot returns the picture of the page that is stored with version n of a document of the page of
// url, or with the current one for 0.
func (c *Client) Screenshot(ctx context.Context, url string, n uint64, f inspect.DocumentFilter) (s inspect.Screenshot, err error) {
	return s, c.get(ctx, "/screenshot", query(f, "url", url, "version", formatNonZero(n)), &s)
}

// Diff compares two versions of a document of the page of url.
func (c *Client) Diff(ctx context.Context, url string, f inspect.DiffFilter) (d inspect.Difference, err error) {
	return d, c.get(ctx, "/diff", query(f, "url", url), &d)
}

// Changes returns the changes between the stored versions of a document of the page of url, the
// oldest first, or the last so many of them.
func (c *Client) Changes(ctx context.Context, url string, f inspect.DocumentFilter, last int) (h inspect.ChangeHistory, err error) {
	return h, c.get(ctx, "/changes", query(f, "url", url, "last", formatNonZero(uint64(last))), &h)
}

// Occurrences returns where the versions of a document of the page of url contain term.
func (c *Client) Occurrences(ctx context.Context, url, term string, f inspect.OccurrenceFilter) (o inspect.Occurrences, err error) {
	return o, c.get(ctx, "/occurrences", query(f, "url", url, "term", term), &o)
}

// formatNonZero returns n for a query, empty if n is 0.
func formatNonZero(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// Recent returns the part of the list of the last changes of all pages that f selects, the newest
// first. Field After of f is the cursor Next of the part before; it is empty for the first part.
// Field Clients has no meaning.
func (c *Client) Recent(ctx context.Context, f inspect.RecentFilter) (r inspect.RecentChanges, err error) {
	return r, c.get(ctx, "/recent", query(f), &r)
}
