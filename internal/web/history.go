package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

// textView is the text of one version.
type textView struct {
	inspect.Text
	Term     string
	Keywords []string
	Pieces   []piece
	Found    int
}

func showText(r *request) (any, error) {
	f := inspect.DocumentFilter{Document: r.form.Get("document")}
	n, err := versionParam(r, "version")
	if err != nil {
		return nil, err
	}
	v := textView{Term: strings.TrimSpace(r.form.Get("term"))}
	if v.Text, err = r.api.Text(r.Context(), r.form.Get("url"), n, f); err != nil {
		return nil, err
	}
	f.Document = v.Document
	terms := []searchTerm{{term: v.Term}}
	if v.Term == "" {
		if terms, err = keywordsOf(r, v.URL, v.Document); err != nil {
			return nil, err
		}
		for _, t := range terms {
			v.Keywords = append(v.Keywords, t.term)
		}
	}
	places, err := findPlaces(r, v.URL, v.Document, v.N, terms)
	if err != nil {
		return nil, err
	}
	v.Found = len(places)
	v.Pieces = cutPieces(0, []inspect.Segment{{Text: v.Text.Text}}, places)
	for i, p := range v.Pieces {
		v.Pieces[i].Text = inspect.Plain(p.Text)
	}
	return v, nil
}

// diffView is the difference of two versions.
type diffView struct {
	inspect.Difference
	Rows     []row
	Versions []inspect.Version
	Keywords []string
	// Side says that the versions stand side by side, All that unchanged text is shown as well.
	Side, All bool
	// Earlier and Later are the numbers of the versions before and behind the two, or 0.
	Earlier, Later uint64
}

// row is a row of a difference, of which each line has its pieces.
type row struct {
	Kind        string
	Item, Title string
	Old, New    [][]piece
	Skipped     int
	// OtherLink says what another link means for the item.
	OtherLink string
}

func showDiff(r *request) (any, error) {
	f := inspect.DiffFilter{DocumentFilter: inspect.DocumentFilter{Document: r.form.Get("document")}, Context: 2}
	v := diffView{Side: r.form.Get("view") == "side", All: r.form.Get("all") != ""}
	if v.All {
		f.Context = -1
	}
	var err error
	if f.From, err = versionParam(r, "from"); err != nil {
		return nil, err
	}
	if f.To, err = versionParam(r, "to"); err != nil {
		return nil, err
	}
	if f.From > f.To && f.To > 0 {
		f.From, f.To = f.To, f.From
	}
	if v.Difference, err = r.api.Diff(r.Context(), r.form.Get("url"), f); err != nil {
		return nil, err
	}
	h, err := r.api.Versions(r.Context(), v.URL, inspect.DocumentFilter{Document: v.Document})
	if err != nil {
		return nil, err
	}
	v.Versions = h.Versions
	for _, one := range h.Versions { // the newest first
		if one.N > v.To.N {
			v.Later = one.N
		}
		if one.N < v.From.N && v.Earlier == 0 {
			v.Earlier = one.N
		}
	}
	terms, err := keywordsOf(r, v.URL, v.Document)
	if err != nil {
		return nil, err
	}
	for _, t := range terms {
		v.Keywords = append(v.Keywords, t.term)
	}
	old, err := findPlaces(r, v.URL, v.Document, v.From.N, terms)
	if err != nil {
		return nil, err
	}
	new, err := findPlaces(r, v.URL, v.Document, v.To.N, terms)
	if err != nil {
		return nil, err
	}
	for _, x := range v.Difference.Rows {
		if beginsWith(slices.Concat(x.New, x.Old), x.Title) {
			x.Title = ""
		}
		v.Rows = append(v.Rows, row{x.Kind, x.Item, x.Title, linePieces(x.Old, old), linePieces(x.New, new), x.Skipped, x.AboutLink()})
	}
	return v, nil
}

// beginsWith reports whether the first of lines shows title.
func beginsWith(lines []inspect.Line, title string) bool {
	text := ""
	if len(lines) > 0 {
		for _, s := range lines[0].Segments {
			text += s.Text
		}
	}
	return strings.HasPrefix(text, strings.TrimSuffix(title, "…"))
}

// versionParam returns the version in the field name of the form, or 0 where it is missing.
func versionParam(r *request, name string) (uint64, error) {
	text := r.form.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 53)
	if err != nil {
		return 0, &pipeline.FieldError{Field: name, Reason: "is not the number of a version"}
	}
	return n, nil
}

// screenshot is a picture of a watched page.
type screenshot struct{ inspect.Screenshot }

func showScreenshot(r *request) (any, error) {
	n, err := versionParam(r, "version")
	if err != nil {
		return nil, err
	}
	s, err := r.api.Screenshot(r.Context(), r.form.Get("url"), n, inspect.DocumentFilter{Document: r.form.Get("document")})
	return screenshot{s}, err
}

// send sends the picture with the type that its bytes have, and lets nothing in it run.
func (s screenshot) send(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Content-Type", s.ContentType)
	h.Set("Content-Disposition", "inline")
	_, _ = w.Write(s.Image) // the client may have gone
}
