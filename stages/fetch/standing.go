package fetch

import "time"

// standing says how a host answered its last request. It decides how many of the requests in all may be to such hosts,
// so that hosts which never answer leave room for others, however many they are.
type standing int

const (
	standingPrompt  standing = iota // it answered within slowAnswer
	standingUnknown                 // nothing is known of it
	standingSlow                    // it took longer, or did not answer
	standings                       // how many there are
)

// share returns how many of most requests may be to hosts of this standing.
func (s standing) share(most int) int {
	switch s {
	case standingUnknown:
		return max(1, most/2)
	case standingSlow:
		return max(1, most/4)
	}
	return most
}

const (
	// slowAnswer is the time after which an answer is slow, and how long a request to a host that did not answer
	// the last one waits for the first byte.
	slowAnswer = 5 * time.Second
	// patientEvery is after how many requests without an answer one waits as long as any other, so that a host which
	// became slow is not taken for one that is down.
	patientEvery = 4
)

// answer is how a host answered a request.
type answer int

const (
	answerNone    answer = iota // the request was not made, or was cancelled
	answerPrompt                // it answered or refused within slowAnswer
	answerSlow                  // it took longer
	answerMissing               // it did not answer in time
)

// hostRecords remembers by name how hosts answered.
type hostRecords map[string]hostRecord

type hostRecord struct {
	slow    bool
	missing uint8 // requests in a row that it did not answer
}

func (r hostRecords) standing(name string) standing {
	switch record, ok := r[name]; {
	case !ok:
		return standingUnknown
	case record.slow:
		return standingSlow
	}
	return standingPrompt
}

// firstByte returns how long a request to the host waits for the first byte, or 0.
func (r hostRecords) firstByte(name string) time.Duration {
	if n := r[name].missing; n%patientEvery != 0 {
		return slowAnswer
	}
	return 0
}

// note records an answer. It keeps about most records, and forgets any others.
func (r hostRecords) note(name string, a answer, most int) {
	if a == answerNone {
		return
	}
	record := hostRecord{slow: a != answerPrompt}
	if a == answerMissing {
		record.missing = max(1, r[name].missing+1) // never 0, which a host without a record has
	}
	r[name] = record
	for other := range r {
		if len(r) <= most {
			break
		}
		if other != name {
			delete(r, other)
		}
	}
}
