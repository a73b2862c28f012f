// Package registry connects plugins with the configuration without either knowing
// the other. A plugin offers Register(*Registry), which the program calls for each
// plugin that it wants; package config decodes what stands in the file for it.
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

// Decode fills config, a pointer to a struct whose fields have yaml tags, from what
// stands in the configuration for a plugin. It is strict: what is unknown, missing or
// of the wrong type is an error, reported with line and column. A field of type Secret
// named "x", or a template, can also be given as "x_file". The plugin returns Decode's
// error as it is.
type Decode func(config any) error

// Texts is a list of texts in the configuration; a list of one may be written as that text.
type Texts []string

// Env is what the program gives to every plugin.
type Env struct {
	// AllowSinks are the networks that sinks may reach besides public addresses.
	AllowSinks []netip.Prefix
	// Logger is never nil.
	Logger *slog.Logger
}

// BuildSink makes a sink. It must not connect to anything: checking a configuration
// builds all its sinks. An error that is, or joins, *pipeline.FieldError is reported
// at the place of its field.
type BuildSink func(decode Decode, env Env) (pipeline.Sink, error)

// BuildSource makes a source, under the same rules as BuildSink.
type BuildSource func(decode Decode, env Env) (pipeline.Source, error)

// Transport is what a configuration says of a transport between the stages: a pointer to a
// struct whose fields have yaml tags.
type Transport interface {
	// Validate returns all that is wrong, as joined *pipeline.FieldErrors. It connects to nothing.
	Validate() error
	// Open makes the transport, for a Router.
	Open() (flow.Transport, error)
}

// Registry holds the plugins that a configuration may name. The zero value is empty
// and ready; it is not safe for concurrent use.
type Registry struct {
	sinks   map[string]BuildSink
	sources map[string]BuildSource
	// transports return settings with their defaults.
	transports map[string]func() Transport
}

// Sink registers the kind of sink that the configuration calls kind. A later
// registration replaces an earlier one.
func (r *Registry) Sink(kind string, build BuildSink) {
	if r.sinks == nil {
		r.sinks = make(map[string]BuildSink)
	}
	r.sinks[kind] = build
}

// AddSink makes r know kind, the sinks of type S, whose options are a C, and which build makes.
func AddSink[C any, S pipeline.Sink](r *Registry, kind string, build func(C, Env) (S, error)) {
	r.Sink(kind, func(decode Decode, env Env) (pipeline.Sink, error) {
		var c C
		if err := decode(&c); err != nil {
			return nil, err
		}
		s, err := build(c, env)
		if err != nil {
			return nil, err // not a typed nil
		}
		return s, nil
	})
}

// LookupSink returns what was registered as kind.
func (r *Registry) LookupSink(kind string) (BuildSink, bool) {
	build, ok := r.sinks[kind]
	return build, ok
}

// SinkKinds lists the registered kinds in alphabetical order.
func (r *Registry) SinkKinds() []string {
	return slices.Sorted(maps.Keys(r.sinks))
}

// Source registers the kind of source that the configuration calls kind. A later
// registration replaces an earlier one.
func (r *Registry) Source(kind string, build BuildSource) {
	if r.sources == nil {
		r.sources = make(map[string]BuildSource)
	}
	r.sources[kind] = build
}

// LookupSource returns what was registered as kind.
func (r *Registry) LookupSource(kind string) (BuildSource, bool) {
	build, ok := r.sources[kind]
	return build, ok
}

// SourceKinds lists the registered kinds of sources in alphabetical order.
func (r *Registry) SourceKinds() []string {
	return slices.Sorted(maps.Keys(r.sources))
}

// Transport registers the transport that the configuration calls kind. settings returns its
// settings as they are where the configuration says nothing.
func (r *Registry) Transport(kind string, settings func() Transport) {
	if r.transports == nil {
		r.transports = make(map[string]func() Transport)
	}
	r.transports[kind] = settings
}

// LookupTransport returns what was registered as kind.
func (r *Registry) LookupTransport(kind string) (settings func() Transport, ok bool) {
	settings, ok = r.transports[kind]
	return settings, ok
}

// TransportKinds lists the registered transports in alphabetical order.
func (r *Registry) TransportKinds() []string {
	return slices.Sorted(maps.Keys(r.transports))
}

// Connection says how a sink reaches its receiver. The Config of each sink that speaks HTTP or
// SMTP embeds one, so that its options stand among those of the sink.
type Connection struct {
	// CA is a file in PEM with the certificate authorities to trust in place of the system's,
	// for a receiver whose certificate is of an authority of your own. It is read again when
	// the configuration is. Default: the system's.
	CA string `yaml:"ca"`
	// Cert is a file in PEM with the certificate that this program shows to a receiver that
	// asks for one (mTLS), and behind it those between it and its authority. It is read for
	// each new connection, so that it can be renewed in place. It goes with Key. Default: none.
	Cert string `yaml:"cert"`
	// Key is a file in PEM with the private key of Cert.
	Key string `yaml:"key"`
	// Proxy is the URL of a proxy to connect through, such as http://proxy.example.com:3128:
	// http, https, socks5 or socks5h, with a user and password where the proxy asks for them.
	// E-mail can use the latter two. The environment (HTTPS_PROXY) is not heeded. Default: none.
	Proxy Secret `yaml:"proxy"`

	// Allow are the networks that may be reached besides public addresses. In a configuration
	// file that is allow.sinks.
	Allow []netip.Prefix `yaml:"-"`
	// RootCAs are the authorities to trust where they are not in a file; nil means those of CA.
	RootCAs *x509.CertPool `yaml:"-"`
	// Client makes the requests in place of a client with the settings above, of which none
	// counts then: what it reaches is up to whoever made it. Redirects are not followed in any
	// case. Sinks with one Client share its connections.
	Client *http.Client `yaml:"-"`
}

// Template is the source of a template for what a sink says, as text/template has it: see
// docs/sinks for its functions and names. Empty: the sink's own layout.
type Template string

const redacted = "REDACTED"

// Secret is a text that cannot be printed by accident: no verb of package fmt, no
// encoder and no logger shows it, also not where it is an unexported field. The zero
// Secret is empty.
type Secret struct {
	value *string // behind a pointer, since fmt prints unexported fields without asking their methods
}

// NewSecret returns s as a Secret.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{&s}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero reports whether s is empty.
func (s Secret) IsZero() bool { return s.value == nil }

// String returns "REDACTED", or "" for an empty Secret.
func (s Secret) String() string {
	if s.value == nil {
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
