package index

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Page is the state of one page. Without an Incarnation nobody watches it: it is kept only
// for what expired of it. The zero Page is none.
type Page struct {
	// URL is the canonical URL, which is also the page's key.
	URL string `cbor:"1,keyasint"`
	// Incarnation is which life of the page this is; empty for none.
	Incarnation string `cbor:"2,keyasint"`
	// Stamp is the last one given to a subscription.
	Stamp uint64 `cbor:"3,keyasint,omitempty"`
	// Keep lists the origins that keep the page without subscriptions, in order.
	Keep []string `cbor:"4,keyasint,omitempty"`
	// Intervals are those of the subscriptions, the most impatient first.
	Intervals []intervalCount `cbor:"5,keyasint,omitempty"`
	// Documents are in order of their IDs.
	Documents []Document `cbor:"6,keyasint,omitempty"`
	// Gone and Floor are up to which number documents that left the page had versions: a
	// document that returns goes on behind both, so that no change has an earlier one's ID.
	Gone  map[string]uint64 `cbor:"7,keyasint,omitempty"`
	Floor uint64            `cbor:"8,keyasint,omitempty"`

	// Check is the number of the last check that was asked for, at Asked; Open is what
	// is outstanding of it, if anything.
	Check uint64    `cbor:"9,keyasint,omitempty"`
	Asked time.Time `cbor:"10,keyasint,omitzero"`
	Open  *Open     `cbor:"11,keyasint,omitempty"`

	// Due is when the page is to be checked next by its interval, which was Paced then. It
	// has a phase of its own once Phased. Delayed is the time instead of an overdue Due.
	// Before NotBefore no check is made at all, because the host asked for that: Wish is how
	// long it asked to be left alone. Soon asks for a check as soon as may be, Bare for one
	// without any hash.
	Due       time.Time     `cbor:"12,keyasint,omitzero"`
	Paced     time.Duration `cbor:"13,keyasint,omitempty"`
	Phased    bool          `cbor:"14,keyasint,omitempty"`
	Delayed   time.Time     `cbor:"15,keyasint,omitzero"`
	NotBefore time.Time     `cbor:"16,keyasint,omitzero"`
	Wish      time.Duration `cbor:"17,keyasint,omitempty"`
	Soon      bool          `cbor:"18,keyasint,omitempty"`
	Bare      bool          `cbor:"19,keyasint,omitempty"`

	// ETag, LastModified and BodyHash are of the last body that all documents were read
	// from, if no other was read since.
	ETag         string `cbor:"20,keyasint,omitempty"`
	LastModified string `cbor:"21,keyasint,omitempty"`
	BodyHash     string `cbor:"22,keyasint,omitempty"`

	// Failures counts the checks in a row that did not reach a readable page; Trouble is
	// the class of the last check's failure, of the page or one of its documents.
	Failures int    `cbor:"23,keyasint,omitempty"`
	Trouble  string `cbor:"24,keyasint,omitempty"`
	// Busy counts the checks in a row for which the host was too busy. FailedSince is when
	// the first of Failures was made; Failing says that this was told.
	Busy        int       `cbor:"25,keyasint,omitempty"`
	FailedSince time.Time `cbor:"26,keyasint,omitzero"`
	Failing     bool      `cbor:"27,keyasint,omitempty"`

	// Expired is how many expired subscriptions are kept. Unreachable lists the receivers
	// that expired, by name and in order. Expiry says how the last life
	// ended, if it was given up, until another begins; beyond that, while it has a Keep.
	Expired     int      `cbor:"28,keyasint,omitempty"`
	Unreachable []string `cbor:"29,keyasint,omitempty"`
	Expiry      *Expiry  `cbor:"30,keyasint,omitempty"`

	// Body is the number of the body which is kept, 0 for none: that of the check that read
	// it, or one of pages that were pushed. Rebase asks that the next request carries it.
	Body   uint64 `cbor:"31,keyasint,omitempty"`
	Rebase bool   `cbor:"32,keyasint,omitempty"`
	// BodyAt is when a body was last kept, or was too large for that.
	BodyAt time.Time `cbor:"33,keyasint,omitzero"`

	// Records is how many checks were recorded in the history, in all lives that it is of.
	Records uint64 `cbor:"34,keyasint,omitempty"`

	// Unasked lists the origins that keep the page, or kept it before it was given up, and ask
	// for no check of it, in order.
	Unasked []string `cbor:"35,keyasint,omitempty"`
	// Pushes counts the pages that were pushed in this life; Seen are hashes of the IDs of the
	// last ones, the latest last.
	Pushes uint64 `cbor:"36,keyasint,omitempty"`
	Seen   []byte `cbor:"37,keyasint,omitempty"`
}

// intervalCount is how many subscriptions ask for a check every so often.
type intervalCount struct {
	Every pipeline.Duration `cbor:"1,keyasint"`
	N     int               `cbor:"2,keyasint"`
}

// Document is the state of one document of a page.
type Document struct {
	ID   string        `cbor:"1,keyasint"`
	View pipeline.View `cbor:"2,keyasint,omitzero"`
	// Since is the last check that was asked for before the document began, or was pushed
	// last; outcomes of it and earlier ones say nothing about the document.
	Since uint64 `cbor:"3,keyasint,omitempty"`
	// N is the number of the version that stands, Oldest that of the oldest stored one,
	// TextHash the standing version's. Without a version TextHash is empty.
	N        uint64 `cbor:"4,keyasint,omitempty"`
	Oldest   uint64 `cbor:"5,keyasint,omitempty"`
	TextHash string `cbor:"6,keyasint,omitempty"`
	// Candidate is the hash of a text that stood for Stood checks in a row and is no
	// version yet.
	Candidate string `cbor:"7,keyasint,omitempty"`
	Stood     int    `cbor:"8,keyasint,omitempty"`
	// Subscriptions is how many there are.
	Subscriptions int `cbor:"9,keyasint,omitempty"`
	// GoneSince is since when its selector matches nothing, or its text is empty; zero where
	// it is there.
	GoneSince time.Time `cbor:"10,keyasint,omitzero"`
	// Extractor is what made the standing text; empty for a reader that does not say.
	Extractor string `cbor:"11,keyasint,omitempty"`
	// Body is the number of a body that the standing text is known to be in. While it is Page.Body
	// the text can be made anew.
	Body uint64 `cbor:"12,keyasint,omitempty"`
}

// Open is what is known of an outstanding check.
type Open struct {
	// Deadline is when the request counts as lost.
	Deadline time.Time `cbor:"1,keyasint"`
	// Parts is how many documents were asked for; Got has a bit for each part that came.
	Parts int    `cbor:"2,keyasint"`
	Got   []byte `cbor:"3,keyasint,omitempty"`
	// Bare says that the request carried no hash at all.
	Bare bool `cbor:"4,keyasint,omitempty"`
	// Reached says that a part could be read; Partial that not all texts of the body are
	// known; Class and Reason tell the first failure.
	Reached bool   `cbor:"5,keyasint,omitempty"`
	Partial bool   `cbor:"6,keyasint,omitempty"`
	Class   string `cbor:"7,keyasint,omitempty"`
	Reason  string `cbor:"8,keyasint,omitempty"`
	// Made are the versions that it made, by document; Standing the documents whose
	// standing texts are in its body.
	Made     map[string]uint64 `cbor:"9,keyasint,omitempty"`
	Standing []string          `cbor:"10,keyasint,omitempty"`
	// Rebase says that the request carried the body that is kept; Again that a document
	// needs it to be compared.
	Rebase bool `cbor:"11,keyasint,omitempty"`
	Again  bool `cbor:"12,keyasint,omitempty"`
	// KeepBody says that the request asked for the body.
	KeepBody bool `cbor:"13,keyasint,omitempty"`
	// BodyHash is that of the first part that came; Mixed says that a later one is of another
	// body.
	BodyHash string `cbor:"14,keyasint,omitempty"`
	Mixed    bool   `cbor:"15,keyasint,omitempty"`
	// Nonce is that of the request.
	Nonce string `cbor:"16,keyasint,omitempty"`
}

// maxGone bounds Page.Gone.
const maxGone = 32

// clone returns a copy of p that shares nothing which apply changes.
func (p Page) clone() Page {
	p.Keep = slices.Clone(p.Keep)
	p.Intervals = slices.Clone(p.Intervals)
	p.Documents = slices.Clone(p.Documents)
	p.Gone = maps.Clone(p.Gone)
	p.Unreachable = slices.Clone(p.Unreachable)
	p.Unasked = slices.Clone(p.Unasked)
	if p.Expiry != nil {
		e := *p.Expiry
		e.Keep = slices.Clone(e.Keep)
		p.Expiry = &e
	}
	if p.Open != nil {
		o := *p.Open
		o.Got = slices.Clone(o.Got)
		o.Standing, o.Made = slices.Clone(o.Standing), maps.Clone(o.Made)
		p.Open = &o
	}
	return p
}

// Document returns the document with the given ID, or nil.
func (p *Page) Document(id string) *Document {
	i, ok := p.find(id)
	if !ok {
		return nil
	}
	return &p.Documents[i]
}

func (p *Page) find(id string) (int, bool) {
	return slices.BinarySearchFunc(p.Documents, id, func(d Document, id string) int { return cmp.Compare(d.ID, id) })
}

// begin returns the document of v, which is added if it is new.
func (p *Page) begin(v pipeline.View) *Document {
	id := flow.DocumentID(p.URL, v)
	i, ok := p.find(id)
	if !ok {
		d := Document{ID: id, View: v, Since: p.Check, N: max(p.Floor, p.Gone[id])}
		p.Documents = slices.Insert(p.Documents, i, d)
		p.Soon = true
	}
	return &p.Documents[i]
}

// drop removes the document with the given ID and remembers how far its versions went.
func (p *Page) drop(id string) {
	i, ok := p.find(id)
	if !ok {
		return
	}
	if n := p.Documents[i].N; n > p.Floor {
		if p.Gone == nil {
			p.Gone = make(map[string]uint64)
		}
		p.Gone[id] = n
	}
	p.Documents = slices.Delete(p.Documents, i, i+1)
	if len(p.Gone) > maxGone {
		for _, n := range p.Gone {
			p.Floor = max(p.Floor, n)
		}
		p.Gone = nil
	}
}

// count adds n (1 or -1) subscriptions that ask for every, if they ask for checks at all.
func (p *Page) count(every pipeline.Duration, n int) {
	if every == pipeline.Never {
		return
	}
	i, ok := slices.BinarySearchFunc(p.Intervals, every, func(v intervalCount, e pipeline.Duration) int { return cmp.Compare(v.Every, e) })
	if !ok {
		p.Intervals = slices.Insert(p.Intervals, i, intervalCount{Every: every})
	}
	if p.Intervals[i].N += n; p.Intervals[i].N <= 0 {
		p.Intervals = slices.Delete(p.Intervals, i, i+1)
	}
}

// keeps reports whether d stays without subscriptions.
func (p *Page) keeps(d *Document) bool { return len(p.Keep) > 0 && d.View.IsZero() }

// forgetBody takes back that BodyHash stands for all texts.
func (p *Page) forgetBody() { p.ETag, p.LastModified, p.BodyHash = "", "", "" }

// standsFor reports whether an equal body means equal texts: those of all documents that
// a check with the given number can be about.
func (p *Page) standsFor(check uint64) bool {
	for i := range p.Documents {
		if d := &p.Documents[i]; d.Since < check && (d.TextHash == "" || d.Candidate != "") {
			return false
		}
	}
	return p.BodyHash != ""
}

// Fetched reports whether anybody asks for checks of p. One that is only pushed is never
// fetched: it cannot be overdue, and it does not expire.
func (p *Page) Fetched() bool {
	return p.Incarnation != "" && (len(p.Intervals) > 0 ||
		slices.ContainsFunc(p.Keep, func(origin string) bool { return !slices.Contains(p.Unasked, origin) }))
}

// keepEvery notes how often origin, which keeps the page, asks for checks of it.
func (p *Page) keepEvery(origin string, every pipeline.Duration) {
	p.Unasked = slices.DeleteFunc(p.Unasked, func(o string) bool { return o == origin })
	if every == pipeline.Never {
		p.Unasked = append(p.Unasked, origin)
		slices.Sort(p.Unasked)
	}
}
