package cli

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/pipeline"
)

// subscriptionFlags are flags for the options of a subscription.
type subscriptionFlags struct {
	options []*optionFlag
	values  []string // selectors
}

// optionFlag is the flag of an option.
type optionFlag struct {
	pipeline.Option
	texts []string // that were given
}

func (f *optionFlag) String() string { return "" }

func (f *optionFlag) Type() string { return cmp.Or(f.Arg, "bool") }

func (f *optionFlag) Set(text string) error {
	if f.Kind() != reflect.Slice {
		f.texts = nil
	}
	f.texts = append(f.texts, text)
	return nil
}

// add adds the flags of all options, except those of the names without.
func (f *subscriptionFlags) add(fs *pflag.FlagSet, without ...string) {
	for _, o := range pipeline.Options() {
		if o.Arg == "" && o.Kind() != reflect.Bool || slices.Contains(without, o.Name) {
			continue
		}
		v := &optionFlag{Option: o}
		f.options = append(f.options, v)
		flag := fs.VarPF(v, strings.TrimPrefix(flagName(o.Name), "--"), "", optionHelp(o))
		if o.Kind() == reflect.Bool && o.Arg == "" {
			flag.NoOptDefVal = "true"
		}
	}
	fs.StringArrayVar(&f.values, "value", nil, "watch a number or word: the `SELECTOR` of where it stands (repeatable)")
	putInGroup(fs, pipeline.GroupValue, "value")
}

// optionHelp returns the help of the flag of o.
func optionHelp(o pipeline.Option) string {
	code := func(s string) string {
		if _, ok := pipeline.OptionCalled(s); ok {
			return flagName(s)
		}
		if strings.Contains(s, " ") {
			return `"` + s + `"`
		}
		return s
	}
	help := pipeline.PlainText(o.Markdown(true), code)
	if o.Kind() == reflect.Slice {
		help += " (repeatable)"
	}
	if !slices.Contains([]string{"", "none", "required"}, o.Default) {
		help += " (default " + pipeline.PlainText(o.Default, code) + ")"
	}
	return help
}

// pageAndKeywords returns the URL and the keywords in args. With --sitemap all args are keywords.
func (f *subscriptionFlags) pageAndKeywords(cmd *cobra.Command, args []string) (url string, keywords []string, err error) {
	sitemap := cmd.Flags().Lookup("sitemap").Value.(*optionFlag).texts
	switch {
	case len(sitemap) > 0 && sitemap[0] == "":
		return "", nil, newUsageError(cmd, "--sitemap is empty; name a sitemap, such as --sitemap https://example.com/sitemap.xml")
	case len(sitemap) > 0:
		return sitemap[0], args, nil
	case len(args) == 0:
		return "", nil, newUsageError(cmd, "no URL is given; write %s URL, or %[1]s URL KEYWORD...", cmd.CommandPath())
	}
	return args[0], args[1:], nil
}

// toSubscription returns the subscription of the flags and arguments, or all mistakes in them.
func (f *subscriptionFlags) toSubscription(cmd *cobra.Command, url string, keywords []string) (pipeline.Subscription, error) {
	s := pipeline.Subscription{URL: url, Client: "default", Sinks: []string{printerSinkName}}
	if len(keywords) > 0 { // otherwise every change
		s.Keywords = keywords
	}
	var wrong []*pipeline.FieldError
	add := func(err error) {
		if fe, ok := errors.AsType[*pipeline.FieldError](err); ok {
			wrong = append(wrong, fe)
		}
	}
	for _, o := range f.options {
		if len(o.texts) > 0 {
			add(config.SetOption(&s, o.Option, o.texts...))
		}
	}
	for _, text := range f.values {
		sel, err := config.ParseSelector(text)
		if err != nil {
			wrong = append(wrong, &pipeline.FieldError{Field: "value", Reason: err.Error()})
		}
		s.Select = append(s.Select, sel)
	}
	if len(f.values) > 0 && s.Value == nil {
		s.Value = new(pipeline.Value)
	}
	for _, o := range f.options {
		if o.Group == pipeline.GroupValue && len(o.texts) > 0 && s.Value == nil {
			wrong = append(wrong, &pipeline.FieldError{Field: o.Name, Reason: "it is a condition on a value; name the value with --offer, --value or --value-pattern"})
		}
	}
	if s.Follow != nil && s.Follow.Depth == 0 && !s.Sitemap && len(wrong) == 0 {
		wrong = append(wrong, &pipeline.FieldError{Field: "follow.depth", Reason: "is missing; " +
			"add --follow-depth 1 to watch some of the linked pages, or name a sitemap with --sitemap"})
	}
	if len(wrong) == 0 {
		wrong = config.CheckSubscription(s)
	}
	if len(wrong) == 0 {
		return s, nil
	}
	lines := make([]string, len(wrong))
	for i, fe := range wrong {
		lines[i] = flagMessage(fe)
	}
	return s, newUsageError(cmd, "%s", strings.Join(lines, "\n"))
}

// anyGiven reports whether a flag of a subscription was given, other than --client.
func (f *subscriptionFlags) anyGiven() bool {
	return len(f.values) > 0 || slices.ContainsFunc(f.options, func(o *optionFlag) bool { return len(o.texts) > 0 && o.Name != "client" })
}

// flagMessage returns the message of fe with the name of the flag or argument.
func flagMessage(fe *pipeline.FieldError) string {
	name, _, _ := strings.Cut(fe.Field, "[")
	if name == "url" || name == "keywords" { // arguments
		return fe.Reason
	}
	return flagName(name) + ": " + fe.Reason
}

// flagName returns the flag of a field.
func flagName(field string) string {
	if o, ok := pipeline.OptionCalled(field); ok && o.Flag != "" {
		return "--" + o.Flag
	}
	return "--" + strings.NewReplacer("_", "-", ".", "-").Replace(field)
}
