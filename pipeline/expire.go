package pipeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Expire says what becomes of a page of which check after check fails. After so many failures in a row the client
// gets a timeout notification and the page is dormant: it is checked ever more rarely, and when it answers the client
// gets a recovered notification and the change since the last version. After Retry it expires.
//
// A zero field stands for what holds without it: in a Subscription for that of the page, in a page for that of the
// process, and there for DefaultExpire.
type Expire struct {
	// After is how many checks in a row must fail. Negative: a failing page is checked as ever.
	After int `json:"after"`
	// Retry is how long a dormant page is checked. Negative: not at all, so that it expires with the timeout
	// notification.
	Retry time.Duration `json:"retry"`
}

// DefaultExpire holds where nothing else is said.
var DefaultExpire = Expire{After: 10, Retry: 30 * 24 * time.Hour}

// Or returns e with the fields of other in place of its zero fields.
func (e Expire) Or(other Expire) Expire {
	e.After = cmp.Or(e.After, other.After)
	e.Retry = cmp.Or(e.Retry, other.Retry)
	return e
}

// IsZero reports whether e says nothing.
func (e Expire) IsZero() bool { return e == Expire{} }

// maxRetry keeps Retry within what is sensible to wait for.
const maxRetry = 3650 * 24 * time.Hour

// Validate returns why e cannot be used, or nil.
func (e Expire) Validate() error {
	if e.Retry > maxRetry {
		return fmt.Errorf("retry: %v is too long; at most 3650d", e.Retry)
	}
	return nil
}

// expireJSON is the JSON of an Expire.
type expireJSON struct {
	After json.RawMessage `json:"after,omitempty"`
	Retry string          `json:"retry,omitempty"`
}

const never = "never"

// Texts returns the fields of e as ParseAfter and ParseRetry read them, empty where e says nothing.
func (e Expire) Texts() (after, retry string) {
	switch {
	case e.After < 0:
		after = never
	case e.After > 0:
		after = strconv.Itoa(e.After)
	}
	switch {
	case e.Retry < 0:
		retry = never
	case e.Retry > 0:
		retry = e.Retry.String()
	}
	return after, retry
}

// MarshalJSON returns e as {"after": 10, "retry": "720h0m0s"}, where each may be "never".
func (e Expire) MarshalJSON() ([]byte, error) {
	after, retry := e.Texts()
	if after == never {
		after = strconv.Quote(after)
	}
	return json.Marshal(expireJSON{After: json.RawMessage(after), Retry: retry})
}

// UnmarshalJSON reads what MarshalJSON returns.
func (e *Expire) UnmarshalJSON(b []byte) error {
	var j expireJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return fmt.Errorf("expire: %w", err)
	}
	var parsed Expire
	switch {
	case string(j.After) == `"`+never+`"`:
		parsed.After = -1
	case len(j.After) > 0 && string(j.After) != "null":
		if err := json.Unmarshal(j.After, &parsed.After); err != nil || parsed.After < 1 {
			return errors.New("expire.after: it is neither a number of failed checks, at least 1, nor never")
		}
	}
	if j.Retry != "" {
		var err error
		if parsed.Retry, err = ParseRetry(j.Retry); err != nil {
			return fmt.Errorf("expire.retry: %w", err)
		}
	}
	*e = parsed
	return nil
}

// ParseAfter reads an Expire.After: a number of failed checks, or never.
func ParseAfter(s string) (int, error) {
	if s == never {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is neither a number of failed checks, at least 1, nor never", s)
	}
	return n, nil
}

// ParseRetry reads an Expire.Retry: a duration such as 12h or 30d, or never.
func ParseRetry(s string) (time.Duration, error) {
	if s == never {
		return -1, nil
	}
	d, err := ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is neither a duration such as 12h or 30d, nor never", s)
	}
	return d, nil
}
