package email

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strconv"

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
	t.conn = &bounded{raw, maxAnswers}
	t.stop = context.AfterFunc(t.ctx, func() { raw.Close() })
	if t.e.cfg.TLS == Implicit {
		c := tls.Client(t.conn, t.e.tls)
		return c, c.HandshakeContext(ctx)
	}
	return t.conn, nil
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
