package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vokter/vokter/pipeline"
)

// unneededFilters are filters whose work is done in any case, or is not needed.
var unneededFilters = []string{
	"html2text", "beautify", "strip", "format-json", "format-xml", "pretty-xml", "sort", "reverse", "ical2text", "csv2text",
	"remove-duplicate-lines", "remove_repeated", "absolute_links", "ascii85",
}

// readFilters reads the filters of a job: a list, or the text "NAME:VALUE,NAME" of old files.
func (r *Result) readFilters(e *Entry, value any) {
	var all []any
	switch v := value.(type) {
	case []any:
		all = v
	case string:
		for part := range strings.SplitSeq(v, ",") {
			if name, value, ok := strings.Cut(part, ":"); ok {
				all = append(all, map[string]any{strings.TrimSpace(name): value})
			} else {
				all = append(all, strings.TrimSpace(part))
			}
		}
	case map[string]any:
		all = []any{v}
	}
	for i, f := range all {
		switch f := f.(type) {
		case string:
			r.readFilter(e, f, nil)
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(f)) { // there should be one
				r.readFilter(e, name, f[name])
			}
		default:
			r.addLost(e.Name, fmt.Sprintf("filter[%d]", i), "it is no filter")
		}
	}
}

// readFilter reads one filter.
func (r *Result) readFilter(e *Entry, name string, value any) {
	key := "filter." + name
	options, _ := value.(map[string]any)
	main := func(names ...string) string {
		if options == nil {
			s, _ := scalarText(value)
			return s
		}
		for _, n := range names {
			if s, ok := scalarText(options[n]); ok {
				return s
			}
		}
		return ""
	}
	of := func(names ...string) {
		for _, n := range slices.Sorted(maps.Keys(options)) {
			if !slices.Contains(names, n) && n != "method" && n != "namespaces" {
				r.addLost(e.Name, key+"."+n, "there is no such option; see whether the text is right by vokter-stream watch %s", e.Subscription.URL)
			}
		}
	}
	switch name {
	case "css":
		of("selector", "exclude")
		r.narrowSelection(e, key, pipeline.ParseSelector(main("selector")))
		r.readExclude(e, options, "")
	case "xpath":
		of("path", "exclude")
		r.narrowSelection(e, key, pipeline.Selector{XPath: main("path")})
		r.readExclude(e, options, "xpath:")
	case "element-by-id":
		r.narrowSelection(e, key, pipeline.Selector{CSS: `[id="` + escapeCSSString(main("id")) + `"]`})
	case "element-by-class":
		r.narrowSelection(e, key, pipeline.Selector{CSS: `[class~="` + escapeCSSString(main("class")) + `"]`})
	case "element-by-style":
		r.narrowSelection(e, key, pipeline.Selector{CSS: `[style="` + escapeCSSString(main("style")) + `"]`})
	case "element-by-tag":
		r.narrowSelection(e, key, pipeline.Selector{CSS: main("tag")})
	case "jq":
		r.narrowSelection(e, key, pipeline.Selector{JQ: main("query")})
	case "delete_lines_containing", "grepi":
		of("text", "re")
		r.addIgnorePattern(e, key, linePattern(main("re"), main("text"), name == "grepi" || options["re"] != nil))
	case "re.sub":
		of("pattern", "repl")
		if repl, _ := scalarText(options["repl"]); repl != "" {
			r.addLost(e.Name, key, "text can be left out (ignore), but not replaced")
			return
		}
		r.addIgnorePattern(e, key, main("pattern"))
	case "keep_lines_containing", "grep":
		r.addLost(e.Name, key, "lines are not kept by their text; name their elements in select, or give the words as keywords: %s", shorten(main("re", "text")))
	case "pdf2text":
		r.addLost(e.Name, key, "PDF is read where the configuration has fetch: {pdf: true}")
	case "jsonpath":
		r.addLost(e.Name, key, "JSONPath is not read; write it as select: jq:.PATH")
	case "execute", "shellpipe":
		r.addLost(e.Name, key, "programs are not run; see select, remove and ignore")
	default:
		if !slices.Contains(unneededFilters, name) {
			r.addLost(e.Name, key, "there is no such filter; see select, remove and ignore")
		}
	}
}

// narrowSelection narrows the text of e to s.
func (r *Result) narrowSelection(e *Entry, key string, s pipeline.Selector) {
	switch all := e.Subscription.Select; {
	case s == pipeline.Selector{}:
		r.addLost(e.Name, key, "it is empty")
	case len(all) == 0:
		e.Subscription.Select = []pipeline.Selector{s}
	case s.CSS != "" && all[0].CSS != "" && !strings.Contains(s.CSS+all[0].CSS, ","):
		e.Subscription.Select = []pipeline.Selector{{CSS: all[0].CSS + " " + s.CSS}}
	default:
		r.addLost(e.Name, key, "a second filter that selects cannot follow %s; write both as one selector", all[0])
	}
}

// readExclude reads the option exclude of a filter that selects.
func (r *Result) readExclude(e *Entry, options map[string]any, prefix string) {
	if s, ok := scalarText(options["exclude"]); ok && s != "" {
		e.Subscription.Remove = append(e.Subscription.Remove, pipeline.ParseSelector(prefix+s))
	}
}

// addIgnorePattern makes e ignore what pattern, a regular expression of Python, matches.
func (r *Result) addIgnorePattern(e *Entry, key, pattern string) {
	if _, err := regexp.Compile(pattern); err != nil || pattern == "" {
		r.addLost(e.Name, key, "it is no regular expression that RE2 reads; write it without (?=...), (?<=...) and \\1 as ignore")
		return
	}
	e.Subscription.Ignore = append(e.Subscription.Ignore, pattern)
}

// linePattern returns a regular expression for lines in which re matches if expression is true, and
// otherwise for lines that contain plain.
func linePattern(re, plain string, expression bool) string {
	if !expression {
		re = regexp.QuoteMeta(plain)
	}
	if re == "" {
		return ""
	}
	return "(?m)^.*(?:" + re + ").*$"
}

// escapeCSSString returns s for a text in quotes of CSS.
func escapeCSSString(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) }
