package email

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/vokter/vokter/internal/guard"
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

// newDialer returns the dialer to the addresses that allow permits; one for talks in the
// clear refuses those that are public, so that nothing passes over the internet like that.
func newDialer(way string, allow []netip.Prefix) *net.Dialer {
	d := guard.NewDialer(guard.Config{Allow: allow})
	if way != Plain {
		return d
	}
	decide := d.Control
	d.Control = func(network, address string, c syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return err // a TCP dialer gets here with addresses only
		}
		if guard.Check(ap.Addr(), nil) == nil {
			return pipeline.Permanent(errors.New("it is a public address, for which tls cannot be none"))
		}
		return decide(network, address, c)
	}
	return d
}
