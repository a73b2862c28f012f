package cli

import (
	"fmt"
	"strings"

	"github.com/vokter/vokter/inspect"
)

// maxFailures is how many pages that failed are named.
const maxFailures = 10

// failures says what went wrong in a run of some checks, one line each; nil: nothing did.
func failures(sum inspect.Summary) error {
	var lines []string
	failed := 0
	seen := make(map[string]bool) // a page has a line for each of its documents
	for _, d := range sum.Documents {
		if d.LastError == "" || seen[d.URL] {
			continue
		}
		seen[d.URL] = true
		if failed++; failed <= maxFailures {
			lines = append(lines, fmt.Sprintf("the last check of %s failed: %s", d.URL, d.LastError))
		}
	}
	if failed > maxFailures {
		lines = append(lines, fmt.Sprintf("the last checks of %d more pages failed; list says why", failed-maxFailures))
	}
	if sum.Pending > 0 {
		lines = append(lines, fmt.Sprintf("%s not delivered yet; they are kept, and sent when the data directory is used again; list --sinks says why", count(sum.Pending, "notification")))
	}
	if sum.Dead > 0 {
		lines = append(lines, fmt.Sprintf("%s given up: list --sinks says why, replay sends them again", count(sum.Dead, "notification")))
	}
	if sum.Unhandled > 0 {
		lines = append(lines, fmt.Sprintf("%s could not be handled: replay --dry-run says why", count(sum.Unhandled, "message")))
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}
