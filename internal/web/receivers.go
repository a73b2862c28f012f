package web

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// receiversView is the list of receivers.
type receiversView struct {
	Receivers []listedReceiver
	// Kinds are the kinds of receivers that the user can add.
	Kinds []client.SinkKind
}

// listedReceiver is a receiver. Made is what it was made of on the page, or nil.
type listedReceiver struct {
	inspect.Receiver
	Made *client.Sink
}

func showReceivers(r *request) (any, error) {
	all, err := r.api.Receivers(r.Context(), inspect.ListFilter{Sinks: true})
	if err != nil {
		return nil, err
	}
	var v receiversView
	made, kinds, err := r.madeSinks()
	if err != nil {
		return nil, err
	}
	v.Kinds = kinds
	for _, x := range all {
		one := listedReceiver{Receiver: x}
		if i := slices.IndexFunc(made, func(s client.Sink) bool { return s.Sink == x.Sink }); i >= 0 {
			one.Made = &made[i]
		}
		v.Receivers = append(v.Receivers, one)
	}
	return v, nil
}

// madeSinks returns the sinks that were made on the page and the kinds that can be made, if the user may know them.
func (r *request) madeSinks() (sinks []client.Sink, kinds []client.SinkKind, err error) {
	if !(view{Bearer: r.bearer}).Admin() {
		return nil, nil, nil
	}
	if sinks, err = r.api.Sinks(r.Context()); err != nil {
		return nil, nil, err
	}
	kinds, err = r.api.SinkKinds(r.Context())
	return sinks, kinds, err
}

// madeSink returns the sink of that name that was made on the page.
func (r *request) madeSink(name string) (client.Sink, error) {
	all, err := r.api.Sinks(r.Context())
	if err != nil {
		return client.Sink{}, err
	}
	i := slices.IndexFunc(all, func(s client.Sink) bool { return s.Sink == name })
	if i < 0 {
		return client.Sink{}, &flow.Refusal{Code: flow.CodeNotFound, Message: "no receiver that was made here is named " + name + "; one of the configuration is changed there"}
	}
	return all[i], nil
}

// receiverView is the form of a receiver.
type receiverView struct {
	Sink client.Sink
	Kind client.SinkKind
	// New says that the form makes a receiver.
	New bool
	// Problems are what is wrong, by the name of the option. Problem is what is wrong with none of them.
	Problems map[string]string
	Problem  string
}

// receiverField is an option in the form of a receiver.
type receiverField struct {
	client.SinkField
	Text, Problem string
	Set           bool // a secret that has a value
}

// showReceiver shows the form of a new receiver of a kind, or of one that was made before.
func showReceiver(r *request) (any, error) {
	v := receiverView{New: true, Sink: client.Sink{Kind: r.form.Get("kind")}}
	if name := r.form.Get("sink"); name != "" {
		var err error
		if v.Sink, err = r.madeSink(name); err != nil {
			return nil, err
		}
		v.New = false
	}
	err := v.findKind(r)
	if v.New && err == nil {
		v.Sink.Sink, err = r.freeName(v.Sink.Kind)
	}
	return v, err
}

// findKind sets the kind of the sink.
func (v *receiverView) findKind(r *request) error {
	kinds, err := r.api.SinkKinds(r.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(kinds, func(k client.SinkKind) bool { return k.Kind == v.Sink.Kind })
	if i < 0 {
		return &flow.Refusal{Code: flow.CodeNotFound, Message: "there is no kind of receiver that is named " + v.Sink.Kind}
	}
	v.Kind = kinds[i]
	return nil
}

// freeName returns a name for a new receiver of a kind.
func (r *request) freeName(kind string) (string, error) {
	all, err := r.api.Receivers(r.Context(), inspect.ListFilter{Sinks: true})
	name := kind
	for n := 2; slices.ContainsFunc(all, func(x inspect.Receiver) bool { return x.Sink == name }); n++ {
		name = fmt.Sprintf("%s-%d", kind, n)
	}
	return name, err
}

// saveReceiver saves the receiver of the form, and sends it a test if the user asks for that. What is wrong shows in the
// form; secrets have to be typed again, since they are never sent back.
func saveReceiver(r *request) (any, error) {
	v := receiverView{New: r.form.Get("new") != "", Problems: make(map[string]string)}
	v.Sink = client.Sink{
		Sink: strings.TrimSpace(r.form.Get("sink")), Kind: r.form.Get("kind"), Secrets: r.form["keep"], Paused: r.form.Get("paused") != "", Options: make(map[string]string),
	}
	if err := v.findKind(r); err != nil {
		return nil, err
	}
	for _, f := range v.Kind.Fields {
		if text := r.form.Get("o." + f.Name); strings.TrimSpace(text) != "" {
			v.Sink.Options[f.Name] = text
		}
	}
	if v.New {
		all, err := r.api.Receivers(r.Context(), inspect.ListFilter{Sinks: true})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(x inspect.Receiver) bool { return x.Sink == v.Sink.Sink }) {
			v.Problem = "There is a receiver of this name already. Choose another."
			return v, nil
		}
	}
	err := r.api.PutSink(r.Context(), v.Sink)
	problem, refused := errors.AsType[*client.Problem](err)
	switch {
	case refused && len(problem.Errors) > 0:
		for _, e := range problem.Errors {
			if option, ok := strings.CutPrefix(e.Location, "body.options."); ok && v.hasField(option) {
				v.Problems[option] = sentence(e.Message)
			} else {
				v.Problem = strings.TrimSpace(v.Problem + " " + sentence(e.Message))
			}
		}
		return v, nil
	case err != nil:
		v.Problem = userMessage(err)
		return v, nil
	}
	note := "The receiver " + v.Sink.Sink + " is saved. Subscriptions name those that they tell."
	if r.form.Get("test") != "" {
		if note, err = actions["test"](r); err != nil {
			note = userMessage(err)
		}
	}
	return nil, &redirect{"/receivers", note}
}

// hasField reports whether the form has a field of this name.
func (v receiverView) hasField(name string) bool {
	return slices.ContainsFunc(v.Kind.Fields, func(f client.SinkField) bool { return f.Name == name })
}

// connectionOptions are what few receivers need.
var connectionOptions = []string{"ca", "cert", "key", "proxy"}

// IsRare reports whether few people set f.
func (f receiverField) IsRare() bool {
	if f.Required || f.Text != "" || f.Set || f.Problem != "" {
		return false
	}
	return f.Type == "template" || strings.Contains(f.Name, ".") || slices.Contains(connectionOptions, f.Name) ||
		f.Default != "" && !f.IsSecret() && f.Name != "username"
}

// IsSecret reports whether the value of f is never shown.
func (f receiverField) IsSecret() bool { return strings.Contains(f.Type, "secret") }

// IsBox reports whether f is a box to mark, and IsLong whether it has lines.
func (f receiverField) IsBox() bool { return f.Type == "true or false" }

// IsLong reports whether f has lines.
func (f receiverField) IsLong() bool {
	return f.Type == "template" || strings.Contains(f.Type, "list") || strings.HasPrefix(f.Type, "mapping")
}

// Label returns the name of f in words.
func (f receiverField) Label() string {
	words := strings.NewReplacer("_", " ", ".", ": ").Replace(f.Name)
	for _, short := range []string{"url", "id", "tls", "sasl", "ca"} {
		if words == short || strings.HasSuffix(words, " "+short) || strings.HasPrefix(words, short+":") {
			words = strings.Replace(words, short, strings.ToUpper(short), 1)
		}
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// Help returns what f is, and how it is written.
func (f receiverField) Help() string {
	help := plainDoc(f.Doc)
	switch {
	case f.Type == "list of mappings":
		help += " In YAML."
	case strings.HasPrefix(f.Type, "mapping"):
		help += " One on each line, such as name: value."
	case strings.Contains(f.Type, "list"):
		help += " One on each line."
	}
	return strings.TrimSpace(help)
}

// Preset returns what holds where f is empty.
func (f receiverField) Preset() string { return plainDoc(f.Default) }

// markdownEscape matches a character that Markdown would take for markup.
var markdownEscape = regexp.MustCompile(`\\([[:punct:]])`)

// plainDoc returns a description in Markdown as text.
func plainDoc(markdown string) string {
	return markdownEscape.ReplaceAllString(pipeline.PlainText(markdown, strings.TrimSpace), "$1")
}

// IsAddress reports whether f is an address, which is seen while it is typed, unlike a token.
func (f receiverField) IsAddress() bool {
	return strings.Contains(f.Name, "url") || f.Name == "homeserver"
}

// Fields returns the fields of the form: those that most people set, or the rare ones.
func (v receiverView) Fields(rare bool) []receiverField {
	var all []receiverField
	for _, x := range v.Kind.Fields {
		f := receiverField{SinkField: x, Problem: v.Problems[x.Name], Set: slices.Contains(v.Sink.Secrets, x.Name)}
		if !f.IsSecret() {
			f.Text = v.Sink.Options[x.Name]
		}
		if f.IsRare() == rare {
			all = append(all, f)
		}
	}
	return all
}

// pauseSink pauses or resumes a receiver that was made on the page.
func pauseSink(r *request, paused bool) error {
	s, err := r.madeSink(r.form.Get("sink"))
	if err != nil {
		return err
	}
	s.Paused = paused
	return r.api.PutSink(r.Context(), s)
}
