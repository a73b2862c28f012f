package outbound

import (
	"net"
	"time"

	"github.com/ncruces/go-dns"
)

// Bounds of the cache of a resolver. Most answers have fewer than 500 bytes, none more than 64 KiB.
const (
	maxAnswers   = 2000
	maxAnswerAge = time.Hour
)

// CachingResolver returns a resolver that asks the name servers of parent, nil for those of the system,
// and keeps each answer for its time to live, at most an hour. An answer that a name does not exist is not
// kept, so that the next check finds a name that was just made. It uses Go's resolver, also where the
// system has one of its own.
func CachingResolver(parent *net.Resolver) *net.Resolver {
	return dns.NewCachingResolver(parent, dns.MaxCacheEntries(maxAnswers), dns.MaxCacheTTL(maxAnswerAge), dns.NegativeCache(false))
}
