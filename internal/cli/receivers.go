package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/inspect/client"
	"github.com/vokter/vokter/internal/manage"
	"github.com/vokter/vokter/internal/migrate"
	"github.com/vokter/vokter/internal/plugins"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// receivers are the sinks in the file of a data directory that are made at run time. A change of the file is applied as
// a change of the configuration is.
type receivers struct {
	app   *app
	dir   string
	again *reloader
	kinds []client.SinkKind
	// requests are changes for the goroutine that reloads.
	requests chan func(context.Context)
}

// commandKind is the kind of sink that runs commands. Who may use the web page may not run commands as its process.
const commandKind = "exec"

// newReceivers returns the receivers in the data directory dir.
func (a *app) newReceivers(dir string) (*receivers, error) {
	r := &receivers{app: a, dir: dir, requests: make(chan func(context.Context))}
	if err := json.Unmarshal(plugins.Described, &r.kinds); err != nil {
		return nil, err
	}
	known := a.plugins()
	r.kinds = slices.DeleteFunc(r.kinds, func(k client.SinkKind) bool {
		_, ok := known.LookupSink(k.Kind)
		return !ok || k.Kind == commandKind || k.Kind == config.Inbox // there is one already
	})
	r.kinds = append(r.kinds, appriseKind)
	return r, nil
}

// appriseKind is what a form takes in place of a kind: an Apprise URL, of which the sink of its kind is made. Those of
// other services go to an Apprise server.
var appriseKind = client.SinkKind{
	Kind: "apprise", Doc: "Takes the address of a receiver as changedetection.io and Apprise write it, such as mailto://user:password@example.com or discord://id/token.",
	Fields: []client.SinkField{
		{Name: "url", Type: "secret", Required: true, Doc: "mailto://, discord://, slack://, tgram://, ntfy://, gotify://, mmost:// and json:// are understood here. An Apprise server passes on all others."},
		{Name: "gateway", Type: "string", Doc: "The address of that Apprise server, such as https://apprise.example.com"},
	},
}

// appriseBody is what an Apprise server is sent: %s is the address that it passes the message on to, in JSON.
const appriseBody = `{"urls": %s, "title": {{trunc 250 .headline | json}}, "body": {{json .details}}, "type": "{{if eq .status "ok"}}info{{else}}warning{{end}}", "format": "text"}`

// fromApprise returns the sink that the Apprise URL in s means.
func fromApprise(s client.Sink) (client.Sink, error) {
	kind, options, err := migrate.Apprise(s.Options["url"])
	gateway := strings.TrimSuffix(strings.TrimSpace(s.Options["gateway"]), "/")
	if errors.Is(err, migrate.ErrNoSink) && gateway != "" {
		address, failed := json.Marshal(strings.TrimSpace(s.Options["url"]))
		if failed != nil {
			return s, failed
		}
		literal := strings.ReplaceAll(string(address), "{{", `{{"{{"}}`) // no template
		kind, err = "webhook", nil
		options = map[string]string{"url": gateway + "/notify", "success_status": "200", "body": fmt.Sprintf(appriseBody, literal)}
	}
	if err != nil {
		return s, &pipeline.FieldError{Field: "options.url", Reason: err.Error()}
	}
	s.Kind, s.Options = kind, options
	return s, nil
}

// Kinds returns the kinds of sinks that can be made.
func (r *receivers) Kinds() []client.SinkKind { return r.kinds }

// Sinks returns the sinks without their secrets, in the order of their names.
func (r *receivers) Sinks() ([]client.Sink, error) {
	made, err := config.ReadMadeSinks(r.dir)
	if err != nil {
		return nil, err
	}
	all := []client.Sink{}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		s := client.Sink{Sink: name, Kind: made[name].Kind, Options: make(map[string]string), Paused: made[name].Beside["paused"] == true}
		for _, f := range r.fieldsOf(s.Kind) {
			value := optionAt(made[name].Options, f.Name)
			switch {
			case value == nil:
			case isSecret(f, value):
				s.Secrets = append(s.Secrets, f.Name)
			default:
				s.Options[f.Name] = config.MadeOptionText(value)
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// fieldsOf returns the options of a kind.
func (r *receivers) fieldsOf(kind string) []client.SinkField {
	i := slices.IndexFunc(r.kinds, func(k client.SinkKind) bool { return k.Kind == kind })
	if i < 0 {
		return nil
	}
	return r.kinds[i].Fields
}

// isSecret reports whether value, of the option f, is never shown again: that of a secret, or a body with an Apprise URL.
func isSecret(f client.SinkField, value any) bool {
	text, _ := value.(string)
	return strings.Contains(f.Type, "secret") || strings.HasPrefix(text, appriseBody[:strings.Index(appriseBody, "%")])
}

// optionAt returns the option at a path such as tls.ca, or nil.
func optionAt(options map[string]any, path string) any {
	name, rest, inner := strings.Cut(path, ".")
	if !inner {
		return options[name]
	}
	within, _ := options[name].(map[string]any)
	return optionAt(within, rest)
}

// setOption sets the option at a path such as tls.ca.
func setOption(options map[string]any, path string, value any) {
	name, rest, inner := strings.Cut(path, ".")
	if !inner {
		options[name] = value
		return
	}
	within, ok := options[name].(map[string]any)
	if !ok {
		within = make(map[string]any)
		options[name] = within
	}
	setOption(within, rest, value)
}

// Put adds or replaces a sink.
func (r *receivers) Put(ctx context.Context, s client.Sink) error {
	if !slices.ContainsFunc(r.kinds, func(k client.SinkKind) bool { return k.Kind == s.Kind }) {
		return &pipeline.FieldError{Field: "kind", Reason: fmt.Sprintf("%q is no kind of sink that can be made here", s.Kind)}
	}
	if !config.ValidSinkName(s.Sink) {
		return &pipeline.FieldError{Field: "sink", Reason: fmt.Sprintf("%q cannot be the name of a receiver; use letters, digits, \"_\", \"-\" and \".\"", s.Sink)}
	}
	if s.Kind == appriseKind.Kind {
		var err error
		if s, err = fromApprise(s); err != nil {
			return err
		}
	}
	return r.change(ctx, func(made map[string]config.MadeSink) error {
		old, known := made[s.Sink]
		if _, taken := r.again.now.Options[s.Sink]; taken && !known {
			return &pipeline.FieldError{Field: "sink", Reason: "a receiver of the configuration has this name; choose another"}
		}
		now := config.MadeSink{Kind: s.Kind, Options: make(map[string]any), Beside: old.Beside}
		if now.Beside == nil {
			now.Beside = make(map[string]any)
		}
		if delete(now.Beside, "paused"); s.Paused {
			now.Beside["paused"] = true
		}
		var errs []error
		fields := r.fieldsOf(s.Kind)
		for name := range s.Options {
			if !slices.ContainsFunc(fields, func(f client.SinkField) bool { return f.Name == name }) {
				errs = append(errs, &pipeline.FieldError{Field: "options." + name, Reason: "there is no such option of " + s.Kind})
			}
		}
		for _, f := range fields {
			text := s.Options[f.Name]
			switch {
			case strings.TrimSpace(text) != "":
				value, err := config.ParseMadeOption(f.Type, text)
				if err != nil {
					errs = append(errs, &pipeline.FieldError{Field: "options." + f.Name, Reason: err.Error()})
				}
				setOption(now.Options, f.Name, value)
			case old.Kind == s.Kind && slices.Contains(s.Secrets, f.Name):
				if value := optionAt(old.Options, f.Name); isSecret(f, value) && value != nil {
					setOption(now.Options, f.Name, value)
				}
			}
		}
		made[s.Sink] = now
		return errors.Join(errs...)
	})
}

// Remove removes a sink.
func (r *receivers) Remove(ctx context.Context, sink string) error {
	return r.change(ctx, func(made map[string]config.MadeSink) error {
		if _, known := made[sink]; !known {
			return &flow.Refusal{Code: flow.CodeNotFound, Message: fmt.Sprintf("no receiver that was made here is named %q; one of the configuration is removed there", sink)}
		}
		delete(made, sink)
		return nil
	})
}

// change has the goroutine that reloads make a change, and waits for it.
func (r *receivers) change(ctx context.Context, edit func(map[string]config.MadeSink) error) error {
	done := make(chan error, 1)
	select {
	case r.requests <- func(ctx context.Context) { done <- r.apply(ctx, edit) }:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// apply writes the file as edit leaves it and puts it in force, if the whole configuration is valid with it.
func (r *receivers) apply(ctx context.Context, edit func(map[string]config.MadeSink) error) error {
	if r.again.started.Transport != nil {
		return &flow.Refusal{Code: flow.CodeConflict, Message: "several processes share these pages, so that their receivers stand in the configuration"}
	}
	made, err := config.ReadMadeSinks(r.dir)
	if err == nil {
		err = edit(made)
	}
	if err != nil {
		return err
	}
	content, err := config.EncodeMadeSinks(made)
	if err != nil {
		return err
	}
	r.app.receivers = content
	c, err := r.again.load()
	r.app.receivers = nil
	if err != nil {
		return r.fieldErrors(err)
	}
	closeSinks(c.Router.Sinks) // those of the reload are used
	if err := manage.ReplaceFile(filepath.Join(r.dir, config.ReceiversFile), strings.TrimSuffix(string(content), "\n"), 0o600); err != nil {
		return err
	}
	r.again.seen = digestContent(r.again.path, r.again.files)
	return r.again.reload(ctx)
}

// fieldErrors returns the mistakes in the file of receivers as errors about the options of the sink.
func (r *receivers) fieldErrors(err error) error {
	mistakes, ok := errors.AsType[config.Errors](err)
	if !ok {
		return err
	}
	var errs []error
	for _, m := range mistakes {
		place, reason, ok := strings.Cut(m.Message, ": ")
		parts := strings.SplitN(place, ".", 4) // sinks, the name, the kind, the option
		switch {
		case m.File != filepath.Join(r.dir, config.ReceiversFile) || !ok || parts[0] != "sinks":
			errs = append(errs, &flow.Refusal{Code: flow.CodeConflict, Message: m.Message})
		case len(parts) == 4:
			errs = append(errs, &pipeline.FieldError{Field: "options." + parts[3], Reason: reason})
		default:
			errs = append(errs, &pipeline.FieldError{Field: "sink", Reason: reason})
		}
	}
	return errors.Join(errs...)
}

var _ manage.SinkStore = (*receivers)(nil)
