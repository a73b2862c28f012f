package pipeline

// BatchOf returns how many notifications an attempt of s may deliver, and how many of them at
// the same time: 1 and 1 where s does not say, and where it has a rate, which is one of
// attempts.
func BatchOf(s Sink) (notifications, atOnce int) {
	b, ok := s.(interface{ Batch() (int, int) })
	if !ok {
		return 1, 1
	}
	if _, _, limited := RateOf(s); limited {
		return 1, 1
	}
	notifications, atOnce = b.Batch()
	return max(notifications, 1), max(atOnce, 1)
}
