package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What the shell completes arguments of verbs with.
var (
	completeNothing     = cobra.NoFileCompletions
	completeDirectories = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
)

// flagValues are the values of flags of which there are few.
var flagValues = map[string][]string{
	"color":     {"always", "never"},
	"events":    {"added", "removed"},
	"format":    {"text", "json"},
	"log-level": {"debug", "info", "warn", "error"},
	"match":     {"phrase", "terms"},
	"transport": {"local", "kafka"},
}

// complete makes the shell complete the values of the flags of root and its verbs, and no file
// names where a verb does not say that it takes them.
func complete(c *cobra.Command) {
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = completeNothing
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		var err error
		switch values, ok := flagValues[f.Name]; {
		case ok:
			err = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		case f.Name == "config":
			err = c.MarkFlagFilename(f.Name, "yaml", "yml")
		case f.Name == "data":
			err = c.MarkFlagDirname(f.Name)
		case f.Name == "summary":
		default:
			err = c.RegisterFlagCompletionFunc(f.Name, completeNothing)
		}
		if err != nil {
			panic(err) // a flag that was just visited is there, and has no completion yet
		}
	})
	for _, sub := range c.Commands() {
		complete(sub)
	}
}
