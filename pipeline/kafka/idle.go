package kafka

// Activity is a counter that grows with every publication, post and commit.
func (t *Transport) Activity() uint64 { return t.activity.Load() }

// Idle reports whether this process has nothing to do: it was given lanes, or none, and all
// that it knows to stand in them is handled, nothing is in flight or posted, and no wake is
// due. It is false where that changed while it looked.
func (t *Transport) Idle() bool {
	before := t.activity.Load()
	t.mu.Lock()
	joined, n := t.joined, len(t.assigned)
	t.mu.Unlock()
	t.hintMu.Lock()
	hints := len(t.hints)
	t.hintMu.Unlock()
	if !joined || hints > 0 || t.sending.Load() > 0 || t.posted() {
		return false
	}
	working := 0
	for lane := range t.owned {
		if ten := t.tenure(lane); ten != nil {
			working++
			if !ten.idle() {
				return false
			}
		}
	}
	return working == n && t.activity.Load() == before
}

// idle reports whether nothing is left to do in n's lane.
func (n *tenure) idle() bool {
	n.mu.RLock()
	busy := n.flight != nil || n.open.urgent
	n.mu.RUnlock()
	if busy {
		return false
	}
	now := n.t.now()
	n.runMu.Lock()
	defer n.runMu.Unlock()
	for _, r := range n.runners {
		if !r.idle(now) {
			return false
		}
	}
	for _, who := range n.t.declared() {
		if n.runners[who] == nil && n.position(who) < n.t.head(who.topic, n.lane) {
			return false
		}
	}
	return true
}

// position is the next offset that who is to handle; 0 where it handled nothing yet.
func (n *tenure) position(who consumer) int64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.positions[who]
}

// declared lists the consumers that were declared.
func (t *Transport) declared() []consumer {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []consumer
	for name, topic := range t.topics {
		for _, g := range topic.Groups {
			all = append(all, consumer{g, name})
		}
	}
	return all
}
