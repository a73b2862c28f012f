package inspector

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// maxComparedBytes is how many bytes of texts Versions compares again, to find out how much changed.
const maxComparedBytes = 1 << 18

// Versions returns the stored versions of a document of the page of url, with their notifications.
// It fails where url is not a URL, with a *flow.Refusal of CodeNotFound where the page or the
// document is not watched, with a *flow.Refusal of CodeConflict where f does not choose among
// several documents, with [ErrElsewhere] where another process owns the page, and where the store
// cannot be read.
func Versions(ctx context.Context, s Store, url string, f inspect.DocumentFilter) (inspect.History, error) {
	h := inspect.History{Versions: []inspect.Version{}}
	d, err := openDocument(s, url, f)
	if err != nil {
		return h, err
	}
	h.URL, h.Document, h.View = d.page.URL, d.ID, d.View
	records, err := match.History(s.State(flow.GroupMatch, d.page.URL))
	if err != nil {
		return h, err
	}
	room := int64(maxComparedBytes)
	numbers, err := index.KeptVersions(d.state, d.ID)
	if err != nil {
		return h, err
	}
	for _, n := range numbers {
		if ctx.Err() != nil {
			return h, context.Cause(ctx)
		}
		v, ok, err := index.LoadVersion(d.state, d.ID, n)
		if err != nil {
			return h, err
		}
		if !ok {
			continue // dropped meanwhile
		}
		version, err := describeVersion(n, v)
		if err != nil {
			return h, err
		}
		if d.View.Value != nil {
			content, err := unpackText(v, n)
			if err != nil {
				return h, err
			}
			version.Value = strings.TrimSpace(content)
		}
		if err := addChange(&version, s, records, d); err != nil {
			return h, err
		}
		if version.Size == nil && !version.Baseline {
			if err := computeSize(&version, d, v, &room); err != nil {
				return h, err
			}
		}
		h.Versions = append(h.Versions, version)
	}
	return h, nil
}

// VersionText returns the text of version n of a document of the page of url; 0 means the current
// version. It fails like [Versions], and with a *flow.Refusal of CodeNotFound where the version is
// not stored.
func VersionText(s Store, url string, n uint64, f inspect.DocumentFilter) (inspect.Text, error) {
	d, err := openDocument(s, url, f)
	if err != nil {
		return inspect.Text{}, err
	}
	n = cmp.Or(n, d.N)
	v, err := d.loadVersion(n)
	if err != nil {
		return inspect.Text{}, err
	}
	version, err := describeVersion(n, v.StoredVersion)
	if err != nil {
		return inspect.Text{}, err
	}
	t := inspect.Text{URL: d.page.URL, Document: d.ID, Version: version, Text: inspect.Plain(v.text)}
	records, err := match.History(s.State(flow.GroupMatch, d.page.URL))
	if err != nil {
		return inspect.Text{}, err
	}
	return t, addChange(&t.Version, s, records, d)
}

// VersionScreenshot returns the picture of the page that is stored with version n of a document; 0 means
// the current version. It fails like [VersionText], and with a *flow.Refusal of CodeNotFound where the
// version has no picture.
func VersionScreenshot(s Store, url string, n uint64, f inspect.DocumentFilter) (inspect.Screenshot, error) {
	d, err := openDocument(s, url, f)
	if err != nil {
		return inspect.Screenshot{}, err
	}
	n = cmp.Or(n, d.N)
	image, ok, err := index.LoadScreenshot(d.state, d.ID, n)
	if err != nil {
		return inspect.Screenshot{}, err
	}
	kind := http.DetectContentType(image)
	if !ok || kind != "image/webp" && kind != "image/jpeg" && kind != "image/png" {
		return inspect.Screenshot{}, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("version %d of %s has no screenshot", n, d.page.URL)}
	}
	return inspect.Screenshot{URL: d.page.URL, Document: d.ID, Version: n, ContentType: kind, Image: bytes.Clone(image)}, nil
}

// describeVersion describes v, version n of a document.
func describeVersion(n uint64, v index.StoredVersion) (inspect.Version, error) {
	out := inspect.Version{
		N: n, Time: v.Time, Check: v.Check, Baseline: v.Previous == 0, Title: v.Title,
		Language: v.Language, LanguageFrom: v.LanguageFrom, ContentType: v.ContentType, TextHash: v.TextHash,
		Bytes: flow.UnpackedSize(v.Packed), Screenshot: v.Screenshot, Matches: []inspect.Match{},
	}
	if out.Bytes == 0 { // small packed texts do not say it
		content, err := unpackText(v, n)
		if err != nil {
			return out, err
		}
		out.Bytes = int64(len(content))
	}
	return out, nil
}

// addChange adds the notifications of v, a version of d, and how much changed, if one of
// records is its change.
func addChange(v *inspect.Version, s Store, records []match.ChangeRecord, d storedDocument) error {
	for _, rec := range records {
		if rec.Document != d.ID || rec.Version != v.N || !rec.Time.Equal(v.Time) {
			continue
		}
		c, err := changeOf(s, rec, inspect.ExplainFilter{Clients: d.clients})
		if err != nil {
			return err
		}
		v.Matches, v.Omitted = c.Matches, c.Omitted
		if rec.Size != (flow.Size{}) {
			size := rec.Size
			v.Size = &size
		}
		return nil
	}
	v.Forgotten = !v.Baseline && len(records) == match.MaxHistory && v.Time.Before(records[len(records)-1].Time)
	return nil
}

// computeSize compares the texts again to find out how much changed with v, if its text and the one before have at
// most room bytes, and takes these from room.
func computeSize(v *inspect.Version, d storedDocument, stored index.StoredVersion, room *int64) error {
	old, oldKeys, ok, err := stored.OldText(d.state, d.ID)
	if err != nil || !ok {
		return err
	}
	if *room -= int64(len(old)) + v.Bytes; *room < 0 {
		return nil
	}
	content, err := unpackText(stored, v.N)
	if err != nil {
		return err
	}
	_, size := diff.Rows(d.analyzeText(old, oldKeys), d.analyzeText(content, flow.UnpackKeys(stored.Packed)))
	v.Size = &size
	return nil
}

// storedDocument is a document of a page with the state of the page in group index.
type storedDocument struct {
	index.Document
	page  index.Page
	state flow.State
	// clients is that of the DocumentFilter, and subs are the subscriptions that it lets through.
	clients []string
	subs    []flow.Stamped
}

// analyzeText reads content, a text of d, as it is compared.
func (d storedDocument) analyzeText(content string, keys []pipeline.Key) *text.Doc {
	if d.View.Value != nil {
		return text.AnalyzeValue(content)
	}
	return text.AnalyzePacked(content, keys, nil)
}

// openDocument returns the document that f chooses on the page of url.
func openDocument(s Store, url string, f inspect.DocumentFilter) (storedDocument, error) {
	page, err := pageurl.Canonical(url)
	if err != nil {
		return storedDocument{}, err
	}
	if err := checkOwned(s, page); err != nil {
		return storedDocument{}, err
	}
	st := s.State(flow.GroupIndex, page)
	p, err := index.Load(st)
	if err != nil {
		return storedDocument{}, err
	}
	if p.Incarnation == "" {
		return storedDocument{}, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s is not watched", page)}
	}
	subs, err := loadSubscriptions(st)
	if err != nil {
		return storedDocument{}, err
	}
	if f.Clients != nil {
		subs = slices.DeleteFunc(subs, func(s flow.Stamped) bool { return !slices.Contains(f.Clients, s.Subscription.WithDefaults().Client) })
		p.Documents = slices.DeleteFunc(p.Documents, func(d index.Document) bool {
			return !slices.ContainsFunc(subs, func(s flow.Stamped) bool { return s.Document == d.ID })
		})
		if len(p.Documents) == 0 {
			return storedDocument{}, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s is not watched", page)}
		}
	}
	var chosen []index.Document
	for _, d := range p.Documents {
		if selects(f, d, subs) {
			chosen = append(chosen, d)
		}
	}
	switch len(chosen) {
	case 1:
		return storedDocument{chosen[0], p, st, f.Clients, subs}, nil
	case 0:
		return storedDocument{}, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s has no document %s; it has %s", page, f, describeDocuments(p.Documents, subs))}
	}
	return storedDocument{}, &flow.Refusal{Code: flow.CodeConflict, Message: fmt.Sprintf("%s has %d documents; choose one by its client, a selector or its ID: %s",
		page, len(chosen), describeDocuments(chosen, subs))}
}

// loadSubscriptions returns the subscriptions of the page whose state st is, also those that are paused.
func loadSubscriptions(st flow.State) ([]flow.Stamped, error) {
	subs, err := index.Subscriptions(st)
	if err != nil {
		return nil, err
	}
	expired, err := index.Expired(st)
	for _, x := range expired {
		if x.End == flow.EndPaused {
			subs = append(subs, x.Stamped)
		}
	}
	return subs, err
}

// selects reports whether f selects d. subs are the subscriptions of its page.
func selects(f inspect.DocumentFilter, d index.Document, subs []flow.Stamped) bool {
	selector := func(s pipeline.Selector) bool { return s == pipeline.ParseSelector(f.Select) || s.String() == f.Select }
	watches := func(s flow.Stamped) bool {
		return s.Document == d.ID && s.Subscription.WithDefaults().Client == f.Client
	}
	return strings.HasPrefix(d.ID, f.Document) &&
		(f.Select == "" || slices.ContainsFunc(d.View.Select, selector)) &&
		(f.Client == "" || slices.ContainsFunc(subs, watches))
}

// maxNamed is how many documents, and how many clients of one, a message names.
const maxNamed = 5

// describeDocuments names documents with their selectors and clients.
func describeDocuments(documents []index.Document, subs []flow.Stamped) string {
	var parts []string
	for i, d := range documents {
		if i == maxNamed {
			parts = append(parts, fmt.Sprintf("and %d more", len(documents)-i))
			break
		}
		what := "the whole page"
		if len(d.View.Select) > 0 {
			what = "select"
			for _, s := range d.View.Select {
				what += " " + s.String()
			}
		} else if v := d.View.Value; v != nil {
			what = strings.TrimSpace("value " + v.Offer)
		} else if !d.View.IsZero() {
			what = "the page with other settings"
		}
		var clients []string
		for _, s := range subs {
			if client := s.Subscription.WithDefaults().Client; s.Document == d.ID && !slices.Contains(clients, client) && len(clients) < maxNamed {
				clients = append(clients, client)
			}
		}
		if len(clients) > 0 {
			what += "; client " + strings.Join(clients, ", ")
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", d.ID, what))
	}
	return strings.Join(parts, ", ")
}

// loadVersion returns version n. It fails where n is not stored.
func (d storedDocument) loadVersion(n uint64) (textVersion, error) {
	v, ok, err := loadText(d.state, d.ID, n)
	switch {
	case err != nil:
		return v, err
	case ok:
		return v, nil
	case d.TextHash == "":
		return v, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s has no version yet", d.page.URL)}
	}
	numbers, err := index.KeptVersions(d.state, d.ID)
	if err != nil {
		return v, err
	}
	if len(numbers) == 0 { // dropped meanwhile
		numbers = []uint64{d.N}
	}
	return v, &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("%s has no version %d; %d versions from %d to %d are kept", d.page.URL, n, len(numbers), numbers[len(numbers)-1], d.N)}
}

// unpackText returns the text of v, version n of a document.
func unpackText(v index.StoredVersion, n uint64) (string, error) {
	content, err := flow.UnpackText(v.Packed)
	if err != nil {
		return "", failure.Broken(fmt.Errorf("version %d of a document: %w", n, err))
	}
	return content, nil
}
