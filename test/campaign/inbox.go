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

// inbox receives the notifications of several clients, and the owner's. Until it is healed its receivers
// now and then fail, stall or are slow for a while, before or after they took what they
// were sent.
type inbox struct {
	server *http.Server
	addr   string
	did    *tally

	mu       sync.Mutex
	dice     *rand.Rand
	healthy  bool
	moods    map[string]*mood
	received map[string][]mail
	// forgotten counts what was taken and denied, by client and ID.
	forgotten map[string]map[string]int
	// refused holds all that the client picky refused at first; pleased ends that.
	refused map[string]bool
	pleased bool
}

// mood is how a receiver is at present.
type mood struct {
	how   manner
	until time.Time
}

// manner is how a receiver treats what it is sent.
type manner int

const (
	takes   manner = iota
	refuses        // answers 500
	stalls         // accepts and does not answer while the mood lasts
	slow           // answers late
	closes         // closes the connection
	forgets        // takes it and answers 500
	manners
)

// picky is the client whose receiver refuses some notifications, until it is pleased.
const picky = "picky"

// mail is one notification that was taken, whatever the answer.
type mail struct {
	id   string
	at   time.Time
	body []byte
	note note
}

// note is the documented body of a notification.
type note struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	URL    string `json:"url"`
	Type   string `json:"type"`
	Health *event `json:"health"`
	Diffs  []diff `json:"diffs"`
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

func newInbox(seed uint64, did *tally) (*inbox, error) {
	b := &inbox{
		dice: rand.New(rand.NewPCG(seed, 2)), did: did, moods: map[string]*mood{},
		received: map[string][]mail{}, forgotten: map[string]map[string]int{}, refused: map[string]bool{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{client}", b.receive)
	var err error
	b.server, b.addr, err = serve(mux)
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
	if err := json.Unmarshal(body, &m.note); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	how, until := b.manner(client)
	switch how {
	case refuses:
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	case closes:
		panic(http.ErrAbortHandler)
	case stalls:
		b.wait(r, until)
		panic(http.ErrAbortHandler)
	case slow:
		b.wait(r, at.Add(slowFor))
	}
	if !b.take(client, m) {
		http.Error(w, "not this one", http.StatusBadRequest)
		return
	}
	if how == forgets {
		b.forget(client, m.id)
		http.Error(w, "taken, but do not know it", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// slowFor is how long a slow receiver takes.
const slowFor = 300 * time.Millisecond

// wait returns at until, or when the sender went away or the inbox is healed.
func (b *inbox) wait(r *http.Request, until time.Time) {
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

// manner returns how the receiver of client is, and until when.
func (b *inbox) manner(client string) (manner, time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.healthy {
		return takes, time.Time{}
	}
	m := b.moods[client]
	if m == nil {
		m = &mood{}
		b.moods[client] = m
	}
	if time.Now().After(m.until) {
		*m = mood{}
		if b.dice.IntN(15) == 0 {
			b.did.add("moods")
			*m = mood{1 + manner(b.dice.IntN(int(manners)-1)), time.Now().Add(time.Duration(b.dice.IntN(1200)) * time.Millisecond)}
		}
	}
	return m.how, m.until
}

// take keeps m, unless its client will not have it.
func (b *inbox) take(client string, m mail) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if client == picky && !b.pleased {
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

// forget notes that client will deny that it took what has this ID.
func (b *inbox) forget(client, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.forgotten[client] == nil {
		b.forgotten[client] = map[string]int{}
	}
	b.forgotten[client][id]++
}

// denials returns how often what was taken was denied, by client and ID.
func (b *inbox) denials() map[string]map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string]map[string]int{}
	for client, ids := range b.forgotten {
		out[client] = maps.Clone(ids)
	}
	return out
}

// heal ends all failures but those of picky.
func (b *inbox) heal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.healthy = true
}

// please says whether picky takes everything from now on.
func (b *inbox) please(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pleased = yes
}

// starving reports whether picky refused something that it has not got since.
func (b *inbox) starving() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := map[string]bool{}
	for _, m := range b.received[picky] {
		got[m.id] = true
	}
	for id := range b.refused {
		if !got[id] {
			return true
		}
	}
	return false
}

// late returns what was refused at first: what may come out of order.
func (b *inbox) late() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.refused)
}

// record returns what each of clients took.
func (b *inbox) record(clients []string) map[string][]mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string][]mail{}
	for _, c := range clients {
		out[c] = slices.Clone(b.received[c])
	}
	return out
}
