package sinks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/vokter/vokter/pipeline/flow"
)

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
