package kafka

import (
	"errors"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

func TestValidate(t *testing.T) {
	good := func(f func(*Config)) Config {
		c := Config{Brokers: []string{"kafka-1:9092"}, Topic: "alerts"}
		f(&c)
		return c
	}
	for _, tt := range []struct {
		c    Config
		want []string
	}{
		{good(func(*Config) {}), nil},
		{good(func(c *Config) { c.Topic, c.Key, c.MaxMessageBytes = "a.b_c-1", "client", 6<<20 }), nil},
		{Config{}, []string{"brokers: ", "topic: "}},
		{good(func(c *Config) { c.Brokers = []string{"kafka"} }), []string{"brokers[0]: "}},
		{good(func(c *Config) { c.Topic = "a b" }), []string{`topic: "a b"`}},
		{good(func(c *Config) { c.Topic = ".." }), []string{"topic: "}},
		{good(func(c *Config) { c.Topic = strings.Repeat("a", 250) }), []string{"topic: 250"}},
		{good(func(c *Config) { c.Key = "url" }), []string{`key: "url" is not known; it is one of page, document, client, notification`}},
		{good(func(c *Config) { c.MaxMessageBytes = 1 }), []string{"max_message_bytes: 1 "}},
		{good(func(c *Config) { c.MaxMessageBytes = 1 << 30 }), []string{"max_message_bytes: "}},
		{good(func(c *Config) { c.TLS.CA = "ca.pem" }), []string{"tls.enable: "}},
		{good(func(c *Config) { c.SASL.User = "u" }), []string{"sasl.mechanism: ", "sasl.password: "}[:1]},
	} {
		s, err := New(tt.c)
		if (err == nil) != (len(tt.want) == 0) || (s == nil) != (err != nil) {
			t.Errorf("%+v: got %v, want %v", tt.c, err, tt.want)
			continue
		}
		if err == nil {
			continue
		}
		if _, ok := errors.AsType[*pipeline.FieldError](err); !ok {
			t.Errorf("%+v: %T is no FieldError", tt.c, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: got %v without %q", tt.c, err, want)
			}
		}
	}
}

func TestRegister(t *testing.T) {
	var r registry.Registry
	Register(&r)
	build, ok := r.LookupSink("kafka")
	if !ok {
		t.Fatal("kafka is not registered")
	}
	decode := func(c Config) registry.Decode {
		return func(v any) error { *v.(*Config) = c; return nil }
	}
	// Nothing listens there, and nobody asks.
	s, err := build(decode(Config{Brokers: []string{"127.0.0.1:1"}, Topic: "t"}), registry.Env{})
	if err != nil || s == nil {
		t.Errorf("got %v, %v", s, err)
	}
	if s, err := build(decode(Config{}), registry.Env{}); err == nil || s != nil {
		t.Errorf("got %v, %v, want an error", s, err)
	}
	failure := errors.New("line 3")
	if _, err := build(func(any) error { return failure }, registry.Env{}); !errors.Is(err, failure) {
		t.Errorf("got %v, want what decoding said", err)
	}
}
