package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/kafka"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/pipeline/text"
)

// finding is one result of lint in JSON.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	// Warning says that it is only a warning, which does not change the exit code.
	Warning bool `json:"warning,omitempty"`
}

// validFile is the result of lint in JSON where there is no mistake.
type validFile struct {
	File          string   `json:"file"`
	Subscriptions int      `json:"subscriptions"`
	Documents     int      `json:"documents"`
	Sinks         int      `json:"sinks"`
	Languages     []string `json:"languages,omitempty"`
}

func (a *app) lintVerb() *cobra.Command {
	var connect bool
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "lint -c FILE",
		Short: "Checks a configuration and reports all problems at once",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.lintFile(cmd)
			if err != nil || !connect {
				return err
			}
			return a.lintOverNetwork(cmd, c)
		},
	}, outputFlags|pipelineFlags|configFlags)
	cmd.Flags().BoolVar(&connect, "connect", false, "also ask the Kafka cluster, and the receivers of matrix sinks, whether they can be used; nothing is changed")
	return cmd
}

// lintFile prints the mistakes in the configuration file, which are the result of this verb. It
// returns the configuration if there are none.
func (a *app) lintFile(cmd *cobra.Command) (*config.Config, error) {
	c, err := a.load(cmd)
	mistakes, ok := errors.AsType[config.Errors](err)
	if err != nil && !ok {
		return nil, err
	}
	var warnings config.Errors
	if c != nil {
		warnings = c.Warnings
		if c.Router.Dir == "" && c.Transport == nil && len(c.Router.Subscriptions) > 0 {
			warnings = append(warnings, &config.Error{File: a.flags.config, Line: 1, Column: 1, Message: "no data directory is named, so that all is kept in memory: each start takes what it finds for the baseline, and undelivered notifications are lost; add data: DIR"})
		}
	}
	if err := a.printFindings(mistakes, warnings); err != nil {
		return nil, err
	}
	switch {
	case len(mistakes) == 1 && mistakes[0].Line == 0:
		return nil, &usageError{err: fmt.Errorf("%s cannot be read", a.flags.config)}
	case len(mistakes) > 0:
		return nil, &usageError{err: fmt.Errorf("%s has %s", a.flags.config, countNoun(len(mistakes), "mistake"))}
	}
	out := a.newResults()
	f := validFile{a.flags.config, len(c.Router.Subscriptions), len(c.Router.Documents), len(c.Router.Sinks), languageLines(c.Router)}
	out.printDone("ok", f, "%s: ok (%s, %s, %s)", f.File, countNoun(f.Subscriptions, "subscription"),
		countNoun(f.Documents, "document"), countNoun(f.Sinks, "sink"))
	for _, line := range f.Languages {
		out.printLine("%s", line)
	}
	return c, out.flush()
}

// languageLines says in which languages the subscriptions of c compare words, and why.
func languageLines(c vokter.Config) []string {
	ofPage := make(map[string]string)
	for _, d := range c.Documents {
		page, _ := pageurl.Canonical(d.URL) // c is valid
		ofPage[page] = d.Language
	}
	counts := make(map[string]int)
	for _, s := range c.Subscriptions {
		page, _ := pageurl.Canonical(s.URL)
		language, from := text.LanguageChoice{Subscription: s.Language, Document: ofPage[page], Fallback: c.Language}.Language()
		why := from.Reason()
		if from == text.FromFallback {
			language, why = "of each page", "what the page declares, else what is detected, else "+language
		}
		counts[fmt.Sprintf("language: %s (%s)", language, why)]++
	}
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, what+": "+countNoun(counts[what], "subscription"))
	}
	return lines
}

// sinkCheckLine is the JSON of lint about the receiver of a sink.
type sinkCheckLine struct {
	Sink   string `json:"sink"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Advice string `json:"advice,omitempty"`
}

// lintOverNetwork checks over the network the cluster that c names, and the receivers that can be
// checked.
func (a *app) lintOverNetwork(cmd *cobra.Command, c *config.Config) error {
	defer closeSinks(c.Router.Sinks)
	checkers := make(map[string]pipeline.Checker)
	for name, s := range c.Router.Sinks {
		if ask, ok := registry.CheckerOf(s); ok {
			checkers[name] = ask
		}
	}
	cluster := kafkaConfigOf(c.Transport)
	if cluster == nil && len(checkers) == 0 {
		return newUsageError(cmd, "--connect asks a Kafka cluster and the receivers of matrix sinks, but the transport of %s is local, and no sink is of that kind", a.flags.config)
	}
	var failed []error
	if cluster != nil {
		failed = append(failed, a.lintCluster(cmd, cluster))
	}
	out := a.newResults()
	for _, name := range slices.Sorted(maps.Keys(checkers)) {
		line := checkSink(cmd.Context(), name, checkers[name], c.Router.Sinks[name])
		out.printJSON("sink_check", line)
		if line.OK {
			out.printLine("sink %s: ok", name)
		} else {
			failed = append(failed, fmt.Errorf("sink %s: %s; %s", name, line.Reason, line.Advice))
		}
	}
	return errors.Join(append(failed, out.flush())...)
}

// checkSink checks the receiver of s with ask.
func checkSink(ctx context.Context, name string, ask pipeline.Checker, s pipeline.Sink) sinkCheckLine {
	at := &testAttempt{Attempt: pipeline.AttemptFrom(context.Background())}
	ctx, cancel := context.WithTimeout(outbound.WithObserver(ctx, at.setAnswer), timeoutOf(s))
	defer cancel()
	line := sinkCheckLine{Sink: name, OK: true}
	if err := ask.Check(ctx); err != nil {
		line.OK = false
		answer, _ := at.result()
		line.Reason, line.Advice = reasonAndAdvice(err, answer)
	}
	return line
}

// lintCluster prints the state of the cluster. It fails where a start would fail.
func (a *app) lintCluster(cmd *cobra.Command, k *kafka.Config) error {
	lines, refused := kafka.Check(cmd.Context(), *k, vokter.Topology())
	out := a.newResults()
	for _, l := range lines {
		out.printObject(struct{}{}, "kind", "cluster", "message", l)
		out.printLine("%s", l)
	}
	return errors.Join(out.flush(), refused)
}

// printFindings prints mistakes and warnings, one a line.
func (a *app) printFindings(mistakes, warnings config.Errors) error {
	out := a.newResults()
	out.columns = 0 // a program may read the places
	for _, m := range mistakes {
		out.printJSON("finding", finding{m.File, m.Line, m.Column, m.Message, false})
		out.printLine("%s", m.Error())
	}
	for _, m := range warnings {
		out.printJSON("finding", finding{m.File, m.Line, m.Column, m.Message, true})
		out.printLine("%s:%d:%d: warning: %s", m.File, m.Line, m.Column, m.Message)
	}
	return out.flush()
}

// countNoun returns "1 page" or "2 pages", where what is page.
func countNoun(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
