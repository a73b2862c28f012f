package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/pipeline"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// pageTemplates are the pages by the names of their files. Each is in the layout of all. Their links begin with base.
type pageTemplates struct {
	base  string
	pages map[string]*template.Template
}

// atRoot are the templates of a web page that people reach without a path, as most do.
var atRoot = parseTemplates("")

func parseTemplates(base string) *pageTemplates {
	shared := template.Must(template.New("").Funcs(templateFuncs).Funcs(addressFuncs(base)).ParseFS(templateFiles, "templates/layout.html"))
	all := &pageTemplates{base, make(map[string]*template.Template)}
	files, _ := templateFiles.ReadDir("templates") // it is part of the program
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".html"); name != "layout" {
			all.pages[name] = template.Must(template.Must(shared.Clone()).ParseFS(templateFiles, "templates/"+f.Name()))
		}
	}
	return all
}

// template returns the page of that name, with links that begin with the path of the public address.
func (s *Site) template(name string) *template.Template {
	base := s.settings.base()
	now := s.templates.Load()
	if now.base != base {
		now = parseTemplates(base)
		s.templates.Store(now)
	}
	return now.pages[name]
}

// addressFuncs are what the templates can call for the addresses of pages below the path base.
func addressFuncs(base string) template.FuncMap {
	return template.FuncMap{
		"at":    func(path string) string { return base + path },
		"asset": func(name string) string { return base + "/assets/" + name + "?" + assetHashes[name] },
		"query": func(path string, pairs ...any) (string, error) { return urlWithQuery(base+path, pairs...) },
	}
}

// templateFuncs are what the templates can call. None returns HTML: all text of pages is escaped.
var templateFuncs = template.FuncMap{
	"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"clock":    func(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04 MST") },
	"date":     func(t time.Time) string { return t.Format("Monday, 2 January 2006") },
	"ago":      relativeTime,
	"local":    urlWithQuery,
	"count":    countNoun,
	"sentence": sentence,
	"short":    shortID,
	"outside":  isWebURL,
	"rests":    isNotChecked,
	"first":    func(all []pipeline.Diff) []pipeline.Diff { return all[:min(len(all), 5)] },
	"every":    func(i pipeline.Interval) string { return shortInterval(i.String()) },
	"words":    func(s string) string { return strings.ReplaceAll(s, "_", " ") },
	"settings": changedSettings,
	"tags":     tagsOf,
	"called":   titleOf,
	"when":     deliveryTimeLabel,
	"took": func(d pipeline.Duration) string {
		return max(time.Duration(d).Round(time.Millisecond), time.Millisecond).String()
	},
	"removed": func(e pipeline.Event) bool { return e == pipeline.Removed },
	"added":   func(e pipeline.Event) bool { return e == pipeline.Added },
	"view":    describeView,
	"missing": whyMissing, "accessAdvice": inspect.AccessAdvice,
	"changed": lastChange,
	"int":     func(n int64) int { return int(n) },
	"last":    func(all []inspect.Version) int { return len(all) - 1 },
	"layout":  func(side bool) string { return map[bool]string{true: "side"}[side] },
	"tab":     newTab,
	"shot":    newScreenshotView,
	"target":  func(url, client, back string) any { return struct{ URL, Client, Back string }{url, client, back} },
	"plain":   func(name string) string { return strings.ReplaceAll(strings.TrimPrefix(name, "vokter_"), "_", " ") },
	"figure":  formatGauge,
}

// tab is an entry of the navigation.
type tab struct {
	Path, Name string
	Here       bool
}

func newTab(v view, path, name string) tab { return tab{path, name, v.Path == path} }

// screenshotView is a version with its screenshot, before or after a change.
type screenshotView struct {
	URL, Document, When string
	inspect.Version
}

func newScreenshotView(url, document string, v inspect.Version, when string) screenshotView {
	return screenshotView{url, document, when, v}
}

// lastChange returns when the text of a page last changed: zero if its versions are baselines.
func lastChange(p inspect.Page) (last time.Time) {
	for _, d := range p.Documents {
		if !d.Baseline && d.Time.After(last) {
			last = d.Time
		}
	}
	return last
}

// formatGauge returns the value of g with the unit that its name ends in.
func formatGauge(g gauge) string {
	if strings.HasSuffix(g.Name, "_bytes") {
		for _, unit := range []string{"bytes", "KiB", "MiB", "GiB"} {
			if g.Value < 1024 || unit == "GiB" {
				return fmt.Sprintf("%.4g %s", g.Value, unit)
			}
			g.Value /= 1024
		}
	}
	if strings.HasSuffix(g.Name, "_seconds") {
		return time.Duration(g.Value * float64(time.Second)).Round(time.Millisecond).String()
	}
	return strconv.FormatFloat(g.Value, 'f', -1, 64)
}

// urlWithQuery returns an URL with a query of pairs of names and values. Empty values are left out.
func urlWithQuery(path string, pairs ...any) (string, error) {
	if len(pairs)%2 != 0 {
		return "", fmt.Errorf("query %s: a value is missing", path)
	}
	q := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		if v := fmt.Sprint(pairs[i+1]); v != "" && v != "0" && v != "false" {
			q.Set(fmt.Sprint(pairs[i]), v)
		}
	}
	if len(q) == 0 {
		return path, nil
	}
	return path + "?" + q.Encode(), nil
}

// relativeTime says how far t is from now.
func relativeTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := time.Since(t)
	form := "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf(form, countNoun(int(d/time.Second), "second"))
	case d < time.Hour:
		return fmt.Sprintf(form, countNoun(int(d/time.Minute), "minute"))
	case d < 48*time.Hour:
		return fmt.Sprintf(form, countNoun(int(d/time.Hour), "hour"))
	}
	return fmt.Sprintf(form, countNoun(int(d/(24*time.Hour)), "day"))
}

// shortInterval writes the durations in an interval without zero minutes and seconds.
func shortInterval(interval string) string {
	fields := strings.Fields(interval)
	for i, f := range fields {
		if d, err := time.ParseDuration(f); err == nil && d != 0 {
			f = strings.Replace(f, "m0s", "m", 1)
			fields[i] = strings.Replace(f, "h0m", "h", 1)
		}
	}
	return strings.Join(fields, " ")
}

// isNotChecked reports whether a page in this state is not checked.
func isNotChecked(state string) bool {
	return state == inspect.StatePaused || state == inspect.StateExpired
}

// shortID returns the beginning of an ID.
func shortID(id string) string { return id[:min(len(id), 8)] }

// isWebURL reports whether a browser can open the URL of a page.
func isWebURL(url string) bool {
	return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}

// describeView says which part of a page v selects.
func describeView(v pipeline.View) string {
	var parts []string
	for _, s := range v.Select {
		parts = append(parts, s.String())
	}
	if len(v.Remove) > 0 {
		parts = append(parts, fmt.Sprintf("without %d parts", len(v.Remove)))
	}
	if v.Items {
		parts = append(parts, "items")
	}
	if v.Value != nil {
		parts = append([]string{strings.ToLower(v.Value.Name())}, parts...)
	}
	if len(parts) == 0 {
		return "the whole page"
	}
	return strings.Join(parts, ", ")
}

// whyMissing says which part of the page d is and why it is not there, or nothing if it is.
func whyMissing(d inspect.Document) string {
	if why := d.Missing(); why != "" {
		return describeView(d.View) + ": " + why + "."
	}
	return ""
}

// changedSettings returns the options of a subscription that differ from their defaults and do not show beside them.
func changedSettings(s inspect.Subscription) []string {
	all := config.Settings(s.Subscription, "url", "client", "title", "paused", "keywords", "interval", "sinks", "select", "items", "value", "tags")
	for i, text := range all {
		name, value, _ := strings.Cut(text, ": ")
		all[i] = strings.ReplaceAll(name, "_", " ")
		if value != "true" {
			all[i] += ": " + value
		}
	}
	return all
}

// deliveryTimeLabel says what the time of a delivery in this state is.
func deliveryTimeLabel(state string) string {
	switch state {
	case inspect.DeliveryPending:
		return "Next attempt"
	case inspect.DeliveryDigest:
		return "Digest"
	case inspect.DeliveryDead:
		return "Given up"
	}
	return "Delivered"
}

// titleOf returns what the subscriptions to p are called, or else the title of the page.
func titleOf(p inspect.Page) string {
	var all []string
	for _, s := range p.Subscriptions {
		if s.Title != "" && !slices.Contains(all, s.Title) {
			all = append(all, s.Title)
		}
	}
	if len(all) == 0 && len(p.Documents) > 0 {
		return p.Documents[0].Title
	}
	return strings.Join(all, ", ")
}

// tagsOf returns the tags of subscriptions, each once.
func tagsOf(subscriptions []inspect.Subscription) []string {
	var all []string
	for _, s := range subscriptions {
		for _, t := range s.Tags {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return all
}

// assetHashes are the hashes of the assets, by which browsers see that one changed.
var assetHashes = hashAssets()

func hashAssets() map[string]string {
	all := make(map[string]string)
	files, _ := assetFiles.ReadDir("assets") // it is part of the program
	for _, f := range files {
		b, _ := assetFiles.ReadFile("assets/" + f.Name())
		sum := sha256.Sum256(b)
		all[f.Name()] = hex.EncodeToString(sum[:8])
	}
	return all
}

// serveAssets serves the style sheet and the script, which are no secret.
func serveAssets() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		b, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=86400")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(b))
	})
}
