package main

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
)

// inbox receives the notifications of several clients. Until it is healed it now and
// then answers 500, before or after it took what it was sent.
type inbox struct {
	server  *http.Server
	addr    string
	clients []string

	mu       sync.Mutex
	dice     *rand.Rand
	healthy  bool
	received map[string][]mail
}

// mail is one notification that was taken, whatever the answer.
type mail struct {
	id   string
	body []byte
	note struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		URL    string `json:"url"`
		Diffs  []struct {
			Event   string `json:"event"`
			Keyword string `json:"keyword"`
			Text    string `json:"text"`
		} `json:"diffs"`
	}
}

func newInbox(seed uint64, clients []string) (*inbox, error) {
	b := &inbox{clients: clients, dice: rand.New(rand.NewPCG(seed, 2)), received: map[string][]mail{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{client}", b.receive)
	var err error
	b.server, b.addr, err = serve(mux)
	return b, err
}

func (b *inbox) close() { b.server.Close() }

func (b *inbox) url(client string) string { return "http://" + b.addr + "/" + client }

func (b *inbox) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // The sender was killed in the middle.
	}
	m := mail{id: r.Header.Get("webhook-id"), body: body}
	if err := json.Unmarshal(body, &m.note); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.healthy && b.dice.IntN(20) == 0 {
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	}
	b.received[r.PathValue("client")] = append(b.received[r.PathValue("client")], m)
	if !b.healthy && b.dice.IntN(50) == 0 {
		http.Error(w, "taken, but do not know it", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// heal ends all failures.
func (b *inbox) heal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.healthy = true
}

func (b *inbox) record() map[string][]mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string][]mail{}
	for _, c := range b.clients {
		out[c] = append([]mail(nil), b.received[c]...)
	}
	return out
}
