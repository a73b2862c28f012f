package sinks

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

const (
	// keepLetters is for how long a dead letter is kept.
	keepLetters = 90 * 24 * time.Hour
	// replayBatch bounds the letters that one transaction brings back or forgets, replayBytes
	// how large those that it brings back are together, but for the last; lookBatch bounds
	// those that it looks at.
	replayBatch = 500
	replayBytes = 2 << 20
	lookBatch   = 5000
)

// DeadConfig is what NewDeadLetters needs.
type DeadConfig struct {
	// Now is the clock, time.Now by default.
	Now func() time.Time
	// Observe is told of each message that is kept because it could not be handled.
	Observe flow.Observer
	// Logger hears of letters that are brought back or forgotten; nil means nobody does.
	Logger *slog.Logger
}

// DeadLetters is the processor of TopicDead. It keeps each dead letter in the state of its
// key until it is brought back, 90 days at most.
type DeadLetters struct{ cfg DeadConfig }

var _ flow.Processor = (*DeadLetters)(nil)

// NewDeadLetters returns a DeadLetters.
func NewDeadLetters(cfg DeadConfig) *DeadLetters {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &DeadLetters{cfg}
}

// Process handles a dead letter, a command to bring some back, or a wake.
func (d *DeadLetters) Process(_ context.Context, tx flow.Tx, m flow.Message) error {
	f, err := openFile(tx.State(m.Key))
	if err != nil {
		return err
	}
	switch m.Type {
	case flow.TypeDeadLetter:
		err = d.keep(tx, f, m)
	case flow.TypeReplay:
		err = d.begin(tx, f, m)
	case flow.TypeWake:
		if len(f.Replays) > 0 {
			err = d.replay(tx, f, m.Key)
		} else {
			err = d.forget(tx, f, m.Key)
		}
	default:
		err = m.UnknownType(flow.GroupDead)
	}
	if err != nil {
		return err
	}
	return f.close()
}

// keep stores a letter. One that is there already is replaced, behind the others. The first
// one asks for the wake; each wake asks for the next.
func (d *DeadLetters) keep(tx flow.Tx, f *file, m flow.Message) error {
	var l flow.DeadLetter
	err := json.Unmarshal(m.Body, &l)
	if err = cmp.Or(err, flow.CheckTime(l.Time)); err != nil {
		return failure.Permanent(fmt.Errorf("dead letter %s: %w", flow.Clipped(m.ID, 200), err))
	}
	if f.Count == 0 && len(f.Replays) == 0 {
		tx.WakeAt(m.Key, d.cfg.Now().Add(keepLetters))
	}
	known, err := f.add(Letter{ID: m.ID, DeadLetter: l})
	if err != nil || known {
		return err
	}
	if l.Addressed != nil {
		return nil // Delivery tells of notifications itself.
	}
	tx.OnCommit(func() {
		d.cfg.Observe.Note(flow.Observation{Kind: flow.KindUnhandled, URL: pageurl.Redacted(m.Subject), ID: m.ID, Time: l.Time, Text: l.Reason})
	})
	if l.Topic != flow.TopicHealth { // that an event could not be told is not told
		tx.Emit(flow.HealthMessage(pipeline.Health{
			ID:    flow.HealthID(pipeline.HealthDeadLetter, m.Key+" "+m.ID, 0),
			Event: pipeline.HealthDeadLetter, Time: l.Time, URL: pageurl.Redacted(m.Subject), Reason: l.Reason, Count: l.Attempts,
		}))
	}
	return nil
}

// begin takes on a command, which is about the letters that are there now.
func (d *DeadLetters) begin(tx flow.Tx, f *file, m flow.Message) error {
	var c flow.ReplayCommand
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return failure.Permanent(fmt.Errorf("replay %s: %w", m.ID, err))
	}
	first, err := f.first()
	if err != nil {
		return err
	}
	f.Replays = append(f.Replays, replay{Filter: c.Filter, From: first, Until: f.Next})
	d.goOn(tx, m.Key)
	return nil
}

// replay goes on with the oldest command.
func (d *DeadLetters) replay(tx flow.Tx, f *file, key string) error {
	chosen, err := f.choose()
	if err != nil {
		return err
	}
	for _, l := range chosen {
		m, err := l.Addressed.Message()
		if err != nil {
			return err
		}
		m.Header[flow.HeaderReplay] = "1"
		tx.Emit(m)
	}
	if len(chosen) > 0 {
		d.log(tx, key, "dead letters are delivered again", len(chosen))
	}
	d.goOn(tx, key)
	return f.remove(chosen)
}

// forget forgets letters that are too old, and asks for a wake when the next one will be.
func (d *DeadLetters) forget(tx flow.Tx, f *file, key string) error {
	now := d.cfg.Now().UTC()
	old, ahead, oldest, err := f.age(now)
	if err != nil {
		return err
	}
	if len(old) > 0 {
		d.log(tx, key, "dead letters are forgotten after 90 days", len(old))
	}
	switch {
	case len(old)+len(ahead) > 0:
		d.goOn(tx, key)
	case !oldest.IsZero():
		tx.WakeAt(key, oldest.Add(keepLetters)) // later than now, since it is not too old
	}
	return errors.Join(f.remove(old), f.date(ahead, now))
}

// goOn asks for a wake at once.
func (d *DeadLetters) goOn(tx flow.Tx, key string) { tx.WakeAt(key, d.cfg.Now(), flow.AtStart) }

func (d *DeadLetters) log(tx flow.Tx, key, text string, n int) {
	tx.OnCommit(func() { d.cfg.Logger.Info(text, "sink", key, "letters", n) })
}

// Names in the state of dead letters. Every value begins with the byte stateFormat.
const (
	nameFile     = "letters" // a file without its state, as JSON
	nameLetter   = "l/"      // + number, in the order of arrival: a Letter, as JSON
	nameLetterID = "i/"      // + ID: the number of the letter, 8 bytes
)

// Letter is a dead letter that is kept.
type Letter struct {
	// ID is that of the message that brought it.
	ID string `json:"letter"`
	flow.DeadLetter

	number uint64
}

// file holds the dead letters of one key.
type file struct {
	state state

	// Next is the number that the next letter gets, Count how many there are.
	Next  uint64 `json:"next"`
	Count int    `json:"count"`
	// Replays are the commands that are not carried out yet, the oldest first.
	Replays []replay `json:"replays,omitempty"`
}

// replay is a command that is being carried out: on letters from number From on, below
// Until.
type replay struct {
	Filter flow.DeadFilter `json:"filter"`
	From   uint64          `json:"from"`
	Until  uint64          `json:"until"`
}

func openFile(st flow.State) (*file, error) {
	f := &file{state: state{st}}
	_, err := f.state.read(nameFile, f)
	return f, err
}

// close stores f, or nothing where there is nothing to say.
func (f *file) close() error {
	if f.Count == 0 && len(f.Replays) == 0 {
		return f.state.Delete(nameFile)
	}
	return f.state.write(nameFile, f)
}

// add puts l behind the others, in place of an earlier one of its ID.
func (f *file) add(l Letter) (known bool, err error) {
	b, known, err := f.state.Get(nameLetterID + l.ID)
	if err != nil {
		return known, err
	}
	if known {
		if len(b) != 9 || b[0] != stateFormat {
			return known, damaged(nameLetterID+l.ID, errors.New("its format is not known"))
		}
		if err := f.remove([]Letter{{ID: l.ID, number: binary.BigEndian.Uint64(b[1:])}}); err != nil {
			return known, err
		}
	}
	number := binary.BigEndian.AppendUint64([]byte{stateFormat}, f.Next)
	err = errors.Join(f.state.write(letterName(f.Next), l), f.state.Set(nameLetterID+l.ID, number))
	f.Next++
	f.Count++
	return known, err
}

func (f *file) remove(ls []Letter) error {
	for _, l := range ls {
		if err := errors.Join(f.state.Delete(letterName(l.number)), f.state.Delete(nameLetterID+l.ID)); err != nil {
			return err
		}
		f.Count--
	}
	return nil
}

// choose returns the next letters that the oldest command selects, and moves the command
// on behind them. Those in between were brought back or forgotten.
func (f *file) choose() ([]Letter, error) {
	r := &f.Replays[0]
	var chosen []Letter
	size := 0
	for looked := 0; r.From < r.Until && looked < lookBatch && len(chosen) < replayBatch && size < replayBytes; looked++ {
		name := letterName(r.From)
		b, ok, err := f.state.Get(name)
		if err != nil {
			return nil, err
		}
		if ok {
			l := Letter{number: r.From}
			if err := decode(name, b, &l); err != nil {
				return nil, err
			}
			if r.Filter.Selects(l.DeadLetter) {
				chosen = append(chosen, l)
				size += len(b)
			}
		}
		r.From++
	}
	if r.From >= r.Until {
		f.Replays = slices.Delete(f.Replays, 0, 1)
	}
	return chosen, nil
}

// age looks at the letters, the first ones only where there are many. It returns some of
// those that are too old, and some that claim to be of later than now, since the clock was
// set back; and the time of the oldest other one, zero if there is none.
func (f *file) age(now time.Time) (old, ahead []Letter, oldest time.Time, err error) {
	looked := 0
	for l, err := range f.letters() {
		if err != nil {
			return nil, nil, oldest, err
		}
		if looked == lookBatch || len(old)+len(ahead) == replayBatch {
			break
		}
		looked++
		switch {
		case l.Time.After(now):
			ahead = append(ahead, l)
		case !l.Time.After(now.Add(-keepLetters)):
			old = append(old, Letter{ID: l.ID, number: l.number}) // what it says is not needed
		case oldest.IsZero() || l.Time.Before(oldest):
			oldest = l.Time
		}
	}
	return old, ahead, oldest, nil
}

// date gives letters another time.
func (f *file) date(ls []Letter, at time.Time) error {
	for _, l := range ls {
		l.Time = at
		if err := f.state.write(letterName(l.number), l); err != nil {
			return err
		}
	}
	return nil
}

// first returns the number of the oldest letter, or that of the next one if there is none.
func (f *file) first() (uint64, error) {
	for l, err := range f.letters() {
		return l.number, err
	}
	return f.Next, nil
}

// letters yields the letters in their order. An error is the last.
func (f *file) letters() iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		for name, v := range f.state.Scan(nameLetter) {
			if v.Err != nil {
				yield(Letter{}, v.Err)
				return
			}
			var l Letter
			err := decode(name, v.Bytes, &l)
			if err == nil {
				_, err = fmt.Sscanf(name[len(nameLetter):], "%d", &l.number)
			}
			if !yield(l, err) || err != nil {
				return
			}
		}
	}
}

func letterName(number uint64) string { return fmt.Sprintf("%s%020d", nameLetter, number) }

// Letters yields the dead letters in the state of a receiver, or of the key of a message
// that could not be handled, of group pipeline.GroupDead, in the order in which they were
// given up. An error is the last.
func Letters(st flow.State) iter.Seq2[Letter, error] {
	return (&file{state: state{st}}).letters()
}

// CountLetters returns how many dead letters a state of group pipeline.GroupDead holds.
func CountLetters(st flow.State) (int, error) {
	f, err := openFile(st)
	return f.Count, err
}
