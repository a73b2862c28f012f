package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
)

// subscriptionFlags are the flags for the fields of a subscription.
type subscriptionFlags struct {
	client, title, language, match, near, sitemap, severity, channel    string
	expireAfter, expireRetry                                            string
	events, selects, removes, ignores                                   []string
	interval                                                            pipeline.Interval
	quiet                                                               pipeline.Quiet
	stem, filterStopwords, matchCase, ignoreDiacritics, moved, newItems bool
	replaced, items                                                     bool
	expect                                                              string
	snippetOffset, confirm, flipFlop                                    int
	digest, minChange, restless                                         string
	followDepth, followMaxPages                                         int
	followSameHost                                                      bool
	followInclude, followExclude                                        []string
	tags                                                                []string
	values                                                              []string
	value                                                               pipeline.Value
	below, above, changesBy, becomes                                    string
}

func (f *subscriptionFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.client, "client", "default", "the `NAME` of the subscriber; it has one subscription per document")
	fs.StringVar(&f.title, "title", "", "what lists and notifications call the subscription, in place of the title of the page (`TEXT`)")
	fs.StringSliceVar(&f.events, "events", nil, "the `EVENTS` to report: added, removed (default both)")
	fs.Var(&parsedFlag[pipeline.Interval]{"INTERVAL", &f.interval, config.ParseInterval}, "interval", "how often to check, as an `INTERVAL`: 10m, or by how often the page changes \"10m to 24h\", or at the times of a cron line such as \"0 9 * * 1-5 Europe/Berlin\" (default 10m)")
	fs.Var(&parsedFlag[pipeline.Quiet]{"HOURS", &f.quiet, pipeline.ParseQuiet}, "quiet", "the `HOURS` in which changes are collected and not reported, such as \"22:00-07:00 Europe/Berlin\"")
	fs.StringVar(&f.severity, "severity", "", "how severe a change is, for sinks that know priorities: info, warning or critical (`SEVERITY`)")
	fs.StringVar(&f.channel, "channel", "", "the `CHANNEL` of a sink for many channels, such as \"#legal\" of Slack")
	fs.BoolVar(&f.stem, "stem", false, "match other forms of a word, such as cats for cat, whatever their case")
	fs.BoolVar(&f.filterStopwords, "filter-stopwords", false, "ignore stop words, such as the and of")
	fs.BoolVar(&f.matchCase, "match-case", false, "tell capital and small letters apart")
	fs.BoolVar(&f.ignoreDiacritics, "ignore-diacritics", false, "ignore accents and other marks of letters")
	fs.StringVar(&f.match, "match", "", "`HOW` the words of a keyword are found: phrase or terms (default phrase; terms with --filter-stopwords)")
	fs.StringVar(&f.near, "near", "", "also report what changes beside a keyword that stays: in its row, list item or card (row) or in its paragraph (block) (`WHERE`)")
	fs.BoolVar(&f.newItems, "new-items", false, "report only items that came: list items, table rows, cards, entries of feeds")
	fs.BoolVar(&f.moved, "moved", false, "also report keywords that only moved")
	fs.StringVar(&f.minChange, "min-change", "", "do not report a smaller change: `SIZE` is a number of tokens such as 5, or a share of the text such as 2%")
	fs.StringVar(&f.restless, "restless", "", "`WHAT` is told of places that change at nearly every check, such as clocks and counters, without keywords: \"mute numbers\", mute (words too, such as advertisements) or tell (default mute numbers, unless nothing else changes)")
	fs.StringVar(&f.language, "language", "", "the `TAG` of the page's language, such as en (default detected)")
	fs.IntVar(&f.snippetOffset, "snippet-offset", pipeline.DefaultSnippetOffset, "`N` characters of context on each side")
	fs.StringVar(&f.digest, "digest", "", "collect notifications and print them as one at each `TIME`: a duration, or a cron line with a time zone")
	fs.StringVar(&f.expireAfter, "expire-after", "", "tell a timeout after `N` failed checks in a row, from when on the page is checked ever more rarely, or never (default 10)")
	fs.StringVar(&f.expireRetry, "expire-retry", "", "give the page up when it does not answer for `TIME` after that, such as 12h or 30d, or never to give it up at once (default 30d)")
	fs.StringArrayVar(&f.selects, "select", nil, "the `SELECTOR` of what to watch: CSS, xpath://h1, jq:.items[].title, /json/pointer, lines:10-20, re:REGEXP, or a range {from: CSS, to: CSS} (repeatable)")
	fs.StringArrayVar(&f.removes, "remove", nil, "the `SELECTOR` of what to leave out (repeatable)")
	fs.StringArrayVar(&f.ignores, "ignore", nil, "a regular expression `RE` whose matches are blanked (repeatable)")
	fs.StringSliceVar(&f.tags, "tag", nil, "a `TAG` of the subscription, by which lists are filtered and which notifications carry (repeatable)")
	fs.StringArrayVar(&f.values, "value", nil, "watch a number or word: the `SELECTOR` of where it stands")
	fs.StringVar(&f.value.Offer, "offer", "", "watch a value that the page declares (schema.org): `WHAT` is price, currency or availability")
	fs.StringVar(&f.value.Pattern, "value-pattern", "", "watch what the one group of the regular expression `RE` matches in the text, as a value")
	fs.BoolVar(&f.value.Word, "value-word", false, "the value is a word and not a number")
	fs.StringVar(&f.below, "below", "", "report a value when it falls below `N`")
	fs.StringVar(&f.above, "above", "", "report a value when it rises above `N`")
	fs.StringVar(&f.changesBy, "changes-by", "", "report a value when it changes by at least `N`, such as 10 or 5%")
	fs.StringVar(&f.becomes, "becomes", "", "report a value when it becomes this `WORD`")
	fs.StringVar(&f.sitemap, "sitemap", "", "watch the pages that the sitemap or sitemap index at `URL` lists, in place of one page")
	fs.IntVar(&f.followDepth, "follow-depth", 0, "also watch the pages that are up to `N` links away (default none)")
	fs.IntVar(&f.followMaxPages, "follow-max-pages", pipeline.DefaultFollowPages, "watch at most `N` linked pages; with --sitemap the default is 1000")
	fs.BoolVar(&f.followSameHost, "follow-same-host", true, "follow only links to the host of the page")
	fs.StringArrayVar(&f.followInclude, "follow-include", nil, "follow only links whose URL matches the regular expression `RE` (repeatable)")
	fs.StringArrayVar(&f.followExclude, "follow-exclude", nil, "follow no links whose URL matches the regular expression `RE` (repeatable)")
	fs.IntVar(&f.confirm, "confirm", 1, "report a new text once `N` checks in a row found it")
	fs.BoolVar(&f.replaced, "replaced", false, "take an error page, a login wall, a challenge or an empty shell in place of the page for a failed check")
	fs.StringVar(&f.expect, "expect", "", "`WHAT` need not be there yet: absent takes status 404, a selector that matches nothing and a page without text for a baseline")
	fs.BoolVar(&f.items, "items", false, "watch the items of a feed (RSS, Atom, JSON Feed) or of a JSON array: report each new or changed item once, and none that leave")
	fs.IntVar(&f.flipFlop, "flip-flop", 0, "do not report a text that is one of the last `N` reported ones, for a page that alternates between texts: 2 to 50 (default off)")
}

// toSubscription returns the subscription of the flags and arguments, or all mistakes in them.
func (f *subscriptionFlags) toSubscription(cmd *cobra.Command, url string, keywords []string) (pipeline.Subscription, error) {
	if len(keywords) == 0 {
		keywords = nil // every change
	}
	s := pipeline.Subscription{
		URL: url, Client: f.client, Title: f.title, Keywords: keywords, Interval: f.interval, Quiet: f.quiet,
		Stem: f.stem, FilterStopwords: f.filterStopwords, MatchCase: f.matchCase, IgnoreDiacritics: f.ignoreDiacritics,
		Severity: f.severity, Channel: f.channel,
		Match: f.match, Near: f.near, NewItems: f.newItems, Moved: f.moved, Restless: f.restless, Language: f.language, SnippetOffset: &f.snippetOffset, Sinks: []string{printerSinkName},
		View: pipeline.View{Ignore: f.ignores, Confirm: f.confirm, FlipFlop: f.flipFlop, Replaced: f.replaced, Expect: f.expect, Items: f.items, Sitemap: f.sitemap != ""},
	}
	s.Tags = f.tags
	for _, e := range f.events {
		s.Events = append(s.Events, pipeline.Event(e))
	}
	var wrong []*pipeline.FieldError
	if cmd.Flags().Changed("digest") {
		d, err := pipeline.ParseDigest(f.digest)
		if s.Digest = &d; err != nil {
			s.Digest, wrong = nil, append(wrong, &pipeline.FieldError{Field: "digest", Reason: err.Error()})
		}
	}
	if cmd.Flags().Changed("min-change") {
		var err error
		if s.MinChange, err = pipeline.ParseMinChange(f.minChange); err != nil {
			wrong = append(wrong, &pipeline.FieldError{Field: "min_change", Reason: err.Error()})
		}
	}
	expire, mistakes := pipeline.ParseExpire(f.expireAfter, f.expireRetry)
	s.Expire, wrong = expire, append(wrong, mistakes...)
	follow, err := f.toFollow(cmd)
	if s.Follow = follow; err != nil {
		wrong = append(wrong, err)
	}
	if f.confirm == 0 { // to the vocabulary 0 is "not given"
		wrong = append(wrong, &pipeline.FieldError{Field: "confirm", Reason: fmt.Sprintf("0 is not between 1 and %d", pipeline.MaxConfirm)})
	}
	parse := func(flag string, list []string) (out []pipeline.Selector) {
		for _, css := range list {
			sel, err := config.ParseSelector(css)
			if err != nil {
				wrong = append(wrong, &pipeline.FieldError{Field: flag, Reason: err.Error()})
			}
			out = append(out, sel)
		}
		return out
	}
	if cmd.Flags().Changed("events") && len(s.Events) == 0 {
		wrong = append(wrong, &pipeline.FieldError{Field: "events", Reason: "name added, removed or both"})
	}
	s.Select, s.Remove = parse("select", f.selects), parse("remove", f.removes)
	s.Condition = pipeline.Condition{Below: pipeline.Amount(f.below), Above: pipeline.Amount(f.above), ChangesBy: pipeline.Amount(f.changesBy), Becomes: f.becomes}
	if len(f.values) > 0 || f.value != (pipeline.Value{}) {
		v := f.value
		s.Value, s.Select = &v, append(s.Select, parse("value", f.values)...)
	}
	for _, condition := range []string{"below", "above", "changes-by", "becomes"} {
		if s.Value == nil && cmd.Flags().Changed(condition) {
			wrong = append(wrong, &pipeline.FieldError{Field: condition, Reason: "it is a condition on a value; name the value with --offer, --value or --value-pattern"})
		}
	}
	if len(wrong) == 0 {
		wrong = config.CheckSubscription(s)
	}
	if len(wrong) == 0 {
		return s, nil
	}
	lines := make([]string, len(wrong))
	for i, fe := range wrong {
		lines[i] = flagMessage(fe)
	}
	return s, newUsageError(cmd, "%s", strings.Join(lines, "\n"))
}

// anyGiven reports whether a flag of a subscription was given, other than --client.
func (f *subscriptionFlags) anyGiven(cmd *cobra.Command) (given bool) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(subscriptionFlags).add(all)
	cmd.Flags().Visit(func(x *pflag.Flag) { given = given || x.Name != "client" && all.Lookup(x.Name) != nil })
	return given
}

// toFollow returns which linked pages the flags ask for; nil means none.
func (f *subscriptionFlags) toFollow(cmd *cobra.Command) (*pipeline.Follow, *pipeline.FieldError) {
	given := cmd.Flags().Changed
	if !given("follow-depth") && f.sitemap == "" {
		for _, name := range []string{"follow-max-pages", "follow-same-host", "follow-include", "follow-exclude"} {
			if given(name) {
				return nil, &pipeline.FieldError{Field: name, Reason: "it says which linked pages are watched; add --follow-depth 1 to watch some, or name a sitemap with --sitemap"}
			}
		}
		return nil, nil
	}
	switch {
	case f.followDepth == 0 && f.sitemap == "":
		return nil, &pipeline.FieldError{Field: "follow-depth", Reason: fmt.Sprintf("0 is not between 1 and %d", pipeline.MaxFollowDepth)}
	case f.followMaxPages == 0:
		return nil, &pipeline.FieldError{Field: "follow-max-pages", Reason: fmt.Sprintf("0 is not between 1 and %d", pipeline.MaxFollowPages)}
	}
	pages := f.followMaxPages
	if f.sitemap != "" && !given("follow-max-pages") {
		pages = pipeline.DefaultSitemapPages
	}
	return &pipeline.Follow{
		Depth: f.followDepth, MaxPages: pages, SameHost: &f.followSameHost,
		Include: f.followInclude, Exclude: f.followExclude,
	}, nil
}

// flagMessage returns the message of fe with the name of the flag or argument.
func flagMessage(fe *pipeline.FieldError) string {
	name, _, _ := strings.Cut(fe.Field, "[")
	switch name {
	case "tags":
		name = "tag"
	case "value.offer":
		name = "offer"
	}
	if name == "url" || name == "keywords" { // arguments
		return fe.Reason
	}
	return flagName(name) + ": " + fe.Reason
}

// flagName returns the flag of a field.
func flagName(field string) string {
	return "--" + strings.NewReplacer("_", "-", ".", "-").Replace(field)
}
