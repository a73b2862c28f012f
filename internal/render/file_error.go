package render

import (
	"errors"
	"fmt"
	"io/fs"
)

// FileError returns err, an error of opening or reading the file called name, in words for the user who named it.
func FileError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file %s does not exist", name)
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("the file %s cannot be read: %w", name, err)
}
