package config

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/internal/nearest"
	"github.com/vokter/vokter/pipeline"
)

// Transports between the stages, by name.
const (
	TransportLocal = "local"
	TransportKafka = "kafka"
)

// CheckTransport refuses the name of a transport that there is none of.
func CheckTransport(name string) error {
	if name != TransportLocal && name != TransportKafka {
		return fmt.Errorf("unknown transport %q; %s", name, nearest.Hint(name, []string{TransportLocal, TransportKafka}))
	}
	return nil
}

// transport is written as its name, or as a mapping from its name to its options.
type transport struct {
	Kafka *Kafka `yaml:"kafka"` // nil: local
}

func (t *transport) decodeYAML(d *decoder, n ast.Node, path string) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		name, ok := d.text(n, path)
		if !ok {
			return
		}
		if err := CheckTransport(name); err != nil {
			d.failNode(n, "%s: %v", path, err)
		} else if name == TransportKafka {
			d.failNode(n, "%s: kafka needs brokers; write {kafka: {brokers: [HOST:PORT]}}", path)
		}
		return
	}
	if len(m.Values) != 1 {
		d.failNode(n, "%s must be one transport: local, or kafka with its options such as {kafka: {brokers: [HOST:PORT]}}", path)
		return
	}
	d.mapping(n, path, func(key string, keyNode, value ast.Node) {
		at := join(path, key)
		switch err := CheckTransport(key); {
		case err != nil:
			d.failNode(keyNode, "%s: %v", path, err)
		case key == TransportLocal:
			d.value(value, reflect.ValueOf(new(struct{})).Elem(), at)
		default:
			t.Kafka = NewKafka()
			d.value(value, reflect.ValueOf(t.Kafka).Elem(), at)
		}
	})
}

// checkKafka reports what check and this package find wrong with k, unless it is nil.
func (d *decoder) checkKafka(k *Kafka, check func(*Kafka) error) {
	if k == nil {
		return
	}
	path := join("transport", TransportKafka)
	var err error
	for key, number := range map[string]int{"partitions": k.Partitions, "replication": k.Replication} {
		if _, given := d.at[join(path, key)]; given && number < 1 { // to check 0 is "not given"
			err = errors.Join(err, &pipeline.FieldError{Field: key, Reason: fmt.Sprintf("%d is not at least 1", number)})
		}
	}
	d.failEach(path, err)
	d.failEach(path, check(k))
}

var _ yamlDecoder = (*transport)(nil)
