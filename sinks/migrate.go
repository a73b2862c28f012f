package sinks

import (
	"errors"
	"strings"
)

// MigrateState returns what the value of name in the state of group
// pipeline.GroupDelivery under key is in today's format; value is of a store of format 1,
// or migrated already. It fails with a pipeline.Broken error where value is neither.
func MigrateState(_, name string, value []byte) ([]byte, error) {
	switch {
	case strings.HasPrefix(name, nameKnown):
		if len(value) == 1 && value[0] == stateFormat {
			return Record{}.encode(), nil // pending or delivered: state.resolve tells which
		}
		if _, err := decodeRecord(value); err != nil {
			return nil, damaged(name, err)
		}
		return value, nil
	case name == nameQueue, strings.HasPrefix(name, namePending), strings.HasPrefix(name, nameEnded), strings.HasPrefix(name, nameMarker), strings.HasPrefix(name, nameMarked):
		if len(value) == 0 || value[0] != stateFormat {
			return nil, damaged(name, errors.New("its format is not known"))
		}
		return value, nil
	}
	return nil, damaged(name, errors.New("its name is not known"))
}
