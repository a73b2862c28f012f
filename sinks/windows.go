package sinks

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// window returns what is being collected for a subscription.
func (s state) window(subscription string) (win window, err error) {
	_, err = s.read(nameWindow+subscription, &win)
	return win, err
}

// windows returns what is being collected, by subscription.
func (s state) windows() (map[string]window, error) {
	all := make(map[string]window)
	for name, v := range s.Scan(nameWindow) {
		if v.Err != nil {
			return nil, v.Err
		}
		var win window
		if err := decode(name, v.Bytes, &win); err != nil {
			return nil, err
		}
		all[name[len(nameWindow):]] = win
	}
	return all, nil
}

// setWindow replaces the window of a subscription. One without items is none.
func (s state) setWindow(subscription string, before, after window) error {
	var errs []error
	moved := before.Items == 0 || after.Items == 0 || !before.Due.Equal(after.Due)
	if moved && before.Items > 0 {
		errs = append(errs, s.Delete(timedName(nameEnd, before.Due)+subscription))
	}
	if moved && after.Items > 0 {
		errs = append(errs, s.Set(timedName(nameEnd, after.Due)+subscription, []byte{stateFormat}))
	}
	if after.Items == 0 {
		return errors.Join(append(errs, s.Delete(nameWindow+subscription))...)
	}
	return errors.Join(append(errs, s.write(nameWindow+subscription, after))...)
}

// firstWindow returns when the first window ends. There has to be one.
func (s state) firstWindow() (time.Time, error) {
	for end, err := range s.ends() {
		return end.due, err
	}
	return time.Time{}, damaged(nameEnd, errors.New("none is there, but a digest is open"))
}

// dueWindows returns whose windows end by by, or at all where that is zero: at most so many,
// the first one first.
func (s state) dueWindows(by time.Time, most int) (subscriptions []string, err error) {
	for end, err := range s.ends() {
		if err != nil || !by.IsZero() && end.due.After(by) || len(subscriptions) == most {
			return subscriptions, err
		}
		subscriptions = append(subscriptions, end.subscription)
	}
	return subscriptions, nil
}

// end says when the window of a subscription ends.
type end struct {
	due          time.Time
	subscription string
}

// ends yields when windows end, in that order. An error is the last.
func (s state) ends() iter.Seq2[end, error] {
	return func(yield func(end, error) bool) {
		for name, v := range s.Scan(nameEnd) {
			if v.Err != nil {
				yield(end{}, v.Err)
				return
			}
			at, subscription, _ := strings.Cut(name[len(nameEnd):], "/")
			var nanos int64
			if _, err := fmt.Sscanf(at, "%d", &nanos); err != nil {
				yield(end{}, damaged(name, err))
				return
			}
			if !yield(end{time.Unix(0, nanos).UTC(), subscription}, nil) {
				return
			}
		}
	}
}

// sorted yields m in the order of its keys.
func sorted(m map[string]window) iter.Seq2[string, window] {
	return func(yield func(string, window) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
