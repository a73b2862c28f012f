package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// sinkEntry is {KIND: {...}}. It is built when the whole file is read, since that
// needs what stands elsewhere.
type sinkEntry struct {
	// reader read the entry: it knows the places of its keys.
	reader  *decoder
	kind    string
	kindKey ast.Node
	config  ast.Node
	// rate and timeout are those of a sink, 0 for what its kind has.
	rate    rate
	timeout time.Duration
	// receiving says how a sink gets its notifications.
	receiving receivingKeys
}

// receivingKeys are the keys of a sink beside its kind, its rate and its timeout. They are read together.
type receivingKeys struct {
	GroupBy   registry.Texts `yaml:"group_by"`
	GroupWait time.Duration  `yaml:"group_wait"`
	Quiet     pipeline.Quiet `yaml:"quiet"`
	Fallback  struct {
		To    string        `yaml:"to"`
		After time.Duration `yaml:"after"`
	} `yaml:"fallback"`
	Paused bool `yaml:"paused"`
}

// toPipeline returns r as package pipeline has it.
func (r receivingKeys) toPipeline() pipeline.Receiving {
	return pipeline.Receiving{
		GroupBy: r.GroupBy, GroupWait: r.GroupWait, Quiet: r.Quiet, Fallback: r.Fallback.To, FallbackAfter: r.Fallback.After, Paused: r.Paused,
	}
}

func (s *sinkEntry) decodeYAML(d *decoder, n ast.Node, path string) {
	s.reader = d
	if _, ok := n.(*ast.MappingNode); !ok {
		s.decodeKind(d, n, path, "sink", "{stdout: {}}")
		return
	}
	d.eachEntry(n, path, func(key string, keyNode, value ast.Node) {
		switch {
		case key == "rate":
			d.decodeValue(value, reflect.ValueOf(&s.rate).Elem(), joinPath(path, key))
		case key == "timeout":
			d.decodeValue(value, reflect.ValueOf(&s.timeout).Elem(), joinPath(path, key))
		case key == "group_by":
			d.decodeValue(value, reflect.ValueOf(&s.receiving.GroupBy).Elem(), joinPath(path, key))
		case key == "group_wait":
			d.decodeValue(value, reflect.ValueOf(&s.receiving.GroupWait).Elem(), joinPath(path, key))
		case key == "quiet":
			d.decodeValue(value, reflect.ValueOf(&s.receiving.Quiet).Elem(), joinPath(path, key))
		case key == "fallback":
			d.decodeValue(value, reflect.ValueOf(&s.receiving.Fallback).Elem(), joinPath(path, key))
		case key == "paused":
			d.decodeValue(value, reflect.ValueOf(&s.receiving.Paused).Elem(), joinPath(path, key))
		case s.kind != "":
			d.failNode(keyNode, "%s has a second key %q; a sink has one kind, here %s, and may have %s", path, key, s.kind, strings.Join(keysBesideKind, ", "))
		default:
			s.kind, s.kindKey, s.config = key, keyNode, value
		}
	})
	if s.kind == "" && !d.brokenPaths[path] {
		d.failNode(n, "%s must be a kind of sink with its options, such as {stdout: {}}", path)
	}
}

// keysBesideKind are the keys that a sink may have beside its kind.
var keysBesideKind = []string{"rate", "timeout", "group_by", "group_wait", "quiet", "fallback", "paused"}

// decodeKind reads one kind of what, a sink or a source, and its options.
func (s *sinkEntry) decodeKind(d *decoder, n ast.Node, path, what, example string) {
	if text, ok := n.(*ast.StringNode); ok && keyPattern.MatchString(text.Value) {
		d.failNode(n, "%s must be a kind of %s with its options; write {%s: {}} for one without options", path, what, text.Value)
		return
	}
	m, ok := n.(*ast.MappingNode)
	if !ok || len(m.Values) != 1 {
		d.failNode(n, "%s must be a kind of %s with its options, such as %s", path, what, example)
		return
	}
	d.eachEntry(n, path, func(key string, keyNode, value ast.Node) {
		s.kind, s.kindKey, s.config = key, keyNode, value
	})
}

// The bounds of a timeout: few servers answer within less, and an attempt occupies one of a limited
// number of slots.
const (
	minTimeout = time.Second
	maxTimeout = 15 * time.Minute
)

var (
	pluginNamePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	// errReported stands for mistakes that are already reported.
	errReported = errors.New("the configuration has mistakes")
)

// keyPattern matches text that looks like the name of an option or a kind. Error messages quote only
// such text, since anything else may be a secret that was written in the wrong place.
var keyPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,39}$`)

// quotedKey returns a blank and the quoted key, or "" if key may be an address or a secret.
func quotedKey(key string) string {
	if keyPattern.MatchString(key) {
		return fmt.Sprintf(" %q", key)
	}
	return ""
}

// maxPluginName is the largest name of a sink or a source, in bytes.
const maxPluginName = 100

// pluginPath returns the path of the plugin name in section, and reports a name that cannot be that
// of what, such as a sink.
func (d *decoder) pluginPath(section, what, name string) string {
	path := joinPath(section, name)
	switch {
	case len(name) > maxPluginName:
		d.failPath(path, "the name of a %s has %d bytes; at most %d are allowed", what, len(name), maxPluginName)
	case !pluginNamePattern.MatchString(name):
		d.failPath(path, "%q cannot be the name of a %s; use letters, digits, \"_\", \"-\" and \".\"", name, what)
	}
	return path
}

// findPlugin returns the function that builds the plugin name, which is a what, such as a sink, as e says, and the path
// of its options. It reports a kind that is not among kinds; an empty one was reported when it was read.
func findPlugin[B any](d *decoder, what, name string, e sinkEntry, kinds *registry.Kinds[B]) (build B, path string, ok bool) {
	path = d.pluginPath(what+"s", what, name)
	if e.kind == "" {
		return build, path, false
	}
	build, ok = kinds.Lookup(e.kind)
	switch {
	case ok:
		path = joinPath(path, e.kind)
		d.positions.set(path, positionOf(e.kindKey))
	case e.kind == "type" || e.kind == "kind":
		d.failNode(e.kindKey, "the key must be the kind of the %s, with its settings below it; %s", what, nearest.Hint(e.kind, kinds.Names()))
	default:
		d.failNode(e.kindKey, "unknown kind of %s%s; %s", what, quotedKey(e.kind), nearest.Hint(e.kind, kinds.Names()))
	}
	return build, path, ok
}

// ValidSinkName reports whether a configuration can have a sink of this name.
func ValidSinkName(name string) bool {
	return len(name) <= maxPluginName && pluginNamePattern.MatchString(name)
}

// buildSinks builds the sinks of f, and returns how they get their notifications.
func (d *decoder) buildSinks(f *yamlFile, reg *registry.Registry, log *slog.Logger) (sinks map[string]pipeline.Sink, receivers map[string]pipeline.Receiving) {
	sinks = make(map[string]pipeline.Sink, len(f.Sinks))
	for _, name := range slices.Sorted(maps.Keys(f.Sinks)) {
		entry := f.Sinks[name]
		from := cmp.Or(entry.reader, d)
		build, path, ok := findPlugin(from, "sink", name, entry, &reg.Sinks)
		if !ok {
			continue
		}
		env := registry.Env{AllowSinks: f.Allow.Sinks, Logger: log.With("sink", name)}
		from.digest.Reset()
		_, _ = fmt.Fprintf(from.digest, "%s %s %t", entry.kind, entry.config.String(), entry.receiving.Paused)
		decode := from.pluginDecode(entry.config, path)
		sink, err := build(func(options any) error {
			err := decode(options)
			if err == nil {
				from.warnOfReceiver(path, reflect.ValueOf(options).Elem(), f.Allow.Sinks)
			}
			return err
		}, env)
		if err != nil {
			from.failEach(path, err)
			continue
		}
		d.sinkDigests[name] = [sha256.Size]byte(from.digest.Sum(nil))
		if entry.rate > 0 {
			sink = registry.LimitRate(sink, float64(entry.rate), max(1, int(entry.rate)))
		}
		switch {
		case entry.timeout > maxTimeout, entry.timeout > 0 && entry.timeout < minTimeout:
			from.failPath(joinPath(parentPath(path), "timeout"), "%s: %s is not between %s and %s", joinPath(parentPath(path), "timeout"), entry.timeout, minTimeout, maxTimeout)
		case entry.timeout > 0:
			sink = registry.LimitTime(sink, entry.timeout)
		}
		sinks[name] = sink
		if r := entry.receiving.toPipeline(); !reflect.DeepEqual(r, pipeline.Receiving{}) {
			if receivers == nil {
				receivers = make(map[string]pipeline.Receiving)
			}
			receivers[name] = r
		}
	}
	d.checkForwarding(f, sinks)
	return sinks, receivers
}

// checkForwarding reports mistakes in the settings by which sinks of f pass notifications on to other sinks.
func (d *decoder) checkForwarding(f *yamlFile, sinks map[string]pipeline.Sink) {
	known := slices.Collect(maps.Keys(f.Sinks))
	for _, name := range slices.Sorted(maps.Keys(sinks)) {
		entry, path := f.Sinks[name], joinPath("sinks", name)
		from := cmp.Or(entry.reader, d)
		from.failEach(path, entry.receiving.toPipeline().Validate())
		_, fallback := from.positions.get(joinPath(path, "fallback"))
		if to := entry.receiving.Fallback.To; to != "" {
			from.checkSinkNames(joinPath(path, "fallback.to"), []string{to}, known)
		} else if fallback {
			from.failPath(joinPath(path, "fallback"), "%s.fallback has no to; name the sink that gets the notifications", path)
		}
		route, ok := registry.RouteOf(sinks[name])
		if !ok {
			continue
		}
		for _, to := range route.Targets() {
			if !slices.Contains(known, to) {
				from.failPath(joinPath(path, entry.kind), "%s: no sink is named %q; %s", joinPath(path, entry.kind), to, nearest.Hint(to, known))
			}
		}
		for _, key := range keysBesideKind {
			if _, given := from.positions.get(joinPath(path, key)); given {
				from.failPath(joinPath(path, key), "%s: a route delivers nothing itself; set %s at the sinks that it leads to", path, key)
			}
		}
	}
}

// checkSinkNames reports the names in the list at path that are listed twice, or are not among known, the names
// of all sinks.
func (d *decoder) checkSinkNames(path string, names, known []string) {
	for i, name := range names {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case name == "": // reported when it was read
		case !slices.Contains(known, name):
			d.failPath(at, "%s: no sink is named %q; %s", at, name, nearest.Hint(name, known))
		case slices.Contains(names[:i], name):
			d.failPath(at, "%s: %q is listed twice; list it once", at, name)
		}
	}
}

// checkChangeSinks reports names of sinks at path that there are not, or that take no change records.
func (d *decoder) checkChangeSinks(path string, names, known []string, sinks map[string]pipeline.Sink) {
	if names != nil && len(names) == 0 {
		d.failPath(path, "%s is empty; list at least one sink or remove the key", path)
	}
	d.checkSinkNames(path, names, known)
	for i, name := range names {
		if s := sinks[name]; s != nil {
			if err := registry.TakesChanges(s); err != nil {
				at := fmt.Sprintf("%s[%d]", path, i)
				d.failPath(at, "%s: sink %q: %v", at, name, err)
			}
		}
	}
}

// pluginDecode returns the Decode for the options n of a plugin, which may be absent.
func (d *decoder) pluginDecode(n ast.Node, path string) registry.Decode {
	return func(config any) error {
		before := len(d.errs)
		if _, null := n.(*ast.NullNode); !null {
			d.decodeValue(n, reflect.ValueOf(config).Elem(), path)
		}
		if len(d.errs) > before {
			return errReported
		}
		return nil
	}
}

// failEach reports the errors that err joins for what stands at path, each at its
// field, unless something is known to be wrong there already.
func (d *decoder) failEach(path string, err error) {
	var found []*Error
	for _, err := range splitJoined(err) {
		if errors.Is(err, errReported) {
			continue
		}
		at := path
		if fe, ok := errors.AsType[*pipeline.FieldError](err); ok {
			at, err = joinPath(path, fe.Field), errors.New(fe.Reason)
		}
		if p := d.positionOfPath(at); !d.errorPositions[p] {
			found = append(found, &Error{d.file, p.line, p.column, fmt.Sprintf("%s: %v", at, err)})
		}
	}
	for _, e := range found {
		d.report(e)
	}
}

// sourceEntry is {KIND: {...}}, as a sinkEntry is.
type sourceEntry struct{ sinkEntry }

func (s *sourceEntry) decodeYAML(d *decoder, n ast.Node, path string) {
	s.decodeKind(d, n, path, "source", "{kafka: {...}}")
}

// buildSources builds the sources of f.
func (d *decoder) buildSources(f *yamlFile, reg *registry.Registry, log *slog.Logger) map[string]pipeline.Source {
	if len(f.Sources) == 0 {
		return nil
	}
	sources := make(map[string]pipeline.Source, len(f.Sources))
	for _, name := range slices.Sorted(maps.Keys(f.Sources)) {
		entry := f.Sources[name]
		build, path, ok := findPlugin(d, "source", name, entry.sinkEntry, &reg.Sources)
		if !ok {
			continue
		}
		source, err := build(d.pluginDecode(entry.config, path), registry.Env{Logger: log.With("source", name)})
		if err != nil {
			d.failEach(path, err)
			continue
		}
		sources[name] = source
	}
	return sources
}

// TransportLocal is the embedded transport, which has no settings.
const TransportLocal = "local"

// transportEntry is written as its name, or as a mapping from its name to its options. It is decoded
// when the registry is known.
type transportEntry struct {
	node ast.Node
	path string
}

func (t *transportEntry) decodeYAML(_ *decoder, n ast.Node, path string) { t.node, t.path = n, path }

// buildTransport returns the settings of the transport; nil means the local one.
func (d *decoder) buildTransport(t transportEntry, reg *registry.Registry) registry.Transport {
	if t.node == nil {
		return nil
	}
	m, ok := t.node.(*ast.MappingNode)
	if !ok {
		name, ok := d.stringValue(t.node, t.path)
		if !ok {
			return nil
		}
		return d.decodeTransport(name, t.node, nil, t.path, reg)
	}
	if len(m.Values) != 1 {
		d.failNode(m, "%s must be one transport: local, or kafka with its options such as {kafka: {brokers: [HOST:PORT]}}", t.path)
		return nil
	}
	var settings registry.Transport
	d.eachEntry(m, t.path, func(key string, keyNode, value ast.Node) {
		settings = d.decodeTransport(key, keyNode, value, t.path, reg)
	})
	return settings
}

// decodeTransport returns the settings of the transport name, which stands at nameNode, with what
// options say, unless they are nil.
func (d *decoder) decodeTransport(name string, nameNode, options ast.Node, path string, reg *registry.Registry) registry.Transport {
	at := joinPath(path, name)
	if name == TransportLocal {
		if options != nil {
			d.decodeValue(options, reflect.ValueOf(new(struct{})).Elem(), at)
		}
		return nil
	}
	defaults, ok := reg.Transports.Lookup(name)
	if !ok {
		d.failNode(nameNode, "%s: unknown transport %q; %s", path, name, nearest.Hint(name, append(reg.Transports.Names(), TransportLocal)))
		return nil
	}
	settings := defaults()
	d.positions.set(at, positionOf(nameNode))
	if options != nil {
		d.decodeValue(options, reflect.ValueOf(settings).Elem(), at)
	}
	d.failEach(at, settings.Validate())
	return settings
}

var (
	_ yamlDecoder = (*sinkEntry)(nil)
	_ yamlDecoder = (*sourceEntry)(nil)
	_ yamlDecoder = (*transportEntry)(nil)
)
