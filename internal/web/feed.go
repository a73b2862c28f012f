package web

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
)

// maxFeedItems is how many changes a feed has.
const maxFeedItems = 50

// atomFeed is an Atom feed (RFC 4287).
type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Links   []atomLink  `xml:"link"`
	Entries []atomEntry `xml:"entry"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
}

type atomEntry struct {
	ID      string     `xml:"id"`
	Title   string     `xml:"title"`
	Updated string     `xml:"updated"`
	Links   []atomLink `xml:"link"`
	Content string     `xml:"content"`
}

// jsonFeed is a JSON Feed (https://www.jsonfeed.org/version/1.1/).
type jsonFeed struct {
	Version string     `json:"version"`
	Title   string     `json:"title"`
	Home    string     `json:"home_page_url"`
	Items   []jsonItem `json:"items"`
}

type jsonItem struct {
	ID          string `json:"id"`
	URL         string `json:"url"`
	ExternalURL string `json:"external_url"`
	Title       string `json:"title"`
	Content     string `json:"content_text"`
	Published   string `json:"date_published"`
}

// serveFeed serves a feed to whoever knows its secret.
func (s *Site) serveFeed(w http.ResponseWriter, r *http.Request) {
	f, ok := s.feedBySecret(r.PathValue("secret"))
	by := strings.TrimSpace(r.URL.Query().Get("tag"))
	format := r.PathValue("format")
	if !ok || format != "atom.xml" && format != "feed.json" {
		s.renderError(w, r, http.StatusNotFound, "There is no such page.")
		return
	}
	s.feedMu.Lock() // excerpts take processor time; one feed at a time is enough
	defer s.feedMu.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	var clients []string
	if f.Client != "" {
		clients = []string{f.Client}
	}
	bearer := s.api.Reader("feed "+f.Name, clients)
	req := &request{Request: r.WithContext(ctx), site: s, bearer: bearer, api: client.Over(bearer)}
	found, err := req.api.Recent(ctx, inspect.RecentFilter{Client: f.Client, Tag: by, Limit: maxFeedItems})
	if err != nil {
		http.Error(w, userMessage(err), statusOf(err))
		return
	}
	base := s.settings.baseURL(r)
	tag := config.HashToken(fmt.Sprint(base, format, by, len(found.Changes)))
	for _, c := range found.Changes {
		tag = config.HashToken(tag + c.ID)
	}
	tag = `"` + tag[len(tag)-16:] + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if format == "atom.xml" {
		w.Header().Set("Content-Type", "application/atom+xml; charset=utf-8")
		b, err := xml.Marshal(toAtomFeed(req, f, by, found.Changes, base))
		if err == nil {
			_, err = w.Write(append([]byte(xml.Header), b...))
		}
		if err != nil {
			s.log.Debug("a feed was not sent", "feed", f.Name, "error", err)
		}
		return
	}
	w.Header().Set("Content-Type", "application/feed+json; charset=utf-8")
	if err := json.NewEncoder(w).Encode(toJSONFeed(req, f, by, found.Changes, base)); err != nil {
		s.log.Debug("a feed was not sent", "feed", f.Name, "error", err)
	}
}

// feedTitle returns the title of a feed, or of its changes with a tag.
func feedTitle(f config.Feed, tag string) string {
	title := "Vokter: all changes"
	if f.Client != "" {
		title = "Vokter: " + f.Client
	}
	if tag != "" {
		title += ", " + tag
	}
	return title
}

// toAtomFeed returns changes as an Atom feed.
func toAtomFeed(r *request, f config.Feed, tag string, changes []inspect.RecentChange, base string) atomFeed {
	out := atomFeed{
		ID: "urn:vokter:feed:" + f.Name, Title: feedTitle(f, tag), Author: "Vokter", Updated: time.Unix(0, 0).UTC().Format(time.RFC3339),
		Links: []atomLink{{"alternate", changesURL(base, tag)}},
	}
	if tag != "" {
		out.ID += ":tag:" + url.QueryEscape(tag)
	}
	for i, c := range changes {
		at := c.Time.UTC().Format(time.RFC3339)
		if i == 0 {
			out.Updated = at
		}
		out.Entries = append(out.Entries, atomEntry{
			ID: "urn:vokter:change:" + c.ID, Title: headline(c), Updated: at, Content: rowsAsText(excerpt(r, c)),
			Links: []atomLink{{"alternate", diffURL(base, c)}, {"related", c.URL}},
		})
	}
	return out
}

// toJSONFeed returns changes as a JSON Feed.
func toJSONFeed(r *request, f config.Feed, tag string, changes []inspect.RecentChange, base string) jsonFeed {
	out := jsonFeed{Version: "https://jsonfeed.org/version/1.1", Title: feedTitle(f, tag), Home: changesURL(base, tag), Items: []jsonItem{}}
	for _, c := range changes {
		out.Items = append(out.Items, jsonItem{
			ID: "urn:vokter:change:" + c.ID, URL: diffURL(base, c), ExternalURL: c.URL, Title: headline(c),
			Content: rowsAsText(excerpt(r, c)), Published: c.Time.UTC().Format(time.RFC3339),
		})
	}
	return out
}

// changesURL returns the address of the list of changes with a tag, or of all.
func changesURL(base, tag string) string {
	to, _ := urlWithQuery("/changes", "tag", tag) // the pair is complete
	return base + to
}

// headline says which page changed, and which keywords it touched.
func headline(c inspect.RecentChange) string {
	says := c.URL
	if c.Title != "" {
		says = c.Title
	}
	seen := make(map[string]bool)
	var keywords []string
	for _, m := range c.Matches {
		for _, k := range m.Keywords {
			if !seen[k] {
				seen[k] = true
				keywords = append(keywords, k)
			}
		}
	}
	if len(keywords) > 0 {
		says += ": " + strings.Join(keywords, ", ")
	}
	return says
}

// diffURL returns the address of the page with a change.
func diffURL(base string, c inspect.RecentChange) string {
	to, _ := urlWithQuery("/diff", "url", c.URL, "document", c.Document, "to", c.Version) // the pairs are complete
	return base + to
}

// rowsAsText returns rows as text: old lines begin with a minus, new ones with a plus.
func rowsAsText(rows []row) string {
	var b strings.Builder
	write := func(sign string, all [][]piece) {
		for _, line := range all {
			b.WriteString(sign)
			for _, p := range line {
				b.WriteString(inspect.Plain(p.Text))
			}
			b.WriteString("\n")
		}
	}
	for _, x := range rows {
		if x.Kind == inspect.RowSkipped {
			b.WriteString("…\n")
			continue
		}
		write("- ", x.Old)
		write("+ ", x.New)
	}
	return b.String()
}
