package fetch

import "context"

// bodyMemory is how many bytes the small bodies may hold at once that are fetched or wait to be
// read, and how many the large ones.
const bodyMemory = 256 << 20

// smallBody returns how large a body may be, in bytes, for which there is room whatever else
// is fetched: it never waits, so that slow hosts with large pages hold up large pages alone.
func smallBody(inFlight int) int64 { return max(bodyMemory/int64(inFlight), minBuffer) }

// place is where a body may grow beyond what is small. There are as many places as the
// largest bodies fit into bodyMemory. One is taken at once for all that may come: bodies that
// asked for more whenever they grow could wait for each other.
type place struct {
	of            chan struct{} // holds one for each that is taken
	taken, waited bool
}

func newPlaces(maxBody int64) chan struct{} { return make(chan struct{}, max(bodyMemory/maxBody, 1)) }

// take waits until there is a place or ctx ends.
func (p *place) take(ctx context.Context) error {
	select {
	case p.of <- struct{}{}:
		p.taken = true
		return nil
	default:
		p.waited = true
	}
	select {
	case p.of <- struct{}{}:
		p.taken = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives the place to another body, if one was taken.
func (p *place) leave() {
	if p.taken {
		<-p.of
	}
}
