package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// MadeSink is a sink in the file of receivers of a data directory.
type MadeSink struct {
	Kind    string
	Options map[string]any
	// Beside has the keys beside the kind, such as paused.
	Beside map[string]any
}

// ReadMadeSinks returns the sinks in the file of receivers of the data directory dir, by their names.
func ReadMadeSinks(dir string) (map[string]MadeSink, error) {
	all := make(map[string]MadeSink)
	b, err := os.ReadFile(filepath.Join(dir, ReceiversFile))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	var file struct {
		Sinks map[string]map[string]any `yaml:"sinks"`
	}
	if err == nil {
		err = yaml.Unmarshal(b, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("the receivers in the data directory cannot be read: %w", err)
	}
	for name, entry := range file.Sinks {
		s := MadeSink{Options: make(map[string]any), Beside: make(map[string]any)}
		for key, value := range entry {
			options, isKind := value.(map[string]any)
			if slices.Contains(keysBesideKind, key) || !isKind {
				s.Beside[key] = value
			} else {
				s.Kind, s.Options = key, options
			}
		}
		all[name] = withTexts(s, func(text string) string { return strings.ReplaceAll(text, "$${", "${") })
	}
	return all, nil
}

// EncodeMadeSinks returns the file of receivers with these sinks.
func EncodeMadeSinks(all map[string]MadeSink) ([]byte, error) {
	sinks := yaml.MapSlice{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		// What somebody writes into a form names no variables of this process.
		s := withTexts(all[name], func(text string) string { return strings.ReplaceAll(text, "${", "$${") })
		entry := append(yaml.MapSlice{{Key: s.Kind, Value: sorted(s.Options)}}, sorted(s.Beside)...)
		sinks = append(sinks, yaml.MapItem{Key: name, Value: entry})
	}
	b, err := yaml.Marshal(yaml.MapSlice{{Key: "sinks", Value: sinks}})
	return append([]byte("# The receivers that were made on the web page. It has secrets and is written anew with each change.\n"), b...), err
}

// withTexts returns s with its texts as change makes them.
func withTexts(s MadeSink, change func(string) string) MadeSink {
	var each func(any) any
	each = func(value any) any {
		switch x := value.(type) {
		case string:
			return change(x)
		case []any:
			all := make([]any, len(x))
			for i := range x {
				all[i] = each(x[i])
			}
			return all
		case map[string]any:
			all := make(map[string]any, len(x))
			for key := range x {
				all[key] = each(x[key])
			}
			return all
		}
		return value
	}
	s.Options, _ = each(s.Options).(map[string]any)
	return s
}

// sorted returns m in the order of its keys.
func sorted(m map[string]any) yaml.MapSlice {
	all := yaml.MapSlice{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := m[key]
		if inner, ok := value.(map[string]any); ok {
			value = sorted(inner)
		}
		all = append(all, yaml.MapItem{Key: key, Value: value})
	}
	return all
}

// ParseMadeOption returns the value of an option whose described type is kind, from text as a form has it.
func ParseMadeOption(kind, text string) (any, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch {
	case kind == "secret" || kind == "string":
		return strings.TrimSpace(text), nil
	case kind == "template":
		return text, nil
	case strings.HasPrefix(kind, "mapping of names to "):
		all := make(map[string]any)
		for _, line := range linesOf(text) {
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return nil, errors.New("write a line such as name: value for each")
			}
			all[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		return all, nil
	case kind == "list of strings", kind == "string or list of strings":
		all := []any{}
		for _, line := range linesOf(text) {
			all = append(all, line)
		}
		return all, nil
	case kind == "list of whole numbers":
		text = "[" + strings.Join(linesOf(text), ",") + "]"
	}
	var value any // a number, true or false, or YAML
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, errors.New("this is not YAML")
	}
	return cmp.Or(value, any("")), nil
}

// MadeOptionText returns the value of an option as ParseMadeOption reads it.
func MadeOptionText(value any) string {
	switch x := value.(type) {
	case []any:
		var lines []string
		for _, one := range x {
			if _, nested := one.(map[string]any); nested {
				b, err := yaml.Marshal(value)
				if err != nil {
					return ""
				}
				return string(b)
			}
			lines = append(lines, fmt.Sprint(one))
		}
		return strings.Join(lines, "\n")
	case map[string]any:
		var lines []string
		for _, item := range sorted(x) {
			lines = append(lines, fmt.Sprintf("%s: %v", item.Key, item.Value))
		}
		return strings.Join(lines, "\n")
	}
	return fmt.Sprint(value)
}

// linesOf returns the lines of text that are not empty, without blanks around them.
func linesOf(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
