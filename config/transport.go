package config

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline/registry"
)

// TransportLocal is the embedded transport, which has no settings.
const TransportLocal = "local"

// transport is written as its name, or as a mapping from its name to its options. It is decoded
// when the registry is known.
type transport struct {
	node ast.Node
	path string
}

func (t *transport) decodeYAML(_ *decoder, n ast.Node, path string) { t.node, t.path = n, path }

// buildTransport returns what the file says of the transport; nil: it is the local one.
func (d *decoder) buildTransport(t transport, reg *registry.Registry) registry.Transport {
	if t.node == nil {
		return nil
	}
	m, ok := t.node.(*ast.MappingNode)
	if !ok {
		name, ok := d.text(t.node, t.path)
		if !ok {
			return nil
		}
		return d.transport(name, t.node, nil, t.path, reg)
	}
	if len(m.Values) != 1 {
		d.failNode(m, "%s must be one transport: local, or kafka with its options such as {kafka: {brokers: [HOST:PORT]}}", t.path)
		return nil
	}
	var settings registry.Transport
	d.mapping(m, t.path, func(key string, keyNode, value ast.Node) {
		settings = d.transport(key, keyNode, value, t.path, reg)
	})
	return settings
}

// transport returns the settings of the transport name, which stands at nameNode, with what
// options say, unless they are nil.
func (d *decoder) transport(name string, nameNode, options ast.Node, path string, reg *registry.Registry) registry.Transport {
	at := join(path, name)
	if name == TransportLocal {
		if options != nil {
			d.value(options, reflect.ValueOf(new(struct{})).Elem(), at)
		}
		return nil
	}
	defaults, ok := reg.LookupTransport(name)
	if !ok {
		d.failNode(nameNode, "%s: unknown transport %q; %s", path, name, nearest.Hint(name, append(reg.TransportKinds(), TransportLocal)))
		return nil
	}
	settings := defaults()
	d.at[at] = positionOf(nameNode)
	if options != nil {
		d.value(options, reflect.ValueOf(settings).Elem(), at)
	}
	d.failEach(at, settings.Validate())
	return settings
}

var _ yamlDecoder = (*transport)(nil)
