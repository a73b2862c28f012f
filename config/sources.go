package config

import (
	"github.com/vokter/vokter/pipeline"

	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline/registry"
)

// sourceEntry is {KIND: {...}}, as a sinkEntry is.
type sourceEntry struct{ sinkEntry }

func (s *sourceEntry) decodeYAML(d *decoder, n ast.Node, path string) {
	s.decode(d, n, path, "source with its options, such as {kafka: {...}}")
}

// buildSources builds the sources of f.
func (d *decoder) buildSources(f *file, reg *registry.Registry, log *slog.Logger) map[string]pipeline.Source {
	if len(f.Sources) == 0 {
		return nil
	}
	sources := make(map[string]pipeline.Source, len(f.Sources))
	for _, name := range slices.Sorted(maps.Keys(f.Sources)) {
		entry := f.Sources[name]
		path := join("sources", name)
		if !sinkName.MatchString(name) {
			d.fail(path, "%q cannot be the name of a source; use letters, digits, \"_\", \"-\" and \".\"", name)
		}
		if entry.kind == "" {
			continue
		}
		build, ok := reg.LookupSource(entry.kind)
		if !ok {
			d.failNode(entry.kindKey, "unknown kind of source%s; %s", shownKey(entry.kind), nearest.Hint(entry.kind, reg.SourceKinds()))
			continue
		}
		path = join(path, entry.kind)
		d.at[path] = positionOf(entry.kindKey)
		source, err := build(d.pluginDecode(entry.config, path), registry.Env{Logger: log.With("source", name)})
		if err != nil {
			d.failEach(path, err)
			continue
		}
		sources[name] = source
	}
	return sources
}

// interval is a duration, or "never".
type interval time.Duration

func (i *interval) decodeYAML(d *decoder, n ast.Node, path string) {
	s, ok := d.expanded(n)
	if ok && s == "never" {
		*i = interval(pipeline.Never)
		return
	}
	var every time.Duration
	if _, scalar := n.(ast.ScalarNode); !scalar {
		d.failNode(n, "%s must be a duration such as 10s, 5m or 1h, or never, not %s", path, describe(n))
	} else if ok {
		if err := parseScalar(s, &every); err != nil {
			d.failNode(n, "%s: %v", path, err)
		}
	}
	*i = interval(every)
}

// onlyNever is "never".
type onlyNever time.Duration

func (o *onlyNever) decodeYAML(d *decoder, n ast.Node, path string) {
	if s, ok := d.expanded(n); ok && s == "never" {
		*o = onlyNever(pipeline.Never)
		return
	}
	d.failNode(n, "%s must be never, for a page that is only pushed; how often a page is fetched its subscriptions say", path)
}

var (
	_ yamlDecoder = (*sourceEntry)(nil)
	_ yamlDecoder = (*interval)(nil)
	_ yamlDecoder = (*onlyNever)(nil)
)
