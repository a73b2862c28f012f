package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/memory"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/text/stemmers"
	"github.com/vokter/vokter/stages/fetch/readers/markdown"
)

// Exit codes; the help says what they mean.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // usage or configuration
)

// Main runs the command line of this process and returns the exit code. A signal ends it in
// good order, a second one at once. Alter may be nil. Otherwise it can change the configuration
// of every Router before the Router is made, for example to build the same program with another
// clock or transport.
func Main(alter func(*vokter.Config)) int {
	memory.Heed()
	memory.Pace()
	if system := runtime.GOOS; system != "darwin" && system != "windows" { // these keep answers themselves
		net.DefaultResolver = outbound.CachingResolver(net.DefaultResolver)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	var hangups chan os.Signal           // nil: SIGHUP is ignored
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		hangups = make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
	}
	a := newApp(hangups, os.Stdin, os.Stdout, os.Stderr)
	a.alter = alter
	return a.run(ctx, os.Args[1:])
}

// newApp returns a run of the program. Results go to stdout, everything else to stderr. On a hangup the
// verb run reads its configuration again; the other verbs end.
func newApp(hangups chan os.Signal, stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{stdin: stdin, stdout: stdout, stderr: stderr, hangups: hangups, demoInterval: time.Second}
}

// app is one run of the program.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	hangups        chan os.Signal
	// alter changes the configuration of a Router before the Router is made. It may be nil.
	alter func(*vokter.Config)
	// onFile is called with each file that a configuration names. It may be nil.
	onFile func(path string)
	// receivers is read in place of the file of receivers, unless it is nil.
	receivers []byte
	// demoInterval is the time between two changes of the demo's page.
	demoInterval time.Duration
	// configTicks has a value when the configuration is to be checked for changes. Nil means every
	// configCheckInterval.
	configTicks <-chan time.Time
	flags       commonFlags
}

// usageError is a mistake in the command line or in a file that it names. If command is set,
// the message points to its --help.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// newUsageError returns a usageError that points to the --help of cmd.
func newUsageError(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// newRouter returns a Router for cfg. Its error is a *usageError.
func (a *app) newRouter(cfg vokter.Config) (*vokter.Router, error) {
	cfg.Stemmers, cfg.Readers = stemmers.All(), append([]pipeline.Reader{markdown.New()}, cfg.Readers...)
	if a.alter != nil {
		a.alter(&cfg)
	}
	r, err := vokter.New(cfg)
	if err != nil {
		return nil, &usageError{err: err}
	}
	return r, nil
}

// run carries out the command line args and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	root := a.newRootCommand()
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if cmd.Name() != runName && cmd.Name() != serveName {
			go a.endOnHangup(ctx, cancel)
		}
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if mistakes, ok := errors.AsType[config.Errors](err); ok {
		fmt.Fprintln(a.stderr, mistakes)
		return exitUsage
	}
	if errors.Is(err, errStillFailing) {
		return exitFailed
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, " ") { // an indented line continues the one above
			line = "vokter-stream: " + line
		}
		fmt.Fprintln(a.stderr, line)
	}
	u, ok := errors.AsType[*usageError](err)
	if !ok {
		return exitFailed
	}
	if u.command != "" {
		fmt.Fprintf(a.stderr, "See %s --help.\n", u.command)
	}
	return exitUsage
}

// endOnHangup calls end on a hangup. A second hangup ends the process at once.
func (a *app) endOnHangup(ctx context.Context, end context.CancelFunc) {
	select {
	case <-a.hangups:
		signal.Stop(a.hangups)
		end()
	case <-ctx.Done():
	}
}

func (a *app) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "vokter-stream",
		Short: "Watches web pages for keywords and sends notifications",
		Long: "Watches web pages for keywords and sends notifications of their changes. serve shows a web page on which pages are watched, demo shows it " +
			"on a small page that changes, watch watches one page in this terminal, run watches the pages of a configuration." + exitCodes,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		Version:       buildInfo().String(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return newUsageError(cmd, "%s", noVerbMessage)
			}
			return newUsageError(cmd, "unknown verb %q; %s", args[0], nearest.Hint(args[0], verbNames(cmd)))
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.serveVerb(), a.demoVerb(), a.watchVerb(), a.runVerb(), a.lintVerb(), a.versionVerb(),
		a.listVerb(), a.explainVerb(), a.testVerb(), a.historyVerb(), a.showVerb(), a.diffVerb(), a.grepVerb(), a.importVerb(), a.exportVerb(), a.tokenVerb(),
		a.subscribeVerb(), a.applyVerb(), a.cancelVerb(), a.pauseVerb(), a.resumeVerb(), a.checkVerb(),
		a.healthVerb(), a.replayVerb(), a.skipVerb(), a.retryVerb(), a.backupVerb(), a.sinkVerb())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Use, c.Short, c.Long = "help VERB", "Shows the help of a verb", ""
			c.Args = func(_ *cobra.Command, args []string) error {
				if verb, _, _ := root.Find(args); verb == root && len(args) > 0 {
					return root.RunE(root, args)
				}
				return nil
			}
		case "completion":
			c.Short = "Writes a script that completes command lines in a shell"
		}
	}
	wrapHelp(root, a.stdout)
	addCompletion(root)
	return root
}

// noVerbMessage is the message for a command line without a verb.
const noVerbMessage = `no verb is given; to begin with, write one of
  vokter-stream serve                    to watch pages in the browser
  vokter-stream demo                     to see what it does
  vokter-stream watch URL KEYWORD...     to watch one page in this terminal
  vokter-stream run -c FILE              to watch what a configuration names`

// verbNames returns the names of the verbs of root that are not hidden.
func verbNames(root *cobra.Command) []string {
	var verbs []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	return verbs
}

// flagError adds to the error about an unknown flag which one was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		why := bad.Unwrap()
		kind := map[string]string{"int": "a whole number", "uint64": "the number of a version, such as 3; history lists those that are stored", "bool": "true or false"}[bad.GetFlag().Value.Type()]
		if _, number := errors.AsType[*strconv.NumError](why); number && kind != "" {
			why = fmt.Errorf("%q is not %s", bad.GetValue(), kind)
		}
		return newUsageError(cmd, "--%s: %w", bad.GetFlag().Name, why)
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return newUsageError(cmd, "%w", err)
	}
	name := "--" + unknown.GetSpecifiedName()
	if unknown.GetSpecifiedShortnames() != "" {
		name = name[1:]
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	hint := nearest.Hint(name, known)
	if unknown.GetSpecifiedShortnames() != "" && strings.Contains(cmd.Use, "KEYWORD") {
		hint += "; write -- before keywords that begin with a dash, as in -- " + name
	}
	return newUsageError(cmd, "unknown flag %s; %s", name, hint)
}

// build describes the source and the toolchain of this program.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func buildInfo() build {
	b := build{Version: vokter.Version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (b build) String() string {
	s := "vokter-stream " + b.Version
	if b.Revision != "" {
		s += " (" + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			s += ", modified"
		}
		s += ")"
	}
	return fmt.Sprintf("%s %s %s/%s", s, b.Go, b.OS, b.Arch)
}

func (a *app) versionVerb() *cobra.Command {
	return a.flags.addTo(&cobra.Command{
		Use:   "version",
		Short: "Prints the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			out := a.newResults()
			out.printObject(buildInfo())
			out.printLine("%s", buildInfo())
			return out.flush()
		},
	}, outputFlags)
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if strings.HasPrefix(cmd.Use, cmd.Name()+" -c FILE") && len(args) > 0 && !cmd.Flags().Changed("config") {
		return newUsageError(cmd, "%s takes no arguments, but got %q; write %s -c %[2]s", cmd.Name(), args[0], cmd.CommandPath())
	}
	if len(args) > 0 {
		return newUsageError(cmd, "%s takes no arguments, but got %q", cmd.Name(), args[0])
	}
	return nil
}
