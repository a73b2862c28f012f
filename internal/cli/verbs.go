package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// askFlags are the flags of verbs that ask the process of a data directory.
const askFlags = outputFlags | directoryFlags | configFlags

// group returns a verb with verbs of its own. usage is how one of them is written.
func group(name, short, usage string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return newUsageError(cmd, "write %s %s", cmd.CommandPath(), usage)
			}
			return newUsageError(cmd, "unknown verb %q; %s", args[0], nearest.Hint(args[0], verbNames(cmd)))
		},
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// onlyArg returns the one argument of cmd, which is a what.
func onlyArg(cmd *cobra.Command, args []string, what string) (string, error) {
	switch {
	case len(args) == 0:
		return "", newUsageError(cmd, "no %s is given; write %s", what, strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	case len(args) > 1:
		return "", newUsageError(cmd, "%s takes one %s, but got %q as well", cmd.Name(), what, args[1])
	}
	return args[0], nil
}

// checkPageURL returns an error if url is not the URL of a page. An empty one is none.
func checkPageURL(cmd *cobra.Command, url string) error {
	if url == "" {
		return nil
	}
	if _, err := pageurl.Canonical(url); err != nil {
		return newUsageError(cmd, "%w", err)
	}
	return nil
}

// pageVerb makes cmd a verb about the page of the URL in its argument.
func (a *app) pageVerb(cmd *cobra.Command, do func(ctx context.Context, m process, url string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.withPage(cmd, args, do) }
	return a.flags.addTo(cmd, askFlags)
}

// withPage calls do with the process of the directory that the flags name, and the URL in args.
func (a *app) withPage(cmd *cobra.Command, args []string, do func(context.Context, process, string) error) error {
	url, err := onlyArg(cmd, args, "URL")
	if err == nil {
		err = checkPageURL(cmd, url)
	}
	if err != nil {
		return err
	}
	return a.withDirectory(cmd, func(ctx context.Context, m process) error {
		err := do(ctx, m, url)
		if isNotFound(err) && !strings.Contains(err.Error(), "://") {
			err = fmt.Errorf("%s: %w", url, err)
		}
		return err
	})
}

// documentVerb makes cmd a verb about a document of the page of the URL in its argument, which f chooses.
func (a *app) documentVerb(cmd *cobra.Command, f *inspect.DocumentFilter, do func(ctx context.Context, m process, url string) error) *cobra.Command {
	fs := cmd.Flags()
	fs.StringVar(&f.Client, "client", "", "the document that the client `NAME` watches, if the page has several")
	fs.StringVar(&f.Select, "select", "", "the document with this `SELECTOR`, if the page has several")
	fs.StringVar(&f.Document, "document", "", "the document with this `ID`, if the page has several")
	return a.pageVerb(cmd, func(ctx context.Context, m process, url string) error {
		err := do(ctx, m, url)
		if refused, ok := errors.AsType[*flow.Refusal](err); ok && refused.Code == flow.CodeConflict {
			return fmt.Errorf("%w; write --client, --select or --document", err)
		}
		return err
	})
}

// isNotFound reports whether err says that there is no such page, subscription or document.
func isNotFound(err error) bool {
	refused, ok := errors.AsType[*flow.Refusal](err)
	return ok && refused.Code == flow.CodeNotFound
}

// matchesNothing is the error of a filter that selects nothing.
func matchesNothing(what string) error { return errors.New(what) }
