package registry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

func TestSecretNeverPrints(t *testing.T) {
	const text = "hunter2"
	s := registry.NewSecret(text)
	type hidden struct{ s registry.Secret }
	type shown struct{ S registry.Secret }
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%U", "%t"} {
		fmt.Fprintf(&out, verb, s)
		fmt.Fprintf(&out, verb, &s)
		fmt.Fprintf(&out, verb, hidden{s})
		fmt.Fprintf(&out, verb, shown{s})
		fmt.Fprintf(&out, verb, []registry.Secret{s})
		fmt.Fprintf(&out, verb, map[string]hidden{"a": {s}})
	}
	for _, v := range []any{s, hidden{s}, shown{s}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v)
	}
	fmt.Fprint(&out, errors.New(s.String()), fmt.Errorf("%w: %v", errors.New("x"), s))
	for _, leak := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text)} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("printed: %s", out.String())
		}
	}
	if got := s.Reveal(); got != text {
		t.Errorf("Reveal() = %q, want %q", got, text)
	}
}

func TestZeroSecret(t *testing.T) {
	var s registry.Secret
	if !s.IsZero() || s.Reveal() != "" || s.String() != "" || s.IsUnset() {
		t.Errorf("the zero Secret is not empty: %v", s)
	}
	if s = registry.NewSecret(""); !s.IsZero() || s.String() != "" || !s.IsUnset() {
		t.Errorf("the Secret of an empty text is not one that is not set: %v", s)
	}
}

func TestRegistry(t *testing.T) {
	var r registry.Registry
	if _, ok := r.Sinks.Lookup("a"); ok {
		t.Error("the empty registry knows a sink")
	}
	first, second := errors.New("first"), errors.New("second")
	build := func(err error) registry.BuildSink {
		return func(registry.Decode, registry.Env) (pipeline.Sink, error) { return nil, err }
	}
	r.Sinks.Add("b", build(first))
	r.Sinks.Add("a", build(first))
	r.Sinks.Add("a", build(second))
	if got, want := r.Sinks.Names(), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("SinkKinds() = %v, want %v", got, want)
	}
	b, ok := r.Sinks.Lookup("a")
	if !ok {
		t.Fatal("a is not registered")
	}
	if _, err := b(nil, registry.Env{}); !errors.Is(err, second) {
		t.Errorf("got %v, want the later registration", err)
	}
}

func TestRegistryOfSources(t *testing.T) {
	var r registry.Registry
	if _, ok := r.Sources.Lookup("a"); ok {
		t.Error("the empty registry knows a source")
	}
	want := errors.New("second")
	for _, err := range []error{errors.New("first"), want} {
		r.Sources.Add("a", func(registry.Decode, registry.Env) (pipeline.Source, error) { return nil, err })
	}
	b, ok := r.Sources.Lookup("a")
	if !ok {
		t.Fatal("a is not registered")
	}
	if _, err := b(nil, registry.Env{}); !errors.Is(err, want) || !slices.Equal(r.Sources.Names(), []string{"a"}) || len(r.Sinks.Names()) != 0 {
		t.Errorf("got %v of %v, want the later registration", err, r.Sources.Names())
	}
}

func TestRegistryOfReaders(t *testing.T) {
	var r registry.Registry
	if _, ok := r.Readers.Lookup("a"); ok {
		t.Error("the empty registry knows a reader")
	}
	want := errors.New("second")
	for _, err := range []error{errors.New("first"), want} {
		registry.AddReader(&r, "a", func(struct{}, registry.Env) (pipeline.Reader, error) { return nil, err })
	}
	b, ok := r.Readers.Lookup("a")
	if !ok {
		t.Fatal("a is not registered")
	}
	if _, err := b(func(any) error { return nil }, registry.Env{}); !errors.Is(err, want) || !slices.Equal(r.Readers.Names(), []string{"a"}) {
		t.Errorf("got %v of %v, want the later registration", err, r.Readers.Names())
	}
	wrong := errors.New("wrong options")
	if rd, err := b(func(any) error { return wrong }, registry.Env{}); !errors.Is(err, wrong) || rd != nil {
		t.Errorf("got %v, %v, want the error of the options", rd, err)
	}
}
