package match

import (
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// repeatFilter holds the notifications of a client for one change, to find those that repeat
// another one. A page to which several pages of a client link has several subscriptions of this
// client, and perhaps one that the client made.
type repeatFilter map[repeatKey][]sentContent

type repeatKey struct {
	client   string
	receiver pipeline.Receiver
}

// sentContent is what one notification said.
type sentContent struct {
	diffs  []pipeline.Diff
	digest *pipeline.Digest
}

// isRepeat reports whether n, a notification of s to one receiver, repeats an earlier one of this
// change for the same client and receiver. If not, r holds it from then on. A subscription that the
// client made always notifies.
func (r repeatFilter) isRepeat(s *flow.Stamped, to pipeline.Receiver, n pipeline.Notification) bool {
	if r == nil {
		return false
	}
	key := repeatKey{n.Client, to}
	digest := s.Subscription.Collected()
	if s.Followed != nil && slices.ContainsFunc(r[key], func(e sentContent) bool {
		return slices.Equal(e.diffs, n.Diffs) && (e.digest == nil && digest == nil || e.digest != nil && digest != nil && *e.digest == *digest)
	}) {
		return true
	}
	r[key] = append(r[key], sentContent{n.Diffs, digest})
	return false
}
