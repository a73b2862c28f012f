package cli

import (
	"context"
	"log/slog"
	"regexp"
	"strings"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/inspector"
	"github.com/vokter/vokter/pipeline/flow"
)

// adviseOnFlags is middleware that logs which flag of watch helps a check of page that failed. The reason
// of the check names the field of a configuration, which watch does not have.
func adviseOnFlags(page string, log *slog.Logger) flow.Middleware {
	last := ""
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if m.Type != flow.TypeOutcome || m.Key != page {
				return next.Process(ctx, tx, m)
			}
			if err := next.Process(ctx, tx, m); err != nil {
				return err
			}
			o, err := flow.OutcomeFrom(m)
			if err != nil {
				return err
			}
			tx.OnCommit(func() {
				if advice := flagFor(o); advice != last {
					if last = advice; advice != "" {
						log.Warn(advice)
					}
				}
			})
			return nil
		})
	}
}

// allowKey is what the reason of a check says of the configuration that permits it.
var allowKey = regexp.MustCompile(`allow: \{(fetch|files): \[(.*?)\]\}`)

// withFlags returns the reason of a check with flags of watch for keys of a configuration.
func withFlags(reason string) string {
	reason = allowKey.ReplaceAllStringFunc(reason, func(key string) string {
		m := allowKey.FindStringSubmatch(key)
		return map[string]string{"fetch": "--allow ", "files": "--allow-files "}[m[1]] + strings.Replace(m[2], "...", "PATH", 1)
	})
	return strings.Replace(reason, "with fetch.pdf", "with --pdf", 1)
}

// flagFor returns which flag of watch helps a check that ended with o, or nothing.
func flagFor(o flow.Outcome) string {
	advice := withFlags(o.Reason)
	switch {
	case advice != o.Reason:
		return advice
	case inspect.AccessAdvice(o.Reason) != "":
		return "watch sends credentials with " + accessFlagNames
	}
	return ""
}

// adviseOnNoise is middleware that logs which places of page change their words often, and a flag that leaves each of
// them out. It says so once of each, at the check that finds out.
func adviseOnNoise(page string, log *slog.Logger) flow.Middleware {
	said := make(map[string]bool) // flags
	return func(next flow.Processor) flow.Processor {
		return flow.ProcessorFunc(func(ctx context.Context, tx flow.Tx, m flow.Message) error {
			if err := next.Process(ctx, tx, m); err != nil || m.Type != flow.TypeOutcome || m.Key != page {
				return err
			}
			if o, err := flow.OutcomeFrom(m); err != nil || o.Kind != flow.OutcomeRead {
				return err // nothing of the text is another
			}
			found, err := inspector.Proposals(ctx, tx.State(page))
			if err != nil {
				return err
			}
			tx.OnCommit(func() {
				for _, p := range found {
					if !said[p.Flag()] && p.IsNew() {
						log.Info(p.Why() + ". " + p.Flag() + " " + p.Effect())
					}
					said[p.Flag()] = true
				}
			})
			return nil
		})
	}
}
