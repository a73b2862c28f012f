package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/stdout"
)

// commonFlags are the flags that several verbs have.
type commonFlags struct {
	config, data, format   string
	logLevel, logFormat    string
	transport, topicPrefix string
	brokers                []string
	allow                  []netip.Prefix
	allowFiles             []string
	level                  slog.Level
}

// flagSets is a set of groups of common flags.
type flagSets int

const (
	outputFlags    flagSets = 1 << iota // every verb
	pipelineFlags                       // verbs that run the pipeline, or check what would run
	configFlags                         // verbs that read a configuration
	directoryFlags                      // verbs that manage a data directory
)

// addTo adds the flags of sets to cmd, and checks their values before cmd runs.
func (f *commonFlags) addTo(cmd *cobra.Command, sets flagSets) *cobra.Command {
	fs := cmd.Flags()
	if sets&outputFlags != 0 {
		fs.StringVar(&f.format, "format", "", "`FORMAT` of the output: text or json")
		fs.StringVar(&f.logLevel, "log-level", "", "the least `LEVEL` to log: debug, info, warn or error")
		fs.StringVar(&f.logFormat, "log-format", "", "`FORMAT` of the log: text, logfmt or json (default text on a terminal, logfmt elsewhere)")
	}
	if sets&pipelineFlags != 0 {
		fs.StringVar(&f.data, "data", "", "the data directory `DIR`; without one everything is kept in memory")
		fs.Func("allow", "a network `CIDR` that may be reached besides public addresses (repeatable)", f.addPrefixes)
		fs.StringArrayVar(&f.allowFiles, "allow-files", nil, "a file or folder `PATH` that may be read as a file: URL (repeatable)")
		fs.StringVar(&f.transport, "transport", "", "the `NAME` of the transport: local, or kafka to share the work with other processes (default local)")
		fs.StringSliceVar(&f.brokers, "brokers", nil, "one or more brokers of the Kafka cluster, as `HOST:PORT,...`")
		fs.StringVar(&f.topicPrefix, "topic-prefix", "", "`PREFIX` of all topic names; processes with the same prefix share the work (default vokter.)")
	}
	if sets&directoryFlags != 0 {
		fs.StringVar(&f.data, "data", "", "the data directory `DIR` of a process that runs, or of a stopped one")
	}
	if sets&configFlags != 0 {
		fs.StringVarP(&f.config, "config", "c", "", "the configuration `FILE`")
	}
	if sets&pipelineFlags != 0 && sets&configFlags != 0 {
		fs.Lookup("data").Usage = "the data directory `DIR`, instead of the one in the file"
	}
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return f.check(cmd, sets) }
	return cmd
}

// check returns an error about the first invalid value.
func (f *commonFlags) check(cmd *cobra.Command, sets flagSets) error {
	if !slices.Contains([]string{"", stdout.FormatText, stdout.FormatJSON}, f.format) {
		return newUsageError(cmd, "--format: %q is neither text nor json", f.format)
	}
	if f.logLevel != "" {
		if err := f.level.UnmarshalText([]byte(f.logLevel)); err != nil {
			return newUsageError(cmd, "--log-level: %q is none of debug, info, warn and error", f.logLevel)
		}
	}
	if !slices.Contains([]string{"", stdout.FormatText, logfmt, stdout.FormatJSON}, f.logFormat) {
		return newUsageError(cmd, "--log-format: %q is none of text, logfmt and json", f.logFormat)
	}
	for _, name := range []string{"data", "summary", "topic-prefix"} {
		if g := cmd.Flags().Lookup(name); g != nil && g.Changed && g.Value.String() == "" {
			return newUsageError(cmd, "--%s: it is empty; is a variable not set? Name one, or leave --%s out", name, name)
		}
	}
	for i, path := range f.allowFiles {
		abs, err := filepath.Abs(path)
		if path == "" || err != nil {
			return newUsageError(cmd, "--allow-files: %q is no path of a file or folder", path)
		}
		f.allowFiles[i] = abs
	}
	if cmd.Flags().Changed("transport") {
		if err := checkTransport(f.transport); err != nil {
			return newUsageError(cmd, "--transport: %w", err)
		}
	}
	return nil
}

// logfmt is the format of a log that programs and people read.
const logfmt = "logfmt"

// logger returns a logger to w with the level of --log-level, or byDefault. Its format is that
// of --log-format; by default it is for people on a terminal and key=value pairs elsewhere.
func (f *commonFlags) logger(w io.Writer, byDefault slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: byDefault}
	if f.logLevel != "" {
		o.Level = f.level
	}
	switch {
	case f.logFormat == stdout.FormatJSON:
		return slog.New(slog.NewJSONHandler(w, o))
	case f.logFormat == stdout.FormatText || f.logFormat == "" && terminalColumns(w) > 0:
		return slog.New(newConsoleHandler(w, o.Level))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// setTo returns the function of a flag that sets to to what parse makes of a text.
func setTo[T any](to *T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		v, err := parse(text)
		if err == nil {
			*to = v
		}
		return err
	}
}

// addPrefixes adds the networks in text to the flag --allow.
func (f *commonFlags) addPrefixes(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		n, err := config.ParsePrefix(part)
		if err != nil {
			return err
		}
		f.allow = append(f.allow, n)
	}
	return nil
}

// limitFlags are flags of watch and run that limit the run and write its summary.
type limitFlags struct {
	checks  int
	every   time.Duration
	summary string
}

func (l *limitFlags) add(fs *pflag.FlagSet) {
	fs.IntVar(&l.checks, "checks", 0, "check every page `N` times (at most one request per second and host, unless configured), deliver the notifications, and exit")
	fs.Func("every", "check every page after this `DURATION`, whatever its interval; 0s checks again at once", setTo(&l.every, config.ParseDuration))
	fs.StringVar(&l.summary, "summary", "", "at exit write the numbers of checks, versions, changes and notifications to `FILE`, as JSON")
}

// apply sets the fields of c whose flags were given.
func (l *limitFlags) apply(cmd *cobra.Command, c *vokter.Config) error {
	if cmd.Flags().Changed("checks") && l.checks < 1 {
		return newUsageError(cmd, "--checks: must be at least 1, not %d; leave it out to go on without end", l.checks)
	}
	c.Checks = l.checks
	if cmd.Flags().Changed("every") {
		c.Every = &l.every
	}
	if l.summary != "" {
		if err := checkSummary(l.summary); err != nil {
			return newUsageError(cmd, "--summary: %w", err)
		}
	}
	return nil
}

// transportKafka is the name of the Kafka transport.
const transportKafka = "kafka"

// checkTransport returns an error if there is no transport called name.
func checkTransport(name string) error {
	if all := []string{config.TransportLocal, transportKafka}; !slices.Contains(all, name) {
		return fmt.Errorf("unknown transport %q; %s", name, nearest.Hint(name, all))
	}
	return nil
}

// kafkaConfig returns the settings of the Kafka transport, or nil for the local one. Flags override
// file, the settings in the configuration, which may be nil.
func (f *commonFlags) kafkaConfig(cmd *cobra.Command, file *kafka.Config) (*kafka.Config, error) {
	given := cmd.Flags().Changed
	k := file
	switch {
	case !given("transport"):
	case f.transport == config.TransportLocal:
		k = nil
	case k == nil:
		k = new(kafka.Config)
	}
	if k == nil {
		for _, name := range []string{"brokers", "topic-prefix"} {
			if given(name) {
				return nil, newUsageError(cmd, "--%s is an option of --transport kafka; add that", name)
			}
		}
		return nil, nil
	}
	c := *k
	if given("brokers") {
		c.Brokers = f.brokers
	}
	if given("topic-prefix") {
		c.Prefix = f.topicPrefix
	}
	if !given("brokers") && len(c.Brokers) == 0 {
		return nil, newUsageError(cmd, "--transport kafka needs brokers; add --brokers HOST:PORT")
	}
	return &c, flagUsageError(cmd, c.Validate())
}

// flagUsageError returns joined errors about fields as a usageError that names the flags instead.
func flagUsageError(cmd *cobra.Command, err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var lines []string
	for _, e := range joined.Unwrap() {
		line := e.Error()
		if fe, ok := errors.AsType[*pipeline.FieldError](e); ok {
			line = flagMessage(fe)
		}
		lines = append(lines, line)
	}
	return newUsageError(cmd, "%s", strings.Join(lines, "\n"))
}

// kafkaConfigOf returns the Kafka settings of a configuration, or nil if it has none.
func kafkaConfigOf(t registry.Transport) *kafka.Config {
	k, _ := t.(*kafka.Config)
	return k
}
