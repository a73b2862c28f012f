package inspector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/delivery"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/stages/diff"
	"github.com/vokter/vokter/stages/index"
	"github.com/vokter/vokter/stages/match"
)

// Explain returns what the last checks of the page of url found, the notifications of its last
// changes with their deliveries, and whether each keyword matched in the last change of its
// document. The filter f selects clients and keywords. Explain compares texts again, which may take
// some seconds of processor time.
//
// It fails where url is not a URL, with a *flow.Refusal of CodeNotFound where the page is neither
// watched nor expired, with [ErrElsewhere] where another process owns the page, and where the store
// cannot be read.
func Explain(ctx context.Context, s Store, languages *text.Languages, url string, f inspect.ExplainFilter) (inspect.Explanation, error) {
	e := inspect.Explanation{Checks: []inspect.Check{}, Changes: []inspect.Change{}, Keywords: []inspect.Keyword{}}
	page, err := pageurl.Canonical(url)
	if err != nil {
		return e, err
	}
	if err := checkOwned(s, page); err != nil {
		return e, err
	}
	st := s.State(flow.GroupIndex, page)
	var ok bool
	e.Page, ok, err = loadPage(page, st)
	switch {
	case err != nil:
		return e, err
	case !ok, !keepClients(&e.Page, f.Client, f.Clients): // another client may not learn that it is watched
		return e, notWatched(f, page)
	}
	checks, err := index.History(st)
	if err != nil {
		return e, err
	}
	if len(checks) > 0 && checks[0].Check == e.Page.Checks {
		e.Page.LastCheck = checks[0].Time // the page knows when it was asked for
	}
	for _, c := range checks {
		if f.Clients != nil {
			c.Versions = maps.Clone(c.Versions)
			maps.DeleteFunc(c.Versions, func(document string, _ uint64) bool { return !hasSubscriptionTo(&e.Page, document) })
		}
		e.Checks = append(e.Checks, inspect.Check(c))
	}
	records, err := match.History(s.State(flow.GroupMatch, page))
	if err != nil {
		return e, err
	}
	if e.Changes, err = changesOf(s, e.Page, records, f); err != nil {
		return e, err
	}
	if err := addKeywords(ctx, &e, languages, st, records, f); err != nil {
		return e, err
	}
	proposals, err := Proposals(ctx, st)
	for _, p := range proposals {
		if hasSubscriptionTo(&e.Page, p.Document) { // of the clients that f selects
			e.Proposals = append(e.Proposals, p)
		}
	}
	return e, err
}

// notWatched is the refusal of a page that the caller may not know or that is not watched. Both look the same.
func notWatched(f inspect.ExplainFilter, page string) error {
	message := fmt.Sprintf("%s is not watched", page)
	if f.Client != "" {
		message += fmt.Sprintf(" for client %q", f.Client)
	}
	return &flow.Refusal{Code: flow.CodeNotFound, Message: message}
}

// Deliveries returns the notifications of the last changes of the page of url with their
// deliveries, the newest change first. The filter f selects clients and keywords. It fails like
// [Explain].
func Deliveries(s Store, url string, f inspect.ExplainFilter) ([]inspect.Change, error) {
	page, err := pageurl.Canonical(url)
	if err != nil {
		return nil, err
	}
	if err := checkOwned(s, page); err != nil {
		return nil, err
	}
	p, ok, err := loadPage(page, s.State(flow.GroupIndex, page))
	if err != nil {
		return nil, err
	}
	if !ok || !keepClients(&p, f.Client, f.Clients) {
		return nil, notWatched(f, page)
	}
	records, err := match.History(s.State(flow.GroupMatch, page))
	if err != nil {
		return nil, err
	}
	return changesOf(s, p, records, f)
}

// changesOf returns the changes in records of page with the notifications that f selects.
func changesOf(s Store, page inspect.Page, records []match.ChangeRecord, f inspect.ExplainFilter) ([]inspect.Change, error) {
	all := []inspect.Change{}
	for _, rec := range records {
		if f.Clients != nil && rec.Document != "" && !hasSubscriptionTo(&page, rec.Document) {
			continue
		}
		c, err := changeOf(s, rec, f)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// changeOf returns a change with the notifications that f selects and their deliveries.
func changeOf(s Store, rec match.ChangeRecord, f inspect.ExplainFilter) (inspect.Change, error) {
	c := inspect.Change{
		ID: rec.ID, Document: rec.Document, Version: rec.Version, Check: rec.Check, Time: rec.Time, Status: rec.Status, Reason: rec.Reason,
		Matches: []inspect.Match{}, Omitted: rec.Omitted,
	}
	for _, m := range rec.Matches {
		if f.Client != "" && m.Client != f.Client || f.Clients != nil && !slices.Contains(f.Clients, m.Client) ||
			f.Keyword != "" && rec.Status == "" && !slices.Contains(m.Keywords, f.Keyword) {
			continue
		}
		info := inspect.Match{
			Notification: m.Notification, Client: m.Client, Keywords: append([]string{}, m.Keywords...),
			Sink: m.Receiver.Sink,
		}
		all, err := resolveDeliveries(info, s, maxHops)
		if err != nil {
			return c, err
		}
		c.Matches = append(c.Matches, all...)
	}
	return c, nil
}

// maxHops is how often a notification is followed to another sink.
const maxHops = 10

// resolveDeliveries returns m with the state of its delivery. Where its sink passed it on to others, it
// returns one Match for each of them.
func resolveDeliveries(m inspect.Match, s Store, most int) ([]inspect.Match, error) {
	to, err := addDelivery(&m, s)
	if err != nil || len(to) == 0 || most == 0 {
		return []inspect.Match{m}, err
	}
	var all []inspect.Match
	for _, next := range to {
		passed := inspect.Match{
			Notification: next.ID, Client: m.Client, Keywords: m.Keywords, Sink: next.Sink, Via: append(slices.Clone(m.Via), m.Sink),
		}
		more, err := resolveDeliveries(passed, s, most-1)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// addDelivery fills in the state of the delivery of m to its sink, and returns the sinks that the
// notification was passed on to.
func addDelivery(m *inspect.Match, s Store) ([]delivery.Passed, error) {
	if !s.Owns(m.Sink) {
		m.Delivery = inspect.DeliveryElsewhere
		return nil, nil
	}
	known, ok, err := delivery.Known(s.State(flow.GroupDelivery, m.Sink), m.Notification)
	if err != nil {
		return nil, err
	}
	m.Attempts, m.Reason, m.DeliveryTime = known.Attempts, known.Reason, known.Time
	if known.State == delivery.RecordCollected {
		m.Delivery = inspect.DeliveryDigest
		return nil, nil
	}
	m.Digest = known.In
	switch {
	case !ok:
		m.Delivery = inspect.DeliveryForgotten
	case known.State == delivery.RecordDelivered:
		m.Delivery = inspect.DeliveryDelivered
	case known.State == delivery.RecordDead:
		m.Delivery = inspect.DeliveryDead
	case known.State == delivery.RecordDropped:
		m.Delivery = inspect.DeliveryDropped
	case known.State == delivery.RecordPassed:
		m.Delivery = inspect.DeliveryUnrouted
	default:
		m.Delivery = inspect.DeliveryPending
	}
	return known.To(), nil
}

// Explaining a keyword reads a whole text several times. These limits leave processor time to the
// stages.
const (
	maxExplainedKeywords = 1000            // keywords
	explainTimeout       = 5 * time.Second // after which no further keyword is explained
)

// addKeywords adds the keywords that f selects, each with the reason why it did not match. St is
// the state of the page in group index, and records are its last changes.
func addKeywords(ctx context.Context, e *inspect.Explanation, languages *text.Languages, st flow.State, records []match.ChangeRecord, f inspect.ExplainFilter) error {
	until := time.Now().Add(explainTimeout)
	documents := make(map[string]*lastChange)
	watched := f.Keyword == ""
	for _, s := range e.Page.Subscriptions {
		keywords := s.Keywords
		if len(keywords) == 0 {
			keywords = []string{""}
		}
		for i, keyword := range keywords {
			if f.Keyword != "" && keyword != f.Keyword || slices.Contains(keywords[:i], keyword) {
				continue
			}
			watched = true
			if len(e.Keywords) == maxExplainedKeywords || len(e.Keywords) > 0 && time.Now().After(until) {
				e.Omitted++
				continue
			}
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			c := documents[s.Document]
			if c == nil {
				var err error
				if c, err = compareLastChange(e.Page, s.Document, languages, st, records); err != nil {
					return err
				}
				documents[s.Document] = c
			}
			k := inspect.Keyword{Client: s.Client, Document: s.Document, Keyword: keyword, Version: c.version}
			k.Why = c.whyNot(s, keyword)
			k.Matched = k.Why == ""
			e.Keywords = append(e.Keywords, k)
		}
	}
	if !watched {
		e.Keywords = append(e.Keywords, inspect.Keyword{Client: f.Client, Keyword: f.Keyword, Why: "no subscription to this page has this keyword"})
	}
	return nil
}

// lastChange is the change that made the current version of a document.
type lastChange struct {
	version uint64
	// explainer is nil where there was no change, or where its versions can no longer be compared;
	// noExplainer says which.
	explainer   *match.Explainer
	noExplainer string
	// matched holds the pairs of client and keyword that the change notified, as far as they are
	// kept.
	matched map[[2]string]bool
}

// compareLastChange compares the current version of a document with the one before it.
func compareLastChange(page inspect.Page, document string, languages *text.Languages, st flow.State, records []match.ChangeRecord) (*lastChange, error) {
	c := &lastChange{matched: make(map[[2]string]bool)}
	value := false
	for _, d := range page.Documents {
		if d.ID == document {
			c.version, value = d.Version, d.View.Value != nil
		}
	}
	if c.version == 0 {
		c.noExplainer = "the document has no version yet"
		return c, nil
	}
	changed := false
	for _, rec := range records {
		if rec.Document == document && rec.Version == c.version {
			changed = true
			for _, m := range rec.Matches {
				for _, k := range m.Keywords {
					c.matched[[2]string{m.Client, k}] = true
				}
				if len(m.Keywords) == 0 {
					c.matched[[2]string{m.Client, ""}] = true
				}
			}
		}
	}
	stands, ok, err := loadText(st, document, c.version)
	if err != nil {
		return nil, err
	}
	before, had, err := loadText(st, document, stands.Previous)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		c.noExplainer = fmt.Sprintf("version %d was replaced while the explanation was made; ask again", c.version)
	case !had && changed:
		c.noExplainer = fmt.Sprintf("version %d is no longer kept, so the change cannot be compared again", stands.Previous)
	case !had:
		c.noExplainer = fmt.Sprintf("version %d is the baseline, and nothing has changed since", c.version)
	case before.Extractor != stands.Extractor:
		c.noExplainer = "the rules that extract the text have changed since then, so the change cannot be compared again"
	default:
		change, _ := diff.ChangeOf(flow.Snapshot{
			Page: page.URL, Document: document, N: c.version, Previous: stands.Previous, Language: stands.Language,
			Title: stands.Title, Value: value, Old: before.text, New: stands.text,
			OldKeys: flow.UnpackKeys(before.Packed), NewKeys: flow.UnpackKeys(stands.Packed),
			Restless: stands.Restless, Words: stands.Words, Whole: stands.Whole, Elapsed: stands.Time.Sub(before.Time),
		})
		c.explainer = match.NewExplainer(&change, before.text, stands.text, languages)
		c.explainer.SetRelinked(relinkedItems(before, stands))
	}
	return c, nil
}

// whyNot returns why the change did not match a keyword of s, or an empty string if it did.
func (c *lastChange) whyNot(s inspect.Subscription, keyword string) string {
	switch {
	case c.matched[[2]string{s.Client, keyword}]:
		return ""
	case s.State == inspect.StatePaused:
		if s.PausedUntil.IsZero() {
			return "the subscription is paused"
		}
		return "the subscription is paused until " + s.PausedUntil.UTC().Format(time.RFC3339)
	case s.State == inspect.StateExpired:
		return "the subscription expired: " + s.Reason
	case c.explainer == nil:
		return c.noExplainer
	}
	return c.explainer.WhyNot(flow.Stamped{From: s.From, Until: flow.Forever, Subscription: s.Subscription}, keyword)
}

// relinkedItems returns the texts of the items of a version that have another key than in the one before, and the same
// words.
func relinkedItems(before, stands textVersion) (texts []string) {
	keys := flow.UnpackKeys(stands.Packed)
	if keys == nil {
		return nil
	}
	rows, _ := diff.Rows(text.AnalyzePacked(before.text, flow.UnpackKeys(before.Packed), nil), text.AnalyzePacked(stands.text, keys, nil))
	for _, r := range rows {
		if !r.OtherLink || r.Kind != inspect.RowKept && r.Kind != inspect.RowMoved {
			continue
		}
		var item strings.Builder
		for _, l := range r.New {
			for _, s := range l.Segments {
				item.WriteString(s.Text)
			}
			item.WriteByte(pipeline.BlockEnd)
		}
		texts = append(texts, item.String())
	}
	return texts
}

// textVersion is a stored version with its unpacked text.
type textVersion struct {
	index.StoredVersion
	text string
}

// loadText returns version n of a document with its text.
func loadText(st flow.State, document string, n uint64) (v textVersion, ok bool, err error) {
	if v.StoredVersion, ok, err = index.LoadVersion(st, document, n); err != nil || !ok {
		return v, false, err
	}
	v.text, err = unpackText(v.StoredVersion, n)
	return v, err == nil, err
}
