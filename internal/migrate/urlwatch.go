package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pageurl"
)

// maxAliases bounds the aliases of a file; the decoder refuses those that grow too large.
const maxAliases = 10_000

// readURLWatch reads urls.yaml of urlwatch or webchanges: a YAML document for each job.
func (r *Result) readURLWatch(data []byte) error {
	in := yaml.NewDecoder(bytes.NewReader(data))
	for number := 1; ; number++ {
		var n yaml.Node
		err := in.Decode(&n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the file is not YAML: %w", err)
		}
		if n.Kind == 0 || len(n.Content) == 0 || n.Content[0].Tag == "!!null" {
			continue
		}
		var job any
		if countAliases(&n) > maxAliases {
			return fmt.Errorf("line %d: the document has more than %d aliases", n.Line, maxAliases)
		}
		if err := n.Decode(&job); err != nil {
			return fmt.Errorf("the YAML document at line %d cannot be read: %w", n.Content[0].Line, err)
		}
		jobs, ok := job.([]any) // some files have one list of jobs
		if !ok {
			jobs = []any{job}
		}
		for _, j := range jobs {
			fields, ok := j.(map[string]any)
			if !ok {
				r.addLost(fmt.Sprintf("line %d", n.Content[0].Line), "", "it is left out, because it is no job: it has no keys such as url")
				continue
			}
			if err := r.readJob(fields, n.Content[0].Line); err != nil {
				return err
			}
		}
	}
}

func countAliases(n *yaml.Node) int {
	count := 0
	if n.Kind == yaml.AliasNode {
		count++
	}
	for _, c := range n.Content {
		count += countAliases(c)
	}
	return count
}

// unsupportedKeys are the keys of a job that cannot be carried over, with the advice for each.
var unsupportedKeys = map[string]string{
	"data":                      "a page is fetched by GET without a body; watch a URL that needs none",
	"max_tries":                 "a failed check is repeated at the next interval; expire.after says after how many a page expires",
	"ssl_no_verify":             "certificates are always verified; name the authority of this site as ca in access",
	"ignore_cached":             "a page that did not change may be answered by 304; nothing is lost",
	"timeout":                   "fetch.timeout holds for all pages",
	"ignore_connection_errors":  "one failed check reports nothing; health says which sinks are told of pages that go on failing",
	"ignore_http_error_codes":   "one failed check reports nothing; health says which sinks are told of pages that go on failing",
	"ignore_timeout_errors":     "one failed check reports nothing; health says which sinks are told of pages that go on failing",
	"ignore_too_many_redirects": "one failed check reports nothing; health says which sinks are told of pages that go on failing",
	"no_redirect":               "redirects are followed",
	"encoding":                  "the encoding is detected",
	"diff_filter":               "filters of differences do not exist; events, keywords and min_change say what is reported",
	"diff_tool":                 "differences are found by words",
	"monospace":                 "use a template in the sink for the layout",
	"markdown_padded_tables":    "use a template in the sink for the layout",
	"compared_versions":         "write flip_flop for a page that alternates between texts",
	"contextlines":              "write snippet_offset for more context",
	"wait_until":                "JavaScript is not run",
	"wait_for":                  "JavaScript is not run",
	"wait_for_navigation":       "JavaScript is not run",
	"wait_for_selector":         "JavaScript is not run",
	"user_data_dir":             "JavaScript is not run",
	"switches":                  "JavaScript is not run",
	"is_markdown":               "the type of a page is detected",
	"treat_new_as_changed":      "the first version is the baseline, and notifies nobody",
}

// readJob reads one job, which begins at line.
func (r *Result) readJob(fields map[string]any, line int) error {
	url, isURL := scalarText(fields["url"])
	name, _ := scalarText(fields["name"])
	if name == "" {
		if name = url; name == "" {
			name = fmt.Sprintf("line %d", line)
		}
	}
	if _, ok := fields["command"]; ok {
		r.addLost(name, "command", "it is left out: commands are not run; write their output to a file, and add a subscription to file:///PATH")
		return nil
	}
	rendered := fields["use_browser"] == true
	if !isURL {
		if url, isURL = scalarText(fields["navigate"]); isURL {
			rendered = true
			if name == fmt.Sprintf("line %d", line) {
				name = url
			}
		}
	}
	if err := pageurl.Check(url, "http", "https"); err != nil {
		r.addLost(name, "url", "the entry is left out: %v", err)
		return nil
	}
	e := Entry{Name: name, Subscription: pipeline.Subscription{URL: url}, Browser: rendered}
	title, _ := scalarText(fields["name"])
	e.setTitle(title)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		r.readKey(&e, key, fields[key])
	}
	return r.add(e)
}

// readKey reads one key of a job.
func (r *Result) readKey(e *Entry, key string, value any) {
	switch key {
	case "url", "name", "navigate", "use_browser", "kind", "index_number", "guid":
	case "filter":
		r.readFilters(e, value)
	case "tags":
		all, ok := value.([]any)
		if text, one := scalarText(value); one {
			all, ok = []any{text}, true
		}
		if !ok {
			r.addLost(e.Name, key, "they are no list of words")
		}
		for _, t := range all {
			if text, ok := scalarText(t); ok {
				e.addTags(strings.Split(text, ",")...)
			}
		}
	case "note", "user_visible_url":
		e.Notes = append(e.Notes, key+": "+shorten(value))
	case "headers":
		e.Headers = r.readStringMap(e, key, value)
	case "cookies":
		e.Cookies = r.readStringMap(e, key, value)
	case "http_proxy", "https_proxy":
		proxy, _ := scalarText(value)
		scheme, _, _ := strings.Cut(e.Subscription.URL, ":")
		if key == scheme+"_proxy" {
			e.Proxy = proxy
		}
	case "method":
		if m, _ := scalarText(value); !strings.EqualFold(m, "GET") {
			r.addLost(e.Name, key, "a page is fetched by GET; watch a URL that needs no %s", shorten(value))
		}
	case "additions_only", "deletions_only":
		if parseBool(value) {
			e.Subscription.Events = []pipeline.Event{map[string]pipeline.Event{"additions_only": pipeline.Added, "deletions_only": pipeline.Removed}[key]}
		}
	case "enabled":
		e.Subscription.Paused = !parseBool(value)
	default:
		advice, ok := unsupportedKeys[key]
		if !ok {
			advice = "there is no such setting"
		}
		r.addLost(e.Name, key, "%s", advice)
	}
}

// readStringMap reads a mapping of texts. It does not quote the values, which may be secrets.
func (r *Result) readStringMap(e *Entry, key string, value any) map[string]string {
	m, ok := value.(map[string]any)
	if !ok {
		r.addLost(e.Name, key, "it is no mapping of names and values")
		return nil
	}
	all := make(map[string]string, len(m))
	for name, v := range m {
		s, ok := scalarText(v)
		if !ok {
			r.addLost(e.Name, key+"."+name, "its value is no text")
			continue
		}
		all[name] = s
	}
	return all
}

// scalarText returns a scalar as text.
func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int, int64, uint64, float64, bool:
		return fmt.Sprint(v), true
	}
	return "", false
}

// parseBool reads a boolean, which in YAML 1.1 has other spellings.
func parseBool(value any) bool {
	s, _ := scalarText(value)
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(s))
}

// shorten returns value for a message.
func shorten(value any) string {
	s := strings.Join(strings.Fields(fmt.Sprint(value)), " ")
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "..."
	}
	return s
}
