package outbound

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
)

// NewSender returns a Sender that reaches its receiver as c says, or the joined
// *pipeline.FieldErrors that say what is wrong with c.
func NewSender(c registry.Connection) (Sender, error) {
	g, s, err := guarded(c)
	if err != nil {
		return Sender{}, err
	}
	sender := Sender{Secrets: s}
	if c.Client == nil {
		sender.Client = NewClient(g)
		return sender, nil
	}
	client := *c.Client
	client.CheckRedirect = NoRedirects
	sender.Client = &client
	return sender, nil
}

// ConfigOf returns how to connect as c says where that is not by HTTP, and what must not be told of
// it. Errors are as those of NewSender.
func ConfigOf(c registry.Connection) (Config, Scrubber, error) {
	g, s, err := guarded(c)
	if err == nil && g.Proxy != nil && !Socks(g.Proxy) {
		err = &pipeline.FieldError{Field: "proxy", Reason: "this sink can use a socks5:// or socks5h:// proxy only"}
	}
	return g, s, err
}

func guarded(c registry.Connection) (Config, Scrubber, error) {
	// How long a receiver may think before it answers is up to the context of the attempt.
	g := Config{Allow: c.Allow, RootCAs: c.RootCAs, ResponseHeaderTimeout: -1}
	var secrets Scrubber
	var errs []error
	bad := func(field string, err error) {
		errs = append(errs, &pipeline.FieldError{Field: field, Reason: err.Error()})
	}
	if c.CA != "" && g.RootCAs == nil {
		pool, err := readCA(c.CA)
		if err != nil {
			bad("ca", err)
		}
		g.RootCAs = pool
	}
	switch {
	case c.Cert == "" && c.Key == "":
	case c.Cert == "":
		bad("key", errors.New("it goes with cert, the file of its certificate; add that"))
	case c.Key == "":
		bad("cert", errors.New("it goes with key, the file of its private key; add that"))
	default:
		g.Certificate = func() (*tls.Certificate, error) {
			cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			return &cert, err
		}
		if _, err := g.Certificate(); err != nil {
			bad("cert", fmt.Errorf("it and key cannot be used: %w", err))
		}
	}
	if raw := c.Proxy.Reveal(); raw != "" {
		u, err := ParseProxy(raw)
		if err != nil {
			bad("proxy", err)
		} else if g.Proxy = u; u.User != nil {
			password, _ := u.User.Password()
			secrets.Add(u.User.String())
			secrets.AddLogin(u.User.Username(), password)
		}
	}
	return g, secrets, errors.Join(errs...)
}

// maxAuthorities bounds a file of authorities, in bytes.
const maxAuthorities = 4 << 20

// readCA reads the authorities in a file.
func readCA(path string) (*x509.CertPool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAuthorities))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}

// Register makes r know kind, the sinks of type S that build makes of a C. connection returns
// the Connection in a C: sinks with equal ones share their connections.
func Register[C any, S pipeline.Sink](r *registry.Registry, kind string, connection func(*C) *registry.Connection, build func(C) (S, error)) {
	clients := make(map[string]*http.Client)
	registry.AddSink(r, kind, func(c C, env registry.Env) (S, error) {
		how := connection(&c)
		how.Allow = env.AllowSinks
		key := keyOf(*how)
		if client, ok := clients[key]; ok {
			how.Client = client
		} else if sender, err := NewSender(*how); err == nil { // otherwise build says what is wrong
			clients[key] = sender.Client
			how.Client = sender.Client
		}
		return build(c)
	})
}

// keyOf is the same for connections that can be shared.
func keyOf(c registry.Connection) string {
	var authorities [sha256.Size]byte
	if text, err := os.ReadFile(c.CA); err == nil {
		authorities = sha256.Sum256(text)
	}
	return fmt.Sprintf("%q %x %q %q %q", c.Allow, authorities, c.Cert, c.Key, c.Proxy.Reveal())
}
