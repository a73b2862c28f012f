package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// Help is wrapped to the width of the terminal, within these bounds. Elsewhere it is wrapped to
// helpColumns.
const (
	helpColumns    = 80
	minHelpColumns = 40
	maxHelpColumns = 120
)

// exitCodes ends the help of the program and of the verbs that check pages.
const exitCodes = `

Exit codes:

    0  done, or ended by a signal
    1  something failed: a check, a delivery, a page that was given up, a
       filter that matches nothing, an output that cannot be written
    2  the command line or the configuration is wrong, such as the name of
       a sink that does not exist; nothing was done`

// usageTemplate is the usage template of all verbs; %d is the width.
const usageTemplate = `Usage:{{if .HasAvailableSubCommands}}
  {{.CommandPath}} VERB{{else}}
  {{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Verbs:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{range flagGroups .}}

{{.Name}}:
{{.Flags.FlagUsagesWrapped %d | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} VERB --help" for more about a verb.{{end}}
`

// wrapHelp fits the help of root and its verbs to the width of w.
func wrapHelp(root *cobra.Command, w io.Writer) {
	columns := helpColumns
	if n := terminalColumns(w); n > 0 {
		columns = min(max(n, minHelpColumns), maxHelpColumns)
	}
	cobra.AddTemplateFunc("flagGroups", groupFlags)
	root.SetUsageTemplate(fmt.Sprintf(usageTemplate, columns))
	var wrap func(c *cobra.Command)
	wrap = func(c *cobra.Command) {
		c.Long = render.Wrap(c.Long, columns, 0)
		for _, sub := range c.Commands() {
			wrap(sub)
		}
	}
	wrap(root)
}

// flagGroup is a part of the flags of a verb, under a heading.
type flagGroup struct {
	Name  string
	Flags *pflag.FlagSet
}

// Headings of flags that belong to no group of options, and of the options of the first one.
const (
	otherFlags  = "Flags"
	reportFlags = "What is reported, how and to whom"
)

// groupFlags returns the flags of c: first those of a subscription, in the groups of its options.
func groupFlags(c *cobra.Command) []flagGroup {
	flags := make(map[string]*pflag.FlagSet)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		group := otherFlags
		if o, ok := f.Value.(*optionFlag); ok {
			group = cmp.Or(o.Group, reportFlags)
		} else if names := f.Annotations[groupAnnotation]; len(names) > 0 {
			group = names[0]
		}
		if flags[group] == nil {
			flags[group] = pflag.NewFlagSet(group, pflag.ContinueOnError)
		}
		flags[group].AddFlag(f)
	})
	var groups []flagGroup
	for _, name := range append(pipeline.Groups(), otherFlags) {
		name = cmp.Or(name, reportFlags)
		if fs := flags[name]; fs != nil && fs.HasAvailableFlags() {
			groups = append(groups, flagGroup{name, fs})
		}
	}
	return groups
}

const groupAnnotation = "group"

// putInGroup shows flags of fs among the options of a group.
func putInGroup(fs *pflag.FlagSet, group string, names ...string) {
	for _, name := range names {
		if err := fs.SetAnnotation(name, groupAnnotation, []string{group}); err != nil {
			panic(err) // there is no such flag
		}
	}
}

// defaultTerminalColumns is the assumed width of a terminal that does not report its size.
const defaultTerminalColumns = 80

// terminalColumns returns the width of the terminal that w writes to, or 0 if w is not a
// terminal.
func terminalColumns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return defaultTerminalColumns
	}
	return columns
}

// flagValues are the values that the shell completes for flags with a fixed set of values.
var flagValues = map[string][]string{
	"color":     {"always", "never"},
	"format":    {"text", "json"},
	"log-level": {"debug", "info", "warn", "error"},
	"transport": {"local", "kafka"},
}

// addCompletion sets up the shell completion of the flags of c and its verbs. Arguments complete to
// file names only for verbs that say so.
func addCompletion(c *cobra.Command) {
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		var err error
		values := flagValues[f.Name]
		if o, ok := f.Value.(*optionFlag); ok {
			for _, v := range o.Values {
				values = append(values, v.Value)
			}
		}
		switch {
		case len(values) > 0:
			err = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
		case f.Name == "config":
			err = c.MarkFlagFilename(f.Name, "yaml", "yml")
		case f.Name == "data":
			err = c.MarkFlagDirname(f.Name)
		case f.Name == "summary":
		default:
			err = c.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions)
		}
		if err != nil {
			panic(err) // cannot happen: the flag exists and has no completion yet
		}
	})
	for _, sub := range c.Commands() {
		addCompletion(sub)
	}
}
