package store

// DropLane removes all that is kept of a lane: states, positions, wakes and logs.
func (b *Batch) DropLane(lane int) error {
	for _, kind := range []byte{kindState, kindPosition, kindWake, kindWakeTime, kindAtStart, kindLog, kindBegin} {
		names := 2
		switch kind {
		case kindState, kindLog, kindBegin:
			names = 1
		}
		if err := b.dropLane(kind, names, lane); err != nil {
			return err
		}
	}
	return nil
}

// dropLane removes the keys of kind of a lane. The lane stands behind names strings, so that
// there is a range for each combination of these; it seeks from one to the next.
func (b *Batch) dropLane(kind byte, names, lane int) error {
	prefix := b.d.stringsOf(kind)
	for from := prefix; from != nil; {
		at := from
		from = nil
		err := b.d.scan(b.d.pebble, prefix, at, func(k, _ []byte) (bool, error) {
			parts, rest := make([]string, names), k
			for i := range parts {
				var err error
				if parts[i], rest, err = cutString(rest); err != nil {
					return false, err
				}
			}
			p := b.d.keyOf(kind, lane, parts...)
			b.deleteRange(p, after(p))
			from = after(b.d.stringsOf(kind, parts...))
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
