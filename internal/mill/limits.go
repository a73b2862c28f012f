package mill

import "time"

const (
	// InboxSize is how many posted messages wait in a lane before Post blocks.
	InboxSize = 256
	// FirstPause is the pause after a message is rejected for the first time; pauses double.
	FirstPause = 5 * time.Millisecond
)
