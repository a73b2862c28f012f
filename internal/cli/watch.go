package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vokter/vokter"
	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/internal/reading"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/text"
	"github.com/vokter/vokter/sinks/stdout"
	"github.com/vokter/vokter/sources/browser"
	filesource "github.com/vokter/vokter/sources/file"
	httpsource "github.com/vokter/vokter/sources/http"
)

// printerSinkName is the name of the sink of watch and demo.
const printerSinkName = "stdout"

func (a *app) watchVerb() *cobra.Command {
	var (
		s      subscriptionFlags
		limits limitFlags
		how    watchFlags
	)
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "watch URL [KEYWORD...]",
		Short: "Watches one page and prints what changes",
		Long: "Watches one page without a configuration and prints a notification for each change that adds or removes a keyword. " +
			"Without a keyword it prints every change, with what was removed and what was added. " +
			"The first check is the baseline: it prints what was read, and whether the keywords are on the page.\n\n" +
			"With --data DIR and --checks 1 one line in a crontab suffices to watch a page: it prints nothing unless something " +
			"happened. Processes with the same data directory wait for one another, for up to a minute. The directory of run is refused." + exitCodes,
		Example: `  vokter-stream watch https://example.com/terms
  vokter-stream watch https://example.com/item/7 "out of stock"
  vokter-stream watch https://example.com/news Argus --data ~/.vokter --checks 1
  vokter-stream watch https://example.com/news Argus --select main --interval 5m
  vokter-stream watch --sitemap https://example.com/sitemap.xml Argus`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.watchPage(cmd, args, &s, &limits, how)
		},
	}, outputFlags|pipelineFlags)
	cmd.Flags().Func("min-free", "minimum free disk space of the data directory, as a `SIZE` (default 256MB)", setTo(&how.minFree, config.ParseSize))
	cmd.Flags().BoolVar(&how.pdf, "pdf", false, "read a page in PDF, with the program pdftotext")
	cmd.Flags().StringVar(&how.fallbackLanguage, "fallback-language", text.DefaultLanguage, "the `TAG` of the language of a page that declares none, if none is detected")
	cmd.Flags().StringVar((*string)(&how.fetch), "fetch", string(browser.HTTP), "`HOW` the page is fetched: http, browser (in Chromium, with its scripts), or auto (in Chromium where it has hardly any text)")
	cmd.Flags().BoolVar(&how.noSandbox, "no-sandbox", false, "open the page without Chromium's sandbox, which the user root needs")
	putInGroup(cmd.Flags(), pipeline.GroupPage, "pdf", "fallback-language", "fetch", "no-sandbox")
	how.access.add(cmd.Flags())
	s.add(cmd.Flags(), "sinks", "paused")
	limits.add(cmd.Flags())
	return cmd
}

// watchFlags are the flags of watch besides those of the subscription.
type watchFlags struct {
	minFree          int64
	pdf              bool
	fallbackLanguage string // of pages whose language nothing tells
	fetch            browser.Mode
	noSandbox        bool
	access           accessFlags
}

// setBrowser sets in cfg whether url is opened in a browser. It returns an error where that cannot work.
func (f watchFlags) setBrowser(cfg *vokter.Config, url string) error {
	page := browser.Page{Mode: f.fetch}
	if err := page.Check(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	c := browser.Config{
		NoSandbox: f.noSandbox, Pages: map[string]browser.Page{url: page}, Allow: cfg.Fetch.Allow, UserAgent: httpsource.DefaultUserAgent(vokter.Version()),
	}
	if page.NeedsBrowser() {
		if err := c.Ready(); err != nil {
			return err
		}
	}
	opened, err := browser.New(c)
	cfg.Fetchers = []pipeline.Fetcher{opened}
	return err
}

func (a *app) watchPage(cmd *cobra.Command, args []string, flags *subscriptionFlags, limits *limitFlags, how watchFlags) error {
	url, keywords, err := flags.pageAndKeywords(cmd, args)
	if err != nil {
		return err
	}
	if path, err := filepath.Abs(url); err == nil && !strings.Contains(url, ":") {
		if _, err := os.Stat(path); err == nil {
			return newUsageError(cmd, "%s is a path; write the file as a URL: %s", url, filesource.URL(path))
		}
	}
	s, err := flags.toSubscription(cmd, url, keywords)
	if err != nil {
		return err
	}
	if err := text.CheckLanguage(how.fallbackLanguage); err != nil {
		return newUsageError(cmd, "--fallback-language: %v", err)
	}
	cluster, err := a.flags.kafkaConfig(cmd, nil)
	if err != nil {
		return err
	}
	if dir := a.flags.data; originOf(dir) == config.Origin {
		return newUsageError(cmd, "%s is the data directory of vokter-stream run, and watch would change what that does next; name another directory, "+
			"or add the page to that one: vokter-stream subscribe %s --sink NAME --data %[1]s", dir, url)
	}
	reportBrokenPipes(a.stdout)
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	format := cmp.Or(a.flags.format, stdout.FormatText)
	printed, err := stdout.New(stdout.Config{Writer: a.stdout, Format: format})
	if err != nil {
		return err
	}
	out := mandatorySink{printed, cancel}
	cfg := vokter.Config{
		Dir: a.flags.data, MinFree: how.minFree, Origin: "watch", Only: []string{s.URL}, ResumeExpired: true,
		Sinks:         map[string]pipeline.Sink{printerSinkName: watchSink{out, s.URL, s.Expire, cancel}},
		Subscriptions: []pipeline.Subscription{s},
		Language:      how.fallbackLanguage,
		Fetch:         vokter.FetchConfig{Allow: a.flags.allow, Files: a.flags.allowFiles, PDF: how.pdf},
	}
	if err := how.setBrowser(&cfg, s.URL); err != nil {
		return newUsageError(cmd, "%v", err)
	}
	if cfg.Access, err = how.access.toAccess(s.URL); err != nil {
		return newUsageError(cmd, "%v", err)
	}
	if path, _, err := filesource.Path(s.URL); err == nil { // who names a file may read it
		cfg.Fetch.Files = append(cfg.Fetch.Files, path)
	}
	if err := limits.apply(cmd, &cfg); err != nil {
		return err
	}
	log := a.flags.logger(a.stderr, slog.LevelInfo)
	cfg.Logger = a.flags.logger(a.stderr, watchLevel(cfg.Checks))
	if cluster != nil {
		if cfg.Transport, err = cluster.Open(); err != nil {
			return err
		}
	}
	logUselessSettings(cfg, log)
	page, _ := pageurl.Canonical(s.URL) // a Router refuses an invalid URL
	cfg.Middleware = map[string][]flow.Middleware{flow.GroupIndex: {logFirstCheck(cfg, log), adviseOnFlags(page, log), adviseOnNoise(page, log)}}
	run := func() (inspect.Summary, error) { return a.runPipeline(ctx, cfg, listenSettings{}, limits.summary, nil) }
	if limits.checks == 0 {
		_, err := run()
		return causeOrError(ctx, err)
	}
	waiting := cfg.Logger // it is quiet for cron, which mails every line
	if terminalColumns(a.stderr) > 0 {
		waiting = log
	}
	sum, err := retryWhileInUse(ctx, waiting, run)
	if err = causeOrError(ctx, err); err != nil {
		return err
	}
	for i := range sum.Documents {
		sum.Documents[i].LastError = withFlags(sum.Documents[i].LastError)
	}
	return a.reportChecks(sum)
}

// watchLevel returns the default log level of watch. A run with --checks is quiet, so that cron
// mails only results. It reports failed checks at its end.
func watchLevel(checks int) slog.Level {
	switch checks {
	case 0:
		return slog.LevelInfo
	case 1:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// watchSink is the sink of watch. It ends the run when the page of url, which has that Expire, expires.
type watchSink struct {
	mandatorySink
	url    string
	expire pipeline.Expire
	end    context.CancelCauseFunc
}

var _ pipeline.Sink = watchSink{}

// Deliver prints n.
func (w watchSink) Deliver(ctx context.Context, n pipeline.Notification) error {
	err := w.mandatorySink.Deliver(ctx, n)
	ends := n.Status == pipeline.StatusExpired || n.Status == pipeline.StatusTimeout && w.expire.Retry < 0
	if err == nil && ends && n.URL == w.url {
		w.end(errPageExpired)
	}
	return err
}

var errPageExpired = errors.New("the page was given up, so that nothing is watched any more; start again once it can be read")

// inUseTimeout is how long a run with --checks waits for a data directory that is in use.
const inUseTimeout = time.Minute

// retryWhileInUse calls run again while it fails because another process uses the data directory, for at
// most inUseTimeout.
func retryWhileInUse(ctx context.Context, log *slog.Logger, run func() (inspect.Summary, error)) (inspect.Summary, error) {
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	timeout := time.After(inUseTimeout)
	for first := true; ; first = false {
		sum, err := run()
		if !errors.Is(err, vokter.ErrInUse) {
			return sum, err
		}
		if first {
			log.Info("the data directory is in use by another process; waiting for it", "at_most", inUseTimeout)
		}
		select {
		case <-ctx.Done():
			return sum, err
		case <-timeout:
			return sum, fmt.Errorf("%w; waited for %s", err, formatDuration(inUseTimeout))
		case <-again.C:
		}
	}
}

// logUselessSettings logs settings of cfg that have no effect.
func logUselessSettings(cfg vokter.Config, log *slog.Logger) {
	for _, s := range cfg.Subscriptions {
		for _, w := range config.Warnings(s) {
			log.Warn(flagName(w.Field) + " " + w.Reason)
		}
	}
	switch {
	case cfg.Dir != "" || cfg.Transport != nil || cfg.Checks == 0:
	case cfg.Checks == 1:
		log.Warn("a single check is the baseline and can report nothing, and without --data DIR it is forgotten at the end; name a data directory")
	default:
		log.Warn("without --data DIR nothing is remembered after these checks; name a data directory to go on from them next time")
	}
}

// logFirstCheck is middleware that logs what the first check of a Router of cfg found: a baseline, or no change
// since an earlier run. A run with --checks logs only baselines.
func logFirstCheck(cfg vokter.Config, log *slog.Logger) flow.Middleware {
	s := cfg.Subscriptions[0]
	interval := s.WithDefaults().Interval
	interval.Every = max(interval.Every, pipeline.Duration(pipeline.DefaultMinInterval))
	every := interval.String()
	if cfg.Every != nil {
		every = formatDuration(*cfg.Every)
	} else if interval.Cron == "" && interval != pipeline.Never && interval.Max == 0 {
		every = formatDuration(time.Duration(interval.Every))
	}
	goesOn, isKept := cfg.Checks != 1, cfg.Dir != "" || cfg.Transport != nil
	return reading.Middleware(s, func(r reading.Reading) {
		if !r.Baseline && cfg.Checks > 0 {
			return
		}
		if s.Sitemap {
			log.Info(fmt.Sprintf("read a %s; %s", r.Title, sitemapText(r)), "url", s.URL, "check_every", every)
			return
		}
		what := countNoun(r.Words, "word")
		if s.Value != nil {
			what = strings.ToLower(s.Value.Name()) + " " + r.Value
		}
		if r.Title != "" {
			what = fmt.Sprintf("%q, %s", r.Title, what)
		}
		if what = "read " + what; r.Empty {
			what = "there is no text yet"
		}
		if r.Baseline {
			what += ": this is the baseline"
		}
		switch {
		case goesOn:
			log.Info(what+"; changes are reported from now on", "url", s.URL, "check_every", every)
		case isKept:
			log.Info(what+"; the next run reports what changed", "url", s.URL)
		default:
			log.Info(what, "url", s.URL)
		}
		if s.Value != nil && r.Baseline {
			if met := s.Met(r.Value); met != "" {
				log.Info("the value meets the condition \"" + met + "\" already; it is reported when it meets it again")
			}
		}
		language := fmt.Sprintf("language: %s (%s)", r.Language, r.From.Reason())
		if r.From == text.FromFallback && (s.Stem || s.FilterStopwords) {
			language += "; if it is another, name it with --language TAG"
		}
		if !r.Empty {
			log.Info(language)
		}
		if r.Unstemmed {
			log.Warn(fmt.Sprintf("nothing is stemmed: there are no stems for the language %q; if it is another, name it, such as with --language en", r.Language))
		}
		for _, k := range r.Keywords {
			logKeyword(log, s, k)
		}
	})
}

// sitemapText says how many pages of a sitemap are watched. The sitemaps of an index are read later.
func sitemapText(r reading.Reading) string {
	if strings.HasSuffix(r.Title, "sitemap") || strings.HasSuffix(r.Title, "sitemaps") {
		return fmt.Sprintf("%s of its host will be read, and the pages that they list are watched", countNoun(r.Linked, "sitemap"))
	}
	var what string
	switch r.Linked {
	case 0:
		what = "no page is watched"
	case 1:
		what = "1 of them is watched, and its first text is a baseline"
	default:
		what = fmt.Sprintf("%d of them are watched, and their first texts are baselines", r.Linked)
	}
	switch {
	case r.Bounded != "":
		what += ": " + r.Bounded
	case r.Linked < r.Listed:
		what += ": the others are not of its host, or --follow-include and --follow-exclude do not admit them"
	}
	return what
}

// logKeyword logs whether the page contains k, a keyword of s, now. If it does, it says what will be reported.
func logKeyword(log *slog.Logger, s pipeline.Subscription, k reading.Keyword) {
	switch {
	case k.Found > 0:
		log.Info(fmt.Sprintf("%q is on the page now, %s; reported when %s", k.Keyword, countNoun(k.Found, "time"), whenReported(s)))
	case k.OtherCase != "":
		log.Warn(fmt.Sprintf("%q is not on the page now, but %q is: leave out --match-case", k.Keyword, k.OtherCase))
	case k.Near == "":
		log.Info(fmt.Sprintf("%q is not on the page now", k.Keyword))
	case k.Word == k.Keyword:
		log.Warn(fmt.Sprintf("%q is not on the page now, but %q is: is it misspelled?", k.Keyword, k.Near))
	default:
		log.Warn(fmt.Sprintf("%q is not on the page now: %q is not there, but %q is: is it misspelled?", k.Keyword, k.Word, k.Near))
	}
}

// whenReported says when s reports a keyword that is on the page, and how to hear of changes beside it.
func whenReported(s pipeline.Subscription) string {
	if s.NewItems {
		return "an item with it comes"
	}
	when := "it appears again or goes"
	if !s.Wants(pipeline.Removed) {
		when = "it appears again"
	} else if !s.Wants(pipeline.Added) {
		when = "it goes"
	}
	switch s.Near {
	case pipeline.NearRow:
		return when + ", and when its row changes"
	case pipeline.NearBlock:
		return when + ", and when its paragraph changes"
	}
	return when + "; for changes beside it add --near row"
}
