package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// Program is a registry.Template as package templates makes it. It stands here as an interface, so that sinks without a
// template do not link text/template.
type Program interface {
	registry.Template
	// Execute executes the template on n and trims the result.
	Execute(ctx context.Context, n pipeline.Notification, how PrintOptions) (string, error)
}

// PrintOptions says how to write the values that a template prints.
type PrintOptions struct {
	// Escape escapes a value for the receiver. Nil means that values are not escaped.
	Escape func(string) string
	// ComposesEscapes says that escape functions in the template are applied before Escape. In a sink
	// with markup of its own they are replaced by Escape.
	ComposesEscapes bool
	// Max is the largest size of the output, in bytes. 0 means 64 KB.
	Max int
	// JSON says that results of the function json are not escaped.
	JSON bool
}

// Template is the template of a sink. The zero value is none. It is safe for concurrent use.
type Template struct{ program Program }

// CompileTemplate returns the template in a field of a Config. A mistake is a *pipeline.FieldError.
func CompileTemplate(field string, t registry.Template) (Template, error) {
	if t == nil {
		return Template{}, nil
	}
	if err := t.Validate(); err != nil {
		return Template{}, &pipeline.FieldError{Field: field, Reason: err.Error()}
	}
	p, ok := t.(Program)
	if !ok {
		return Template{}, &pipeline.FieldError{Field: field, Reason: fmt.Sprintf("%T is no template; make one with New of package pipeline/templates", t)}
	}
	return Template{p}, nil
}

// TryTemplate executes t, which is not nil, on all Samples and returns the first error.
func TryTemplate(t registry.Template) error {
	compiled, err := CompileTemplate("template", t)
	if err != nil {
		return t.Validate()
	}
	for _, s := range Samples() {
		if _, err := compiled.program.Execute(context.Background(), s.Notification, PrintOptions{}); err != nil {
			return fmt.Errorf("fails for %s: %w", s.Name, err)
		}
	}
	return nil
}

// IsZero reports whether there is no template.
func (t Template) IsZero() bool { return t.program == nil }

// Render executes the template on n and trims the result. ok is false if there is no template,
// or it failed or printed nothing: then the sink uses its own layout. A failure is recorded in the
// attempt of ctx as degraded.
func (t Template) Render(ctx context.Context, n pipeline.Notification) (text string, ok bool) {
	return t.RenderFor(ctx, n, nil)
}

// RenderFor is Render for a sink whose receiver reads markup: every value that the
// template prints goes through escape, once.
func (t Template) RenderFor(ctx context.Context, n pipeline.Notification, escape func(string) string) (text string, ok bool) {
	if t.IsZero() {
		return "", false
	}
	text, err := t.program.Execute(ctx, n, PrintOptions{Escape: escape})
	if err == nil {
		return text, true
	}
	if !errors.Is(err, context.Canceled) { // a cancelled attempt does not count
		pipeline.AttemptFrom(ctx).Degraded("the template failed: " + err.Error())
	}
	return "", false
}

// FileError returns err, an error of opening or reading the file called name, in words for the user who named it.
func FileError(name string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file %s does not exist", name)
	}
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("the file %s cannot be read: %w", name, err)
}

// Sample is a notification to try a template on.
type Sample struct {
	Name         string // completes "fails for"
	Notification pipeline.Notification
}

// Samples returns a notification of each sort, and one of a hostile page.
func Samples() []Sample {
	change := pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/terms", ID: "0123456789ABCDEFGHIJKLMNOP", Type: pipeline.NotificationType,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Client: "default", Version: 7, Title: "Terms of Service", Language: "en",
		Change: "PONMLKJIHGFEDCBA9876543210",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "arbitration", Text: "binding arbitration", Snippet: "... through binding arbitration in ...", Offset: 40},
			{Event: pipeline.Removed, Keyword: "refund", Text: "a full refund", Snippet: "... you get a full refund within ...", Offset: 90},
		},
	}
	every := change
	every.Diffs = []pipeline.Diff{
		{Event: pipeline.Removed, Text: "10", Snippet: "Price: 10", Offset: 40, Edit: 1},
		{Event: pipeline.Added, Text: "12", Snippet: "Price: 12", Offset: 40, Edit: 1},
	}
	timeout := change
	timeout.Status, timeout.Reason, timeout.Diffs, timeout.Title, timeout.Version = pipeline.StatusTimeout, "answered 404 Not Found", nil, "", 0
	recovered := timeout
	recovered.Status, recovered.Reason, recovered.Since = pipeline.StatusRecovered, "it answers again after 2h10m; 23 checks in a row had failed", change.Time.Add(-130*time.Minute)
	digest := change
	digest.Type = pipeline.NotificationTypeDigest
	for i := range 2 {
		digest.Items = append(digest.Items, pipeline.Item{
			ID: fmt.Sprint("ITEM", i), Time: change.Time, Version: uint64(6 + i), Title: change.Title, Change: change.Change, Diffs: 1,
		})
	}
	test := change
	test.Type, test.Title, test.Change, test.Version = pipeline.NotificationTypeTest, "Test message of vokter-stream", "", 0
	health := pipeline.Notification{
		Status: string(pipeline.HealthFailing), ID: change.ID, Type: pipeline.NotificationTypeHealth, Time: change.Time, Reason: timeout.Reason,
		Health: &pipeline.Health{
			ID: change.Change, Event: pipeline.HealthFailing, Time: change.Time, URL: change.URL, Class: "http", Reason: timeout.Reason,
			Since: change.Time, Count: 3,
		},
	}
	return []Sample{
		{"an ordinary notification", change},
		{"a page that cannot be read, which has no diffs", timeout},
		{"a digest", digest},
		{"a health event, which has no diffs", health},
		{"a page that tries to break it", hostileSample(digest)},
		{"the message of a test", test},
		{"a subscription without keywords", every},
		{"a page that answers again, which has no diffs", recovered},
	}
}

// hostileSample returns n with the texts of a page that attacks receivers, and with as many
// differences as one notification can have.
func hostileSample(n pipeline.Notification) pipeline.Notification {
	text := "{{.}} {{range 9}} <!channel> <@U1> <http://x|y> </script> [a](http://b) @everyone `*_~| %s %1000000d \" ' \\ \u202e\x00\r\n" +
		strings.Repeat("x", 100)
	n.Title, n.Diffs, n.Items = text, nil, nil
	for i := range 25 {
		item := pipeline.Item{ID: fmt.Sprint("ITEM", i), Time: n.Time, Title: text, Diffs: 2}
		n.Items = append(n.Items, item)
		for _, e := range []pipeline.Event{pipeline.Added, pipeline.Removed} {
			n.Diffs = append(n.Diffs, pipeline.Diff{Event: e, Keyword: text, Text: text, Snippet: text})
		}
	}
	return n
}
