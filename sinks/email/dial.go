package email

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
)

// maxAnswers bounds what is read of a server, in bytes: its answers, and the handshake of
// TLS with its certificates.
const maxAnswers = 256 << 10

// errTalkative is the end of a server that says more than maxAnswers.
var errTalkative = errors.New("the server says too much")

// bounded is a connection of which at most left bytes are read.
type bounded struct {
	net.Conn
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 && len(p) > 0 {
		return 0, errTalkative
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// dial connects to the server of the sink, whatever is asked for. The connection ends with the
// context of the talk, since go-mail's context covers the dialing only. For implicit
// TLS it has to be a *tls.Conn: go-mail would talk in the clear over any other.
func (t *talk) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	raw, err := t.e.dialer.DialContext(ctx, "tcp", net.JoinHostPort(t.e.cfg.Host, strconv.Itoa(t.e.cfg.Port)))
	if err != nil {
		return nil, err
	}
	t.conn = &bounded{Conn: raw, left: maxAnswers}
	t.stop = context.AfterFunc(t.ctx, func() { raw.Close() })
	if t.e.cfg.TLS == Implicit {
		c := tls.Client(t.conn, t.e.tls)
		return c, c.HandshakeContext(ctx)
	}
	return t.conn, nil
}

// What to try where the configured way to encrypt is not that of the server.
const (
	adviceStartTLS = "try tls: starttls (mostly on port 587)"
	adviceImplicit = "try tls: implicit (mostly on port 465)"
)

// otherTLS returns what to try after err, the end of a connection on which the server was not
// understood; empty: tls is not the reason, as far as can be known.
func (t *talk) otherTLS(err error) string {
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case t.conn == nil || t.at != connecting || errors.Is(err, context.Canceled):
		return ""
	case t.e.cfg.TLS == Implicit && notTLS:
		return adviceStartTLS
	case t.e.cfg.TLS == Implicit:
		return ""
	case t.conn.left == maxAnswers: // it said nothing, and waits for TLS to begin, perhaps
		return "the server did not greet: " + adviceImplicit
	case t.e.cfg.TLS == StartTLS && strings.Contains(err.Error(), "does not support STARTTLS"): // of go-mail
		return adviceImplicit
	}
	return ""
}

// hangUp ends the connection, if there is one.
func (t *talk) hangUp() {
	if t.conn != nil {
		t.stop()
		t.conn.Close()
	}
}

// newDialer returns the dialer of g; one for talks in the clear refuses addresses that are
// public, so that nothing passes over the internet like that.
func newDialer(way string, g outbound.Config) outbound.Dialer {
	if way == Plain {
		g.Permit = func(a netip.Addr) error {
			if outbound.Check(a, nil) == nil {
				return pipeline.Permanent(errors.New("it is a public address, for which tls cannot be none"))
			}
			return outbound.Check(a, g.Allow)
		}
	}
	return outbound.NewDialer(g)
}
