package pipeline

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Option describes a field of a Subscription once, for all that lets people set or see it: the configuration, flags,
// the form of the web page, the description of the API and the documents.
type Option struct {
	// Name is the key in YAML and JSON. A field of Expire, Follow or Value has the name of both: follow.depth.
	Name string
	// Doc says what the option does, in Markdown. Its first sentence suffices where there is little room.
	Doc string
	// Default is what holds without it, in Markdown. Empty: what Doc says does not hold.
	Default string
	// Values are all that it can be, if they are few.
	Values []OptionValue
	// Min and Max bound a number, or how many values a list has. Without Max there are no bounds.
	Min, Max int
	// Off says that 0, which is less than Min, turns the option off.
	Off bool
	// Words says that it is a list of words. People separate them by commas, and the values of other lists by lines.
	Words bool
	// Matching says that it decides which differences are reported, so that a trial tries its other value.
	Matching bool
	// Arg stands for the value in the help of the flag. A text, number or list without it has no flag.
	Arg string
	// Flag is the name of the flag where it is not Name with dashes.
	Flag string
	// Label is the name of the field of the form, in the set of fields Group. Without it the form has no such field.
	Label, Group string

	path [][]int // fields that lead to it, as reflect.Value.FieldByIndex takes them
	kind reflect.Kind
}

// OptionValue is a value of an option, and what it means, in Markdown.
type OptionValue struct{ Value, Doc string }

// Sets of fields of the form of a subscription.
const (
	GroupValue = "A value in place of the text"
	GroupPage  = "The page"
	GroupParts = "Parts of the page"
	GroupWords = "Words"
)

// Groups returns the values of Option.Group in the order of the form.
func Groups() []string { return []string{"", GroupValue, GroupPage, GroupParts, GroupWords} }

// Options returns a description of each field of a Subscription, in the order of the documents. It must not be changed.
func Options() []Option { return options }

// OptionCalled returns the option of a name, which may have an index such as keywords[0].
func OptionCalled(name string) (Option, bool) {
	name, _, _ = strings.Cut(name, "[")
	i := slices.IndexFunc(options, func(o Option) bool { return o.Name == name })
	if i < 0 {
		return Option{}, false
	}
	return options[i], true
}

// findPath sets the path and kind of o.
func (o Option) findPath() Option {
	t := reflect.TypeFor[Subscription]()
	for name := range strings.SplitSeq(o.Name, ".") {
		fields := reflect.VisibleFields(t)
		i := slices.IndexFunc(fields, func(f reflect.StructField) bool { return jsonName(f) == name })
		if i < 0 {
			panic(fmt.Sprintf("pipeline: a Subscription has no field %q", o.Name))
		}
		o.path = append(o.path, fields[i].Index)
		if t = fields[i].Type; t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	o.kind = t.Kind()
	return o
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Field returns the field of s, which can be set. It makes what has the field, such as Follow.
func (o Option) Field(s *Subscription) reflect.Value { return o.find(s, true) }

// find returns the field of s. Unless create, it returns the zero Value where nothing has the field.
func (o *Option) find(s *Subscription, create bool) reflect.Value {
	v := reflect.ValueOf(s).Elem()
	for _, index := range o.path {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() && create {
				v.Set(reflect.New(v.Type().Elem()))
			}
			if v = v.Elem(); !v.IsValid() {
				return v
			}
		}
		v = v.FieldByIndex(index)
	}
	return v
}

// Kind returns the kind of the value.
func (o Option) Kind() reflect.Kind { return o.kind }

// OfDocument reports whether the option is one of View: subscriptions that differ in it watch different documents.
func (o Option) OfDocument() bool {
	view, _ := reflect.TypeFor[Subscription]().FieldByName("View")
	return o.path[0][0] == view.Index[0]
}

// Markdown returns Doc, Values and bounds as one text. Only the first sentence of Doc is in it if brief.
func (o Option) Markdown(brief bool) string {
	first, rest, more := strings.Cut(o.Doc, ". ")
	values := make([]string, len(o.Values))
	for i, v := range o.Values {
		if values[i] = "`" + v.Value + "`"; v.Doc != "" {
			values[i] += " (" + v.Doc + ")"
		}
	}
	if len(values) > 0 {
		first += ": " + joinOr(values)
	}
	switch {
	case o.Max == 0 || o.kind == reflect.Slice:
	case o.Min == 0:
		first += fmt.Sprintf(", at most %d", o.Max)
	default:
		first += fmt.Sprintf(", %d to %d", o.Min, o.Max)
	}
	if more && !brief {
		return first + ". " + rest
	}
	return first
}

// Sentence returns the description with the default, without Markdown.
func (o Option) Sentence() string {
	text := o.Markdown(false) + "."
	if o.Default != "" {
		text += " Default: " + o.Default + "."
	}
	text = PlainText(text, strings.TrimSpace)
	return strings.ToUpper(text[:1]) + text[1:]
}

// OutOfBounds returns why n cannot be the value of o, or "".
func (o Option) OutOfBounds(n int) string {
	if o.Max == 0 || o.Min <= n && n <= o.Max || o.Off && n == 0 {
		return ""
	}
	why := fmt.Sprintf("%d is not between %d and %d", n, o.Min, o.Max)
	if o.Off {
		why += "; 0 turns it off"
	}
	return why
}

// check calls bad if the field of s is out of bounds, or is none of Values. The zero value stands for the default.
func (o *Option) check(s *Subscription, bad func(field, format string, args ...any)) {
	v := o.find(s, false)
	if !v.IsValid() || v.IsZero() {
		return
	}
	switch v = reflect.Indirect(v); {
	case v.CanInt() && o.OutOfBounds(int(v.Int())) != "":
		bad(o.Name, "%s", o.OutOfBounds(int(v.Int())))
	case v.Kind() == reflect.String:
		o.checkValue(o.Name, v.String(), bad)
	case v.Kind() == reflect.Slice && o.Values != nil:
		for i := range v.Len() {
			o.checkValue(fmt.Sprintf("%s[%d]", o.Name, i), v.Index(i).String(), bad)
		}
	}
}

func (o *Option) checkValue(field, value string, bad func(field, format string, args ...any)) {
	known := make([]string, len(o.Values))
	for i, v := range o.Values {
		if known[i] = v.Value; value == v.Value {
			return
		}
	}
	if len(known) > 0 {
		bad(field, "%q is not known; write %s", value, joinOr(known))
	}
}

// joinOr returns all in one text, with "or" before the last.
func joinOr(all []string) string {
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// PlainText returns Markdown without its marks. It calls code for what stands between backquotes.
func PlainText(markdown string, code func(string) string) string {
	parts := strings.Split(markdownLink.ReplaceAllString(markdown, "$1"), "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = code(parts[i])
	}
	return strings.Join(parts, "")
}
