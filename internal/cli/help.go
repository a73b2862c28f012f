package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/vokter/vokter/internal/render"
)

// Help is laid out for the terminal, within these bounds; elsewhere for helpColumns.
const (
	helpColumns   = 80
	leastColumns  = 40
	widestColumns = 120
)

// exitCodes stands at the end of the help of the program and of the verbs that check pages.
const exitCodes = `

Exit codes:

    0  done, or ended by a signal
    1  something failed: a check, a delivery, a page that was given up, a
       filter that matches nothing, an output that cannot be written
    2  the command line or the configuration is wrong; nothing was begun`

// usageTemplate is that of all verbs; %d is the width.
const usageTemplate = `Usage:{{if .HasAvailableSubCommands}}
  {{.CommandPath}} VERB{{else}}
  {{.UseLine}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Verbs:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped %d | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Use "{{.CommandPath}} VERB --help" for more about a verb.{{end}}
`

// layOut fits the help of root and its verbs to the width of w.
func layOut(root *cobra.Command, w io.Writer) {
	columns := helpColumns
	if n := terminalColumns(w); n > 0 {
		columns = min(max(n, leastColumns), widestColumns)
	}
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

// usualColumns is how wide a terminal is that does not say.
const usualColumns = 80

// terminalColumns is how wide the terminal is that w writes to; 0: it is none.
func terminalColumns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return usualColumns // a terminal that does not tell its size
	}
	return columns
}
