package local

// Activity is a counter that grows with every publication, post and commit.
func (t *Transport) Activity() uint64 { return t.activity.Load() }

// Idle reports whether there is nothing to do: every group has consumed all messages of
// its topics, nothing is in flight or posted, and no wake is due. It is false where that
// changed while it looked. It waits for nobody: what is locked, by a commit that the disk
// holds up for example, is not idle.
func (t *Transport) Idle() bool {
	before := t.activity.Load()
	now := t.cfg.Now().UnixNano()
	for _, tp := range t.allTopics() {
		consumers, ok := tp.tryConsumers()
		if !ok {
			return false
		}
		for _, c := range consumers {
			if c.idle {
				continue
			}
			for _, cur := range c.cursors {
				if !cur.idle(now) {
					return false
				}
			}
		}
	}
	return t.activity.Load() == before
}

// idle reports whether c has nothing to do. What is in flight is not yet consumed.
func (c *cursor) idle(now int64) bool {
	if !c.lane.mu.TryLock() {
		return false
	}
	behind := c.next < c.lane.head
	c.lane.mu.Unlock()
	if behind || c.posted.Load() > 0 {
		return false
	}
	if c.c.asleep {
		return true
	}
	if c.nextWake.Load() <= now {
		return false
	}
	if !c.wakeMu.TryLock() {
		return false
	}
	defer c.wakeMu.Unlock()
	return !c.waking()
}

// waking reports whether wakes are to come whatever the time is. c.wakeMu is held.
func (c *cursor) waking() bool {
	return len(c.starting) > 0 || c.all && c.nextWake.Load() != never
}
