package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// inbox is the receivers and what they took.
type inbox struct {
	o      options
	clock  *clock
	server *http.Server
	addr   string
	began  time.Time

	mu       sync.Mutex
	calm     bool
	told     []map[int]string // by page, the ID of the notification of each version
	versions int              // of all pages
	refused  int
	repeats  int
	timeouts int            // notifications that a page expired
	events   map[string]int // health events
	wrong    []string
}

// owner is the path of the receiver of health events.
const owner = "owner"

func newInbox(o options, c *clock) (*inbox, error) {
	b := &inbox{o: o, clock: c, began: c.now(), told: make([]map[int]string, o.pages), events: map[string]int{}}
	var err error
	b.server, b.addr, err = serve(b)
	return b, err
}

func (b *inbox) close()                   { b.server.Close() }
func (b *inbox) url(of string) string     { return "http://" + b.addr + "/" + of }
func (b *inbox) receiver(n int) string    { return fmt.Sprint(n % b.o.receivers) }
func (b *inbox) fails(receiver int) bool  { return b.turn(receiver)%10 == 0 }
func (b *inbox) stalls(receiver int) bool { return b.turn(receiver)%10 == 5 }

// turn is a number that decides how a receiver is in the present hour: of ten of them one refuses
// everything, and one accepts connections and does not answer.
func (b *inbox) turn(receiver int) int {
	return receiver + int(b.clock.now().Sub(b.began)/time.Hour)
}

// settle ends all trouble.
func (b *inbox) settle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calm = true
}

// note is the documented body of a notification, as far as it matters here.
type note struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	Type   string `json:"type"`
	Health *struct {
		Event string `json:"event"`
	} `json:"health"`
	Diffs []struct {
		Event string `json:"event"`
		Text  string `json:"text"`
	} `json:"diffs"`
}

func (b *inbox) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender gave up
	}
	to := strings.TrimPrefix(r.URL.Path, "/")
	if n, err := strconv.Atoi(to); err == nil {
		b.mu.Lock()
		calm := b.calm
		b.mu.Unlock()
		switch {
		case !calm && b.fails(n):
			b.refuse()
			http.Error(rw, "out of order", http.StatusInternalServerError)
			return
		case !calm && b.stalls(n):
			b.refuse()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
	}
	b.take(to, body)
}

func (b *inbox) refuse() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused++
}

var marked = regexp.MustCompile(`^marker p(\d+) v(\d+)x one(\d+) two(\d+)$`)

// take notes one notification.
func (b *inbox) take(to string, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var m note
	if err := json.Unmarshal(body, &m); err != nil || m.ID == "" {
		b.isWrong("to %s: no notification (%v): %s", to, err, body)
		return
	}
	switch {
	case to == owner:
		if m.Health == nil {
			b.isWrong("to the owner: no health event: %s", body)
			return
		}
		b.events[m.Health.Event]++
		return
	case m.Status == "timeout":
		b.timeouts++
		return
	}
	page, from, version := 0, 0, 0
	for _, d := range m.Diffs {
		f := marked.FindStringSubmatch(d.Text)
		if f == nil || f[2] != f[3] || f[3] != f[4] {
			b.isWrong("to %s: text %q in %s", to, d.Text, body)
			return
		}
		page, _ = strconv.Atoi(f[1])
		if v, _ := strconv.Atoi(f[2]); d.Event == "added" {
			version = v
		} else {
			from = v
		}
	}
	if len(m.Diffs) != 2 || from < 1 || version != from+1 || page >= len(b.told) || b.receiver(page) != to {
		b.isWrong("to %s: not one removal and one addition: %s", to, body)
		return
	}
	if b.told[page] == nil {
		b.told[page] = map[int]string{}
	}
	switch id := b.told[page][version]; id {
	case "":
		b.told[page][version] = m.ID
		b.versions++
	case m.ID:
		b.repeats++
	default:
		b.isWrong("page %d: version %d has the IDs %s and %s", page, version, id, m.ID)
	}
}

func (b *inbox) isWrong(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// has reports whether as many changes were told as are due.
func (b *inbox) has(due []int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.versions >= changes(due)
}

// changes is how many changes lead from the first to the last versions.
func changes(last []int) (n int) {
	for _, v := range last {
		n += v - 1
	}
	return n
}

// toldVerdict is what the receivers took.
type toldVerdict struct {
	due, told, repeats, refused, timeouts int
	events                                map[string]int
	missing, wrong                        []string
}

func (b *inbox) verdict(last []int) toldVerdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := toldVerdict{
		due: changes(last), told: b.versions, repeats: b.repeats, refused: b.refused, timeouts: b.timeouts,
		events: b.events, wrong: b.wrong,
	}
	for n, most := range last {
		for version := 2; version <= most; version++ {
			if b.told[n][version] == "" {
				v.missing = append(v.missing, fmt.Sprintf("page %d: version %d", n, version))
			}
		}
		for version := range b.told[n] {
			if version > most {
				v.wrong = append(v.wrong, fmt.Sprintf("page %d: version %d was never there", n, version))
			}
		}
	}
	return v
}
