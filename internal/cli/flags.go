package cli

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/sinks/stdout"
)

// commonFlags are those that several verbs take.
type commonFlags struct {
	config, data, format   string
	logLevel, logFormat    string
	transport, topicPrefix string
	brokers                []string
	allow                  []netip.Prefix
	level                  slog.Level
}

// flagSets are the common flags, as groups of which a verb takes some.
type flagSets int

const (
	outputFlags    flagSets = 1 << iota // every verb
	pipelineFlags                       // verbs that run the pipeline, or check what would run
	configFlags                         // verbs that read a configuration
	directoryFlags                      // verbs that manage a data directory
)

// with gives cmd the common flags of sets, and checks their values before it runs.
func (f *commonFlags) with(cmd *cobra.Command, sets flagSets) *cobra.Command {
	fs := cmd.Flags()
	if sets&outputFlags != 0 {
		fs.StringVar(&f.format, "format", "", "`FORMAT` of the output: text or json")
		fs.StringVar(&f.logLevel, "log-level", "", "the least `LEVEL` to log: debug, info, warn or error")
		fs.StringVar(&f.logFormat, "log-format", "", "`FORMAT` of the log: text, logfmt or json (default text on a terminal, logfmt elsewhere)")
	}
	if sets&pipelineFlags != 0 {
		fs.StringVar(&f.data, "data", "", "the data directory `DIR`; without one everything is kept in memory")
		fs.Var(&prefixes{&f.allow}, "allow", "a network `CIDR` that may be reached besides public addresses (repeatable)")
		fs.StringVar(&f.transport, "transport", "", "the `NAME` of the transport: local, or kafka to share the work with other processes (default local)")
		fs.StringSliceVar(&f.brokers, "brokers", nil, "some brokers of the Kafka cluster, as `HOST:PORT,...`")
		fs.StringVar(&f.topicPrefix, "topic-prefix", "", "`PREFIX` of all topic names; processes with the same prefix share the work (default vokter.)")
	}
	if sets&directoryFlags != 0 {
		fs.StringVar(&f.data, "data", "", "the data directory `DIR` of a process, whether it runs or not")
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

// check refuses wrong values.
func (f *commonFlags) check(cmd *cobra.Command, sets flagSets) error {
	if !slices.Contains([]string{"", stdout.FormatText, stdout.FormatJSON}, f.format) {
		return usage(cmd, "--format: %q is neither text nor json", f.format)
	}
	if f.logLevel != "" {
		if err := f.level.UnmarshalText([]byte(f.logLevel)); err != nil {
			return usage(cmd, "--log-level: %q is none of debug, info, warn and error", f.logLevel)
		}
	}
	if !slices.Contains([]string{"", stdout.FormatText, logfmt, stdout.FormatJSON}, f.logFormat) {
		return usage(cmd, "--log-format: %q is none of text, logfmt and json", f.logFormat)
	}
	for _, name := range []string{"data", "summary", "topic-prefix"} {
		if g := cmd.Flags().Lookup(name); g != nil && g.Changed && g.Value.String() == "" {
			return usage(cmd, "--%s: it is empty; is a variable not set? Name one, or leave --%s out", name, name)
		}
	}
	if cmd.Flags().Changed("transport") {
		if err := checkTransport(f.transport); err != nil {
			return usage(cmd, "--transport: %w", err)
		}
	}
	return nil
}

// logfmt is the format of a log that programs and people read.
const logfmt = "logfmt"

// logger logs to w from the level of --log-level on, or from byDefault on: for people on a
// terminal, as key=value pairs elsewhere, unless --log-format says what.
func (f *commonFlags) logger(w io.Writer, byDefault slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: byDefault}
	if f.logLevel != "" {
		o.Level = f.level
	}
	switch {
	case f.logFormat == stdout.FormatJSON:
		return slog.New(slog.NewJSONHandler(w, o))
	case f.logFormat == stdout.FormatText || f.logFormat == "" && terminalColumns(w) > 0:
		return slog.New(newConsole(w, o.Level))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// prefixes is a repeatable flag of networks.
type prefixes struct{ list *[]netip.Prefix }

func (p *prefixes) Type() string   { return "CIDR" }
func (p *prefixes) String() string { return "" }
func (p *prefixes) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		n, err := config.ParsePrefix(part)
		if err != nil {
			return err
		}
		*p.list = append(*p.list, n)
	}
	return nil
}

// duration is a flag of a duration; least is the smallest that is allowed.
type duration struct {
	value *time.Duration
	least time.Duration
}

func (d *duration) Type() string   { return "DURATION" }
func (d *duration) String() string { return "" }
func (d *duration) Set(s string) error {
	v, err := config.ParseDuration(s)
	if err == nil && v < d.least {
		err = fmt.Errorf("%q is too short; write a duration such as 10s, 5m or 1h", s)
	}
	if err != nil {
		return err
	}
	*d.value = v
	return nil
}

// size is a flag of a number of bytes.
type size int64

func (s *size) Type() string   { return "SIZE" }
func (s *size) String() string { return "" }
func (s *size) Set(text string) error {
	n, err := config.ParseSize(text)
	*s = size(n)
	return err
}

var (
	_ pflag.Value = (*prefixes)(nil)
	_ pflag.Value = (*duration)(nil)
	_ pflag.Value = (*size)(nil)
)
