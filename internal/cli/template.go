package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/internal/render"
)

// tryName is the verb of the process that a template is tried in.
const tryName = "try-template"

// tryFor is how long trying one template may take.
const tryFor = 5 * time.Second

// tryTemplate tries source on sample notifications, in a process of its own: a template
// that got past all checks and takes everything takes it from that one.
func (a *app) tryTemplate(source string) error {
	if a.executable == "" {
		return render.TryTemplate(source)
	}
	ctx, cancel := context.WithTimeout(context.Background(), tryFor)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.executable, tryName)
	cmd.Stdin = strings.NewReader(source)
	var verdict bytes.Buffer
	cmd.Stdout = &verdict
	err := cmd.Start()
	if err != nil { // the program was replaced while it runs; the checks stand without it
		return render.TryTemplate(source)
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("it took more than %v on a sample", tryFor)
	case err != nil:
		return fmt.Errorf("it ended the process that tried it: %w", err)
	case verdict.Len() > 0:
		return errors.New(verdict.String())
	}
	return nil
}

// tryVerb reads a template and writes what is wrong with it; nothing if it is good.
func (a *app) tryVerb() *cobra.Command {
	return &cobra.Command{
		Use:    tryName,
		Short:  "Tries the template on standard input",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			source, err := io.ReadAll(a.stdin)
			if err != nil {
				return err
			}
			if err := render.TryTemplate(string(source)); err != nil {
				_, err := fmt.Fprint(a.stdout, err)
				return err
			}
			return nil
		},
	}
}
