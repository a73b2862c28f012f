package delivery

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
	// keepLetters is how long a dead letter is kept.
	keepLetters = 90 * 24 * time.Hour
	// replayBatch limits the letters that one transaction replays or removes. After replayBytes
	// in all it replays no further one. scanBatch limits the letters that it reads.
	replayBatch = 500
	replayBytes = 2 << 20
	scanBatch   = 5000
)

// DeadConfig is what NewDeadLetters needs.
type DeadConfig struct {
	// Now is the clock, time.Now by default.
	Now func() time.Time
	// Observe is called for each message that could not be handled.
	Observe flow.Observer
	// Logger logs how many letters are replayed or removed; nil means no log.
	Logger *slog.Logger
}

// DeadLetters is the processor of flow.TopicDead. It keeps each dead letter in the state of its
// key until it is replayed, for 90 days at most.
type DeadLetters struct{ cfg DeadConfig }

var _ flow.Processor = (*DeadLetters)(nil)

// NewDeadLetters returns a DeadLetters.
func NewDeadLetters(cfg DeadConfig) *DeadLetters {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	return &DeadLetters{cfg}
}

// Process handles a dead letter, a replay command or a wake.
func (d *DeadLetters) Process(_ context.Context, tx flow.Tx, m flow.Message) error {
	s, err := loadLetters(tx.State(m.Key))
	if err != nil {
		return err
	}
	switch m.Type {
	case flow.TypeDeadLetter:
		err = d.store(tx, s, m)
	case flow.TypeReplay:
		err = d.startReplay(tx, s, m)
	case flow.TypeWake:
		if len(s.Replays) > 0 {
			err = d.continueReplay(tx, s, m.Key)
		} else {
			err = d.removeOld(tx, s, m.Key)
		}
	default:
		err = m.UnknownType(flow.GroupDead)
	}
	if err != nil {
		return err
	}
	return s.save()
}

// store appends a letter to the others. An earlier one with its ID is removed. The first
// letter asks for a wake, and each wake asks for the next one.
func (d *DeadLetters) store(tx flow.Tx, s *letterStore, m flow.Message) error {
	var l flow.DeadLetter
	err := json.Unmarshal(m.Body, &l)
	if err = cmp.Or(err, flow.CheckTime(l.Time)); err != nil {
		return failure.Permanent(fmt.Errorf("dead letter %s: %w", flow.Clipped(m.ID, 200), err))
	}
	if s.Count == 0 && len(s.Replays) == 0 {
		tx.WakeAt(m.Key, d.cfg.Now().Add(keepLetters))
	}
	known, err := s.add(Letter{ID: m.ID, DeadLetter: l})
	if err != nil || known {
		return err
	}
	if l.Addressed != nil {
		return nil // Delivery has reported the notification.
	}
	tx.OnCommit(func() {
		d.cfg.Observe.Note(flow.Observation{Kind: flow.KindUnhandled, URL: pageurl.Redacted(m.Subject), ID: m.ID, Time: l.Time, Text: l.Reason})
	})
	if l.Topic != flow.TopicHealth { // otherwise a health event could lead to another one
		tx.Emit(flow.HealthMessage(pipeline.Health{
			ID:    flow.HealthID(pipeline.HealthDeadLetter, m.Key+" "+m.ID, 0),
			Event: pipeline.HealthDeadLetter, Time: l.Time, URL: pageurl.Redacted(m.Subject), Reason: l.Reason, Count: l.Attempts,
		}))
	}
	return nil
}

// startReplay stores a replay command. It applies to the letters that are stored now.
func (d *DeadLetters) startReplay(tx flow.Tx, s *letterStore, m flow.Message) error {
	var c flow.ReplayCommand
	if err := json.Unmarshal(m.Body, &c); err != nil {
		return failure.Permanent(fmt.Errorf("replay %s: %w", m.ID, err))
	}
	first, err := s.firstNumber()
	if err != nil {
		return err
	}
	s.Replays = append(s.Replays, pendingReplay{Filter: c.Filter, From: first, Until: s.Next})
	d.wakeNow(tx, m.Key)
	return nil
}

// continueReplay replays the next letters of the oldest command, as many as fit into one transaction.
func (d *DeadLetters) continueReplay(tx flow.Tx, s *letterStore, key string) error {
	chosen, err := s.nextSelected()
	if err != nil {
		return err
	}
	for _, l := range chosen {
		m, ok, err := l.Again()
		if err != nil {
			return err
		}
		if ok {
			tx.Emit(m)
		}
	}
	if len(chosen) > 0 {
		d.log(tx, key, "dead letters are delivered again", len(chosen))
	}
	d.wakeNow(tx, key)
	return s.remove(chosen)
}

// removeOld removes the letters that are too old, and asks for a wake when the next one will be.
func (d *DeadLetters) removeOld(tx flow.Tx, s *letterStore, key string) error {
	now := d.cfg.Now().UTC()
	old, ahead, oldest, err := s.splitByAge(now)
	if err != nil {
		return err
	}
	if len(old) > 0 {
		d.log(tx, key, "dead letters are forgotten after 90 days", len(old))
	}
	switch {
	case len(old)+len(ahead) > 0:
		d.wakeNow(tx, key)
	case !oldest.IsZero():
		tx.WakeAt(key, oldest.Add(keepLetters)) // later than now, since it is not too old
	}
	return errors.Join(s.remove(old), s.setTime(ahead, now))
}

// wakeNow asks for a wake at once, and at the start of the process.
func (d *DeadLetters) wakeNow(tx flow.Tx, key string) { tx.WakeAt(key, d.cfg.Now(), flow.AtStart) }

func (d *DeadLetters) log(tx flow.Tx, key, text string, n int) {
	tx.OnCommit(func() { d.cfg.Logger.Info(text, "sink", key, "letters", n) })
}

// Names in the state of dead letters. Every value begins with the byte stateFormat.
const (
	nameLetters  = "letters" // the letterStore, as JSON
	nameLetter   = "l/"      // + number, in the order of arrival: a Letter, as JSON
	nameLetterID = "i/"      // + ID: the number of the letter, 8 bytes
)

// Letter is a stored dead letter.
type Letter struct {
	// ID is that of the message that carried it.
	ID string `json:"letter"`
	flow.DeadLetter

	number uint64
}

// letterStore holds the dead letters of one key.
type letterStore struct {
	state state

	// Next is the number that the next letter gets, Count how many letters there are.
	Next  uint64 `json:"next"`
	Count int    `json:"count"`
	// Replays are the commands that are not finished, the oldest first.
	Replays []pendingReplay `json:"replays,omitempty"`
}

// pendingReplay is an unfinished replay command for the letters with From <= number < Until.
type pendingReplay struct {
	Filter flow.DeadFilter `json:"filter"`
	From   uint64          `json:"from"`
	Until  uint64          `json:"until"`
}

func loadLetters(st flow.State) (*letterStore, error) {
	s := &letterStore{state: state{st}}
	_, err := s.state.read(nameLetters, s)
	return s, err
}

// save stores the fields of s. It deletes them if there is neither a letter nor a replay.
func (s *letterStore) save() error {
	if s.Count == 0 && len(s.Replays) == 0 {
		return s.state.Delete(nameLetters)
	}
	return s.state.write(nameLetters, s)
}

// add stores l behind the others and removes an earlier letter with its ID. known says that
// there was one.
func (s *letterStore) add(l Letter) (known bool, err error) {
	b, known, err := s.state.Get(nameLetterID + l.ID)
	if err != nil {
		return known, err
	}
	if known {
		if len(b) != 9 || b[0] != stateFormat {
			return known, damaged(nameLetterID+l.ID, errors.New("its format is not known"))
		}
		if err := s.remove([]Letter{{ID: l.ID, number: binary.BigEndian.Uint64(b[1:])}}); err != nil {
			return known, err
		}
	}
	number := binary.BigEndian.AppendUint64([]byte{stateFormat}, s.Next)
	err = errors.Join(s.state.write(letterName(s.Next), l), s.state.Set(nameLetterID+l.ID, number))
	s.Next++
	s.Count++
	return known, err
}

func (s *letterStore) remove(ls []Letter) error {
	for _, l := range ls {
		if err := errors.Join(s.state.Delete(letterName(l.number)), s.state.Delete(nameLetterID+l.ID)); err != nil {
			return err
		}
		s.Count--
	}
	return nil
}

// nextSelected returns the next letters that the oldest command selects, and moves its From behind
// them. It ends the command behind the last letter. Numbers without a letter belong to letters that
// were replayed or removed.
func (s *letterStore) nextSelected() ([]Letter, error) {
	r := &s.Replays[0]
	var chosen []Letter
	size := 0
	for looked := 0; r.From < r.Until && looked < scanBatch && len(chosen) < replayBatch && size < replayBytes; looked++ {
		name := letterName(r.From)
		b, ok, err := s.state.Get(name)
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
		s.Replays = slices.Delete(s.Replays, 0, 1)
	}
	return chosen, nil
}

// splitByAge reads the first letters. It returns those that are too old, those from after now, which
// are left when the clock is set back, and the time of the oldest other letter, zero if there
// is none.
func (s *letterStore) splitByAge(now time.Time) (old, ahead []Letter, oldest time.Time, err error) {
	looked := 0
	for l, err := range s.letters() {
		if err != nil {
			return nil, nil, oldest, err
		}
		if looked == scanBatch || len(old)+len(ahead) == replayBatch {
			break
		}
		looked++
		switch {
		case l.Time.After(now):
			ahead = append(ahead, l)
		case !l.Time.After(now.Add(-keepLetters)):
			old = append(old, Letter{ID: l.ID, number: l.number}) // remove needs no more
		case oldest.IsZero() || l.Time.Before(oldest):
			oldest = l.Time
		}
	}
	return old, ahead, oldest, nil
}

// setTime stores the letters with another time.
func (s *letterStore) setTime(ls []Letter, at time.Time) error {
	for _, l := range ls {
		l.Time = at
		if err := s.state.write(letterName(l.number), l); err != nil {
			return err
		}
	}
	return nil
}

// firstNumber returns the number of the oldest letter, or s.Next if there is none.
func (s *letterStore) firstNumber() (uint64, error) {
	for l, err := range s.letters() {
		return l.number, err
	}
	return s.Next, nil
}

// letters yields the letters in order. An error is the last element.
func (s *letterStore) letters() iter.Seq2[Letter, error] {
	return func(yield func(Letter, error) bool) {
		for name, v := range s.state.Scan(nameLetter) {
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

// Letters yields the dead letters in a state of group flow.GroupDead, in the order in which
// they were given up. Its key is a receiver, or that of a message that could not be handled.
// An error is the last element.
func Letters(st flow.State) iter.Seq2[Letter, error] {
	return (&letterStore{state: state{st}}).letters()
}

// CountLetters returns how many dead letters a state of group flow.GroupDead holds.
func CountLetters(st flow.State) (int, error) {
	s, err := loadLetters(st)
	return s.Count, err
}
