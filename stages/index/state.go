package index

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/vokter/vokter/pipeline"
)

// Names in the state of a page.
const (
	pageName          = "page"
	subscriptionsName = "sub/" // sub/<document>/<client>
	versionsName      = "v/"   // v/<document>/<n, 20 digits>
	occurrencesName   = "occ/" // occ/<document>
)

func subscriptionName(document, client string) string {
	return subscriptionsName + document + "/" + client
}

func versionName(document string, n uint64) string {
	return fmt.Sprintf("%s%s/%020d", versionsName, document, n)
}

// format is the first byte of every stored value.
const format = 1

var encoding = func() cbor.EncMode {
	m, err := cbor.EncOptions{Time: cbor.TimeRFC3339NanoUTC, Sort: cbor.SortBytewiseLexical}.EncMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return m
}()

func encode(v any) ([]byte, error) {
	b, err := encoding.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("index: storing: %w", err)
	}
	return append([]byte{format}, b...), nil
}

func decode(b []byte, v any) error {
	if len(b) == 0 || b[0] != format {
		return fmt.Errorf("index: a stored value has a format that this program does not know")
	}
	if err := cbor.Unmarshal(b[1:], v); err != nil {
		return fmt.Errorf("index: a stored value is damaged: %w", err)
	}
	return nil
}

// Load returns the page whose state st is; the zero Page if there is none.
func Load(st pipeline.State) (Page, error) {
	var p Page
	b, ok, err := st.Get(pageName)
	if err != nil || !ok {
		return p, err
	}
	return p, decode(b, &p)
}

// StoredVersion is one version of a document as it is kept.
type StoredVersion struct {
	Time     time.Time `cbor:"1,keyasint"` // of the check
	Check    uint64    `cbor:"2,keyasint"`
	TextHash string    `cbor:"3,keyasint"`
	Title    string    `cbor:"4,keyasint,omitempty"`
	// Language is a BCP 47 tag, or empty.
	Language string `cbor:"5,keyasint,omitempty"`
	// Extractor is what made the text.
	Extractor string `cbor:"6,keyasint,omitempty"`
	// Packed is the text's Content, packed with pipeline.PackText.
	Packed []byte `cbor:"7,keyasint"`
}

// LoadVersion returns version n of a document of the page whose state st is; ok is false
// where it is not kept.
func LoadVersion(st pipeline.State, document string, n uint64) (v StoredVersion, ok bool, err error) {
	b, ok, err := st.Get(versionName(document, n))
	if err != nil || !ok {
		return v, false, err
	}
	return v, true, decode(b, &v)
}

// Subscriptions returns the standing subscriptions of the page whose state st is, by
// document and client.
func Subscriptions(st pipeline.State) ([]pipeline.Stamped, error) {
	var all []pipeline.Stamped
	for name, v := range st.Scan(subscriptionsName) {
		if v.Err != nil {
			return nil, v.Err
		}
		s, err := decodeStamped(v.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// subscription returns the standing subscription of a pair, or nil.
func subscription(st pipeline.State, document, client string) (*pipeline.Stamped, error) {
	b, ok, err := st.Get(subscriptionName(document, client))
	if err != nil || !ok {
		return nil, err
	}
	s, err := decodeStamped(b)
	return &s, err
}

func encodeStamped(s pipeline.Stamped) ([]byte, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("index: storing a subscription: %w", err)
	}
	return append([]byte{format}, b...), nil
}

func decodeStamped(b []byte) (s pipeline.Stamped, err error) {
	if len(b) == 0 || b[0] != format {
		return s, fmt.Errorf("index: a subscription has a format that this program does not know")
	}
	if err := json.Unmarshal(b[1:], &s); err != nil {
		return s, fmt.Errorf("index: a stored subscription is damaged: %w", err)
	}
	return s, nil
}
