package migrate

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// watch is a watch of changedetection.io. Fields that programs of different versions write in
// different types are read by hand.
type watch map[string]json.RawMessage

// backup is url-watches.json, or changedetection.json of newer versions, which have a file for each
// watch.
type backup struct {
	Watching map[string]watch `json:"watching"`
	Settings struct {
		Requests struct {
			Every period `json:"time_between_check"`
		} `json:"requests"`
		Application struct {
			Tags map[string]struct {
				Title string `json:"title"`
			} `json:"tags"`
			Ignore   []string `json:"global_ignore_text"`
			Subtract []string `json:"global_subtractive_selectors"`
			Notify   []string `json:"notification_urls"`
		} `json:"application"`
	} `json:"settings"`
}

// period is a time between two checks.
type period struct {
	Weeks, Days, Hours, Minutes, Seconds *float64
}

func (p period) duration() time.Duration {
	of := func(n *float64, unit time.Duration) time.Duration {
		if n == nil || *n < 0 || *n > 1e6 {
			return 0
		}
		return time.Duration(*n * float64(unit))
	}
	return of(p.Weeks, 7*24*time.Hour) + of(p.Days, 24*time.Hour) + of(p.Hours, time.Hour) + of(p.Minutes, time.Minute) + of(p.Seconds, time.Second)
}

// interval returns p as an interval, the zero Interval if p is empty.
func (p period) interval() pipeline.Interval { return pipeline.Every(p.duration()) }

// changedetection reads a backup of changedetection.io, a zip or the JSON in it.
func (r *Result) changedetection(data []byte, zipped bool) error {
	b := backup{}
	if !zipped {
		if err := json.Unmarshal(data, &b); err != nil {
			return fmt.Errorf("the file is not url-watches.json of changedetection.io: %w", err)
		}
	} else if err := unzip(data, &b); err != nil {
		return err
	}
	if b.Watching == nil {
		return errors.New(`the file is no backup of changedetection.io: it has no "watching"`)
	}
	app := b.Settings.Application
	if len(app.Notify) > 0 {
		r.lose("settings", "notification_urls", "%s; configure a sink for each, see docs/sinks", receivers(app.Notify))
	}
	// The order of an object in JSON means nothing: oldest first, as changedetection.io shows them.
	ids := slices.SortedFunc(maps.Keys(b.Watching), func(x, y string) int {
		return cmp.Or(cmp.Compare(b.Watching[x].number("date_created"), b.Watching[y].number("date_created")), strings.Compare(x, y))
	})
	for _, id := range ids {
		if err := r.watch(b.Watching[id], &b); err != nil {
			return err
		}
	}
	return nil
}

// unzip reads the files of a backup that have watches and settings.
func unzip(data []byte, b *backup) error {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return fmt.Errorf("the file is no zip: %w", err)
	}
	if len(z.File) > maxMembers {
		return fmt.Errorf("the zip has more than %d files", maxMembers)
	}
	left := int64(maxText)
	read := func(f *zip.File, v any) error {
		in, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s in the zip: %w", short(f.Name), err)
		}
		defer in.Close()
		text, err := io.ReadAll(io.LimitReader(in, left+1)) // its header may lie about its size
		if left -= int64(len(text)); left < 0 {
			return fmt.Errorf("the settings and watches in the zip have more than %d MiB", maxText>>20)
		}
		if err == nil {
			err = json.Unmarshal(text, v)
		}
		if err != nil {
			return fmt.Errorf("%s in the zip: %w", short(f.Name), err)
		}
		return nil
	}
	watches := make(map[string]watch)
	for _, f := range z.File {
		switch path.Base(f.Name) {
		case "url-watches.json", "changedetection.json":
			if err := read(f, b); err != nil {
				return err
			}
		case "watch.json":
			var w watch
			if err := read(f, &w); err != nil {
				return err
			}
			watches[path.Dir(f.Name)] = w
		}
	}
	if len(watches) > 0 {
		if b.Watching == nil {
			b.Watching = make(map[string]watch)
		}
		maps.Copy(b.Watching, watches)
	}
	return nil
}

// get reads a field. It leaves v alone where the field is missing or of another type.
func (w watch) get(name string, v any) bool {
	raw, ok := w[name]
	return ok && string(raw) != "null" && json.Unmarshal(raw, v) == nil
}

func (w watch) text(name string) string {
	var s string
	w.get(name, &s)
	return strings.TrimSpace(s)
}

func (w watch) number(name string) float64 {
	var n float64
	w.get(name, &n)
	return n
}

// flag reads a boolean that is missing in older versions.
func (w watch) flag(name string, missing bool) bool {
	b := missing
	w.get(name, &b)
	return b
}

// list reads a list of texts, which some versions write as one text.
func (w watch) list(name string) []string {
	var all []string
	if !w.get(name, &all) {
		var one string
		if w.get(name, &one) {
			all = strings.Split(one, "\n")
		}
	}
	var filled []string
	for _, s := range all {
		if s = strings.TrimSpace(s); s != "" {
			filled = append(filled, s)
		}
	}
	return filled
}

// empty reports whether a field has nothing in it.
func (w watch) empty(name string) bool {
	switch strings.TrimSpace(string(w[name])) {
	case "", "null", `""`, "[]", "{}", "false", "0":
		return true
	}
	return false
}

// adviceOfField are the fields of a watch that cannot be carried over.
var adviceOfField = []struct{ field, advice string }{
	{"body", "a page is fetched by GET without a body; watch a URL that needs none"},
	{"browser_steps", "write them as steps of the subscription; a login form can also be an entry of access"},
	{"webdriver_js_execute_code", "only the scripts of the page are run; see steps"},
	{"text_should_not_be_present", "a subscription does not depend on other text; see events and ignore"},
	{"trigger_text_regex", "keywords are words, not regular expressions"},
	{"conditions", "conditions do not exist; see keywords, events and min_change"},
	{"check_unique_lines", "paragraphs that only moved are never reported; nothing is needed in most cases"},
	{"time_schedule_limit", "a subscription has no hours; interval says how often a page is checked"},
	{"proxy", "proxies are named in changedetection.io only; write the URL of the proxy in access"},
	{"notification_title", "use a template in the sink for the layout"},
	{"notification_body", "use a template in the sink for the layout"},
	{"ignore_status_codes", "an answer with an error is a failed check"},
}

// watch reads one watch.
func (r *Result) watch(w watch, b *backup) error {
	url := w.text("url")
	name := cmp.Or(w.text("title"), url, "a watch without a URL")
	if strings.Contains(url, "{{") || strings.Contains(url, "{%") {
		r.lose(name, "url", "the entry is left out: a URL with a template of Jinja is not read")
		return nil
	}
	if err := pageurl.Check(url, "http", "https"); err != nil {
		r.lose(name, "url", "the entry is left out: %v", err)
		return nil
	}
	e := Entry{Name: name, Subscription: pipeline.Subscription{URL: url}}
	if w.flag("time_between_check_use_default", true) {
		e.Subscription.Interval = b.Settings.Requests.Every.interval()
	}
	var every period
	if w.get("time_between_check", &every) && every.duration() > 0 && !w.flag("time_between_check_use_default", false) {
		e.Subscription.Interval = every.interval()
	}
	r.watchTags(&e, w, b)
	r.watchText(&e, w, b)
	r.watchTrigger(&e, w)
	w.get("headers", &e.Headers)
	if backend := w.text("fetch_backend"); strings.Contains(backend, "webdriver") || strings.HasPrefix(backend, "extra_browser") {
		e.Browser = true
	}
	if m := w.text("method"); m != "" && m != "GET" {
		r.lose(name, "method", "a page is fetched by GET; watch a URL that needs no %s", short(m))
	}
	if processor := w.text("processor"); processor != "" && processor != "text_json_diff" {
		r.lose(name, "processor", "%s does not exist; the text of the page is watched", short(processor))
	}
	if w.flag("paused", false) {
		r.lose(name, "paused", "it is paused in changedetection.io; remove the subscription if it is to stay off")
	}
	if urls := w.list("notification_urls"); len(urls) > 0 {
		r.lose(name, "notification_urls", "%s; configure a sink for each, see docs/sinks", receivers(urls))
	}
	for _, f := range adviceOfField {
		if !w.empty(f.field) && (f.field != "time_schedule_limit" || w.scheduled()) {
			r.lose(name, f.field, "%s", f.advice)
		}
	}
	return r.add(e)
}

// scheduled reports whether the schedule of a watch is on.
func (w watch) scheduled() bool {
	var s struct{ Enabled bool }
	return w.get("time_schedule_limit", &s) && s.Enabled
}

func (r *Result) watchTags(e *Entry, w watch, b *backup) {
	tags := w.list("tags")
	for i, id := range tags {
		if t, ok := b.Settings.Application.Tags[id]; ok {
			tags[i] = t.Title
		}
	}
	if old := w.text("tag"); old != "" {
		tags = append(tags, old)
	}
	if len(tags) > 0 {
		e.Notes = append(e.Notes, "tags: "+strings.Join(tags, ", "))
	}
}

// watchText reads what says which text is watched.
func (r *Result) watchText(e *Entry, w watch, b *backup) {
	chosen := w.list("include_filters")
	if old := w.text("css_filter"); old != "" && len(chosen) == 0 {
		chosen = []string{old}
	}
	for _, s := range chosen {
		if sel, ok := r.selector(e, "include_filters", s); ok {
			e.Subscription.Select = append(e.Subscription.Select, sel)
		}
	}
	for _, s := range append(w.list("subtractive_selectors"), b.Settings.Application.Subtract...) {
		if sel, ok := r.selector(e, "subtractive_selectors", s); ok && !slices.Contains(e.Subscription.Remove, sel) {
			e.Subscription.Remove = append(e.Subscription.Remove, sel)
		}
	}
	for _, s := range append(w.list("ignore_text"), b.Settings.Application.Ignore...) {
		pattern, expression := slashed(s)
		if !expression {
			pattern = "(?i)" + regexp.QuoteMeta(s)
		}
		if pattern = lines(pattern, "", true); !slices.Contains(e.Subscription.Ignore, pattern) {
			r.blank(e, "ignore_text", pattern)
		}
	}
	for _, s := range w.list("extract_text") {
		r.lose(e.Name, "extract_text", "only what an expression matches can be watched in texts, by select: re:EXPRESSION, and not in HTML: %s", short(s))
	}
}

// selector reads a selector, whose kind stands before it.
func (r *Result) selector(e *Entry, field, s string) (pipeline.Selector, bool) {
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "xpath", "xpath1":
		return pipeline.Selector{XPath: strings.TrimSpace(rest)}, true
	case "jq", "jqraw":
		return pipeline.Selector{JQ: strings.TrimSpace(rest)}, true
	case "json":
		r.lose(e.Name, field, "JSONPath is not read; write it as jq:.PATH: %s", short(rest))
		return pipeline.Selector{}, false
	}
	if strings.HasPrefix(s, "/") {
		return pipeline.Selector{XPath: s}, true
	}
	return pipeline.Selector{CSS: s}, true
}

// watchTrigger reads what says which changes are reported.
func (r *Result) watchTrigger(e *Entry, w watch) {
	for _, s := range w.list("trigger_text") {
		if _, expression := slashed(s); expression {
			r.lose(e.Name, "trigger_text", "keywords are words, not regular expressions: %s", short(s))
			continue
		}
		e.Subscription.Keywords = append(e.Subscription.Keywords, s)
		e.Subscription.IgnoreCase = true
	}
	added, removed := w.flag("filter_text_added", true) || w.flag("filter_text_replaced", true), w.flag("filter_text_removed", true) || w.flag("filter_text_replaced", true)
	switch {
	case added && !removed:
		e.Subscription.Events = []pipeline.Event{pipeline.Added}
	case removed && !added:
		e.Subscription.Events = []pipeline.Event{pipeline.Removed}
	}
}

// slashed returns the expression of /expression/flags, in the syntax of RE2.
func slashed(s string) (pattern string, ok bool) {
	end := strings.LastIndexByte(s, '/')
	if !strings.HasPrefix(s, "/") || end < 1 || strings.Trim(s[end+1:], "imsxu") != "" {
		return "", false
	}
	flags := strings.Map(func(c rune) rune {
		if strings.ContainsRune("ims", c) {
			return c
		}
		return -1
	}, s[end+1:])
	if pattern = s[1:end]; flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	return pattern, true
}

// receivers describes URLs of Apprise without the secrets in them.
func receivers(urls []string) string {
	var kinds []string
	for _, u := range urls {
		kind, _, _ := strings.Cut(u, ":")
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return "notifications went to " + short(strings.Join(kinds, ", "))
}
