package outbound

import (
	"net"
	"time"

	"github.com/ncruces/go-dns"
)

// Bounds of the cache of a resolver. Most answers have fewer than 500 bytes, none more than 64 KiB. Their age
// is bounded because the cache also keeps an answer that a name exists and has no address, such as that of
// a forwarder that is not ready.
const (
	maxAnswers   = 2000
	maxAnswerAge = 5 * time.Minute
)

// CachingResolver returns a resolver that asks the name servers of parent, nil for those of the system,
// and keeps each answer for its time to live, at most five minutes. An answer that a name does not exist is not
// kept, so that the next check finds a name that was just made. It uses Go's resolver, also where the
// system has one of its own.
func CachingResolver(parent *net.Resolver) *net.Resolver {
	return dns.NewCachingResolver(parent, dns.MaxCacheEntries(maxAnswers), dns.MaxCacheTTL(maxAnswerAge), dns.NegativeCache(false))
}
