package config

import (
	"errors"
	"fmt"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
)

// schemes are those of the pages that the program fetches.
var schemes = []string{"http", "https"}

// CheckSubscription returns all that is wrong with s. The field of a value in a list has
// its index: keywords[0].
func CheckSubscription(s pipeline.Subscription) []*pipeline.FieldError {
	var errs []*pipeline.FieldError
	for _, err := range leaves(vokter.CheckSubscription(s, schemes...)) {
		fe, ok := errors.AsType[*pipeline.FieldError](err)
		if !ok {
			continue
		}
		for i, e := range s.Events {
			if fe.Field == fmt.Sprintf("events[%d]", i) {
				hint := nearest.Hint(string(e), []string{string(pipeline.Added), string(pipeline.Removed)})
				fe = &pipeline.FieldError{Field: fe.Field, Reason: fmt.Sprintf("%q is not an event; %s", string(e), hint)}
			}
		}
		errs = append(errs, fe)
	}
	return errs
}

// leaves splits what errors.Join joined; an error that wraps several in a sentence of
// its own stays whole.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, leaves(e)...)
	}
	return all
}
