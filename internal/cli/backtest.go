package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/reading"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/pipeline/text/stemmers"
	"github.com/vokter/vokter/sinks/stdout"
	filesource "github.com/vokter/vokter/sources/file"
	"github.com/vokter/vokter/stages/match"
)

// backtestFlags are the flags of the verb test.
type backtestFlags struct {
	subscription   subscriptionFlags
	keywordList    []string // --keywords
	singleKeywords []string // --keyword
	old, new       string
}

func (a *app) testVerb() *cobra.Command {
	var f backtestFlags
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "test [URL] (--old F --new F | --data DIR | -c FILE)",
		Short: "Shows what a subscription would have reported",
		Long: "Shows what a subscription would have reported, and what each other option would have changed: of two files, which stand for two versions of a " +
			"page, or of the stored versions of a page. With -c and without keywords or settings it tries the subscriptions of the configuration, " +
			"with --client those of a client. It sends nothing.",
		Example: `  vokter-stream test --old a.html --new b.html --keywords "cats,1000,fox brown"
  vokter-stream test https://example.com/terms --keywords privacy --data d
  vokter-stream test -c vokter.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runBacktest(cmd, args, &f) },
	}, askFlags)
	fs := cmd.Flags()
	fs.StringSliceVar(&f.keywordList, "keywords", nil, "the `KEYWORDS`, separated by commas")
	fs.StringArrayVar(&f.singleKeywords, "keyword", nil, "a `KEYWORD`, which may contain commas (repeatable)")
	fs.StringVar(&f.old, "old", "", "the `FILE` with the older version")
	fs.StringVar(&f.new, "new", "", "the `FILE` with the newer version")
	f.subscription.add(fs, "sinks", "paused")
	return cmd
}

// runBacktest tries the subscription of the flags, or those of the configuration.
func (a *app) runBacktest(cmd *cobra.Command, args []string, f *backtestFlags) error {
	if len(args) > 1 {
		return newUsageError(cmd, "%s takes one URL, but got %q as well; write keywords as --keywords %q", cmd.Name(), args[1], strings.Join(args[1:], ","))
	}
	url := ""
	if len(args) == 1 {
		url = args[0]
		if err := checkPageURL(cmd, url); err != nil {
			return err
		}
	}
	var keywords []string
	for _, k := range slices.Concat(f.keywordList, f.singleKeywords) {
		if k = strings.TrimSpace(k); k != "" {
			keywords = append(keywords, k)
		}
	}
	given := cmd.Flags().Changed
	if len(keywords) == 0 && (given("keywords") || given("keyword")) {
		return newUsageError(cmd, "there is no keyword in --keywords or --keyword; name one, or leave both out to try every change")
	}
	t := &trialRun{app: a, formatOption: flagOption, languages: text.NewLanguages(stemmers.All()...)}
	switch {
	case given("old") != given("new"):
		return newUsageError(cmd, "name both files: --old FILE --new FILE")
	case given("old"):
		if given("data") || given("config") {
			return newUsageError(cmd, "two files need no data directory; leave --data and -c out")
		}
		return a.tryFiles(cmd, t, f, url, keywords)
	case given("config") && !given("keywords") && !given("keyword") && !f.subscription.anyGiven():
		return a.tryConfiguration(cmd, t, url, strings.Join(cmd.Flags().Lookup("client").Value.(*optionFlag).texts, ""))
	case url == "":
		return newUsageError(cmd, "name a page and keywords, two files with --old and --new, or a configuration with -c; write %s URL --keywords KEYWORDS --data DIR", cmd.CommandPath())
	}
	s, err := f.subscription.toSubscription(cmd, url, keywords)
	if err != nil {
		return err
	}
	return a.withDirectory(cmd, func(ctx context.Context, m process) error {
		if err := t.tryOnStoredVersions(ctx, m, s, cmd.Flags().Changed("client")); err != nil {
			return err
		}
		return t.printSummary()
	})
}

// maxTestedBytes is how much is read of a file at most, as of a page.
const maxTestedBytes = 10 << 20

// tryFiles tries a subscription on two files.
func (a *app) tryFiles(cmd *cobra.Command, t *trialRun, f *backtestFlags, url string, keywords []string) error {
	var files [2]reading.File
	for i, name := range []string{f.old, f.new} {
		body, err := a.readInput(name, maxTestedBytes)
		if err != nil {
			return err
		}
		files[i] = reading.File{Name: name, ContentType: filesource.ContentType(name), Body: body}
		if info, err := os.Stat(name); err == nil {
			files[i].Time = info.ModTime().UTC()
		}
	}
	if url == "" {
		path, err := filepath.Abs(f.new)
		if err != nil {
			return err
		}
		url = filesource.URL(path)
	}
	s, err := f.subscription.toSubscription(cmd, url, keywords)
	if err != nil {
		return err
	}
	page, err := pageurl.Canonical(url)
	if err != nil {
		return err
	}
	c, ok, err := reading.Compare(cmd.Context(), page, files[0], files[1], s.WithDefaults().View)
	if err != nil {
		return err
	}
	t.isOfFiles = true
	var unused []string
	for _, name := range []string{"confirm", "flip-flop", "follow-depth"} {
		if cmd.Flags().Changed(name) {
			unused = append(unused, "--"+name)
		}
	}
	if len(unused) > 0 {
		fmt.Fprintf(a.stderr, "vokter-stream: two files are two checks of one page, so this test ignores %s\n", strings.Join(unused, ", "))
	}
	h := inspect.ChangeHistory{URL: page, Versions: 2}
	if ok {
		h.Changes = []flow.Change{c}
	}
	if err := t.tryOnChanges(cmd.Context(), h, s); err != nil {
		return err
	}
	return t.printSummary()
}

// tryConfiguration tries the subscriptions of the configuration on the stored versions. If url or
// client is set, it tries only those to this page, or of this client.
func (a *app) tryConfiguration(cmd *cobra.Command, t *trialRun, url, client string) error {
	c, err := a.load(cmd)
	if err != nil {
		return err
	}
	dir, err := a.dataDirectory(cmd)
	if err != nil {
		return err
	}
	page := ""
	if url != "" {
		if page, err = pageurl.Canonical(url); err != nil {
			return err
		}
	}
	var subs []pipeline.Subscription
	for _, s := range c.Router.Subscriptions {
		p, err := pageurl.Canonical(s.URL)
		if (page == "" || err == nil && p == page) && (client == "" || s.WithDefaults().Client == client) {
			subs = append(subs, s)
		}
	}
	if len(subs) == 0 {
		whose := ""
		if client != "" {
			whose = fmt.Sprintf(" for client %q", client)
		}
		return fmt.Errorf("%s has no subscription to %s%s; write --keywords to try others", a.flags.config, cmp.Or(url, "any page"), whose)
	}
	t.isOfConfig = true
	t.formatOption = func(option, value string) string { return option + ": " + value }
	return a.withProcess(cmd.Context(), dir, func(ctx context.Context, m process) error {
		for i, s := range subs {
			t.progress(i, len(subs))
			err := t.tryOnStoredVersions(ctx, m, s, false)
			switch {
			case isNotFound(err):
				t.notStored++
			case errors.Is(err, inspect.ErrElsewhere):
				t.elsewhere++
			case err != nil:
				t.progress(0, 0)
				return err
			}
		}
		t.progress(0, 0)
		return t.printSummary()
	})
}

// trialRun is one run of the verb test.
type trialRun struct {
	*app
	languages *text.Languages
	// formatOption names an option with its value, as the user would write it.
	formatOption func(option, value string) string
	isOfFiles    bool // the versions are two files
	isOfConfig   bool // the subscriptions are those of a configuration
	// lastHistory is the last history that was asked for, since subscriptions to one document follow each
	// other. It belongs to the document lastHistoryKey.
	lastHistory    inspect.ChangeHistory
	lastHistoryKey [2]string

	seenDocuments        map[string]bool // the documents
	versions, changes    int
	first, last          time.Time // of the changes
	notifications        int
	differences          int
	digests              int
	effects              []match.OptionEffect
	proposals            []inspect.Proposal
	notStored, elsewhere int // subscriptions
}

// progress says on a terminal how many of all subscriptions were tried, in steps of one percent; 0 of
// 0 clears the line.
func (t *trialRun) progress(n, all int) {
	switch {
	case terminalColumns(t.stderr) == 0 || all > 0 && n%max(all/100, 1) > 0:
	case all == 0:
		fmt.Fprint(t.stderr, "\r\x1b[K")
	default:
		fmt.Fprintf(t.stderr, "\r%d of %s tried\x1b[K", n, countNoun(all, "subscription"))
	}
}

// tryOnStoredVersions tries s on the stored versions of its document. With byClient the document is one that the
// client of s watches.
func (t *trialRun) tryOnStoredVersions(ctx context.Context, m process, s pipeline.Subscription, byClient bool) error {
	f, err := documentToTry(s, byClient)
	if err != nil {
		return err
	}
	if key := [2]string{s.URL, f.Document + " " + f.Client}; t.lastHistoryKey != key {
		h, err := m.Changes(ctx, s.URL, f, 0)
		if isNotFound(err) && s.IsZero() && !byClient { // perhaps the page has one document with other settings
			if other, second := m.Changes(ctx, s.URL, inspect.DocumentFilter{}, 0); second == nil || !isNotFound(second) {
				h, err = other, second
			}
		}
		switch {
		case isNotFound(err) && !s.IsZero():
			return fmt.Errorf("what these options watch has no stored versions: each part of a page, and each way to read it (select, remove, ignore, "+
				"value, confirm, flip_flop, expect and the like), has its own; leave them out, or try two files of the page with --old FILE --new FILE (%w)", err)
		case err != nil:
			return err
		}
		t.lastHistoryKey, t.lastHistory = key, h
	}
	return t.tryOnChanges(ctx, t.lastHistory, s)
}

// documentToTry chooses the document of s, or with byClient the one that its client watches.
func documentToTry(s pipeline.Subscription, byClient bool) (inspect.DocumentFilter, error) {
	if byClient && s.IsZero() {
		return inspect.DocumentFilter{Client: s.Client}, nil
	}
	page, err := pageurl.Canonical(s.URL)
	return inspect.DocumentFilter{Document: flow.DocumentOf(page, s)}, err
}

// pastDays and pastChanges are how far a new subscription is tried on the past: on the changes of so many days, at most
// on so many.
const (
	pastDays    = 30
	pastChanges = 200
)

// past says what a subscription would have told of the last changes of its document.
type past struct {
	Changes int `json:"changes"`
	Told    int `json:"told"`
}

// tryOnPast tries s on the changes of the last 30 days. It returns nil where there is none.
func tryOnPast(ctx context.Context, m process, s pipeline.Subscription) (*past, error) {
	f, err := documentToTry(s, false)
	if err != nil {
		return nil, err
	}
	h, err := m.Changes(ctx, s.URL, f, pastChanges)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	since := time.Now().AddDate(0, 0, -pastDays)
	recent := slices.DeleteFunc(h.Changes, func(c flow.Change) bool { return c.Time.Before(since) })
	if len(recent) == 0 {
		return nil, nil
	}
	told := match.Try(recent, s, text.NewLanguages(stemmers.All()...)).Notifications
	return &past{Changes: len(recent), Told: len(told)}, nil
}

// tryOnChanges tries s on the changes of h and prints its notifications.
func (t *trialRun) tryOnChanges(ctx context.Context, h inspect.ChangeHistory, s pipeline.Subscription) error {
	if t.seenDocuments == nil {
		t.seenDocuments = make(map[string]bool)
	}
	if document := h.URL + " " + h.Document; !t.seenDocuments[document] {
		t.seenDocuments[document] = true
		t.versions += h.Versions
		t.changes += len(h.Changes)
		for _, c := range h.Changes {
			if t.first.IsZero() || c.Time.Before(t.first) {
				t.first = c.Time
			}
			if c.Time.After(t.last) {
				t.last = c.Time
			}
		}
	}
	for _, p := range h.Proposals {
		if p.Helps(s) && !slices.Contains(t.proposals, p) {
			t.proposals = append(t.proposals, p)
		}
	}
	trial := match.Try(h.Changes, s, t.languages)
	if len(trial.Notifications) > 0 {
		t.progress(0, 0)
	}
	out, err := stdout.New(stdout.Config{Writer: t.stdout, Format: cmp.Or(t.flags.format, stdout.FormatText)})
	if err != nil {
		return err
	}
	for _, n := range trial.Notifications {
		if err := out.Deliver(ctx, n); err != nil {
			return &outputError{err}
		}
		t.notifications++
		t.differences += len(n.Diffs) + n.Omitted
	}
	t.digests += countDigests(trial.Notifications, s.Digest)
	for _, e := range trial.Options {
		same := func(o match.OptionEffect) bool { return o.Option == e.Option && o.Value == e.Value }
		i := slices.IndexFunc(t.effects, same)
		if i < 0 {
			t.effects = append(t.effects, e)
			continue
		}
		t.effects[i].More += e.More
		t.effects[i].Fewer += e.Fewer
		t.effects[i].Notifications += e.Notifications
	}
	return nil
}

// countDigests returns how many digests the notifications make up, which are in the order of time.
func countDigests(notifications []pipeline.Notification, d *pipeline.Digest) int {
	if d == nil {
		return 0
	}
	n, items, end := 0, 0, time.Time{}
	for _, x := range notifications {
		if n == 0 || x.Time.After(end) || items == d.Items() {
			n++
			items, end = 0, d.End(x.Time)
		}
		items++
	}
	return n
}

// trialLine is the last line of JSON, behind the notifications. Like those all lines have a type.
type trialLine struct {
	Documents     int       `json:"documents"`
	Versions      int       `json:"versions"`
	Changes       int       `json:"changes"`
	From          time.Time `json:"from,omitzero"`
	To            time.Time `json:"to,omitzero"`
	Notifications int       `json:"notifications"`
	Differences   int       `json:"differences"`
	Digests       int       `json:"digests,omitempty"`
	// NotStored is how many subscriptions have no stored version, and Elsewhere how many belong to
	// pages that other processes own.
	NotStored int `json:"not_stored,omitempty"`
	Elsewhere int `json:"elsewhere,omitempty"`
}

// printSummary prints what the run found, and what other options would have changed.
func (t *trialRun) printSummary() error {
	out := t.newResults()
	for _, e := range t.effects {
		out.printObject(e, "type", "option")
	}
	for _, p := range t.proposals {
		out.printObject(p, "type", "proposal")
	}
	out.printObject(trialLine{len(t.seenDocuments), t.versions, t.changes, t.first, t.last, t.notifications, t.differences, t.digests, t.notStored, t.elsewhere}, "type", "summary")
	what := fmt.Sprintf("%s with %s", countNoun(t.notifications, "notification"), countNoun(t.differences, "difference"))
	if t.digests > 0 {
		what += " in " + countNoun(t.digests, "digest")
	}
	switch {
	case t.isOfFiles && t.changes == 0:
		out.printLine("No notification: the files have the same words.")
	case t.isOfFiles:
		out.printLine("%s.", what)
	case t.changes == 0:
		out.printLine("No notification: %s of %s, but no change between them.", countNoun(t.versions, "version"), countNoun(len(t.seenDocuments), "document"))
	default:
		out.printLine("%s, of %s between %s of %s, from %s to %s.", what, countNoun(t.changes, "change"), countNoun(t.versions, "version"),
			countNoun(len(t.seenDocuments), "document"), formatTime(t.first, out.now), formatTime(t.last, out.now))
	}
	if len(t.effects) > 0 {
		out.printLine("Other options would have reported:")
	}
	var rows [][]string
	for _, e := range t.effects {
		var parts []string
		if e.More > 0 {
			parts = append(parts, fmt.Sprintf("%d more", e.More))
		}
		if e.Fewer > 0 {
			parts = append(parts, fmt.Sprintf("%d fewer", e.Fewer))
		}
		rows = append(rows, []string{t.formatOption(e.Option, e.Value), strings.Join(parts, ", ")})
	}
	out.printTable("  ", rows)
	option := inspect.Proposal.Flag
	if t.isOfConfig {
		option = inspect.Proposal.YAML
	}
	out.printProposals(t.proposals, option)
	if t.notStored > 0 {
		fmt.Fprintf(t.stderr, "vokter-stream: %s not tried: no version of the document is stored\n", countNoun(t.notStored, "subscription"))
	}
	if t.elsewhere > 0 {
		fmt.Fprintf(t.stderr, "vokter-stream: %s not tried: other processes own the pages\n", countNoun(t.elsewhere, "subscription"))
	}
	return out.flush()
}

// flagOption writes an option as a flag.
func flagOption(option, value string) string {
	switch value {
	case "true":
		return flagName(option)
	case "none":
		return "without " + flagName(option)
	case "false":
		return flagName(option) + "=false"
	}
	return flagName(option) + " " + strings.ReplaceAll(value, ", ", ",")
}
