//go:build unix

package main

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// inbox receives the notifications of several clients, and the owner's. Until endFailures its receivers
// now and then fail, stall or are slow for a while, before or after they took what they
// were sent.
type inbox struct {
	server   *http.Server
	addr     string
	counters *counters

	mu         sync.Mutex
	rng        *rand.Rand
	healthy    bool
	behaviours map[string]*behaviourPeriod
	received   map[string][]mail
	// denied counts what was taken although the answer denied it, by client and ID.
	denied map[string]map[string]int
	// refused holds the IDs of all that pickyClient refused at first. acceptsAll ends that.
	refused    map[string]bool
	acceptsAll bool
}

// behaviourPeriod is how a receiver behaves, and until when.
type behaviourPeriod struct {
	behaviour behaviour
	until     time.Time
}

// behaviour is how a receiver treats what it is sent.
type behaviour int

const (
	accepts       behaviour = iota
	refuses                 // answers 500
	stalls                  // accepts and does not answer while the behaviour lasts
	slow                    // answers late
	closes                  // closes the connection
	deniesReceipt           // takes it and answers 500
	behaviourCount
)

// pickyClient is the client whose receiver refuses some notifications, until setAcceptsAll.
const pickyClient = "picky"

// mail is one notification that was taken, whatever the answer.
type mail struct {
	id           string
	at           time.Time
	body         []byte
	notification notification
}

// notification is the documented body of a notification.
type notification struct {
	ID     string       `json:"id"`
	Status string       `json:"status"`
	URL    string       `json:"url"`
	Type   string       `json:"type"`
	Health *healthEvent `json:"health"`
	Diffs  []diff       `json:"diffs"`
	Items  []struct {
		ID    string `json:"id"`
		Diffs int    `json:"diffs"`
	} `json:"items"`
}

type diff struct {
	Event   string `json:"event"`
	Keyword string `json:"keyword"`
	Text    string `json:"text"`
}

func newInbox(seed uint64, did *counters) (*inbox, error) {
	b := &inbox{
		rng: rand.New(rand.NewPCG(seed, 2)), counters: did, behaviours: map[string]*behaviourPeriod{},
		received: map[string][]mail{}, denied: map[string]map[string]int{}, refused: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{client}", b.receive)
	var err error
	b.server, b.addr, err = startServer(mux)
	return b, err
}

func (b *inbox) close() { b.server.Close() }

func (b *inbox) url(client string) string { return "http://" + b.addr + "/" + client }

func (b *inbox) receive(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	client := r.PathValue("client")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The sender was killed in the middle.
	}
	m := mail{id: r.Header.Get("webhook-id"), at: at, body: body}
	if err := json.Unmarshal(body, &m.notification); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	how, until := b.behaviourOf(client)
	switch how {
	case refuses:
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	case closes:
		panic(http.ErrAbortHandler)
	case stalls:
		b.waitUntil(r, until)
		panic(http.ErrAbortHandler)
	case slow:
		b.waitUntil(r, at.Add(slowDelay))
	}
	if !b.accept(client, m) {
		http.Error(w, "not this one", http.StatusBadRequest)
		return
	}
	if how == deniesReceipt {
		b.recordDenial(client, m.id)
		http.Error(w, "taken, but do not know it", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// slowDelay is how long a slow receiver takes.
const slowDelay = 300 * time.Millisecond

// waitUntil returns at until, or when the sender went away, or after endFailures.
func (b *inbox) waitUntil(r *http.Request, until time.Time) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(until) {
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
		b.mu.Lock()
		healthy := b.healthy
		b.mu.Unlock()
		if healthy {
			return
		}
	}
}

// behaviourOf returns how the receiver of client behaves, and until when.
func (b *inbox) behaviourOf(client string) (behaviour, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.healthy {
		return accepts, time.Time{}
	}
	m := b.behaviours[client]
	if m == nil {
		m = &behaviourPeriod{}
		b.behaviours[client] = m
	}
	if time.Now().After(m.until) {
		*m = behaviourPeriod{}
		if b.rng.IntN(15) == 0 {
			b.counters.add("moods")
			*m = behaviourPeriod{1 + behaviour(b.rng.IntN(int(behaviourCount)-1)),
				time.Now().Add(time.Duration(b.rng.IntN(1200)) * time.Millisecond)}
		}
	}
	return m.behaviour, m.until
}

// accept keeps m, unless its receiver refuses it.
func (b *inbox) accept(client string, m mail) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if client == pickyClient && !b.acceptsAll {
		h := fnv.New32a()
		h.Write([]byte(m.id))
		if h.Sum32()%5 == 0 {
			b.refused[m.id] = true
			return false
		}
	}
	b.received[client] = append(b.received[client], m)
	return true
}

// recordDenial records that the receiver of client took the notification with this ID and answers that it did not.
func (b *inbox) recordDenial(client, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.denied[client] == nil {
		b.denied[client] = map[string]int{}
	}
	b.denied[client][id]++
}

// denials returns how often what was taken was denied, by client and ID.
func (b *inbox) denials() map[string]map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]map[string]int{}
	for client, ids := range b.denied {
		out[client] = maps.Clone(ids)
	}
	return out
}

// endFailures ends all failures but the refusals of pickyClient.
func (b *inbox) endFailures() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.healthy = true
}

// setAcceptsAll sets whether the receiver of pickyClient takes everything from now on.
func (b *inbox) setAcceptsAll(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acceptsAll = yes
}

// hasOpenRefusals reports whether pickyClient refused something that it has not got since.
func (b *inbox) hasOpenRefusals() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := map[string]bool{}
	for _, m := range b.received[pickyClient] {
		got[m.id] = true
	}
	for id := range b.refused {
		if !got[id] {
			return true
		}
	}
	return false
}

// refusedIDs returns the IDs of what was refused at first, which may come out of order.
func (b *inbox) refusedIDs() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.refused)
}

// mailsOf returns what each of clients took.
func (b *inbox) mailsOf(clients []string) map[string][]mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string][]mail{}
	for _, c := range clients {
		out[c] = slices.Clone(b.received[c])
	}
	return out
}
