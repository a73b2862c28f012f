package cli

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/pipeline/flow"
)

// shownBody is how much of the body of a message skip shows, in bytes.
const shownBody = 400

// skipLine is the JSON of the message that stopped a process.
type skipLine struct {
	Kind string `json:"kind"`
	*vokter.Stopped
}

func (a *app) skip() *cobra.Command {
	var yes bool
	cmd := a.flags.with(&cobra.Command{
		Use:   "skip --data DIR",
		Short: "Shows the message that stopped the pipeline, and skips it",
		Long: "Shows the message that stopped the pipeline, and asks whether it is to be skipped. The next start then moves it to the\n" +
			"dead letters, where replay --dry-run lists it, and goes on with the messages behind it.\n\n" +
			"What the message would have caused does not happen: a change may not be told, or a subscription not be made. Skip it\n" +
			"only where nothing else helps, such as the version of vokter-stream that wrote the message. With --format json it is\n" +
			"only shown, unless --yes is given.",
		Example: `  vokter-stream skip --data ./data
  vokter-stream skip -c vokter.yaml --yes`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.skipMessage(cmd, yes) },
	}, outputFlags|directoryFlags|configFlags)
	cmd.Flags().BoolVar(&yes, "yes", false, "skip it without a question")
	return cmd
}

func (a *app) skipMessage(cmd *cobra.Command, yes bool) error {
	dir, err := a.directory(cmd)
	if err != nil {
		return err
	}
	s, err := vokter.StoppedBy(dir, "")
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("there is nothing to skip: no message stopped a process with the data directory %s since it was last handled", dir)
	}
	out := a.results()
	if !s.Skip {
		showStopped(out, s)
		switch {
		case yes:
		case out.json: // nobody is there to be asked
			out.object(skipLine{"stopped", s})
			return out.end()
		default:
			if err := a.confirm(out); err != nil {
				return err
			}
		}
		if err := vokter.SkipStopped(dir, "", s); err != nil {
			return err
		}
		s.Skip = true
	}
	out.object(skipLine{"skipped", s})
	out.text("it is skipped: the next start of the pipeline moves it to the dead letters, and goes on")
	return out.end()
}

// showStopped prints s as text.
func showStopped(out *results, s *vokter.Stopped) {
	page := cmp.Or(s.URL(), "none is named")
	out.text("%s stopped over this message %s:", s.Group, when(s.Time, out.now))
	rows := [][]string{
		{"reason", s.Reason},
		{"page", page},
		{"topic", s.Topic},
		{"type", s.Type()},
		{"position", cmp.Or(s.Position, "none: it is a wake, which a schedule asked for")},
	}
	if len(s.Body) > 0 {
		body := flow.Clipped(string(s.Body), shownBody)
		rows = append(rows, []string{"body", fmt.Sprintf("%s (%s)", body, count(len(s.Body), "byte"))})
	}
	out.table("  ", rows)
}

// confirm asks whether the message is to be skipped. The error says that it is not.
func (a *app) confirm(out *results) error {
	if err := out.end(); err != nil {
		return err
	}
	fmt.Fprint(a.stderr, "Skip it? What it would have caused does not happen then. [y/N] ")
	answer, _ := bufio.NewReader(a.stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	case "":
		fmt.Fprintln(a.stderr)
	}
	return errors.New("nothing was skipped; answer y, or write --yes")
}
