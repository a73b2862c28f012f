package inflight

// size is how many bytes a slot of the file has. The first one holds magic.
const size = 32

// magic says what the file is and how its slots are written.
var magic = [size]byte([]byte("vokter: messages in flight, 1\n\x00\x00"))

// entry is a message that is being handled, or during which a process died.
type entry struct {
	key  Key
	slot int
	// begun says that it is being handled now.
	begun bool
	// deaths is how often a process died meanwhile; starts how often one started since and did
	// not begin to handle it.
	deaths, starts byte
}

func (e entry) encode() []byte {
	b := make([]byte, size)
	copy(b, e.key[:])
	b[16], b[17], b[18] = 1, e.deaths, e.starts
	if e.begun {
		b[16] = 2
	}
	return b
}

// decode returns the entries of a file; none where it is not one.
func decode(b []byte) []entry {
	if len(b) < size || [size]byte(b) != magic {
		return nil
	}
	var all []entry
	for b = b[size:]; len(b) >= size; b = b[size:] {
		if b[16] == 1 || b[16] == 2 {
			all = append(all, entry{key: Key(b[:16]), begun: b[16] == 2, deaths: b[17], starts: b[18]})
		}
	}
	return all
}
