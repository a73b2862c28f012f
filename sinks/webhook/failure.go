package webhook

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/vokter/vokter/internal/guard"
	"github.com/vokter/vokter/pipeline"
)

// failure says why there was no answer. sent says that the whole request was written.
func (w *Webhook) failure(ctx context.Context, err error, sent bool) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // the text of a url.Error holds the URL
	}
	if _, ok := errors.AsType[*guard.AddressError](err); ok {
		return pipeline.Permanent(w.scrub.wrap("refused to connect", err))
	}
	what := "no answer"
	if ctx.Err() != nil {
		err = ctx.Err()
		if errors.Is(err, context.DeadlineExceeded) {
			what = "no answer in time"
		}
	}
	err = w.scrub.wrap(what, err)
	if sent {
		return pipeline.Ambiguous(err)
	}
	return err
}

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

// scrubber takes secrets out of texts.
type scrubber struct{ secrets []string }

// minSecret is the length from which a part of a URL may be a secret.
const minSecret = 6

func (s *scrubber) add(parts ...string) {
	for _, p := range parts {
		if len(p) >= minSecret {
			s.secrets = append(s.secrets, p)
		}
	}
}

// addURL adds the parts of u that nobody but the receiver should see.
func (s *scrubber) addURL(u *url.URL) {
	s.add(u.String(), u.RequestURI(), u.Path, u.EscapedPath(), u.RawQuery)
	if u.User != nil {
		password, _ := u.User.Password()
		s.add(u.User.String(), password, u.User.Username())
	}
}

func (s *scrubber) clean(text string) string {
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

// wrap returns err with a text that holds none of the secrets.
func (s *scrubber) wrap(what string, err error) error {
	return &scrubbed{s.clean(what + ": " + reason(err)), err}
}
