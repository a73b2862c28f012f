package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/nearest"
)

// checkSink returns an error if no sink is called name: none in the configuration file or, if
// no file is given, none that m knows. It accepts every name where m shares its pages with
// other processes, because m knows only the receivers of its own pages.
func (a *app) checkSink(cmd *cobra.Command, m process, name string) error {
	if name == "" {
		return nil
	}
	if a.flags.config != "" {
		c, err := a.load(cmd)
		if err != nil {
			return err
		}
		defer closeSinks(c.Router.Sinks)
		return checkSinkInConfig(cmd, name, c.Router)
	}
	if p, err := m.Process(cmd.Context()); err != nil || p.Lanes != nil {
		return err
	}
	l, err := m.List(cmd.Context(), inspect.ListFilter{Sinks: true})
	if err != nil {
		return err
	}
	var names []string
	for _, rc := range l.Receivers {
		names = append(names, rc.Sink)
	}
	if m.router != nil && !slices.Contains(names, name) {
		return newUsageError(cmd, "--sink: %s; write -c FILE where the configuration has it, since a stopped data directory knows the sinks only that were used", noSink(name, names))
	}
	return checkSinkInNames(cmd, name, names)
}

// checkSinkInConfig returns an error if cfg has no sink called name, the value of --sink.
func checkSinkInConfig(cmd *cobra.Command, name string, cfg vokter.Config) error {
	if cfg.SinkOf != nil && cfg.SinkOf(name) != nil {
		return nil
	}
	return checkSinkInNames(cmd, name, slices.Collect(maps.Keys(cfg.Sinks)))
}

// checkSinkInNames returns an error if names does not contain name, the value of --sink.
func checkSinkInNames(cmd *cobra.Command, name string, names []string) error {
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return newUsageError(cmd, "--sink: %s", noSink(name, names))
}

// noSink says that names does not contain name.
func noSink(name string, names []string) string {
	return fmt.Sprintf("no sink is named %q; %s", name, nearest.Hint(name, names))
}

// withUnused returns known, sorted, with a receiver for each of names that has none.
func withUnused(known []inspect.Receiver, names []string) []inspect.Receiver {
	for _, name := range names {
		if !slices.ContainsFunc(known, func(r inspect.Receiver) bool { return r.Sink == name }) {
			known = append(known, inspect.Receiver{Sink: name, State: inspect.StateActive})
		}
	}
	slices.SortFunc(known, func(a, b inspect.Receiver) int { return cmp.Compare(a.Sink, b.Sink) })
	return known
}

// receiverLine is the JSON of a receiver.
type receiverLine struct {
	// Health is ok, failing, limited, expired or never_used.
	Health string `json:"health"`
	inspect.Receiver
}

// printSinks prints the state of receivers as a table.
func (r *results) printSinks(all []inspect.Receiver) {
	rows := [][]string{{"SINK", "HEALTH", "WAITING", "DEAD", "LAST SUCCESS", "LAST ERROR"}}
	for _, rc := range all {
		health := rc.State
		switch {
		case rc.State != inspect.StateActive:
		case !rc.Used:
			health = "never_used"
		default:
			health = "ok"
		}
		r.printJSON("receiver", receiverLine{health, rc})
		success := ""
		switch {
		case !rc.LastSuccess.IsZero():
			success = formatTime(rc.LastSuccess, r.now)
		case rc.Used:
			success = "none known"
		}
		health = strings.ReplaceAll(health, "_", " ")
		if !rc.Since.IsZero() {
			health += " since " + formatTime(rc.Since, r.now)
		}
		waiting := fmt.Sprint(rc.Pending + rc.Collected)
		if rc.Collected > 0 {
			waiting += fmt.Sprintf(" (%d in digests until %s)", rc.Collected, formatTime(rc.NextDigest, r.now))
		}
		rows = append(rows, []string{rc.Sink, health, waiting, fmt.Sprint(rc.Dead), success, r.lastErrorText(rc)})
	}
	if len(all) > 0 {
		r.printTable("", rows)
	}
}

// lastErrorText describes the last failed attempt, its time, and what follows.
func (r *results) lastErrorText(rc inspect.Receiver) string {
	s := cmp.Or(rc.Reason, rc.LastError)
	if s == "" {
		return ""
	}
	if !rc.LastFailure.IsZero() && rc.State != inspect.StateLimited {
		s = formatTime(rc.LastFailure, r.now) + ": " + s
	}
	if rc.State == inspect.StateActive || rc.State == inspect.StatePaused {
		return s
	}
	if rc.State == inspect.StateLimited {
		s += " (no failure"
	} else {
		s += fmt.Sprintf(" (%s in a row", countNoun(rc.Failures, "attempt"))
	}
	if rc.Pending > 0 {
		s += ", the next " + r.dueText(rc.NextAttempt)
	}
	return s + ")"
}
