package config

import (
	"errors"
	"fmt"
	"strings"
)

// expand replaces ${NAME} by the variable's value and ${NAME:-default} by the value,
// or by default where the variable is unset or empty. "$${" stands for "${"; any other
// "$" is itself. It runs on values that were already parsed, so that what stands in a
// variable is never YAML, and the values are not expanded again. Its errors do not show s, which may be a secret.
func expand(s string, lookup func(string) (string, bool)) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		body, rest, ok := strings.Cut(s[i+2:], "}")
		if !ok {
			return "", errors.New("a ${ has no closing brace; write ${NAME}, or $${ for a plain ${")
		}
		name, byDefault, hasDefault := strings.Cut(body, ":-")
		switch {
		case !isName(name):
			return "", errors.New("a ${...} does not hold the name of a variable; write ${NAME} or ${NAME:-default}, or $${ for a plain ${")
		case strings.Contains(byDefault, "${"):
			return "", fmt.Errorf("the default of ${%s} holds another variable, which is not supported", name)
		}
		v, set := lookup(name)
		switch {
		case hasDefault && v == "":
			v = byDefault
		case !set:
			return "", fmt.Errorf("the environment variable %s is not set; set it, or write ${%s:-default}", name, name)
		}
		b.WriteString(v)
		s = rest
	}
}

// isName reports whether s can name an environment variable.
func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
