// Package registry connects plugins with the configuration. A plugin has a function
// Register(*Registry), which the program calls for each plugin that it wants. Package config
// then decodes the options of the plugin in the configuration file.
package registry

import (
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/flow"
)

// Decode decodes the options of a plugin in the configuration into config, a pointer to a
// struct whose fields have yaml tags. An option that is unknown, missing or of the wrong type
// is an error with line and column. A field of type Secret or Template named "x" can also be
// given as "x_file". The plugin returns Decode's error unchanged.
type Decode func(config any) error

// Size is a number of bytes, written as 64MB or 1GiB. It is at least 1.
type Size int64

// File is a file that the configuration names, written as its path. When the file changes, the
// configuration is read again.
type File struct {
	// Path is the path as it is written.
	Path string
	// Content is the content of the file, at most 16 MiB.
	Content []byte
}

// Texts is a list of texts in the configuration. A list of one may be written as a single text.
type Texts []string

// Env is what the program gives to every plugin.
type Env struct {
	// AllowSinks are the networks that sinks may connect to besides public addresses.
	AllowSinks []netip.Prefix
	// Logger is never nil.
	Logger *slog.Logger
}

// BuildSink makes a sink. It must not connect to anything: checking a configuration
// builds all its sinks. An error that is, or joins, *pipeline.FieldError is reported
// at the place of its field.
type BuildSink func(decode Decode, env Env) (pipeline.Sink, error)

// BuildReader makes a reader, under the same rules as BuildSink.
type BuildReader func(decode Decode, env Env) (pipeline.Reader, error)

// BuildSource makes a source, under the same rules as BuildSink.
type BuildSource func(decode Decode, env Env) (pipeline.Source, error)

// Transport holds the settings of a transport between the stages: a pointer to a struct whose
// fields have yaml tags.
type Transport interface {
	// Validate returns all mistakes as joined *pipeline.FieldErrors. It makes no connection.
	Validate() error
	// Open makes the transport, for a Router.
	Open() (flow.Transport, error)
}

// Kinds are the kinds of one sort of plugin, by what the configuration calls them; a B makes one of a kind. The zero
// Kinds has none. It is not safe for concurrent use.
type Kinds[B any] struct{ builds map[string]B }

// Add registers the kind that the configuration calls kind. A later registration replaces an earlier one.
func (k *Kinds[B]) Add(kind string, build B) {
	if k.builds == nil {
		k.builds = make(map[string]B)
	}
	k.builds[kind] = build
}

// Lookup returns what was registered as kind.
func (k *Kinds[B]) Lookup(kind string) (build B, ok bool) {
	build, ok = k.builds[kind]
	return build, ok
}

// Names lists the registered kinds in alphabetical order.
func (k *Kinds[B]) Names() []string { return slices.Sorted(maps.Keys(k.builds)) }

// Registry holds the plugins that a configuration may name. The zero value is empty
// and ready; it is not safe for concurrent use.
type Registry struct {
	Sinks   Kinds[BuildSink]
	Sources Kinds[BuildSource]
	// Readers are named by one of their options, in contrast to sinks and sources: {wasm: FILE, types: [...]}.
	Readers Kinds[BuildReader]
	// Transports return their default settings.
	Transports Kinds[func() Transport]
}

// AddSink registers the kind of sink kind in r. Its options are decoded into a C, from which
// build makes a sink of type S.
func AddSink[C any, S pipeline.Sink](r *Registry, kind string, build func(C, Env) (S, error)) {
	r.Sinks.Add(kind, func(decode Decode, env Env) (pipeline.Sink, error) {
		var c C
		if err := decode(&c); err != nil {
			return nil, err
		}
		s, err := build(c, env)
		if err != nil {
			return nil, err // an untyped nil
		}
		return s, nil
	})
}

// AddReader makes r know kind, the readers of type R, whose options are a C, and which build makes.
func AddReader[C any, R pipeline.Reader](r *Registry, kind string, build func(C, Env) (R, error)) {
	r.Readers.Add(kind, func(decode Decode, env Env) (pipeline.Reader, error) {
		var c C
		if err := decode(&c); err != nil {
			return nil, err
		}
		rd, err := build(c, env)
		if err != nil {
			return nil, err // not a typed nil
		}
		return rd, nil
	})
}

// Connection says how a sink connects to its receiver. The Config of each sink that uses HTTP
// or SMTP embeds it, so that its options are options of the sink.
type Connection struct {
	// CA is a PEM file with the certificate authorities to trust instead of the system's, for a
	// receiver with a certificate of your own authority. It is read again when the
	// configuration is. Default: the system's.
	CA string `yaml:"ca"`
	// Cert is a PEM file with the client certificate for a receiver that asks for one (mTLS),
	// followed by the intermediate certificates. It is read for each new connection, so that it
	// can be renewed in place. It needs Key. Default: none.
	Cert string `yaml:"cert"`
	// Key is a PEM file with the private key of Cert.
	Key string `yaml:"key"`
	// Proxy is the URL of a proxy to connect through, such as http://proxy.example.com:3128:
	// http, https, socks5 or socks5h, with a user and password if the proxy asks for them.
	// E-mail can use the last two only. The environment (HTTPS_PROXY) is ignored. Default:
	// none.
	Proxy Secret `yaml:"proxy"`

	// Allow are the networks that the sink may connect to besides public addresses. A
	// configuration file sets it with allow.sinks.
	Allow []netip.Prefix `yaml:"-"`
	// RootCAs are the certificate authorities to trust if they are not in a file. Nil means
	// those of CA.
	RootCAs *x509.CertPool `yaml:"-"`
	// Client sends the requests if it is set. The settings above are ignored then, and nothing
	// restricts which addresses it connects to. Redirects are not followed in any case. Sinks
	// with one Client share its connections.
	Client *http.Client `yaml:"-"`
}

// Template is a template for the messages of a sink, which New of package pipeline/templates makes of its source. Nil
// means the sink's own layout.
type Template interface {
	// Validate returns the mistake in the template, or nil.
	Validate() error
}

const redacted = "REDACTED"

// Secret is a text that cannot be printed by accident: no verb of package fmt, no encoder and
// no logger shows it, not even in an unexported field. The zero Secret is none.
type Secret struct {
	value *string // a pointer, because fmt prints unexported fields without calling their methods
}

// NewSecret returns s as a Secret. The sinks refuse that of an empty text, such as of an environment variable that is
// not set: where there is to be no secret, leave the zero Secret.
func NewSecret(s string) Secret { return Secret{&s} }

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether s is the zero Secret or that of an empty text.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// IsUnset reports whether s was made of an empty text.
func (s Secret) IsUnset() bool { return s.value != nil && *s.value == "" }

// String returns "REDACTED", or "" for an empty Secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString returns what String returns.
func (s Secret) GoString() string { return s.String() }

// Format writes what String returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns what String returns; JSON and YAML use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue returns what String returns.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)
