package registry

import (
	"fmt"
	"io"
	"log/slog"
)

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
