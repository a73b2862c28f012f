package config

import (
	"crypto/sha256"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// readerEntry is a mapping of options, one of which is the kind of the reader. It is decoded when
// the registry is known.
type readerEntry struct{ node ast.Node }

func (r *readerEntry) decodeYAML(_ *decoder, n ast.Node, _ string) { r.node = n }

// buildReaders builds the readers of f, in the order of their names.
func (d *decoder) buildReaders(f *yamlFile, reg *registry.Registry, log *slog.Logger) []pipeline.Reader {
	if len(f.Readers) == 0 {
		return nil
	}
	d.readerDigests = make(map[string][sha256.Size]byte)
	var readers []pipeline.Reader
	byType := make(map[string]string) // names of readers
	for _, name := range slices.Sorted(maps.Keys(f.Readers)) {
		path, node := d.pluginPath("readers", "reader", name), f.Readers[name].node
		if node == nil {
			continue
		}
		build := d.findReaderBuilder(node, path, reg)
		if build == nil {
			continue
		}
		d.digest.Reset()
		_, _ = io.WriteString(d.digest, node.String())
		reader, err := build(d.pluginDecode(node, path), registry.Env{Logger: log.With("reader", name)})
		if err != nil {
			d.failEach(path, err)
			continue
		}
		d.readerDigests[name] = [sha256.Size]byte(d.digest.Sum(nil))
		for _, t := range reader.ContentTypes() {
			if other, dup := byType[t]; dup {
				at := joinPath(path, "types")
				d.failPath(at, "%s: pages of type %s are read by the reader %q already; remove the type from one of them", at, t, other)
			}
			byType[t] = name
		}
		readers = append(readers, reader)
	}
	return readers
}

// findReaderBuilder finds out which kind of reader the options n are for, and returns how it is built, or
// nil.
func (d *decoder) findReaderBuilder(n ast.Node, path string, reg *registry.Registry) (build registry.BuildReader) {
	kinds := reg.Readers.Names()
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.failNode(n, "%s must be a reader with its options, such as {wasm: ./reader.wasm, types: [application/x]}", path)
		return nil
	}
	kind := ""
	wrong, hint := n, "add one of: "+strings.Join(kinds, ", ")
	for _, entry := range m.Values {
		key, _ := keyText(entry.Key)
		if b, known := reg.Readers.Lookup(key); known && kind == "" {
			kind, build = key, b
		} else if known {
			d.failNode(entry.Key, "%s has the keys %q and %q; a reader has one kind", path, kind, key)
			return nil
		}
		if meant, _ := nearest.Name(key, kinds); nearest.Likely(key, meant) {
			wrong, hint = ast.Node(entry.Key), nearest.Hint(key, kinds)
		}
	}
	if len(kinds) == 0 {
		hint = "this program knows none"
	}
	if build == nil {
		d.failNode(wrong, "%s has no kind of reader; %s", path, hint)
	}
	return build
}

var _ yamlDecoder = (*readerEntry)(nil)
