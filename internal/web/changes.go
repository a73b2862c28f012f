package web

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vokter/vokter/inspect"
)

const (
	// changesPerPage is how many changes the list of changes shows at once.
	changesPerPage = 30
	// excerptBudget is how long excerpts are made for one page; the changes behind them have only a link.
	excerptBudget = 30 * time.Millisecond
	// excerptRows is how many rows of a difference an excerpt has, and excerptContext is how much text it
	// shows on each side of what changed, in bytes.
	excerptRows    = 4
	excerptContext = 60
	// maxExcerptPiece is the longest piece of text in an excerpt, in bytes.
	maxExcerptPiece = 300
)

// changesView is a part of the list of changes of all pages.
type changesView struct {
	Days        []day
	Client, Tag string
	Next        string
	First       bool
	Partial     bool
	// Feed is the secret of the feed of all changes, if there is one and the user may see them all.
	Feed string
}

// day has the changes of one day.
type day struct {
	Date    time.Time
	Changes []changeWithExcerpt
}

// changeWithExcerpt is a change with an excerpt.
type changeWithExcerpt struct {
	inspect.RecentChange
	Excerpt []row
}

func showChanges(r *request) (any, error) {
	v := changesView{Client: strings.TrimSpace(r.form.Get("client")), Tag: strings.TrimSpace(r.form.Get("tag")), First: r.form.Get("cursor") == ""}
	found, err := r.api.Recent(r.Context(), inspect.RecentFilter{Client: v.Client, Tag: v.Tag, After: r.form.Get("cursor"), Limit: changesPerPage, Partial: true})
	if err != nil {
		return nil, err
	}
	v.Next, v.Partial = found.Next, found.Partial
	if r.bearer.Clients() == nil {
		v.Feed = r.site.api.Logins().Feed()
	}
	until := time.Now().Add(excerptBudget)
	for _, c := range found.Changes {
		x := changeWithExcerpt{RecentChange: c}
		if time.Now().Before(until) {
			x.Excerpt = excerpt(r, c)
		}
		date := c.Time.UTC().Truncate(24 * time.Hour)
		if len(v.Days) == 0 || !v.Days[len(v.Days)-1].Date.Equal(date) {
			v.Days = append(v.Days, day{Date: date})
		}
		last := &v.Days[len(v.Days)-1]
		last.Changes = append(last.Changes, x)
	}
	return v, nil
}

// excerpt returns the first rows in which a version differs from the one before it, or nothing if one
// of them is not stored any more.
func excerpt(r *request, c inspect.RecentChange) []row {
	d, err := r.api.Diff(r.Context(), c.URL, inspect.DiffFilter{DocumentFilter: inspect.DocumentFilter{Document: c.Document}, To: c.Version})
	if err != nil {
		return nil
	}
	var rows []row
	for _, x := range d.Rows {
		if x.Kind == inspect.RowKept || x.Kind == inspect.RowSkipped || x.Kind == inspect.RowMoved {
			continue
		}
		if len(rows) == excerptRows {
			rows = append(rows, row{Kind: inspect.RowSkipped})
			break
		}
		one := row{Kind: x.Kind}
		for _, p := range linePieces(x.Old, nil) {
			one.Old = append(one.Old, shortenPieces(p))
		}
		for _, p := range linePieces(x.New, nil) {
			one.New = append(one.New, shortenPieces(p))
		}
		one.Old, one.New = one.Old[:min(len(one.Old), excerptRows)], one.New[:min(len(one.New), excerptRows)]
		rows = append(rows, one)
	}
	return rows
}

// shortenPieces cuts the text around and within what changed.
func shortenPieces(all []piece) []piece {
	out := make([]piece, len(all))
	for i, p := range all {
		limit := maxExcerptPiece
		if p.Event == "" {
			limit = excerptContext
		}
		switch {
		case len(p.Text) <= 2*limit:
		case i == 0 && p.Event == "":
			p.Text = "… " + lastBytes(p.Text, limit)
		case i == len(all)-1 || p.Event != "":
			p.Text = firstBytes(p.Text, limit) + " …"
		default:
			p.Text = firstBytes(p.Text, limit) + " … " + lastBytes(p.Text, limit)
		}
		out[i] = p
	}
	return out
}

// firstBytes returns the first n bytes of s, without a part of a character.
func firstBytes(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// lastBytes returns the last n bytes of s, without a part of a character.
func lastBytes(s string, n int) string {
	n = max(0, len(s)-n)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return s[n:]
}
