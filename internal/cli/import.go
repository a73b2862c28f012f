package cli

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/migrate"
	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
	"github.com/vokter/vokter/pipeline/pageurl"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/stdout"
	"github.com/vokter/vokter/sources/browser"
	httpsource "github.com/vokter/vokter/sources/http"
)

// importedSink is the sink of all subscriptions that import writes.
const importedSink = "out"

// importedData is the data directory of what import writes.
const importedData = "vokter-data"

// formatOfNotes is the help of --format of the verbs whose result is a configuration.
const formatOfNotes = "`FORMAT` of what is lost and said, on standard error: text or json; the result is YAML"

func (a *app) importVerb() *cobra.Command {
	var from string
	cmd := a.flags.addTo(&cobra.Command{
		Use:   "import FILE",
		Short: "Writes the watches of another program as a configuration",
		Long: "Writes the watches of another program as a configuration to standard output: urls.yaml of urlwatch, the backup of changedetection.io " +
			"(a zip, or url-watches.json), OPML, or a list of URLs, one a line; - is standard input. What cannot be carried over is listed on " +
			"standard error: the entry, what of it, and what to do. The configuration passes lint. Its notifications go to standard output " +
			"until you configure other sinks.",
		Example: `  vokter-stream import ~/.config/urlwatch/urls.yaml > vokter.yaml
  vokter-stream import changedetection-backup-1718000000.zip > vokter.yaml
  vokter-stream lint -c vokter.yaml`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return newUsageError(cmd, "name one file, or - for standard input; write %s FILE", cmd.CommandPath())
			}
			if from != "" && !slices.Contains(migrate.Formats, from) {
				return newUsageError(cmd, "--from: %q is no format; %s", from, nearest.Hint(from, migrate.Formats))
			}
			return a.importFile(args[0], from)
		},
	}, outputFlags)
	cmd.Flags().Lookup("format").Usage = formatOfNotes
	cmd.Flags().StringVar(&from, "from", "", "the `FORMAT` of the file: "+strings.Join(migrate.Formats, ", ")+" (default what its contents suggest)")
	return cmd
}

func (a *app) importFile(name, from string) error {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // a large file makes much garbage, and little that stays
	data, err := a.readInput(name, migrate.MaxFile)
	switch {
	case errors.Is(err, errLarge):
		return fmt.Errorf("%w; of a zip only the JSON files are needed", err)
	case err != nil:
		return &usageError{err: err}
	}
	w := newImporter(a.plugins())
	w.data = importedData
	found, err := migrate.Read(data, from, w.add)
	if err != nil {
		return fmt.Errorf("%s cannot be imported: %w", name, err)
	}
	w.check()
	lost := append(found.Lost, w.lost...)
	if err := a.printLost(lost); err != nil {
		return err
	}
	if w.err != nil {
		return fmt.Errorf("the result is no valid configuration: %w", w.err)
	}
	text, err := w.configuration("Written by vokter-stream import from a file of the format " + found.Format + ".")
	if err != nil {
		return err
	}
	if w.count == 0 {
		return fmt.Errorf("nothing in %s can be imported", name)
	}
	if len(w.access) > 0 {
		a.printNotice("The result has headers or cookies in access, which may be secrets: let only the user of the process read the file (chmod 600).")
	}
	a.printNotice("The result names %s as the directory for what it stores. To use another directory, change data.", importedData)
	a.printNotice("%s imported from %s; %s", countNoun(w.count, "subscription"), name, lostSummary(len(lost)))
	_, err = io.WriteString(a.stdout, text)
	return err
}

// printNotice prints what people should know of the result on standard error.
func (a *app) printNotice(format string, args ...any) {
	line := fmt.Appendf(nil, format+"\n", args...)
	if a.flags.format == stdout.FormatJSON {
		line, _ = stdout.EncodeJSON(map[string]string{"notice": fmt.Sprintf(format, args...)}) // cannot fail
	}
	_, _ = a.stderr.Write(line)
}

// printLost lists on standard error what was lost.
func (a *app) printLost(lost []migrate.Lost) error {
	for _, l := range lost {
		line := []byte(render.Clean(l.String()) + "\n")
		if a.flags.format == stdout.FormatJSON {
			var err error
			if line, err = stdout.EncodeJSON(l); err != nil {
				return err
			}
		}
		if _, err := a.stderr.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// lostSummary says how many lines are about what was lost.
func lostSummary(n int) string {
	if n == 0 {
		return "nothing was lost"
	}
	if n == 1 {
		return "1 line above says what needs a look"
	}
	return countNoun(n, "line") + " above say what needs a look"
}

// errLarge says that a file has more bytes than are read of it.
var errLarge = errors.New("is too large")

// readInput reads the file called name, or standard input if name is "-". More than most bytes are errLarge.
func (a *app) readInput(name string, most int64) ([]byte, error) {
	in := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, render.FileError(name, err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, render.FileError(name, err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s %w: it has more than %d MiB", name, errLarge, most>>20)
	}
	return data, nil
}

// accessEntry is an entry of access.
type accessEntry struct {
	name    string
	Pages   []string          `yaml:"pages,flow"`
	Headers map[string]string `yaml:"headers,omitempty"`
	Cookies map[string]string `yaml:"cookies,omitempty"`
	Proxy   string            `yaml:"proxy,omitempty"`
}

// configWriter collects a configuration. It keeps the subscriptions as text, since there may be a hundred thousand.
type configWriter struct {
	subscriptions strings.Builder
	count         int // of the subscriptions
	access        []accessEntry
	sinks         []string
	files         []string // that are watched
	data          string   // directory for what is read, or empty
}

// addSubscription adds s, whose page is fetched as p says, with a comment above it.
func (w *configWriter) addSubscription(comment string, s pipeline.Subscription, p browser.Page) error {
	text, err := subscriptionYAML(s, p)
	if err != nil {
		return err
	}
	if comment != "" {
		fmt.Fprintf(&w.subscriptions, "  # %s\n", comment)
	}
	w.subscriptions.Write(text)
	w.count++
	return nil
}

// subscriptionYAML returns s as an element of subscriptions.
func subscriptionYAML(s pipeline.Subscription, p browser.Page) ([]byte, error) {
	text, err := yaml.MarshalWithOptions([]any{config.EncodeSubscription(s, p)}, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("the subscription of %q to %s as YAML: %w", s.Client, s.URL, err)
	}
	return text, nil
}

// partSize is how many imported subscriptions are checked as a configuration at once.
const partSize = 1000

// importer is a configWriter of the entries of another program.
type importer struct {
	configWriter
	plugins *registry.Registry
	lost    []migrate.Lost // what a configuration cannot have
	err     error          // why the configuration is not valid

	names   map[[sha256.Size]byte]string // of the entries, by their subscriptions
	clients map[string]int               // of a document
	pages   map[string]accessEntry
	opened  map[string][]browser.Step // the steps in the pages that are opened in the browser
	// checked are the lengths of subscriptions and access that are known to be valid.
	checkedText, checkedAccess int
}

func newImporter(plugins *registry.Registry) *importer {
	return &importer{
		configWriter: configWriter{sinks: []string{importedSink}}, plugins: plugins,
		names: make(map[[sha256.Size]byte]string), clients: make(map[string]int), pages: make(map[string]accessEntry), opened: make(map[string][]browser.Step),
	}
}

func (w *importer) lose(entry, key, format string, args ...any) {
	w.lost = append(w.lost, migrate.Lost{Entry: entry, Key: key, Advice: fmt.Sprintf(format, args...)})
}

// add adds an entry, or says what of it is lost.
func (w *importer) add(e migrate.Entry) {
	s := e.Subscription
	s.Sinks = []string{importedSink}
	if !dropInvalidFields(&s, func(field, reason string) { w.lose(e.Name, field, "%s", reason) }) {
		return
	}
	page, _ := pageurl.Canonical(s.URL) // dropInvalidFields has checked it
	untitled := s
	untitled.Title = ""
	key, err := json.Marshal(untitled)
	if err != nil {
		w.lose(e.Name, "", "it is left out: %v", err)
		return
	}
	sum := sha256.Sum256(key)
	if name, same := w.names[sum]; same {
		w.lose(e.Name, "", "it is left out: it is the same as %s", name)
		return
	}
	w.names[sum] = e.Name
	document := flow.DocumentOf(page, s)
	if w.clients[document]++; w.clients[document] > 1 { // a client has one subscription to a document
		s.Client = fmt.Sprintf("import-%d", w.clients[document])
	}
	w.addAccess(e, page, w.pages, w.lose)
	var opened browser.Page
	if e.Browser {
		steps, known := w.opened[page]
		if known && !reflect.DeepEqual(steps, e.Steps) {
			w.lose(e.Name, "browser_steps", "another entry does other steps in this page, which is opened once for all; they are left out")
			e.Steps = steps
		}
		w.opened[page] = e.Steps
		opened = browser.Page{Mode: browser.Rendered, Steps: e.Steps}
	}
	w.err = errors.Join(w.err, w.addSubscription(joinComment(e.Notes), s, opened))
	if w.count%partSize == 0 {
		w.check()
	}
}

// check checks what was added since the last check, as a configuration of its own: a long one takes much memory.
func (w *importer) check() {
	text := w.subscriptions.String()[w.checkedText:]
	if text == "" || w.err != nil {
		return
	}
	part := configWriter{access: w.access[w.checkedAccess:], sinks: w.sinks, count: w.count}
	part.subscriptions.WriteString(text)
	whole, err := part.configuration("A part.")
	if err == nil {
		_, err = config.Parse("the result", []byte(whole), config.Options{Registry: w.plugins})
	}
	w.err = err
	w.checkedText, w.checkedAccess = w.subscriptions.Len(), len(w.access)
}

// joinComment returns the parts of a comment on one line.
func joinComment(parts []string) string {
	var all []string
	for _, p := range parts {
		if p = render.Clean(p); p != "" {
			all = append(all, p)
		}
	}
	return strings.Join(all, "; ")
}

// dropInvalidFields removes from s what is not valid, and reports each field. It returns false where the
// subscription cannot be kept.
func dropInvalidFields(s *pipeline.Subscription, lose func(field, reason string)) bool {
	keywords := len(s.Keywords)
	for range 1000 {
		errs := config.CheckSubscription(*s)
		if len(errs) == 0 {
			if keywords > 0 && len(s.Keywords) == 0 {
				lose("keywords", "no keyword is left, so every change is reported")
			}
			return true
		}
		bad := errs[0]
		field, rest, _ := strings.Cut(bad.Field, "[")
		var i int
		if _, err := fmt.Sscanf(rest, "%d]", &i); err != nil { // the field has no index
			i = firstInvalidSelector(s, field)
		}
		o, known := pipeline.OptionCalled(field)
		if !known || slices.Contains([]string{"url", "client", "sinks", "value", "items"}, field) {
			lose(bad.Field, "the entry is left out: "+bad.Reason)
			return false
		}
		v := o.Field(s)
		if old := reflect.ValueOf(v.Interface()); old.Kind() == reflect.Slice && i < old.Len() && old.Len() > 1 {
			v.Set(reflect.MakeSlice(v.Type(), 0, old.Len()-1))
			v.Set(reflect.AppendSlice(reflect.AppendSlice(v, old.Slice(0, i)), old.Slice(i+1, old.Len())))
		} else if v.SetZero(); field == "select" {
			bad.Reason += "; the whole page is watched"
		}
		lose(bad.Field, bad.Reason)
	}
	lose("", "the entry is left out: more than 1000 of its values are not valid")
	return false
}

// firstInvalidSelector returns the index of the first selector in a field of s that is not valid, or 0.
func firstInvalidSelector(s *pipeline.Subscription, field string) int {
	all := s.Select
	if field == "remove" {
		all = s.Remove
	}
	return max(0, slices.IndexFunc(all, func(sel pipeline.Selector) bool {
		one := pipeline.Subscription{URL: s.URL, Sinks: s.Sinks, View: pipeline.View{Select: []pipeline.Selector{sel}}}
		if field == "remove" {
			one.Select, one.Remove = nil, one.Select
		}
		return len(config.CheckSubscription(one)) > 0
	}))
}

// addAccess adds the headers, cookies and proxy of e for page.
func (w *configWriter) addAccess(e migrate.Entry, page string, pages map[string]accessEntry, lose func(entry, key, format string, args ...any)) {
	if len(e.Headers)+len(e.Cookies) == 0 && e.Proxy == "" {
		return
	}
	a := accessEntry{name: fmt.Sprintf("import-%d", len(w.access)+1), Pages: []string{page}, Headers: e.Headers, Cookies: e.Cookies, Proxy: e.Proxy}
	for range 1000 {
		bad := firstAccessMistake(a)
		if bad == nil {
			break
		}
		kind, name, _ := strings.Cut(strings.TrimPrefix(bad.Field, a.name+"."), ".")
		lose(e.Name, strings.Trim(kind+"."+name, "."), "%s", bad.Reason)
		switch {
		case kind == "headers" && hasKey(a.Headers, name):
			a.Headers = withoutKey(a.Headers, name)
		case kind == "cookies" && hasKey(a.Cookies, name):
			a.Cookies = withoutKey(a.Cookies, name)
		case kind == "headers" && len(a.Headers) > 0:
			a.Headers = nil
		case kind == "cookies" && len(a.Cookies) > 0:
			a.Cookies = nil
		case kind == "proxy" && a.Proxy != "":
			a.Proxy = ""
		default:
			return
		}
	}
	if len(a.Headers)+len(a.Cookies) == 0 && a.Proxy == "" {
		return
	}
	if other, taken := pages[page]; taken {
		if !reflect.DeepEqual(other.Headers, a.Headers) || !reflect.DeepEqual(other.Cookies, a.Cookies) || other.Proxy != a.Proxy {
			lose(e.Name, "headers", "another entry has other headers, cookies or another proxy for this page, which is fetched once for all; they are left out")
		}
		return
	}
	pages[page] = a
	w.access = append(w.access, a)
}

func hasKey(m map[string]string, name string) bool { _, ok := m[name]; return ok }

// withoutKey returns a copy of m without name.
func withoutKey(m map[string]string, name string) map[string]string {
	left := make(map[string]string, len(m))
	for k, v := range m {
		if k != name {
			left[k] = v
		}
	}
	return left
}

// firstAccessMistake returns the first mistake in a, or nil.
func firstAccessMistake(a accessEntry) *pipeline.FieldError {
	secrets := func(m map[string]string) map[string]registry.Secret {
		all := make(map[string]registry.Secret, len(m))
		for k, v := range m {
			all[k] = registry.NewSecret(v)
		}
		return all
	}
	of := httpsource.Access{Pages: a.Pages, Headers: secrets(a.Headers), Cookies: secrets(a.Cookies)}
	if a.Proxy != "" {
		of.Proxy = registry.NewSecret(a.Proxy)
	}
	err := httpsource.CheckAccess(map[string]httpsource.Access{a.name: of})
	if err == nil {
		return nil
	}
	if bad, ok := errors.AsType[*pipeline.FieldError](err); ok {
		return bad
	}
	return &pipeline.FieldError{Field: "access", Reason: err.Error()}
}

// configuration returns the whole configuration as YAML, with a comment at its top.
func (w *configWriter) configuration(comment string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n# docs/configuration.md describes every key.\n", render.Clean(comment))
	if w.data != "" {
		fmt.Fprintf(&b, "# What was read is kept here; without data each start is a new baseline.\ndata: %s\n", w.data)
	}
	if len(w.access) > 0 {
		all := make(yaml.MapSlice, 0, len(w.access))
		for _, a := range w.access {
			all = append(all, yaml.MapItem{Key: a.name, Value: a})
		}
		if err := writeSection(&b, "access", all); err != nil {
			return "", err
		}
	}
	if len(w.files) > 0 {
		if err := writeSection(&b, "allow", map[string]any{"files": w.files}); err != nil {
			return "", err
		}
	}
	b.WriteString("# Configure your own sinks here: docs/sinks describes them.\n")
	sinks := make(yaml.MapSlice, 0, len(w.sinks))
	for _, name := range w.sinks {
		sinks = append(sinks, yaml.MapItem{Key: name, Value: map[string]any{"stdout": map[string]any{}}})
	}
	if err := writeSection(&b, "sinks", sinks); err != nil {
		return "", err
	}
	b.WriteString("subscriptions:\n")
	b.WriteString(w.subscriptions.String())
	return escapeYAML(b.String()), nil
}

// writeSection writes the section key of a configuration to b.
func writeSection(b *strings.Builder, key string, value any) error {
	text, err := yaml.Marshal(yaml.MapSlice{{Key: key, Value: value}})
	b.Write(text)
	return err
}

// escapeYAML returns YAML in which no variable is expanded, and that does not steer a terminal.
func escapeYAML(text string) string {
	text = strings.ReplaceAll(text, "${", "$${")
	return strings.Map(func(c rune) rune {
		if c != '\n' && render.Steers(c) {
			return -1
		}
		return c
	}, text)
}
