package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// pieceSize is the size of the pieces in which a file is parsed, in bytes. The nodes of a file take a
// hundred times its size.
const pieceSize = 64 << 10

// decodeFile decodes data, the contents of the file with that name. It parses long lists of subscriptions in
// pieces of about size bytes, so that the nodes of one piece at a time are in memory. A file in which that
// finds mistakes is decoded again as a whole: a piece may be the wrong one.
func decodeFile(name string, data []byte, o Options, size int) (*decoder, *yamlFile) {
	begin := func() (*decoder, *yamlFile) {
		d := newDecoder(name, o.LookupEnv)
		d.onFile = o.Named
		return d, new(yamlFile)
	}
	d, f := begin()
	text, ok := d.setSource(data)
	if !ok {
		return d, f
	}
	if len(text) > size {
		if head, items, tail := splitPieces(text, size); len(items) > 0 {
			if d.decodePieces(f, head, items, tail) {
				return d, f
			}
			d, f = begin()
			text, _ = d.setSource(data)
		}
	}
	if body := d.parseBody(text, 0); body != nil {
		ast.Walk(d, body)
		d.decodeValue(body, reflect.ValueOf(f).Elem(), "")
	}
	return d, f
}

// decodePieces decodes a file that was split. It returns false where it finds a mistake, or an anchor that is
// defined twice, since an alias in the file would mean the last of them.
func (d *decoder) decodePieces(f *yamlFile, head []byte, items [][]byte, tail []byte) bool {
	lines := 0
	next := func(piece []byte) ast.Node {
		body := d.parseBody(piece, lines)
		lines += bytes.Count(piece, []byte("\n"))
		if body != nil {
			ast.Walk(d, body)
		}
		return body
	}
	whole := reflect.ValueOf(f).Elem()
	body := next(head)
	if body == nil {
		return false
	}
	d.decodeValue(body, whole, "")
	at, _ := d.positions.get("")
	for i, piece := range items {
		seq, ok := next(piece).(*ast.SequenceNode)
		if !ok || len(d.errs) > 0 {
			return false
		}
		d.depth = 2 // the file, and the list
		n := len(f.Subscriptions)
		if i == 0 {
			f.Subscriptions = slices.Grow(f.Subscriptions, len(items)*len(seq.Values))
		}
		f.Subscriptions = append(f.Subscriptions, make([]subscriptionEntry, len(seq.Values))...)
		for i, item := range seq.Values {
			d.decodeValue(item, reflect.ValueOf(&f.Subscriptions[n+i]).Elem(), fmt.Sprintf("subscriptions[%d]", n+i))
		}
		d.depth = 0
	}
	if len(tail) > 0 {
		if body = next(tail); body == nil {
			return false
		}
		d.decodeValue(body, whole, "")
		d.positions.set("", at)
	}
	return len(d.errs) == 0 && !d.anchorRedefined
}

// splitPieces divides a file with a long list of subscriptions, each on lines of its own. The head ends behind
// the first subscription, and the tail begins behind the last one. The items are between them, each about
// size bytes of whole subscriptions. There are none if the file has no such list, or only a short one.
//
// split reads only the beginning of each line. A line within a quoted or block value can look like a
// subscription; then the piece that it begins is not valid YAML.
func splitPieces(text []byte, size int) (head []byte, items [][]byte, tail []byte) {
	key := []byte("subscriptions:")
	begin := 0
	if bytes.Count(text, []byte("\r")) != bytes.Count(text, []byte("\r\n")) {
		return nil, nil, nil // lines that end otherwise
	}
	if !bytes.HasPrefix(text, key) {
		if begin = bytes.Index(text, append([]byte("\n"), key...)) + 1; begin == 0 {
			return nil, nil, nil
		}
	}
	var mark []byte // how an item of the list begins
	from, first := 0, true
	for at := begin + len(key); at < len(text); {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - at - 1
		}
		line := text[at : at+end+1]
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		content := bytes.TrimSpace(line)
		switch {
		case at == begin+len(key): // the rest of the line of the key
			if len(content) > 0 && content[0] != '#' {
				return nil, nil, nil
			}
		case len(content) == 0 || content[0] == '#':
		case mark == nil:
			if !bytes.HasPrefix(line[indent:], []byte("- ")) {
				return nil, nil, nil
			}
			mark = line[:indent+2]
		case bytes.HasPrefix(line, mark):
			if at-from >= size || first {
				if first {
					head = text[:at]
				} else {
					items = append(items, text[from:at])
				}
				from, first = at, false
			}
		case indent < len(mark)-1: // the next key of the file
			if first || line[0] == '-' || line[0] == '.' { // or another document
				return nil, nil, nil
			}
			return head, append(items, text[from:at]), text[at:]
		}
		at += end + 1
	}
	if first {
		return nil, nil, nil
	}
	return head, append(items, text[from:]), nil
}
