package outbound

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
)

// errorText returns the text of a network error without parts that differ between attempts, such
// as local ports and times. So repeated failures have the same text.
func errorText(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsTimeout {
			return fmt.Sprintf("looking up %s timed out", e.Name)
		}
		return fmt.Sprintf("looking up %s: %s", e.Name, e.Err)
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "the certificate has expired or is not yet valid"
	}
	if e, ok := errors.AsType[*AddressError](err); ok {
		return e.Permit("sinks")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the timeout of the sink is over"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		if e.Op == "proxyconnect" || e.Op == "socks connect" { // of net/http and of x/net/proxy
			return "the proxy: " + errorText(e.Err)
		}
		cause := e.Err
		if sys, ok := errors.AsType[*os.SyscallError](cause); ok {
			cause = sys.Err
		}
		if e.Op == "dial" && e.Addr != nil {
			return fmt.Sprintf("connecting to %s: %v", e.Addr, cause)
		}
		return fmt.Sprintf("%s: %v", e.Op, cause)
	}
	if _, text := BadAnswer(err, "the other side"); text != "" {
		return text
	}
	if text := err.Error(); text != io.EOF.Error() && text != io.ErrUnexpectedEOF.Error() {
		return text
	}
	return "the connection was closed"
}

// BadAnswer returns the class of a check and the reason if err is an error of Go's HTTP client about
// an answer that it cannot read, and empty texts otherwise. The reason calls the other side who and
// quotes nothing of the answer.
func BadAnswer(err error, who string) (class, reason string) {
	switch text := err.Error(); { // the client has no types for them
	case strings.Contains(text, "headers exceeded"), strings.Contains(text, "header list larger"):
		return pipeline.FailTooLarge, "the response's header is larger than 64 KB"
	case strings.Contains(text, "Location header"):
		return pipeline.FailRedirect, "a redirect leads to something that is no URL"
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "malformed MIME header"):
		return pipeline.FailNetwork, who + " answered with something that is not HTTP"
	case strings.Contains(text, "Content-Length"):
		return pipeline.FailNetwork, who + " answered with an invalid Content-Length"
	case strings.Contains(text, "chunked encoding"), strings.Contains(text, "chunked line"),
		strings.Contains(text, "chunk length"), strings.Contains(text, "header line too long"):
		return pipeline.FailNetwork, who + " answered with a damaged chunk"
	}
	return "", ""
}

// Scrubber removes secrets from texts, also in the forms that they have in URLs, base64 and
// quoted texts. The zero value has no secrets. It must not be changed while it is used.
type Scrubber struct{ secrets []string }

// minSecret is the length from which a part of a URL counts as a secret.
const minSecret = 6

// Add adds parts as secrets. It ignores short ones, which could be a part of any text.
func (s *Scrubber) Add(parts ...string) {
	for _, p := range parts {
		if len(p) >= minSecret {
			quoted := strconv.Quote(p)
			s.secrets = append(s.secrets, p, url.QueryEscape(p), url.PathEscape(p), quoted[1:len(quoted)-1],
				base64.RawStdEncoding.EncodeToString([]byte(p)))
		}
	}
	// Longer secrets come first, so that a secret within another does not leave the rest of it.
	slices.SortFunc(s.secrets, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	s.secrets = slices.Compact(s.secrets)
}

// addLogin adds the credentials of basic authentication.
func (s *Scrubber) addLogin(username, password string) {
	s.Add(username, password, username+":"+password)
}

// AddURL adds the parts of u that only the receiver should see.
func (s *Scrubber) AddURL(u *url.URL) {
	s.Add(u.String(), u.RequestURI(), u.Path, u.EscapedPath(), u.RawQuery)
	if u.User != nil {
		password, _ := u.User.Password()
		s.Add(u.User.String())
		s.addLogin(u.User.Username(), password)
	}
}

// Longest returns the length of the longest secret.
func (s *Scrubber) Longest() int {
	if len(s.secrets) == 0 {
		return 0
	}
	return len(s.secrets[0])
}

// Clean replaces each secret in text by "***".
func (s *Scrubber) Clean(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// cleanedError is an error whose text was cleaned.
type cleanedError struct {
	text string
	err  error
}

func (e *cleanedError) Error() string { return e.text }
func (e *cleanedError) Unwrap() error { return e.err }

// maxReason is the largest length of an error text, in runes: it can quote the other side.
const maxReason = 300

// Wrap returns err with a short text that holds none of the secrets.
func (s *Scrubber) Wrap(what string, err error) error {
	return &cleanedError{render.Short(s.Clean(render.Clean(what+": "+errorText(err))), maxReason), err}
}
