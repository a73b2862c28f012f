package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sources/browser"
)

// EncodeSubscription returns s as an entry of subscriptions in YAML. It leaves defaults out. p says how the page is
// fetched.
func EncodeSubscription(s pipeline.Subscription, p browser.Page) yaml.MapSlice {
	s = s.WithDefaults()
	plain := plainSubscription(s)
	var entry yaml.MapSlice
	for _, o := range pipeline.Options() {
		if strings.Contains(o.Name, ".") {
			continue // a part of another one
		}
		v := o.Field(&s)
		switch {
		case v.IsZero(), v.Kind() == reflect.Slice && v.Len() == 0, reflect.DeepEqual(v.Interface(), o.Field(&plain).Interface()):
			continue
		case o.Name == "url" && s.Sitemap, o.Name == "select" && s.Value != nil, o.Name == "confirm" && s.Confirm == 1:
			continue
		case o.Name == "sitemap":
			v = reflect.ValueOf(s.URL)
		}
		value := encode(v)
		if o.Name == "value" && len(s.Select) > 0 {
			value = append(yaml.MapSlice{{Key: "select", Value: encode(reflect.ValueOf(s.Select))}}, value.(yaml.MapSlice)...)
		}
		entry = append(entry, yaml.MapItem{Key: o.Name, Value: value})
	}
	if p.Mode != "" {
		entry = append(entry, yaml.MapItem{Key: "fetch", Value: string(p.Mode)})
	}
	if len(p.Steps) > 0 {
		entry = append(entry, yaml.MapItem{Key: "steps", Value: encode(reflect.ValueOf(p.Steps))})
	}
	return entry
}

// plainSubscription returns a subscription with the defaults of all options that s would have.
func plainSubscription(s pipeline.Subscription) pipeline.Subscription {
	plain := pipeline.Subscription{FilterStopwords: s.FilterStopwords}.WithDefaults()
	plain.FilterStopwords = false
	return plain
}

// Settings returns the options of s that are not the default, each as a line of a configuration, except those that
// have one of the names without.
func Settings(s pipeline.Subscription, without ...string) []string {
	var all []string
	for _, item := range EncodeSubscription(s, browser.Page{}) {
		if slices.Contains(without, item.Key.(string)) {
			continue
		}
		all = append(all, fmt.Sprintf("%s: %s", item.Key, onOneLine(item.Value)))
	}
	return all
}

// onOneLine returns what encode returned as YAML on one line.
func onOneLine(encoded any) string {
	text, err := yaml.MarshalWithOptions(encoded, yaml.Flow(true))
	if err != nil {
		return fmt.Sprint(encoded) // cannot happen: it has texts, numbers, lists and mappings only
	}
	return strings.TrimSpace(string(text))
}

// flowList is a list on one line.
type flowList []string

func (l flowList) MarshalYAML() ([]byte, error) {
	return yaml.MarshalWithOptions([]string(l), yaml.Flow(true))
}

// number is a number or share as it is written.
type number string

func (n number) MarshalYAML() ([]byte, error) { return []byte(n), nil }

// encode returns v as package yaml writes it, in a form that the decoder reads.
func encode(v reflect.Value) any {
	switch x := reflect.Indirect(v).Interface().(type) {
	case pipeline.Selector:
		switch {
		case x.To != "":
			return yaml.MapSlice{{Key: "from", Value: x.From}, {Key: "to", Value: x.To}}
		case x.From != "":
			return yaml.MapSlice{{Key: "from", Value: x.From}}
		}
		return x.String()
	case pipeline.Digest:
		every := cmp.Or(string(x.Cron), x.Every.String())
		if x.Max > 0 {
			return yaml.MapSlice{{Key: "every", Value: every}, {Key: "max", Value: x.Max}}
		}
		return every
	case pipeline.Expire:
		var m yaml.MapSlice
		after, retry := x.Texts()
		switch {
		case x.After > 0:
			m = append(m, yaml.MapItem{Key: "after", Value: x.After})
		case x.After < 0:
			m = append(m, yaml.MapItem{Key: "after", Value: after})
		}
		if retry != "" {
			m = append(m, yaml.MapItem{Key: "retry", Value: retry})
		}
		return m
	case pipeline.Amount:
		if pipeline.IsNumber(string(x)) {
			return number(x)
		}
	case registry.Secret:
		return x.Reveal()
	case pipeline.MinChange:
		return number(x.String())
	case pipeline.Interval, pipeline.Quiet:
		return fmt.Sprint(x)
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.String:
		return v.String()
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.String {
			all := make([]any, v.Len())
			for i := range all {
				all[i] = encode(v.Index(i))
			}
			return all
		}
		var texts flowList
		for i := range v.Len() {
			texts = append(texts, v.Index(i).String())
		}
		return texts
	case reflect.Struct:
		var m yaml.MapSlice
		for _, f := range reflect.VisibleFields(v.Type()) {
			if value, key := v.FieldByIndex(f.Index), keyOf(f); key != "" && !value.IsZero() {
				m = append(m, yaml.MapItem{Key: key, Value: encode(value)})
			}
		}
		return m
	}
	return v.Interface()
}
