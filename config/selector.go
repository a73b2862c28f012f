package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/stages/fetch/readers/html"
)

// selectors are written as one CSS selector, as one range {from: CSS, to: CSS}, or as
// a list of both.
type selectors []pipeline.Selector

func (s *selectors) decodeYAML(d *decoder, n ast.Node, path string) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		*s = appendSelector(*s, d, n, path)
		return
	}
	if len(seq.Values) == 0 {
		d.failNode(n, "%s is empty; name at least one CSS selector or remove the key", path)
	}
	for i, item := range seq.Values {
		*s = appendSelector(*s, d, item, fmt.Sprintf("%s[%d]", path, i))
	}
}

func appendSelector(s []pipeline.Selector, d *decoder, n ast.Node, path string) []pipeline.Selector {
	var sel pipeline.Selector
	before := len(d.errs)
	if n = d.resolve(n); n == nil {
		return s
	}
	if _, mapping := n.(*ast.MappingNode); mapping {
		var r struct {
			From string `yaml:"from"`
			To   string `yaml:"to"`
		}
		d.value(n, reflect.ValueOf(&r).Elem(), path)
		sel.From, sel.To = r.From, r.To
	} else {
		d.value(n, reflect.ValueOf(&sel.CSS).Elem(), path)
	}
	if len(d.errs) > before {
		return s
	}
	if err := checkSelector(sel); err != nil {
		d.fail(path, "%s: %v", path, err)
		return s
	}
	return append(s, sel)
}

// ParseSelector reads a CSS selector, or a range written {from: CSS, to: CSS}. Its
// errors say what is wrong.
func ParseSelector(text string) (pipeline.Selector, error) {
	if !strings.HasPrefix(text, "{") {
		s := pipeline.Selector{CSS: text}
		return s, checkSelector(s)
	}
	d := newDecoder("", nil)
	var found selectors
	if body := d.parse([]byte(text)); body != nil {
		found = appendSelector(nil, d, body, "range")
	}
	if len(d.errs) > 0 {
		return pipeline.Selector{}, errors.New(strings.TrimPrefix(d.errs[0].Message, "range: "))
	}
	return found[0], nil
}

func checkSelector(s pipeline.Selector) error {
	switch {
	case s == pipeline.Selector{}:
		return errors.New("a CSS selector must not be empty")
	case s.CSS == "" && s.From == "":
		return errors.New("a range needs from; write {from: CSS, to: CSS}")
	}
	err := html.Validate(pipeline.View{Select: []pipeline.Selector{s}})
	if fe, ok := errors.AsType[*pipeline.FieldError](err); ok {
		return errors.New(fe.Reason)
	}
	return err
}

var _ yamlDecoder = (*selectors)(nil)
