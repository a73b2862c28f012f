package render

import (
	"fmt"

	"github.com/vokter/vokter/pipeline"
)

// Collected says how much a digest holds, such as "5 changes of 3 checks"; it is empty where n
// is none.
func Collected(n pipeline.Notification) string {
	if n.Type != pipeline.NotificationTypeDigest {
		return ""
	}
	return plural(len(n.Diffs), "change") + " of " + plural(len(n.Items), "check")
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
