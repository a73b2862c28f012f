package config

import (
	"reflect"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/pipeline"
)

// digest is written as a duration or a cron line, or as a mapping of that, every, and max.
type digest pipeline.Digest

var _ yamlDecoder = (*digest)(nil)

func (g *digest) decodeYAML(d *decoder, n ast.Node, path string) {
	var m struct {
		Every digestTime `yaml:"every"`
		Max   *int       `yaml:"max"`
	}
	if _, mapping := n.(*ast.MappingNode); !mapping {
		d.value(n, reflect.ValueOf(&m.Every).Elem(), path)
		*g = digest(m.Every)
		return
	}
	before := len(d.errs)
	d.structure(n, reflect.ValueOf(&m).Elem(), path)
	_, given := d.at[join(path, "every")]
	switch {
	case len(d.errs) > before:
		return
	case !given:
		d.failNode(n, `%s says no time; add one such as every: 1h or every: "0 9 * * 1-5 Europe/Berlin"`, path)
		return
	case m.Max != nil && *m.Max == 0: // to the vocabulary 0 is "not given"
		d.fail(join(path, "max"), "%s: 0 is not between 1 and %d", join(path, "max"), pipeline.MaxDigestItems)
		return
	}
	*g = digest(m.Every)
	if m.Max != nil {
		g.Max = *m.Max
	}
}

// digestTime is a duration or a cron line.
type digestTime pipeline.Digest

var _ yamlDecoder = (*digestTime)(nil)

func (t *digestTime) decodeYAML(d *decoder, n ast.Node, path string) {
	if _, scalar := n.(ast.ScalarNode); !scalar {
		d.failNode(n, `%s must be a duration such as 1h or a cron line such as "0 9 * * 1-5 Europe/Berlin", not %s`, path, describe(n))
		return
	}
	s, ok := d.expanded(n)
	if !ok {
		return
	}
	parsed, err := pipeline.ParseDigest(s)
	if err != nil {
		d.failNode(n, "%s: %v", path, err)
		return
	}
	*t = digestTime(parsed)
}
