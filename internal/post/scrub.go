package post

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/vokter/vokter/internal/guard"
)

// reason is the text of a network error without what differs from attempt to attempt,
// such as local ports and the time, so that a repeated failure reads the same.
func reason(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsTimeout {
			return fmt.Sprintf("looking up %s timed out", e.Name)
		}
		return fmt.Sprintf("looking up %s: %s", e.Name, e.Err)
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "the certificate has expired or is not yet valid"
	}
	if e, ok := errors.AsType[*guard.AddressError](err); ok {
		return e.Error()
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		cause := e.Err
		if sys, ok := errors.AsType[*os.SyscallError](cause); ok {
			cause = sys.Err
		}
		if e.Op == "dial" && e.Addr != nil {
			return fmt.Sprintf("connecting to %s: %v", e.Addr, cause)
		}
		return fmt.Sprintf("%s: %v", e.Op, cause)
	}
	return err.Error()
}

// Scrubber takes secrets out of texts. The zero value knows none. It must not be altered
// while it is used.
type Scrubber struct{ secrets []string }

// minSecret is the length from which a part of a URL may be a secret.
const minSecret = 6

// Add makes s know parts as secrets, but for short ones, which may be anything.
func (s *Scrubber) Add(parts ...string) {
	for _, p := range parts {
		if len(p) >= minSecret {
			s.secrets = append(s.secrets, p)
		}
	}
}

// AddURL adds the parts of u that nobody but the receiver should see.
func (s *Scrubber) AddURL(u *url.URL) {
	s.Add(u.String(), u.RequestURI(), u.Path, u.EscapedPath(), u.RawQuery)
	if u.User != nil {
		password, _ := u.User.Password()
		s.Add(u.User.String(), password, u.User.Username())
	}
}

// Clean returns text with each secret as "***".
func (s *Scrubber) Clean(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// scrubbed is an error whose text was cleaned.
type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string { return e.text }
func (e *scrubbed) Unwrap() error { return e.err }

// Wrap returns err with a text that holds none of the secrets.
func (s *Scrubber) Wrap(what string, err error) error {
	return &scrubbed{s.Clean(what + ": " + reason(err)), err}
}
