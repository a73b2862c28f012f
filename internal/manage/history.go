package manage

import (
	"context"
	"net/http"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
)

// DocumentInput chooses a document of a page.
type DocumentInput struct {
	Page
	Document string `query:"document" doc:"The ID of a document of the page, or the beginning of it. Needed only if the page has several."`
	Client   string `query:"client" doc:"A client that watches the document, instead of its ID."`
	Select   string `query:"select" doc:"A selector of the document, instead of its ID."`
}

// filter returns the filter of in for the caller.
func (in DocumentInput) filter(ctx context.Context) inspect.DocumentFilter {
	return inspect.DocumentFilter{Document: in.Document, Client: in.Client, Select: in.Select, Clients: callerOf(ctx).Clients}
}

func (a *api) addHistory() {
	add(a, route{
		method: http.MethodGet, path: "/versions", id: "list-versions", scope: config.ScopeRead,
		summary: "Lists the stored versions of a document, the newest first, with how much changed and who was notified",
	}, func(ctx context.Context, in *DocumentInput) (inspect.History, error) {
		return a.service.Versions(ctx, in.URL, in.filter(ctx))
	})

	type changesInput struct {
		DocumentInput
		Last int `query:"last" minimum:"0" doc:"Only the last so many changes. 0 means all."`
	}
	add(a, route{
		method: http.MethodGet, path: "/changes", id: "list-changes", scope: config.ScopeRead,
		summary:     "Returns the changes between the stored versions of a document, the oldest first",
		description: "The versions are compared again. A version that is a baseline, or in which no word changed, is no change.",
	}, func(ctx context.Context, in *changesInput) (inspect.ChangeHistory, error) {
		return a.service.Changes(ctx, in.URL, in.filter(ctx), in.Last)
	})

	type recentInput struct {
		Part
		Client  string `query:"client" doc:"Only changes that notified this client, and only its notifications."`
		Sink    string `query:"sink" doc:"Only changes with a notification to this sink, and only these notifications."`
		State   string `query:"state" enum:"pending,digest,delivered,dead,dropped,unrouted,forgotten,elsewhere" doc:"Only changes with a notification whose delivery is in this state, and only these notifications."`
		Tag     string `query:"tag" doc:"Only changes of documents that a subscription with this tag watches."`
		Partial bool   `query:"partial" doc:"Answers at once, also while the changes from before the start of the process are still being read. The field partial then says that some are missing."`
	}
	add(a, route{
		method: http.MethodGet, path: "/recent", id: "list-recent-changes", scope: config.ScopeRead,
		summary:     "Lists the last changes of all pages with their notifications, the newest first",
		description: "The newest 10,000 changes are remembered, and the last 20 of each page. The first call after a start reads the state of all pages. With a filter a part may have fewer changes than limit, or none, and a next. Where several processes share the pages, each lists its own.",
	}, func(ctx context.Context, in *recentInput) (found inspect.RecentChanges, err error) {
		after, err := a.cursors.open(ctx, "recent", in.Cursor)
		if err != nil {
			return found, err
		}
		found, err = a.service.Recent(ctx, inspect.RecentFilter{
			Client: in.Client, Sink: in.Sink, Delivery: in.State, Tag: in.Tag, Clients: callerOf(ctx).Clients, After: after, Limit: in.Limit, Partial: in.Partial,
		})
		found.Next = a.cursors.seal(ctx, "recent", found.Next)
		return found, err
	})

	type textInput struct {
		DocumentInput
		Version uint64 `query:"version" maximum:"9007199254740991" doc:"The number of the version; without it the current one."`
	}
	add(a, route{
		method: http.MethodGet, path: "/text", id: "get-text", scope: config.ScopeRead, summary: "Returns the text of one version",
		description: "Offsets in notifications and changes are bytes of this text.",
	}, func(ctx context.Context, in *textInput) (inspect.Text, error) {
		return a.service.Text(ctx, in.URL, in.Version, in.filter(ctx))
	})

	add(a, route{
		method: http.MethodGet, path: "/screenshot", id: "get-screenshot", scope: config.ScopeRead, summary: "Returns the picture of the page that is stored with one version",
		description: "Versions with a picture have the field screenshot. The image is in base64.",
	}, func(ctx context.Context, in *textInput) (inspect.Screenshot, error) {
		return a.service.Screenshot(ctx, in.URL, in.Version, in.filter(ctx))
	})

	type diffInput struct {
		DocumentInput
		From    uint64 `query:"from" maximum:"9007199254740991" doc:"The number of the older version; without it the one before to."`
		To      uint64 `query:"to" maximum:"9007199254740991" doc:"The number of the newer version; without it the current one."`
		Context int    `query:"context" minimum:"-1" maximum:"100000" doc:"How many unchanged blocks around each change are returned; -1 returns all."`
	}
	add(a, route{
		method: http.MethodGet, path: "/diff", id: "compare-versions", scope: config.ScopeRead, summary: "Compares two versions side by side",
	}, func(ctx context.Context, in *diffInput) (inspect.Difference, error) {
		return a.service.Diff(ctx, in.URL, inspect.DiffFilter{DocumentFilter: in.filter(ctx), From: in.From, To: in.To, Context: in.Context})
	})

	type occurrencesInput struct {
		DocumentInput
		Term             string `query:"term" required:"true" minLength:"1" doc:"A word or phrase."`
		Version          uint64 `query:"version" maximum:"9007199254740991" doc:"Only this version; without it all stored ones."`
		MatchCase        bool   `query:"match_case" doc:"As in a subscription."`
		IgnoreDiacritics bool   `query:"ignore_diacritics" doc:"As in a subscription."`
		Stem             bool   `query:"stem" doc:"As in a subscription."`
		FilterStopwords  bool   `query:"filter_stopwords" doc:"As in a subscription."`
		Match            string `query:"match" enum:"phrase,terms" doc:"As in a subscription."`
		Language         string `query:"language" doc:"As in a subscription."`
		SnippetOffset    int    `query:"snippet_offset" minimum:"0" maximum:"500" default:"50" doc:"As in a subscription."`
		Limit            int    `query:"limit" minimum:"0" maximum:"10000" doc:"How many occurrences are returned at most; 0 returns as many as possible."`
	}
	add(a, route{
		method: http.MethodGet, path: "/occurrences", id: "find-occurrences", scope: config.ScopeRead, summary: "Finds a term in the stored versions of a document",
	}, func(ctx context.Context, in *occurrencesInput) (inspect.Occurrences, error) {
		return a.service.Occurrences(ctx, in.URL, in.Term, inspect.OccurrenceFilter{
			DocumentFilter: in.filter(ctx), Version: in.Version, MatchCase: in.MatchCase, IgnoreDiacritics: in.IgnoreDiacritics, Stem: in.Stem,
			FilterStopwords: in.FilterStopwords, Match: in.Match, Language: in.Language, SnippetOffset: &in.SnippetOffset, Limit: in.Limit,
		})
	})
}
