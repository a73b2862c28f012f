package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MinChange is the smallest change that a subscription is notified of, as a number of tokens or as
// a share of the text. At most one field is set. The zero MinChange admits every change.
type MinChange struct {
	// Tokens is the least number of changed tokens.
	Tokens int
	// Share is the least share of the text, in hundredths of a percent: 200 is 2 %.
	Share int
}

// maxShare is the whole text, in hundredths of a percent.
const maxShare = 100_00

var errMinChange = errors.New("it is neither a number of tokens such as 5, nor a share of the text such as 2% or 0.5%")

// ParseMinChange reads what String returns: a number of tokens such as "5", or a share of the text
// of 0% to 100% with at most two decimal places, such as "2%" or "0.5%". 0 is the zero MinChange.
func ParseMinChange(s string) (MinChange, error) {
	bad := func(err error) (MinChange, error) { return MinChange{}, fmt.Errorf("%q: %w", s, err) }
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	number = strings.TrimSpace(number)
	if !percent {
		n, err := strconv.Atoi(number)
		switch {
		case errors.Is(err, strconv.ErrRange) || n > math.MaxInt32:
			return bad(fmt.Errorf("it is more tokens than a text can have"))
		case err != nil || n < 0:
			return bad(errMinChange)
		}
		return MinChange{Tokens: n}, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	hundredths := math.Round(f * 100)
	switch {
	case err != nil || math.IsNaN(f) || f < 0:
		return bad(errMinChange)
	case hundredths > maxShare:
		return bad(errors.New("a share of the text is at most 100%"))
	case math.Abs(f*100-hundredths) > 1e-6:
		return bad(errors.New("a share of the text has at most two decimal places"))
	}
	return MinChange{Share: int(hundredths)}, nil
}

// String returns m as it is written in a configuration, such as "5" or "2%".
func (m MinChange) String() string {
	if m.Share == 0 {
		return strconv.Itoa(m.Tokens)
	}
	return strconv.FormatFloat(float64(m.Share)/100, 'f', -1, 64) + "%"
}

// Admits reports whether m admits a change of the given number of tokens in a text of the given
// length.
func (m MinChange) Admits(changed, length int) bool {
	if m.Share > 0 {
		return int64(changed)*maxShare >= int64(m.Share)*int64(length)
	}
	return changed >= m.Tokens
}

// Validate returns what is wrong with m, or nil.
func (m MinChange) Validate() error {
	switch {
	case m.Tokens < 0 || m.Share < 0:
		return errors.New("must not be negative")
	case m.Tokens > 0 && m.Share > 0:
		return errors.New("is either a number of tokens or a share of the text, not both")
	case m.Share > maxShare:
		return errors.New("a share of the text is at most 100%")
	}
	return nil
}

// MarshalJSON returns a number of tokens as a number and a share as a string.
func (m MinChange) MarshalJSON() ([]byte, error) {
	if m.Share == 0 {
		return json.Marshal(m.Tokens)
	}
	return json.Marshal(m.String())
}

// UnmarshalJSON reads what MarshalJSON returns. A number of tokens may be a string too.
func (m *MinChange) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	s := string(b)
	if strings.HasPrefix(s, `"`) {
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
	}
	parsed, err := ParseMinChange(s)
	if err != nil {
		return fmt.Errorf("min_change: %w", err)
	}
	*m = parsed
	return nil
}
