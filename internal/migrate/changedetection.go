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
	Watching map[string]json.RawMessage `json:"watching"` // decoded one at a time: maps take many times the memory
	Settings struct {
		Requests struct {
			Every period `json:"time_between_check"`
		} `json:"requests"`
		Application struct {
			Tags     map[string]tag `json:"tags"`
			Ignore   []string       `json:"global_ignore_text"`
			Subtract []string       `json:"global_subtractive_selectors"`
			Notify   []string       `json:"notification_urls"`
		} `json:"application"`
	} `json:"settings"`
	// restock has the settings of watches for restocked goods, which a zip has in files of their own.
	restock map[string]json.RawMessage
}

// tag is a group of watches. Newer versions have a file for each.
type tag struct {
	ID    string `json:"uuid"`
	Title string `json:"title"`
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

// readChangedetection reads a backup of changedetection.io, a zip or the JSON in it.
func (r *Result) readChangedetection(data []byte, zipped bool) error {
	b := backup{}
	if !zipped {
		if err := json.Unmarshal(data, &b); err != nil {
			return fmt.Errorf("the file is not url-watches.json of changedetection.io: %w", err)
		}
	} else if err := readZip(data, &b); err != nil {
		return err
	}
	if b.Watching == nil {
		return errors.New(`the file is no backup of changedetection.io: it has no "watching"`)
	}
	app := b.Settings.Application
	if len(app.Notify) > 0 {
		r.addLost("settings", "notification_urls", "%s; configure a sink for each, see docs/sinks", describeReceivers(app.Notify))
	}
	// The order of an object in JSON means nothing: oldest first, as changedetection.io shows them.
	created := make(map[string]float64, len(b.Watching))
	for id, raw := range b.Watching {
		w, err := decodeWatch(raw)
		if err != nil {
			return fmt.Errorf("the watch %s: %w", shorten(id), err)
		}
		created[id] = w.numberField("date_created")
	}
	ids := slices.SortedFunc(maps.Keys(b.Watching), func(x, y string) int {
		return cmp.Or(cmp.Compare(created[x], created[y]), strings.Compare(x, y))
	})
	for _, id := range ids {
		w, err := decodeWatch(b.Watching[id])
		if err != nil {
			return fmt.Errorf("the watch %s: %w", shorten(id), err)
		}
		delete(b.Watching, id) // it is not needed any more
		if inner, ok := b.restock[id]; ok {
			w["restock_settings"] = inner
		}
		if err := r.readWatch(w, &b); err != nil {
			return err
		}
	}
	return nil
}

// decodeWatch decodes a watch.
func decodeWatch(raw json.RawMessage) (w watch, err error) {
	return w, json.Unmarshal(raw, &w)
}

// readZip reads the files of a backup that have watches and settings.
func readZip(data []byte, b *backup) error {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return fmt.Errorf("the file is no zip: %w", err)
	}
	if len(z.File) > maxZipFiles {
		return fmt.Errorf("the zip has more than %d files", maxZipFiles)
	}
	left := int64(maxTextBytes)
	read := func(f *zip.File, v any) error {
		in, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s in the zip: %w", shorten(f.Name), err)
		}
		defer in.Close()
		text, err := io.ReadAll(io.LimitReader(in, left+1)) // its header may lie about its size
		if left -= int64(len(text)); left < 0 {
			return fmt.Errorf("the settings and watches in the zip have more than %d MiB", maxTextBytes>>20)
		}
		if err == nil {
			err = json.Unmarshal(text, v)
		}
		if err != nil {
			return fmt.Errorf("%s in the zip: %w", shorten(f.Name), err)
		}
		return nil
	}
	watches := make(map[string]json.RawMessage)
	tags := make(map[string]tag)
	b.restock = make(map[string]json.RawMessage)
	for _, f := range z.File {
		switch path.Base(f.Name) {
		case "url-watches.json", "changedetection.json":
			if err := read(f, b); err != nil {
				return err
			}
		case "watch.json":
			var w json.RawMessage
			if err := read(f, &w); err != nil {
				return err
			}
			watches[path.Dir(f.Name)] = w
		case "tag.json":
			var t tag
			if err := read(f, &t); err != nil {
				return err
			}
			tags[t.ID] = t
		case "restock_diff.json":
			var settings map[string]json.RawMessage
			if err := read(f, &settings); err != nil {
				return err
			}
			if inner, ok := settings["restock_diff"]; ok {
				b.restock[path.Dir(f.Name)] = inner
			}
		}
	}
	if b.Settings.Application.Tags == nil {
		b.Settings.Application.Tags = tags
	} else {
		maps.Copy(b.Settings.Application.Tags, tags)
	}
	if len(watches) > 0 {
		if b.Watching == nil {
			b.Watching = make(map[string]json.RawMessage)
		}
		maps.Copy(b.Watching, watches)
	}
	return nil
}

// decodeField reads a field. It leaves v alone where the field is missing or of another type.
func (w watch) decodeField(name string, v any) bool {
	raw, ok := w[name]
	return ok && string(raw) != "null" && json.Unmarshal(raw, v) == nil
}

func (w watch) stringField(name string) string {
	var s string
	w.decodeField(name, &s)
	return strings.TrimSpace(s)
}

func (w watch) numberField(name string) float64 {
	var n float64
	w.decodeField(name, &n)
	return n
}

// boolField reads a boolean that is missing in older versions.
func (w watch) boolField(name string, missing bool) bool {
	b := missing
	w.decodeField(name, &b)
	return b
}

// listField reads a list of texts, which some versions write as one text.
func (w watch) listField(name string) []string {
	var all []string
	if !w.decodeField(name, &all) {
		var one string
		if w.decodeField(name, &one) {
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

// isEmptyField reports whether a field has nothing in it.
func (w watch) isEmptyField(name string) bool {
	switch strings.TrimSpace(string(w[name])) {
	case "", "null", `""`, "[]", "{}", "false", "0":
		return true
	}
	return false
}

// unsupportedFields are the fields of a watch that cannot be carried over, with the advice for each.
var unsupportedFields = []struct{ field, advice string }{
	{"body", "a page is fetched by GET without a body; watch a URL that needs none"},
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

// readWatch reads one watch.
func (r *Result) readWatch(w watch, b *backup) error {
	url := w.stringField("url")
	name := cmp.Or(w.stringField("title"), url, "a watch without a URL")
	if strings.Contains(url, "{{") || strings.Contains(url, "{%") {
		r.addLost(name, "url", "the entry is left out: a URL with a template of Jinja is not read")
		return nil
	}
	if err := pageurl.Check(url, "http", "https"); err != nil {
		r.addLost(name, "url", "the entry is left out: %v", err)
		return nil
	}
	e := Entry{Name: name, Subscription: pipeline.Subscription{URL: url, Paused: w.boolField("paused", false)}}
	e.setTitle(w.stringField("title"))
	if w.boolField("time_between_check_use_default", true) {
		e.Subscription.Interval = b.Settings.Requests.Every.interval()
	}
	var every period
	if w.decodeField("time_between_check", &every) && every.duration() > 0 && !w.boolField("time_between_check_use_default", false) {
		e.Subscription.Interval = every.interval()
	}
	readTags(&e, w, b)
	r.readTextOptions(&e, w, b)
	r.readTriggers(&e, w)
	w.decodeField("headers", &e.Headers)
	if backend := w.stringField("fetch_backend"); strings.Contains(backend, "webdriver") || strings.HasPrefix(backend, "extra_browser") {
		e.Browser = true
	}
	if m := w.stringField("method"); m != "" && m != "GET" {
		r.addLost(name, "method", "a page is fetched by GET; watch a URL that needs no %s", shorten(m))
	}
	r.readSteps(&e, w)
	if urls := w.listField("notification_urls"); len(urls) > 0 {
		r.addLost(name, "notification_urls", "%s; configure a sink for each, see docs/sinks", describeReceivers(urls))
	}
	for _, f := range unsupportedFields {
		if !w.isEmptyField(f.field) && (f.field != "time_schedule_limit" || w.hasSchedule()) {
			r.addLost(name, f.field, "%s", f.advice)
		}
	}
	switch processor := w.stringField("processor"); processor {
	case "", "text_json_diff":
	case "restock_diff":
		return r.addRestock(e, w)
	default:
		r.addLost(name, "processor", "%s does not exist; the text of the page is watched", shorten(processor))
	}
	return r.add(e)
}

// hasSchedule reports whether the schedule of a watch is on.
func (w watch) hasSchedule() bool {
	var s struct{ Enabled bool }
	return w.decodeField("time_schedule_limit", &s) && s.Enabled
}

func readTags(e *Entry, w watch, b *backup) {
	tags := w.listField("tags")
	for i, id := range tags {
		if t, ok := b.Settings.Application.Tags[id]; ok {
			tags[i] = t.Title
		}
	}
	if old := w.stringField("tag"); old != "" {
		tags = append(tags, strings.Split(old, ",")...)
	}
	e.addTags(tags...)
}

// readTextOptions reads what says which text is watched.
func (r *Result) readTextOptions(e *Entry, w watch, b *backup) {
	chosen := w.listField("include_filters")
	if old := w.stringField("css_filter"); old != "" && len(chosen) == 0 {
		chosen = []string{old}
	}
	for _, s := range chosen {
		if sel, ok := r.readSelector(e, "include_filters", s); ok {
			e.Subscription.Select = append(e.Subscription.Select, sel)
		}
	}
	for _, s := range append(w.listField("subtractive_selectors"), b.Settings.Application.Subtract...) {
		if sel, ok := r.readSelector(e, "subtractive_selectors", s); ok && !slices.Contains(e.Subscription.Remove, sel) {
			e.Subscription.Remove = append(e.Subscription.Remove, sel)
		}
	}
	for _, s := range append(w.listField("ignore_text"), b.Settings.Application.Ignore...) {
		pattern, expression := parseSlashedRegexp(s)
		if !expression {
			pattern = "(?i)" + regexp.QuoteMeta(s)
		}
		if pattern = linePattern(pattern, "", true); !slices.Contains(e.Subscription.Ignore, pattern) {
			r.addIgnorePattern(e, "ignore_text", pattern)
		}
	}
	for _, s := range w.listField("extract_text") {
		r.addLost(e.Name, "extract_text", "only what an expression matches can be watched in texts, by select: re:EXPRESSION, and not in HTML: %s", shorten(s))
	}
}

// readSelector reads a selector, whose kind stands before it.
func (r *Result) readSelector(e *Entry, field, s string) (pipeline.Selector, bool) {
	kind, rest, _ := strings.Cut(s, ":")
	switch kind {
	case "xpath", "xpath1":
		return pipeline.Selector{XPath: strings.TrimSpace(rest)}, true
	case "jq", "jqraw":
		return pipeline.Selector{JQ: strings.TrimSpace(rest)}, true
	case "json":
		r.addLost(e.Name, field, "JSONPath is not read; write it as jq:.PATH: %s", shorten(rest))
		return pipeline.Selector{}, false
	}
	if strings.HasPrefix(s, "/") {
		return pipeline.Selector{XPath: s}, true
	}
	return pipeline.Selector{CSS: s}, true
}

// readTriggers reads what says which changes are reported.
func (r *Result) readTriggers(e *Entry, w watch) {
	matchCase := 0 // of the keywords
	for _, s := range w.listField("trigger_text") {
		if expression, ok := parseSlashedRegexp(s); ok {
			literal := strings.TrimPrefix(expression, "(?i)")
			if literal == "" || regexp.QuoteMeta(literal) != literal {
				r.addLost(e.Name, "trigger_text", "keywords are words, not regular expressions: %s", shorten(s))
				continue
			}
			if s = literal; literal == expression {
				matchCase++
			}
		}
		e.Subscription.Keywords = append(e.Subscription.Keywords, s)
	}
	if e.Subscription.MatchCase = matchCase > 0 && matchCase == len(e.Subscription.Keywords); matchCase > 0 && !e.Subscription.MatchCase {
		r.addLost(e.Name, "trigger_text", "case is told apart for all keywords of a subscription or for none; it is ignored, since some of them ignore it")
	}
	added, removed := w.boolField("filter_text_added", true) || w.boolField("filter_text_replaced", true), w.boolField("filter_text_removed", true) || w.boolField("filter_text_replaced", true)
	switch {
	case added && !removed:
		e.Subscription.Events = []pipeline.Event{pipeline.Added}
	case removed && !added:
		e.Subscription.Events = []pipeline.Event{pipeline.Removed}
	}
}

// parseSlashedRegexp returns the expression of /expression/flags, in the syntax of RE2.
func parseSlashedRegexp(s string) (pattern string, ok bool) {
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

// describeReceivers describes URLs of Apprise without the secrets in them.
func describeReceivers(urls []string) string {
	var kinds []string
	for _, u := range urls {
		kind, _, _ := strings.Cut(u, ":")
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return "notifications went to " + shorten(strings.Join(kinds, ", "))
}
