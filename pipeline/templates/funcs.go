package templates

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/vokter/vokter/internal/render"
)

// maxValue is the largest result of a function, in bytes.
const maxValue = 64 << 10

var errLarge = errors.New("the result has more than 64 KB")

// sinkEscape is the name of the function that is applied to each printed value, and a prefix for
// the functions that replace those of escapeNames at the end of a pipeline. A template cannot call them,
// because they are added after parsing.
const sinkEscape = "_escape"

// builtins are the functions of text/template that are harmless.
var builtins = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "len", "index"}

// escapeNames are the names of the escape functions among functions. In a sink that escapes, they do what the
// sink does.
var escapeNames = []string{"mrkdwn", "html", "markdown"}

// escapeFuncs are the functions of escapeNames for sinks that do not escape.
var escapeFuncs = map[string]func(string) string{"mrkdwn": render.Mrkdwn, "html": render.HTML, "markdown": render.Markdown}

// functions are the functions that this package adds. The work of each is proportional to its
// arguments, and its result has at most maxValue bytes. Errors quote no values, because those
// are page text.
var functions = template.FuncMap{
	"upper":    func(s string) (string, error) { return limitSize(strings.ToUpper(s)) },
	"lower":    func(s string) (string, error) { return limitSize(strings.ToLower(s)) },
	"trim":     strings.TrimSpace,
	"trunc":    trunc,
	"join":     join,
	"default":  defaultTo,
	"date":     date,
	"replace":  replace,
	"quote":    func(s string) (string, error) { return limitSize(strconv.Quote(s)) },
	"json":     render.JSON,
	"print":    func(args ...any) (string, error) { return format(fmt.Sprint, args) },
	"printf":   printf,
	"mrkdwn":   func(s string) (string, error) { return limitSize(render.Mrkdwn(s)) },
	"html":     func(s string) (string, error) { return limitSize(render.HTML(s)) },
	"markdown": func(s string) (string, error) { return limitSize(render.Markdown(s)) },
}

// functionNames lists the names of all functions that a template may call.
func functionNames() []string {
	return slices.Sorted(slices.Values(slices.AppendSeq(slices.Clone(builtins), maps.Keys(functions))))
}

func limitSize(s string) (string, error) {
	if len(s) > maxValue {
		return "", errLarge
	}
	return s, nil
}

// trunc cuts s to length characters.
func trunc(length int, s string) (string, error) {
	if length < 1 {
		return "", errors.New("the length must be at least 1")
	}
	return render.Cut(s, length, render.Runes), nil
}

func join(separator string, list []string) (string, error) {
	size := len(separator) * len(list)
	for _, s := range list {
		size += len(s)
	}
	if size > maxValue+len(separator) {
		return "", errLarge
	}
	return strings.Join(list, separator), nil
}

func defaultTo(instead, s string) string {
	if s == "" {
		return instead
	}
	return s
}

// date formats a time of the data. Two arguments are a time zone and the time.
func date(layout string, args ...string) (string, error) {
	if len(args) < 1 || len(args) > 2 {
		return "", errors.New("it takes a layout, a time zone if not UTC, and a time")
	}
	at, err := time.Parse(time.RFC3339, args[len(args)-1])
	if err != nil {
		return "", errors.New("the last argument is not a time such as .time")
	}
	zone := time.UTC
	if len(args) == 2 {
		if zone, err = time.LoadLocation(args[0]); err != nil {
			return "", errors.New("the time zone is not known; write one such as Europe/Lisbon")
		}
	}
	return limitSize(at.In(zone).Format(layout))
}

func replace(old, with, s string) (string, error) {
	if len(s)+strings.Count(s, old)*max(len(with)-len(old), 0) > maxValue {
		return "", errLarge
	}
	return strings.ReplaceAll(s, old, with), nil
}

func printf(layout string, args ...any) (string, error) {
	if !isPlainFormat(layout) {
		return "", errors.New("the format has a width, or a verb other than %s, %q, %d and %v")
	}
	return format(func(args ...any) string { return fmt.Sprintf(layout, args...) }, args)
}

// format prints args, which are texts, numbers or truth values, unless they are too large
// together.
func format(with func(...any) string, args []any) (string, error) {
	size := 0
	for _, a := range args {
		switch a := a.(type) {
		case string:
			size += len(a)
		case int, float64, bool:
		default:
			return "", errors.New("only texts, numbers, true and false can be printed")
		}
	}
	if size > maxValue {
		return "", errLarge
	}
	return limitSize(with(args...))
}
