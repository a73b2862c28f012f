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

// firstWindow returns which window ends first, and when. There has to be one.
func (s state) firstWindow() (due time.Time, subscription string, err error) {
	for name, v := range s.Scan(nameEnd) {
		if v.Err != nil {
			return due, "", v.Err
		}
		at, subscription, _ := strings.Cut(name[len(nameEnd):], "/")
		var nanos int64
		if _, err := fmt.Sscanf(at, "%d", &nanos); err != nil {
			return due, "", damaged(name, err)
		}
		return time.Unix(0, nanos).UTC(), subscription, nil
	}
	return due, "", damaged(nameEnd, errors.New("none is there, but a digest is open"))
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
