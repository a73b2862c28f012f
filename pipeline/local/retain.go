package local

// retain trims the topics without groups that out went to, beyond their age and size.
func (t *Transport) retain(out []output) {
	var last *topic
	for _, o := range out {
		if o.lane.topic != last {
			last = o.lane.topic
			t.retainTopic(last)
		}
	}
}

func (t *Transport) retainTopic(tp *topic) {
	if tp.kept.Load() == 0 {
		return
	}
	for _, l := range tp.lanes {
		t.trimKept(l, func(m mark) bool { return m.at.Before(t.cfg.Now().Add(-t.cfg.MaxAge)) })
	}
	for tp.kept.Load() > t.cfg.MaxBytes {
		l := oldest(tp)
		if l == nil {
			return
		}
		first := true
		t.trimKept(l, func(mark) bool { drop := first; first = false; return drop })
	}
}

// oldest returns the lane with the oldest kept message, nil if nothing is kept.
func oldest(tp *topic) *lane {
	var found *lane
	var at mark
	for _, l := range tp.lanes {
		l.mu.Lock()
		if len(l.kept) > 0 && (found == nil || l.kept[0].at.Before(at.at)) {
			found, at = l, l.kept[0]
		}
		l.mu.Unlock()
	}
	return found
}

// trimKept removes the oldest marks of a lane without groups for which drop is true.
func (t *Transport) trimKept(l *lane, drop func(mark) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	to := l.low
	for len(l.kept) > 0 && drop(l.kept[0]) {
		to = l.kept[0].to
		l.topic.kept.Add(-l.kept[0].bytes)
		l.kept = l.kept[1:]
	}
	if to == l.low {
		return
	}
	for len(l.tail) > 0 && l.tail[0].Offset < to {
		l.drop()
	}
	if !l.topic.volatile {
		if err := t.trimStored(l, to); err != nil {
			t.log.Error("trimming a log failed", "topic", l.topic.name, "lane", l.index, "error", err)
			return
		}
	}
	l.low = to
}

// trimStored removes what is before offset to from the store. l.mu is held.
func (t *Transport) trimStored(l *lane, to uint64) error {
	b, err := t.db.NewBatch(false)
	if err != nil {
		return err
	}
	defer b.Close()
	b.Trim(l.topic.name, l.index, l.low, to)
	return b.Commit(false)
}
