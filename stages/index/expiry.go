package index

import (
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// ExpiredSubscription is a subscription that ended because its page or its receivers were
// given up. It is kept until it is resumed, changed, made anew or cancelled.
type ExpiredSubscription struct {
	// Stamped is the record as it ended; its End is pipeline.EndExpired or EndReceiver.
	flow.Stamped
	// Time is when it expired: the time of the last check, or when its last receiver did.
	Time time.Time `json:"expired"`
	// Reason says why in words for the user; Class is the class of the page's last
	// failure, empty where receivers were the cause.
	Reason string `json:"reason,omitempty"`
	Class  string `json:"class,omitempty"`
}

// Expiry says how a page was given up.
type Expiry struct {
	// Time is that of the last check; Class and Reason are of its failure. Failures is how
	// many counted ones there were in a row.
	Time     time.Time `cbor:"1,keyasint"`
	Class    string    `cbor:"2,keyasint,omitempty"`
	Reason   string    `cbor:"3,keyasint,omitempty"`
	Failures int       `cbor:"4,keyasint,omitempty"`
	// Keep lists the origins that kept the page without subscriptions and have not begun
	// to do so anew, in order.
	Keep []string `cbor:"5,keyasint,omitempty"`
}

// Expired returns the expired subscriptions of the page whose state st is, by document and
// client.
func Expired(st flow.State) ([]ExpiredSubscription, error) {
	return scanJSON[ExpiredSubscription](st, expiredNames)
}

// expiredSubscription returns the expired subscription of a pair, or nil.
func expiredSubscription(st flow.State, document, client string) (*ExpiredSubscription, error) {
	return getJSON[ExpiredSubscription](st, expiredName(document, client))
}

// Origins returns who asked for anything of the page whose state st is, in order: for
// subscriptions or for the page to be kept, standing or expired.
func Origins(st flow.State) ([]string, error) {
	p, err := Load(st)
	if err != nil {
		return nil, err
	}
	origins := slices.Clone(p.Keep)
	if p.Expiry != nil {
		origins = append(origins, p.Expiry.Keep...)
	}
	standing, err := Subscriptions(st)
	if err != nil {
		return nil, err
	}
	for _, s := range standing {
		origins = append(origins, s.Origin)
	}
	expired, err := Expired(st)
	if err != nil {
		return nil, err
	}
	for _, x := range expired {
		origins = append(origins, x.Origin)
	}
	slices.Sort(origins)
	return slices.Compact(origins), nil
}

// Receivers returns the receivers, by pipeline.Receiver.ID and in order, about which an
// ExpireCommand or a ResumeCommand can change anything of the page whose state st is.
func Receivers(st flow.State) ([]string, error) {
	p, err := Load(st)
	if err != nil {
		return nil, err
	}
	standing, err := Subscriptions(st)
	if err != nil {
		return nil, err
	}
	ids := slices.Clone(p.Unreachable)
	for _, s := range standing {
		for _, r := range s.Subscription.Receivers() {
			ids = append(ids, r.ID())
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// names reports whether s is to be delivered to receiver.
func names(s pipeline.Subscription, receiver string) bool {
	return slices.ContainsFunc(s.Receivers(), func(r pipeline.Receiver) bool { return r.ID() == receiver })
}
