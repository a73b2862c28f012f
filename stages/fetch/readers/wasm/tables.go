package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// Parts of the binary format.
const (
	magicAndVersion = "\x00asm\x01\x00\x00\x00"
	tableSection    = 4
	maxTable        = 1_000_000 // elements, of 8 bytes each
)

var (
	errNoModule   = errors.New("it is no WebAssembly module: it must begin with the bytes 00 61 73 6d 01 00 00 00, as the binary format does")
	errCutOff     = errors.New("it is no valid WebAssembly module: a section is cut off; perhaps the file was not written to its end")
	errTableKind  = errors.New("it has a table of a kind that is not supported; tables hold funcref or externref")
	errTableLarge = errors.New("it has a table with more than 1,000,000 elements")
)

// fixTables returns the module with tables that cannot grow. They are not in the memory that is
// limited, and programs for WASI have no need to grow one.
func fixTables(module []byte) ([]byte, error) {
	rest, ok := bytes.CutPrefix(module, []byte(magicAndVersion))
	if !ok {
		return nil, errNoModule
	}
	out := []byte(magicAndVersion)
	for len(rest) > 0 {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errCutOff
		}
		id, content := rest[0], rest[1+n:1+n+int(size)]
		rest = rest[1+n+int(size):]
		if id == tableSection {
			var err error
			if content, err = fixTableSection(content); err != nil {
				return nil, err
			}
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(content)))
		out = append(out, content...)
	}
	return out, nil
}

// fixTableSection gives each table the length that it begins with as its largest.
func fixTableSection(content []byte) ([]byte, error) {
	count, n := binary.Uvarint(content)
	if n <= 0 || count > uint64(len(content)) {
		return nil, errCutOff
	}
	content = content[n:]
	out := binary.AppendUvarint(nil, count)
	total := uint64(0)
	for range count {
		if len(content) < 2 {
			return nil, errCutOff
		}
		kind, limited := content[0], content[1]
		if kind != 0x70 && kind != 0x6f || limited > 1 {
			return nil, errTableKind
		}
		content = content[2:]
		length := uint64(0)
		for i := range 1 + limited { // the least length, and the largest
			v, n := binary.Uvarint(content)
			if n <= 0 {
				return nil, errCutOff
			}
			if i == 0 {
				length = v
			}
			content = content[n:]
		}
		if total += length; length > maxTable || total > maxTable {
			return nil, errTableLarge
		}
		out = append(out, kind, 1)
		out = binary.AppendUvarint(out, length)
		out = binary.AppendUvarint(out, length)
	}
	return append(out, content...), nil
}
