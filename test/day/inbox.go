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
	options options
	clock   *clock
	server  *http.Server
	addr    string
	began   time.Time

	mu          sync.Mutex
	troubleOver bool
	told        []map[int]string // by page, the ID of the notification of each version
	versions    int              // of all pages
	refused     int
	repeats     int
	timeouts    int            // notifications that a page cannot be read
	recovered   int            // notifications that it answers again
	events      map[string]int // health events
	wrong       []string
}

// owner is the path of the receiver of health events.
const owner = "owner"

func newInbox(o options, c *clock) (*inbox, error) {
	b := &inbox{options: o, clock: c, began: c.now(), told: make([]map[int]string, o.pages), events: map[string]int{}}
	var err error
	b.server, b.addr, err = startServer(b)
	return b, err
}

func (b *inbox) close()                   { b.server.Close() }
func (b *inbox) url(of string) string     { return "http://" + b.addr + "/" + of }
func (b *inbox) receiverOf(n int) string  { return fmt.Sprint(n % b.options.receivers) }
func (b *inbox) fails(receiver int) bool  { return b.phase(receiver)%10 == 0 }
func (b *inbox) stalls(receiver int) bool { return b.phase(receiver)%10 == 5 }

// phase returns a number that decides how a receiver behaves in the present hour: of ten receivers one refuses
// everything, and one accepts connections and does not answer.
func (b *inbox) phase(receiver int) int {
	return receiver + int(b.clock.now().Sub(b.began)/time.Hour)
}

// endTrouble makes all receivers work from now on.
func (b *inbox) endTrouble() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.troubleOver = true
}

// notification is the documented body of a notification, as far as it matters here.
type notification struct {
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
		calm := b.troubleOver
		b.mu.Unlock()
		switch {
		case !calm && b.fails(n):
			b.countRefusal()
			http.Error(rw, "out of order", http.StatusInternalServerError)
			return
		case !calm && b.stalls(n):
			b.countRefusal()
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
	}
	b.recordNotification(to, body)
}

func (b *inbox) countRefusal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused++
}

var markerPattern = regexp.MustCompile(`^marker p(\d+) v(\d+)x one(\d+) two(\d+)$`)

// recordNotification checks and records one notification.
func (b *inbox) recordNotification(to string, body []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var m notification
	if err := json.Unmarshal(body, &m); err != nil || m.ID == "" {
		b.addWrong("to %s: no notification (%v): %s", to, err, body)
		return
	}
	switch {
	case to == owner:
		if m.Health == nil {
			b.addWrong("to the owner: no health event: %s", body)
			return
		}
		b.events[m.Health.Event]++
		return
	case m.Status == "timeout":
		b.timeouts++
		return
	case m.Status == "recovered":
		b.recovered++
		return
	}
	page, from, version := 0, 0, 0
	for _, d := range m.Diffs {
		f := markerPattern.FindStringSubmatch(d.Text)
		if f == nil || f[2] != f[3] || f[3] != f[4] {
			b.addWrong("to %s: text %q in %s", to, d.Text, body)
			return
		}
		page, _ = strconv.Atoi(f[1])
		if v, _ := strconv.Atoi(f[2]); d.Event == "added" {
			version = v
		} else {
			from = v
		}
	}
	if len(m.Diffs) != 2 || from < 1 || version != from+1 || page >= len(b.told) || b.receiverOf(page) != to {
		b.addWrong("to %s: not one removal and one addition: %s", to, body)
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
		b.addWrong("page %d: version %d has the IDs %s and %s", page, version, id, m.ID)
	}
}

func (b *inbox) addWrong(format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

// hasAll reports whether as many changes were notified as are due.
func (b *inbox) hasAll(due []int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.versions >= changeCount(due)
}

// changeCount is how many changes lead from the first to the last versions.
func changeCount(last []int) (n int) {
	for _, v := range last {
		n += v - 1
	}
	return n
}

// receiverVerdict is what the receivers took.
type receiverVerdict struct {
	due, told, repeats, refused, timeouts, recovered int
	events                                           map[string]int
	missing, wrong                                   []string
}

func (b *inbox) verdict(last []int) receiverVerdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := receiverVerdict{
		due: changeCount(last), told: b.versions, repeats: b.repeats, refused: b.refused, timeouts: b.timeouts, recovered: b.recovered,
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
