package index

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Names in the state of a page.
const (
	pageName          = "page"
	subscriptionsName = "sub/" // sub/<document>/<client>
	versionsName      = "v/"   // v/<document>/<n, 20 digits>
	tokensName        = "tok/" // tok/<document>: the tokens of the version that stands
	expiredNames      = "exp/" // exp/<document>/<client>
	historyName       = "h/"   // h/<number of the record mod historySize, 2 digits>
	bodyName          = "body" // the last body that standing texts were made of
)

func subscriptionName(document, client string) string {
	return subscriptionsName + document + "/" + client
}

func expiredName(document, client string) string { return expiredNames + document + "/" + client }

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

// decoding reads back whatever encoding wrote: a host may put any byte into its ETag.
var decoding = func() cbor.DecMode {
	m, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return m
}()

// encode fails with a permanent error: the message asks to store what no value can hold, such
// as a time after the year 9999.
func encode(v any) ([]byte, error) {
	b, err := encoding.Marshal(v)
	if err != nil {
		return nil, pipeline.Permanent(fmt.Errorf("index: storing: %w", err))
	}
	return append([]byte{format}, b...), nil
}

func decode(b []byte, v any) error {
	if len(b) == 0 || b[0] != format {
		return pipeline.Broken(fmt.Errorf("index: a stored value has a format that this program does not know"))
	}
	if err := decoding.Unmarshal(b[1:], v); err != nil {
		return pipeline.Broken(fmt.Errorf("index: a stored value is damaged: %w", err))
	}
	return nil
}

// Load returns the page whose state st is; the zero Page if there is none, one without
// Incarnation if only expired things are left of it. What cannot be read is Broken.
func Load(st flow.State) (Page, error) {
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
func LoadVersion(st flow.State, document string, n uint64) (v StoredVersion, ok bool, err error) {
	b, ok, err := st.Get(versionName(document, n))
	if err != nil || !ok {
		return v, false, err
	}
	return v, true, decode(b, &v)
}

// Subscriptions returns the standing subscriptions of the page whose state st is, by
// document and client.
func Subscriptions(st flow.State) ([]flow.Stamped, error) {
	return scanJSON[flow.Stamped](st, subscriptionsName)
}

// subscription returns the standing subscription of a pair, or nil.
func subscription(st flow.State, document, client string) (*flow.Stamped, error) {
	return getJSON[flow.Stamped](st, subscriptionName(document, client))
}

// scanJSON returns what is stored under the names that begin with prefix, in order.
func scanJSON[T any](st flow.State, prefix string) ([]T, error) {
	var all []T
	for name, v := range st.Scan(prefix) {
		if v.Err != nil {
			return nil, v.Err
		}
		t, err := decodeJSON[T](v.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// getJSON returns what is stored under name, or nil.
func getJSON[T any](st flow.State, name string) (*T, error) {
	b, ok, err := st.Get(name)
	if err != nil || !ok {
		return nil, err
	}
	t, err := decodeJSON[T](b)
	return &t, err
}

func setJSON(st flow.State, name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return pipeline.Permanent(fmt.Errorf("index: storing %s: %w", name, err))
	}
	return st.Set(name, append([]byte{format}, b...))
}

func decodeJSON[T any](b []byte) (v T, err error) {
	if len(b) == 0 || b[0] != format {
		return v, pipeline.Broken(fmt.Errorf("index: a subscription has a format that this program does not know"))
	}
	if err := json.Unmarshal(b[1:], &v); err != nil {
		return v, pipeline.Broken(fmt.Errorf("index: a stored subscription is damaged: %w", err))
	}
	return v, nil
}
