package index

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/internal/stored"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/text"
)

// Names in the state of a page.
const (
	pageName          = flow.Small + "page"    // the Page without its Progress
	progressName      = flow.WakeName          // the page's wake and its storedProgress
	subscriptionsName = flow.KeptSubscriptions // see flow.Stamped.Name
	versionsName      = "v/"                   // v/<document>/<n, 20 digits>
	screenshotsName   = "pic/"                 // pic/<document>/<n, 20 digits>: the picture of the page with a version
	keptName          = "kept/"                // kept/<document>: its stored versions, see keptVersion
	tokensName        = "tok/"                 // tok/<document>: the tokens of the current version
	itemsName         = "itm/"                 // itm/<document>: feed.Seen
	restlessName      = "rst/"                 // rst/<document>: restless.Table
	unmadeName        = "txt/"                 // txt/<document>: the last text that was read, if it is no version
	expiredNames      = "exp/"                 // exp/<document>/<client>, or see flow.Stamped.Name
	historyName       = flow.Small + "h/"      // h/<number of the record mod historySize, 2 digits>
	bodyName          = "body"                 // the last body that contains current texts
	linksName         = "links"                // the links of the page, if somebody follows them
	treesName         = "tree/"                // tree/<ID of a subscription that follows links>
	treePagesName     = "link/"                // link/<ID of a subscription that follows links>/<page>
)

func subscriptionName(document, client string) string {
	return subscriptionsName + document + "/" + client
}

func expiredName(document, client string) string { return expiredNames + document + "/" + client }

func treePageName(id, page string) string { return treePagesName + id + "/" + page }

func versionName(document string, n uint64) string {
	return fmt.Sprintf("%s%s/%020d", versionsName, document, n)
}

func screenshotName(document string, n uint64) string {
	return fmt.Sprintf("%s%s/%020d", screenshotsName, document, n)
}

// format is the first byte of every stored value.
const format = flow.KeptFormat

func encode(v any) ([]byte, error) {
	b, err := stored.Encode(format, v)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return b, nil
}

func decode(b []byte, v any) error {
	if err := stored.Decode(b, format, v); err != nil {
		return fmt.Errorf("index: %w", err)
	}
	return nil
}

// StoredVersion is one version of a document as it is stored.
type StoredVersion struct {
	Time     time.Time `cbor:"1,keyasint"` // of the check
	Check    uint64    `cbor:"2,keyasint"`
	TextHash string    `cbor:"3,keyasint"`
	Title    string    `cbor:"4,keyasint,omitempty"`
	// Language is a BCP 47 tag, or empty.
	Language string `cbor:"5,keyasint,omitempty"`
	// Extractor names the rules that extracted the text.
	Extractor string `cbor:"6,keyasint,omitempty"`
	// Packed is the text, packed with flow.PackText.
	Packed []byte `cbor:"7,keyasint"`
	// ContentType is the media type of the page.
	ContentType string `cbor:"8,keyasint,omitempty"`
	// LanguageFrom says what decided Language.
	LanguageFrom text.LanguageSource `cbor:"9,keyasint,omitempty"`
	// Previous is the version that it was compared with, or that this one replaced, as both differ in restless
	// places alone; 0 for a baseline.
	Previous uint64 `cbor:"10,keyasint,omitempty"`
	// Base is, for a feed whose items are watched, the text that it was compared with in place of
	// the text of Previous, packed with flow.PackText.
	Base []byte `cbor:"11,keyasint,omitempty"`
	// Screenshot says that a picture of the page is stored with it.
	Screenshot bool `cbor:"12,keyasint,omitempty"`
	// Restless, Words and Whole are what the Snapshot of the version says of its restless places.
	Restless []byte   `cbor:"13,keyasint,omitempty"`
	Words    [][4]int `cbor:"14,keyasint,omitempty"`
	Whole    bool     `cbor:"15,keyasint,omitempty"`
}

// LoadScreenshot returns the picture of the page that is stored with version n of a document of the
// page whose state st is; ok is false if there is none.
func LoadScreenshot(st flow.State, document string, n uint64) (image []byte, ok bool, err error) {
	return st.Get(screenshotName(document, n))
}

// OldText returns the text that v, a version of a document of the page whose state st is, was
// compared with, and the keys of its items. ok is false where v is a baseline, or that text is no longer stored.
func (v StoredVersion) OldText(st flow.State, document string) (old string, keys []pipeline.Key, ok bool, err error) {
	packed := v.Base
	if packed == nil && v.Previous > 0 {
		before, ok, err := LoadVersion(st, document, v.Previous)
		if err != nil || !ok || before.Extractor != v.Extractor {
			return "", nil, false, err
		}
		packed = before.Packed
	}
	if packed == nil {
		return "", nil, false, nil
	}
	if old, err = flow.UnpackText(packed); err != nil {
		return "", nil, false, failure.Broken(fmt.Errorf("version %d of a document: %w", v.Previous, err))
	}
	return old, flow.UnpackKeys(packed), true, nil
}

// LoadVersion returns version n of a document of the page whose state st is; ok is false if it
// is not stored.
func LoadVersion(st flow.State, document string, n uint64) (v StoredVersion, ok bool, err error) {
	b, ok, err := st.Get(versionName(document, n))
	if err != nil || !ok {
		return v, false, err
	}
	return v, true, decode(b, &v)
}

// storeAnalysis stores the tokens of doc, the current version of a document.
func storeAnalysis(st flow.State, document string, doc *text.Doc) error {
	return st.Set(tokensName+document, text.PackTokens(doc))
}

// Subscriptions returns the current subscriptions of the page whose state st is, sorted by
// document and client.
func Subscriptions(st flow.State) ([]flow.Stamped, error) {
	return scanValues[flow.Stamped](st, subscriptionsName)
}

// subscription returns the current subscription of a document and client, or nil.
func subscription(st flow.State, document, client string) (*flow.Stamped, error) {
	return getValue[flow.Stamped](st, subscriptionName(document, client))
}

// scanValues returns what is stored under the names that begin with prefix, in order.
func scanValues[T any](st flow.State, prefix string) ([]T, error) {
	var all []T
	for name, v := range st.Scan(prefix) {
		if v.Err != nil {
			return nil, v.Err
		}
		var t T
		if err := decode(v.Bytes, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// getValue returns what is stored under name, or nil.
func getValue[T any](st flow.State, name string) (*T, error) {
	b, ok, err := st.Get(name)
	if err != nil || !ok {
		return nil, err
	}
	t := new(T)
	return t, decode(b, t)
}

func setValue(st flow.State, name string, v any) error {
	b, err := encode(v)
	if err != nil {
		return err
	}
	return st.Set(name, b)
}

// historySize is how many records are in the history of a page.
const historySize = 20

// CheckRecord is the result of one check, or of several in a row that found nothing new in the same way.
type CheckRecord struct {
	// Check is the number of the check, the last one if there are several; 0 for a pushed page. Time is
	// when it was made.
	Check uint64    `cbor:"1,keyasint"`
	Time  time.Time `cbor:"2,keyasint,omitzero"`
	// Since is when the first of several checks was made, and Repeats is how many followed it.
	Since   time.Time `cbor:"13,keyasint,omitzero"`
	Repeats int       `cbor:"14,keyasint,omitempty"`
	// Result is flow.OutcomeRead, OutcomeUnchanged or OutcomeFailed. Class is that of the first
	// failure of the page or of one of its documents. Reason says why it failed, or why a new
	// text is not a version yet.
	Result string `cbor:"3,keyasint,omitempty"`
	Class  string `cbor:"4,keyasint,omitempty"`
	Reason string `cbor:"5,keyasint,omitempty"`
	// Offline says that the failure does not count, since no host could be reached.
	Offline bool              `cbor:"6,keyasint,omitempty"`
	Status  int               `cbor:"7,keyasint,omitempty"`
	Bytes   int64             `cbor:"8,keyasint,omitempty"`
	Took    pipeline.Duration `cbor:"9,keyasint,omitempty"`
	// Versions are the versions that the check made, by document.
	Versions map[string]uint64 `cbor:"10,keyasint,omitempty"`
	// Passed is what the reader passed over, because it is not valid.
	Passed []string `cbor:"16,keyasint,omitempty"`
}

// isQuiet reports whether a check found nothing new and nothing to say.
func (r *CheckRecord) isQuiet() bool {
	return r.Result == flow.OutcomeUnchanged && r.Class == "" && r.Reason == "" && !r.Offline && len(r.Versions) == 0
}

// isRepeat reports whether other, a later check, found nothing new in the same way as r.
func (r *CheckRecord) isRepeat(other CheckRecord) bool {
	return r.isQuiet() && other.isQuiet() && r.Status == other.Status && r.Bytes == other.Bytes && slices.Equal(r.Passed, other.Passed)
}

// storedRecord is a record as it is stored. Records are sorted by N, because clocks are set
// back and check numbers begin at 1 in each incarnation. Nanos and SinceNanos are in place of Time and
// Since. The Result of most checks, flow.OutcomeUnchanged, is left out.
type storedRecord struct {
	CheckRecord
	N          uint64 `cbor:"11,keyasint,omitempty"`
	Nanos      int64  `cbor:"12,keyasint"`
	SinceNanos int64  `cbor:"15,keyasint,omitempty"`
}

func (r CheckRecord) stored(n uint64) storedRecord {
	s := storedRecord{r, n, nanos(r.Time), nanos(r.Since)}
	s.Time, s.Since = time.Time{}, time.Time{}
	if s.Result == flow.OutcomeUnchanged {
		s.Result = ""
	}
	return s
}

func (s storedRecord) record() CheckRecord {
	r := s.CheckRecord
	r.Time, r.Since, r.Result = fromNanos(s.Nanos), fromNanos(s.SinceNanos), cmp.Or(r.Result, flow.OutcomeUnchanged)
	return r
}

func storeRecord(st flow.State, r record) error {
	b, err := encode(r.stored(r.N))
	if err != nil {
		return err
	}
	return st.Set(recordNames[r.N%historySize], b)
}

// recordNames are the names of records in the store, by their number modulo historySize.
var recordNames = func() (names [historySize]string) {
	for i := range names {
		names[i] = fmt.Sprintf("%s%02d", historyName, i)
	}
	return names
}()

// History returns the last checks of the page whose state st is, in the reverse order of their
// making. It includes checks of earlier incarnations, and of a page that expired.
func History(st flow.State) ([]CheckRecord, error) {
	p, err := loadProgress(st)
	if err != nil {
		return nil, err
	}
	var stored []storedRecord
	for name, v := range st.Scan(historyName) {
		if v.Err != nil {
			return nil, v.Err
		}
		var r storedRecord
		if err := decode(v.Bytes, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimPrefix(name, flow.Small), err)
		}
		stored = append(stored, r)
	}
	slices.SortFunc(stored, func(a, b storedRecord) int {
		return cmp.Compare(b.N, a.N)
	})
	if len(stored) > 0 && stored[0].N >= p.Records {
		p.Quiet = nil // a commit since p was read has stored it
	}
	if len(stored) == historySize && p.Quiet != nil {
		stored = stored[:historySize-1] // the next record takes the place of the oldest
	}
	rs := make([]CheckRecord, 0, historySize)
	if p.Quiet != nil {
		rs = append(rs, *p.Quiet)
	}
	for _, r := range stored {
		rs = append(rs, r.record())
	}
	return rs, nil
}
