package httpsource

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
)

// classify turns an error of the client or of a body into a *pipeline.FetchError. Its
// reason names the host and never the URL, whose query and user may be secret. What was
// broken off stays context.Canceled.
func classify(ctx context.Context, err error, host string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	if e, ok := errors.AsType[*pipeline.FetchError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // url.Error quotes the URL
	}
	class, reason := reasonOf(ctx, err, host)
	return &pipeline.FetchError{Class: class, Reason: reason, Err: err}
}

func reasonOf(ctx context.Context, err error, host string) (class, reason string) {
	if e, ok := errors.AsType[*outbound.AddressError](err); ok {
		return pipeline.FailAddress, e.Error()
	}
	if e, ok := errors.AsType[*outbound.RedirectError](err); ok {
		return pipeline.FailRedirect, e.Error()
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsNotFound {
			return pipeline.FailDNS, "the name " + e.Name + " does not exist"
		}
		return pipeline.FailDNS, "the name " + e.Name + " could not be looked up"
	}
	if ctx.Err() != nil || isTimeout(err) {
		return pipeline.FailTimeout, host + " did not answer in time"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return pipeline.FailRefused, host + " refused the connection"
	}
	if reason, ok := tlsReason(err, host); ok {
		return pipeline.FailTLS, reason
	}
	switch text := err.Error(); {
	case strings.Contains(text, "headers exceeded"), strings.Contains(text, "header list larger"):
		return pipeline.FailTooLarge, "the response's header is larger than 64 KB"
	case strings.Contains(text, "Location header"):
		return pipeline.FailRedirect, "a redirect leads to something that is no URL"
	case strings.Contains(text, "malformed HTTP"), strings.Contains(text, "malformed MIME header"):
		return pipeline.FailNetwork, host + " answered with something that is not HTTP"
	}
	switch {
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return pipeline.FailNetwork, host + " cannot be reached from here"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return pipeline.FailNetwork, host + " closed the connection before the page was complete"
	}
	return pipeline.FailNetwork, "the connection to " + host + " failed"
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func tlsReason(err error, host string) (string, bool) {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the certificate of " + host + " is signed by an unknown authority", true
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate of " + host + " is for another name", true
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "the certificate of " + host + " has expired or is not valid yet", true
		}
		return "the certificate of " + host + " is not valid", true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate of " + host + " is not valid", true
	}
	_, alert := errors.AsType[tls.AlertError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	if alert || record || errors.Is(err, http.ErrSchemeMismatch) || strings.Contains(err.Error(), "tls: ") {
		return "no secure connection to " + host + " could be agreed on", true
	}
	return "", false
}
