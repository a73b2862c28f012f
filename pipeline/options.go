package pipeline

// options describes the fields of a Subscription.
var options = describe([]Option{
	{Name: "url",
		Doc: "the page, at most 8192 bytes, without a user name or password. It is http or https, unless " +
			"`interval` is `never`", Default: "required, or `sitemap`"},
	{Name: "sitemap", Arg: "URL",
		Doc: "watch the pages that the sitemap or sitemap index at this URL lists, in place of one page. In JSON " +
			"the URL stands in `url`, and this is true. See [Sitemaps](#sitemaps)", Default: "none"},
	{Name: "client", Arg: "NAME",
		Doc: "who it is for, at most 1,000 characters and no control characters. A client has one subscription to a " +
			"document", Default: "`default`"},
	{Name: "title", Arg: "TEXT", Label: "Title for lists and messages",
		Doc: "what lists and notifications call it, at most 200 characters", Default: "the title of the page"},
	{Name: "paused",
		Doc: "it begins paused: it is listed, causes no check and notifies nobody until it is [resumed](guide.md). " +
			"In YAML also until the entry has no `paused`"},
	{Name: "keywords", Min: 1, Max: MaxKeywords, Label: "Keywords, one on each line; none means every change",
		Doc:     "at most 10,000 words or phrases of at most 16 words and 1,000 characters each",
		Default: "none: [every change](#every-change) is reported"},
	{Name: "events", Matching: true, Arg: "EVENTS", Words: true, Label: "Report", Doc: "what is reported",
		Values:  []OptionValue{{string(Added), "text that was added"}, {string(Removed), "text that was removed"}},
		Default: "both"},
	{Name: "interval", Arg: "INTERVAL", Label: "Check every",
		Doc: "[when to check](#schedules): a duration such as `10m`, two such as `10m to 24h` (by how often the page " +
			"changes), or a cron line such as `0 9 * * 1-5 Europe/Berlin`. A page is checked when the most " +
			"impatient of its subscriptions asks, and every change notifies all of them. `never`: this subscription asks for no " +
			"checks; it is notified of pages that are [pushed](#pushed-pages) or checked for others", Default: "10m"},
	{Name: "stem", Matching: true, Label: "Other forms of a word too (stems)", Group: GroupWords,
		Doc: "match other forms of a word, such as cats for cat, in any case. [18 languages](text.md#languages) " +
			"have stems"},
	{Name: "filter_stopwords", Matching: true, Label: "Ignore stop words", Group: GroupWords,
		Doc: "ignore stop words such as the and of, in keywords and text. [34 languages](text.md#languages) have a list"},
	{Name: "match_case", Matching: true, Label: "Match case", Group: GroupWords,
		Doc: "tell capital and small letters apart; it has no effect with `stem`"},
	{Name: "ignore_diacritics", Matching: true, Label: "Ignore accents", Group: GroupWords,
		Doc: "take letters with and without accents and other marks for the same"},
	{Name: "match", Matching: true, Arg: "HOW", Label: "Words of a keyword", Group: GroupWords,
		Doc: "how the words of a keyword are found",
		Values: []OptionValue{{MatchPhrase, "next to each other, in this order"},
			{MatchTerms, "all in the same difference, in any order"}},
		Default: "`phrase`; `terms` with `filter_stopwords`"},
	{Name: "near", Matching: true, Arg: "WHERE", Label: "Changes beside a keyword",
		Doc:     "also report what changes [beside a keyword that stays](#changes-beside-a-keyword)",
		Values:  []OptionValue{{NearRow, "in its table row, list item or card"}, {NearBlock, "in its paragraph"}},
		Default: "not reported"},
	{Name: "new_items", Matching: true, Label: "Only items that came: list items, rows, cards", Group: GroupWords,
		Doc: "report only items that came: list items, table rows, cards, entries of feeds"},
	{Name: "moved", Matching: true, Label: "Text that only moved too", Group: GroupWords,
		Doc: "also report keywords that only changed place"},
	{Name: "min_change", Matching: true, Arg: "SIZE", Label: "Least change, such as 5 words or 2%",
		Doc: "the smallest change that [is reported](#pages-that-make-noise): a number of tokens such as `5`, or a " +
			"share of the text such as `2%`, with at most two decimal places", Default: "0: every change"},
	{Name: "restless", Matching: true, Arg: "WHAT", Label: "Clocks, counters, advertisements",
		Doc: "without keywords: what is told of places that [change at nearly every " +
			"check](#pages-that-make-noise), such as clocks and counters",
		Values: []OptionValue{{RestlessMuteNumbers, "all but numbers"},
			{RestlessMute, "neither numbers nor other words, such as advertisements"}, {RestlessTell, "all"}},
		Default: "`mute numbers`, unless nothing else of the page changes"},
	{Name: "language", Arg: "TAG", Doc: "the language in which words are compared, as a BCP 47 tag such as `en`",
		Default: "what the page declares, else [what is detected](text.md#which-language-a-text-is-in), else `en`"},
	{Name: "value",
		Doc: "watch a single [value](values.md) such as a price, in place of a text. `offer` is one that the page " +
			"declares; else `select` says where it stands, `pattern` has one group that matches it, and `word: true` says " +
			"that it is no number", Default: "none"},
	{Name: "value.offer", Arg: "WHAT", Flag: "offer",
		Doc:    "watch a value that the page declares (schema.org), in JSON-LD or microdata",
		Values: []OptionValue{{OfferPrice, ""}, {OfferCurrency, ""}, {OfferAvailability, ""}}},
	{Name: "value.pattern", Arg: "RE",
		Doc: "watch what the one group of this regular expression (RE2) matches first in the text, as a value"},
	{Name: "value.word", Doc: "the value is a word of at most 200 characters and not a number"},
	{Name: "value.language",
		Doc: "that of the subscription, in which numbers are written. It is not set by people"},
	{Name: "below", Arg: "N", Label: "Report it below", Group: GroupValue,
		Doc: "report a value when it [falls below](values.md#conditions) this number", Default: "every change"},
	{Name: "above", Arg: "N", Label: "or above", Group: GroupValue,
		Doc: "report a value when it [rises above](values.md#conditions) this number", Default: "every change"},
	{Name: "changes_by", Arg: "N", Label: "or when it changes by, such as 10 or 5%", Group: GroupValue,
		Doc:     "report a value when it [changes by](values.md#conditions) at least this much, such as `10` or `5%`",
		Default: "every change"},
	{Name: "becomes", Arg: "WORD", Label: "or when the word becomes, such as InStock", Group: GroupValue,
		Doc: "report a value when it [becomes this word](values.md#conditions)", Default: "every change"},
	{Name: "tags", Max: MaxTags, Words: true, Arg: "TAG", Flag: "tag", Label: "Tags, separated by commas",
		Doc: "words such as `shop` or `legal`, at most 20 of at most 50 characters. `list --tag shop` and the " +
			"[API](api.md) select by them, and notifications carry them", Default: "none"},
	{Name: "snippet_offset", Max: maxSnippetOffset, Arg: "N",
		Doc: "characters of context on each side", Default: "50"},
	{Name: "sinks", Min: 1, Arg: "NAME", Flag: "sink",
		Doc: "names of sinks that are notified", Default: "required"},
	{Name: "digest", Arg: "TIME",
		Doc: "how long changes are collected into [one notification](#digests): a duration, or a cron line with a " +
			"time zone. In YAML also `{every: ..., max: ...}`", Default: "none: one notification for each change"},
	{Name: "quiet", Arg: "HOURS",
		Doc: "the [hours of the day](#quiet-hours) in which changes are collected and not sent, such as " +
			"`22:00-07:00 Europe/Berlin`", Default: "none"},
	{Name: "expire",
		Doc: "`{after: N, retry: TIME}`: after how many failed checks in a row the client is notified of a " +
			"timeout, and how long the page [is checked after that](#what-fails-for-long); each may be `never`",
		Default: "that of the page"},
	{Name: "expire.after", Arg: "N", Group: GroupPage,
		Label: "Tell a timeout after so many failed checks in a row, or never",
		Doc: "tell a timeout after so many failed checks in a row, from when on the page is checked ever more " +
			"rarely, or `never`", Default: "10"},
	{Name: "expire.retry", Arg: "TIME", Label: "and give it up when it does not answer for, such as 30d or never",
		Group: GroupPage,
		Doc: "give the page up when it does not answer for this long after that, such as `12h` or `30d`, or " +
			"`never` to give it up at once", Default: "30d"},
	{Name: "severity", Arg: "SEVERITY",
		Doc:     "how severe a change is, for sinks that [know priorities](routing.md#severity) and for routes",
		Values:  []OptionValue{{SeverityInfo, ""}, {SeverityWarning, ""}, {SeverityCritical, ""}},
		Default: "not stated"},
	{Name: "channel", Arg: "CHANNEL",
		Doc:     "the [channel](routing.md#channels) of a sink that serves many, such as `\"#legal\"` of Slack",
		Default: "that of the sink"},
	{Name: "select", Arg: "SELECTOR", Label: "Only these parts: selectors, one on each line", Group: GroupParts,
		Doc: "what is watched, as [selectors](#selectors) such as `main`, `xpath://h1`, `jq:.items[].title`, " +
			"`/json/pointer`, `lines:10-20`, `re:REGEXP` or `{from: CSS, to: CSS}`. The text is what matches one " +
			"of them; at most 100 of at most 1,000 characters", Default: "the whole page"},
	{Name: "remove", Arg: "SELECTOR", Label: "Without these parts", Group: GroupParts,
		Doc: "selectors of what to leave out of the text", Default: "none"},
	{Name: "ignore", Arg: "RE",
		Doc: "regular expressions (RE2) whose matches are blanked: clocks, counters. At most 100 of at most 1,000 " +
			"characters; each may compile to 1,000 instructions: `{1,30}` within `{1,30}` is too many. A block of " +
			"text longer than 32 KiB is matched in pieces", Default: "none"},
	{Name: "confirm", Min: 1, Max: MaxConfirm, Arg: "N",
		Doc: "how many checks in a row must find a new text before it counts", Default: "1"},
	{Name: "items",
		Doc: "watch the items of a feed (RSS, Atom, JSON Feed) or of a JSON array: each new or changed item is " +
			"reported once, and none that leave. See [Feeds](#feeds)"},
	{Name: "flip_flop", Min: 2, Max: MaxFlipFlop, Off: true, Arg: "N",
		Doc: "do not report a text that is [one of the last so many](#pages-that-make-noise) that were reported, " +
			"for a page that alternates between texts", Default: "0: every new text is reported"},
	{Name: "replaced",
		Doc: "take an error page, a login wall, a challenge or an empty shell in place of the page " +
			"[for a failed check](#pages-that-make-noise) and not for a new version"},
	{Name: "expect", Arg: "WHAT", Label: "What may not be there yet", Group: GroupPage,
		Doc:     "what [need not be there yet](#what-is-not-there-yet)",
		Values:  []OptionValue{{ExpectAbsent, "the page, or what `select` names"}},
		Default: "nothing: it is a failed check"},
	{Name: "follow", Doc: "watch linked pages as well. See [Linked pages](#linked-pages)", Default: "none"},
	{Name: "follow.depth", Min: 1, Max: MaxFollowDepth, Arg: "N",
		Doc: "also watch the pages that are so many links away", Default: "none"},
	{Name: "follow.same_host", Doc: "follow only links to the host of the page", Default: "true"},
	{Name: "follow.max_pages", Min: 1, Max: MaxFollowPages, Arg: "N",
		Doc: "how many linked pages are watched at most", Default: "100; 1000 with `sitemap`"},
	{Name: "follow.include", Arg: "RE",
		Doc: "follow only links whose URL matches one of these regular expressions (RE2)", Default: "all"},
	{Name: "follow.exclude", Arg: "RE",
		Doc: "follow no links whose URL matches one of these regular expressions (RE2)", Default: "none"},
})

func describe(all []Option) []Option {
	for i := range all {
		all[i] = all[i].findPath()
	}
	return all
}
