package index

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Page is the state of one page. If Incarnation is empty, nobody watches the page and it is
// stored only because something of it expired. The zero Page means that there is none.
type Page struct {
	// URL is the canonical URL, which is also the page's key.
	URL string `cbor:"1,keyasint"`
	// Incarnation names the time span from the first subscription to the end of the last one. A
	// page that is watched again gets a new one. Empty if nobody watches the page.
	Incarnation string `cbor:"2,keyasint"`
	// Stamp is the number of the last change of a subscription.
	Stamp uint64 `cbor:"3,keyasint,omitempty"`
	// Keep lists the origins that keep the page without subscriptions, in order.
	Keep []string `cbor:"4,keyasint,omitempty"`
	// Intervals are those of the subscriptions: durations, the shortest first, and before them cron
	// lines.
	Intervals []intervalCount `cbor:"5,keyasint,omitempty"`
	// Origins are those of the subscriptions, the expired ones among them, sorted by name.
	Origins []originCount `cbor:"47,keyasint,omitempty"`
	// Documents are sorted by ID.
	Documents []Document `cbor:"6,keyasint,omitempty"`
	// Gone holds the last version number of each document that was removed, Floor the highest
	// one of those that Gone no longer lists. A document that returns continues above both, so
	// that no two changes share an ID.
	Gone  map[string]uint64 `cbor:"7,keyasint,omitempty"`
	Floor uint64            `cbor:"8,keyasint,omitempty"`

	// ETag, LastModified and BodyHash are of the last body from which all documents were read.
	// They are empty if another body was read since.
	ETag         string `cbor:"20,keyasint,omitempty"`
	LastModified string `cbor:"21,keyasint,omitempty"`
	BodyHash     string `cbor:"22,keyasint,omitempty"`
	// Access is Response.Access of that body.
	Access string `cbor:"42,keyasint,omitempty"`

	// LeastAfter is the least pipeline.Expire.After, above 0, of the subscriptions of this incarnation; 0 if none has
	// one. Expires are the pipeline.Expire of the page, by the origins that keep the page and say it.
	LeastAfter int                        `cbor:"48,keyasint,omitempty"`
	Expires    map[string]pipeline.Expire `cbor:"49,keyasint,omitempty"`

	// Expired is how many expired subscriptions are stored. Unreachable lists the names of the
	// expired receivers, sorted. Expiry describes how the last incarnation expired. It is
	// removed when another begins, unless it has a Keep.
	Expired     int      `cbor:"28,keyasint,omitempty"`
	Unreachable []string `cbor:"29,keyasint,omitempty"`
	Expiry      *Expiry  `cbor:"30,keyasint,omitempty"`

	// PauseEnd is when the first of the paused subscriptions is to be resumed, zero if none is. It may
	// be too early, if that one was resumed or cancelled before.
	PauseEnd time.Time `cbor:"46,keyasint,omitzero"`

	// Body is the number of the stored body, 0 for none: the number of the check that read it,
	// or for a pushed page one that no check has. Rebase says that the next request must carry
	// that body.
	Body   uint64 `cbor:"31,keyasint,omitempty"`
	Rebase bool   `cbor:"32,keyasint,omitempty"`
	// BodyAt is when a body was last stored, or found too large to be stored.
	BodyAt time.Time `cbor:"33,keyasint,omitzero"`

	// Unasked lists the origins that keep the page, or kept it before it expired, without
	// requesting checks. It is sorted.
	Unasked []string `cbor:"35,keyasint,omitempty"`
	// Languages are the languages of the page, by the origins that keep the page and name one.
	Languages map[string]string `cbor:"41,keyasint,omitempty"`
	// Retentions say which versions are stored, by the origins that keep the page and say it.
	Retentions map[string]retention `cbor:"43,keyasint,omitempty"`
	// Pushes counts the times that this incarnation of the page was pushed. Seen holds hashes
	// of the IDs of the last pushes, the latest last.
	Pushes uint64 `cbor:"36,keyasint,omitempty"`
	Seen   []byte `cbor:"37,keyasint,omitempty"`

	// Followed is how many of the subscriptions are parts of trees: they are there because other
	// pages link to this one. Linking is how many subscriptions need the links of the page, and
	// LinksHash the hash of the stored links, empty if none are stored.
	Followed  int    `cbor:"38,keyasint,omitempty"`
	Linking   int    `cbor:"39,keyasint,omitempty"`
	LinksHash string `cbor:"40,keyasint,omitempty"`

	Progress `cbor:"-"`
}

// Progress is what each check of a page changes. It is stored apart from the rest of the page,
// which stays as it is at most checks.
type Progress struct {
	// Check is the number of the last requested check, and Asked the time of the request. Open
	// is the state of that check while it is outstanding.
	Check uint64
	Asked time.Time
	Open  *Open
	// Reads counts the checks that read the page: restless places are told by it.
	Reads uint64

	// Due is when the page must be checked next, computed from the interval Paced. Phased says
	// that the page has a phase of its own, so that pages with the same interval spread over
	// time. Delayed replaces a Due that has passed. The host asked for no check before
	// NotBefore; Wish is how long it asked for. Soon requests a check as soon as possible, Bare
	// one without any hash or validator.
	Due       time.Time
	Paced     time.Duration
	Phased    bool
	Delayed   time.Time
	NotBefore time.Time
	Wish      time.Duration
	Soon      bool
	Bare      bool
	// Cron is when the page must be checked next by the cron lines among Intervals, zero if that is
	// not computed yet. Pace is the time between two checks that suits how often the page changes.
	Cron time.Time
	Pace time.Duration

	// Failures counts the checks in a row that failed and count for expiry. Trouble is the
	// class of the last check's failure, of the page or of one of its documents; empty if it
	// succeeded.
	Failures int
	Trouble  string
	// Busy counts the checks in a row for which the host was too busy. FailedSince is the time
	// of the first of Failures; Failing says that a failing event was published.
	Busy        int
	FailedSince time.Time
	Failing     bool

	// Dormant is how many subscriptions were told of a timeout since the page last answered. DormantSince is when
	// the page became dormant: when all of them had been told; zero if it is not. DormantChecks counts the failed
	// checks since then, Silent the last checks in a row in which the host said nothing before the time was over.
	// GiveUpAt is when the first of those that wait for the page gives it up.
	Dormant       int
	DormantSince  time.Time
	DormantChecks int
	Silent        int
	GiveUpAt      time.Time

	// Wake is the last wake that the page asked for.
	Wake wakeAt

	// Records is how many records of checks the history ever had, over all incarnations. Quiet is the
	// last one if that found nothing new. It is added to as long as checks find nothing new, and is stored
	// with the others after that.
	Records uint64
	Quiet   *CheckRecord
}

// retention says which versions of a document are stored. 0 means that there is no such limit.
type retention struct {
	Versions int `cbor:"1,keyasint,omitempty"`
	// For is how long a version is stored after the next one took its place.
	For time.Duration `cbor:"2,keyasint,omitempty"`
}

// intervalCount is how many subscriptions have the same interval.
type intervalCount struct {
	Every pipeline.Duration `cbor:"1,keyasint"`
	N     int               `cbor:"2,keyasint"`
	Max   pipeline.Duration `cbor:"3,keyasint,omitempty"`
	Cron  pipeline.Cron     `cbor:"4,keyasint,omitempty"`
}

// originCount is how many subscriptions have the same origin.
type originCount struct {
	Name string `cbor:"1,keyasint"`
	N    int    `cbor:"2,keyasint"`
	// Digest is that of the last ApplyCommand of the origin, if all its subscriptions are in force and none changed since.
	Digest uint64 `cbor:"3,keyasint,omitempty"`
}

// candidate is the hash of a text that was found in so many checks in a row.
type candidate struct {
	Hash  string `cbor:"1,keyasint,omitempty"`
	Stood int    `cbor:"2,keyasint,omitempty"`
}

// found notes that a check found the text with the given hash. It reports whether n checks in a row did.
func (c *candidate) found(hash string, n int) bool {
	if c.Hash != hash {
		*c = candidate{Hash: hash}
	}
	c.Stood++
	return c.Stood >= n
}

// Document is the state of one document of a page.
type Document struct {
	ID   string        `cbor:"1,keyasint"`
	View pipeline.View `cbor:"2,keyasint,omitzero"`
	// Since is the last check that was requested before the document began, or before it was
	// last pushed. Outcomes of this and earlier checks do not count for the document.
	Since uint64 `cbor:"3,keyasint,omitempty"`
	// N is the number of the current version, and TextHash the hash of its text; empty if there is no version.
	N        uint64 `cbor:"4,keyasint,omitempty"`
	TextHash string `cbor:"6,keyasint,omitempty"`
	// Candidate is a new text that is not confirmed as a version yet, without its restless numbers. Steady is one
	// without its restless words, too, and SteadyMade the hash of the current version without both, where known.
	Candidate  candidate `cbor:"7,keyasint,omitzero"`
	Steady     candidate `cbor:"8,keyasint,omitzero"`
	SteadyMade string    `cbor:"25,keyasint,omitempty"`
	// Subscriptions is how many there are, without those that are paused. Paused is how many of this
	// incarnation of the page are paused: their document stays, with its versions.
	Subscriptions int `cbor:"9,keyasint,omitempty"`
	Paused        int `cbor:"18,keyasint,omitempty"`
	// Rested says that all subscriptions were paused and the page was not read since. If the next text
	// differs, it becomes a baseline: what changed during the pause is not reported.
	Rested bool `cbor:"19,keyasint,omitempty"`
	// GoneSince is since when its selectors match nothing, its text is empty or its page looks
	// replaced; zero if the document is on the page. GoneClass is the class of that failure.
	GoneSince time.Time `cbor:"10,keyasint,omitzero"`
	GoneClass string    `cbor:"14,keyasint,omitempty"`
	// Extractor names the rules that extracted the current text; empty if the reader does not
	// name them.
	Extractor string `cbor:"11,keyasint,omitempty"`
	// Body is the number of a body that contains the current text. While it equals Page.Body,
	// the text can be extracted again.
	Body uint64 `cbor:"12,keyasint,omitempty"`
	// Changes are the last versions that were changes, the latest last: at most View.FlipFlop. A
	// baseline is not one of them.
	Changes []madeVersion `cbor:"13,keyasint,omitempty"`
	// Replaced counts the checks in a row that found the page replaced.
	Replaced int `cbor:"15,keyasint,omitempty"`
	// Pruned is when old versions were last dropped at a check, in seconds since 1970.
	Pruned int64 `cbor:"24,keyasint,omitempty"`
	// Restless is how many places of the document were restless when its text last changed, and Loud how many
	// subscriptions may be told of a difference in them.
	Restless int `cbor:"20,keyasint,omitempty"`
	Loud     int `cbor:"21,keyasint,omitempty"`
	// Quiet says that the current version differs from the one before in restless places alone, and
	// nobody was told of it: such a version takes its place.
	Quiet bool `cbor:"22,keyasint,omitempty"`
	// Unmade says that the last text that was read is stored and is no version.
	Unmade bool `cbor:"23,keyasint,omitempty"`
	// Published is the version whose text was last published on flow.TopicCurrent; 0 for none.
	Published uint64 `cbor:"26,keyasint,omitempty"`
}

// madeVersion is the number of a version and the hash of its text, without what is restless in it.
type madeVersion struct {
	N        uint64 `cbor:"1,keyasint"`
	TextHash string `cbor:"2,keyasint"`
}

// Open is the state of an outstanding check.
type Open struct {
	// Deadline is the time after which the request counts as lost.
	Deadline time.Time `cbor:"-"`
	// Parts is how many documents were requested; Got has a bit for each part that arrived.
	Parts int    `cbor:"2,keyasint"`
	Got   []byte `cbor:"3,keyasint,omitempty"`
	// Bare says that the request carried neither hash nor validator.
	Bare bool `cbor:"4,keyasint,omitempty"`
	// Reached says that a part could be read; Partial that not all texts of the body are known.
	// Class and Reason describe the first failure.
	Reached bool   `cbor:"5,keyasint,omitempty"`
	Partial bool   `cbor:"6,keyasint,omitempty"`
	Class   string `cbor:"7,keyasint,omitempty"`
	Reason  string `cbor:"8,keyasint,omitempty"`
	// Made are the versions that the check made, by document. Standing lists the documents
	// whose current text is in the body of this check.
	Made     map[string]uint64 `cbor:"9,keyasint,omitempty"`
	Standing []string          `cbor:"10,keyasint,omitempty"`
	// Rebase says that the request carried the stored body; Again that a document needs that
	// body to be compared.
	Rebase bool `cbor:"11,keyasint,omitempty"`
	Again  bool `cbor:"12,keyasint,omitempty"`
	// KeepBody says that the request asked for the body.
	KeepBody bool `cbor:"13,keyasint,omitempty"`
	// BodyHash is that of the first part that arrived; Mixed says that a later part is of
	// another body.
	BodyHash string `cbor:"14,keyasint,omitempty"`
	Mixed    bool   `cbor:"15,keyasint,omitempty"`
	// Nonce identifies the request.
	Nonce string `cbor:"16,keyasint,omitempty"`
	// Note says why the new text of a document is not a version.
	Note string `cbor:"17,keyasint,omitempty"`
	// Replaced says that the page looks replaced: its links are not those of the page.
	Replaced bool `cbor:"18,keyasint,omitempty"`
	// Passed is what the reader passed over in the documents that arrived.
	Passed []string `cbor:"19,keyasint,omitempty"`
	// Learned says that a text was compared with that of the check before.
	Learned bool `cbor:"20,keyasint,omitempty"`
}

// maxGone bounds Page.Gone.
const maxGone = 32

// clone returns a copy of p. The copy shares nothing with p that apply changes in place.
func (p *Page) clone() *Page {
	c := *p
	c.Keep = slices.Clone(c.Keep)
	c.Documents = slices.Clone(c.Documents)
	for i := range c.Documents {
		c.Documents[i].Changes = slices.Clone(c.Documents[i].Changes)
	}
	c.Gone = maps.Clone(c.Gone)
	c.Unreachable = slices.Clone(c.Unreachable)
	c.Unasked = slices.Clone(c.Unasked)
	if c.Expiry != nil {
		e := *c.Expiry
		e.Keep = slices.Clone(e.Keep)
		c.Expiry = &e
	}
	if c.Open != nil {
		o := *c.Open
		o.Got = slices.Clone(o.Got)
		o.Standing, o.Made = slices.Clone(o.Standing), maps.Clone(o.Made)
		c.Open = &o
	}
	return &c
}

// sameRest reports whether p and o differ in their Progress alone.
func (p *Page) sameRest(o *Page) bool {
	return p.URL == o.URL && p.Incarnation == o.Incarnation && p.Stamp == o.Stamp &&
		slices.Equal(p.Keep, o.Keep) && slices.Equal(p.Intervals, o.Intervals) && slices.Equal(p.Origins, o.Origins) &&
		slices.EqualFunc(p.Documents, o.Documents, Document.same) &&
		maps.Equal(p.Gone, o.Gone) && p.Floor == o.Floor &&
		p.ETag == o.ETag && p.LastModified == o.LastModified && p.BodyHash == o.BodyHash && p.Access == o.Access &&
		p.Expired == o.Expired && slices.Equal(p.Unreachable, o.Unreachable) && reflect.DeepEqual(p.Expiry, o.Expiry) &&
		p.PauseEnd.Equal(o.PauseEnd) && p.Body == o.Body && p.Rebase == o.Rebase && p.BodyAt.Equal(o.BodyAt) &&
		slices.Equal(p.Unasked, o.Unasked) && maps.Equal(p.Languages, o.Languages) && maps.Equal(p.Retentions, o.Retentions) &&
		p.LeastAfter == o.LeastAfter && maps.Equal(p.Expires, o.Expires) &&
		p.Pushes == o.Pushes && bytes.Equal(p.Seen, o.Seen) &&
		p.Followed == o.Followed && p.Linking == o.Linking && p.LinksHash == o.LinksHash
}

// same reports whether d and o are equal. The ID names the View.
func (d Document) same(o Document) bool {
	return d.ID == o.ID && d.Since == o.Since && d.N == o.N && d.TextHash == o.TextHash &&
		d.Candidate == o.Candidate && d.Steady == o.Steady && d.SteadyMade == o.SteadyMade &&
		d.Subscriptions == o.Subscriptions && d.Paused == o.Paused && d.Rested == o.Rested &&
		d.GoneSince.Equal(o.GoneSince) && d.GoneClass == o.GoneClass && d.Extractor == o.Extractor && d.Body == o.Body &&
		slices.Equal(d.Changes, o.Changes) && d.Replaced == o.Replaced && d.Pruned == o.Pruned &&
		d.Restless == o.Restless && d.Loud == o.Loud && d.Quiet == o.Quiet && d.Unmade == o.Unmade && d.Published == o.Published
}

// forgetCandidate notes that the checks that found a new text are no longer in a row.
func (d *Document) forgetCandidate() { d.Candidate, d.Steady = candidate{}, candidate{} }

// Document returns the document with the given ID, or nil.
func (p *Page) Document(id string) *Document {
	i, ok := p.findDocument(id)
	if !ok {
		return nil
	}
	return &p.Documents[i]
}

// onlyDocument returns the ID of the document of p, or "" if p has none or several.
func (p *Page) onlyDocument() string {
	if len(p.Documents) != 1 {
		return ""
	}
	return p.Documents[0].ID
}

func (p *Page) findDocument(id string) (int, bool) {
	return slices.BinarySearchFunc(p.Documents, id, func(d Document, id string) int { return cmp.Compare(d.ID, id) })
}

// addDocument returns the document of v and adds it if it is new. A new document is read as soon as possible.
func (p *Page) addDocument(v pipeline.View) *Document {
	id := flow.DocumentID(p.URL, v)
	i, ok := p.findDocument(id)
	if !ok {
		d := Document{ID: id, View: v, Since: p.Check, N: max(p.Floor, p.Gone[id])}
		p.Documents = slices.Insert(p.Documents, i, d)
		p.Soon = true
	}
	return &p.Documents[i]
}

// removeDocument removes the document with the given ID and remembers the number of its last version.
func (p *Page) removeDocument(id string) {
	i, ok := p.findDocument(id)
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

// countInterval adds n (1 or -1) subscriptions with that interval, unless it is pipeline.Never.
func (p *Page) countInterval(interval pipeline.Interval, n int) {
	if interval == pipeline.Never {
		return
	}
	if interval.Cron != "" {
		p.Cron = time.Time{}
	}
	of := intervalCount{Every: interval.Every, Max: interval.Max, Cron: interval.Cron}
	p.Intervals = slices.Clone(p.Intervals)
	i, ok := slices.BinarySearchFunc(p.Intervals, of, func(a, b intervalCount) int {
		return cmp.Or(cmp.Compare(a.Every, b.Every), cmp.Compare(a.Max, b.Max), cmp.Compare(a.Cron, b.Cron))
	})
	if !ok {
		p.Intervals = slices.Insert(p.Intervals, i, of)
	}
	if p.Intervals[i].N += n; p.Intervals[i].N <= 0 {
		p.Intervals = slices.Delete(p.Intervals, i, i+1)
	}
}

// countOrigin adds n (1 or -1) subscriptions of that origin, whose Digest no longer holds.
func (p *Page) countOrigin(name string, n int) {
	p.Origins = slices.Clone(p.Origins)
	i, ok := slices.BinarySearchFunc(p.Origins, name, func(o originCount, name string) int { return cmp.Compare(o.Name, name) })
	if !ok {
		p.Origins = slices.Insert(p.Origins, i, originCount{Name: name})
	}
	p.Origins[i].Digest = 0
	if p.Origins[i].N += n; p.Origins[i].N <= 0 {
		p.Origins = slices.Delete(p.Origins, i, i+1)
	}
}

// setDigest notes the Digest of an origin that has subscriptions.
func (p *Page) setDigest(name string, digest uint64) {
	p.Origins = slices.Clone(p.Origins)
	for i, o := range p.Origins {
		if o.Name == name {
			p.Origins[i].Digest = digest
		}
	}
}

// keepsDocument reports whether d stays on the page without subscriptions.
func (p *Page) keepsDocument(d *Document) bool { return len(p.Keep) > 0 && d.View.IsZero() }

// isResting reports whether all subscriptions of d are paused, so that d is not read.
func (p *Page) isResting(d *Document) bool { return d.Subscriptions == 0 && !p.keepsDocument(d) }

// Rests reports whether all documents of p rest: p stays as it is until a subscription is resumed.
func (p *Page) Rests() bool {
	return p.Incarnation != "" && !slices.ContainsFunc(p.Documents, func(d Document) bool { return !p.isResting(&d) })
}

// LacksDocument reports whether a document is not on p though somebody watches it.
func (p *Page) LacksDocument() bool {
	return slices.ContainsFunc(p.Documents, func(d Document) bool { return !d.GoneSince.IsZero() && !p.isResting(&d) })
}

// forgetBody notes that an equal body no longer means equal texts.
func (p *Page) forgetBody() { p.ETag, p.LastModified, p.BodyHash, p.Access = "", "", "", "" }

// bodyStandsFor reports whether an equal body means equal texts of all documents that the check
// with the given number covers, and equal links where they are needed.
func (p *Page) bodyStandsFor(check uint64) bool {
	for i := range p.Documents {
		if d := &p.Documents[i]; !p.isResting(d) && d.Since < check && (d.TextHash == "" || d.Candidate.Hash != "" || d.Rested) {
			return false
		}
	}
	return p.BodyHash != "" && (p.Linking == 0 || p.LinksHash != "")
}

// Fetched reports whether p is fetched. A page that is only pushed is not: it cannot be
// overdue, and it does not expire.
func (p *Page) Fetched() bool {
	return p.Incarnation != "" && (len(p.Intervals) > 0 ||
		slices.ContainsFunc(p.Keep, func(origin string) bool { return !slices.Contains(p.Unasked, origin) }))
}

// setAsked notes whether origin, which keeps the page, wants it to be fetched.
func (p *Page) setAsked(origin string, every pipeline.Interval) {
	p.Unasked = slices.DeleteFunc(p.Unasked, func(o string) bool { return o == origin })
	if every == pipeline.Never {
		p.Unasked = append(p.Unasked, origin)
		slices.Sort(p.Unasked)
	}
}

// setLanguage notes the language that origin names for the page; "" if it names none.
func (p *Page) setLanguage(origin, language string) {
	p.Languages = maps.Clone(p.Languages)
	if language == "" {
		delete(p.Languages, origin)
		return
	}
	if p.Languages == nil {
		p.Languages = make(map[string]string)
	}
	p.Languages[origin] = language
}

// language returns the language of the page by the first of the origins that keep it and name one.
func (p *Page) language() string {
	for _, origin := range p.Keep {
		if l := p.Languages[origin]; l != "" {
			return l
		}
	}
	return ""
}
