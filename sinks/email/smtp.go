package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline/failure"
)

// quitTimeout is how long a server may take to answer QUIT after it has accepted the message.
const quitTimeout = time.Second

// maxReportedAnswer bounds how much of an answer is reported, in runes.
const maxReportedAnswer = 200

// smtpStep is the step of SMTP that a session has reached.
type smtpStep int

const (
	stepConnect smtpStep = iota // with TLS and signing in
	stepMail
	stepRcpt
	stepData
	stepContent // the message is on its way
	stepEnd     // the whole message was written
)

// smtpSession is one connection, for one message.
type smtpSession struct {
	e          *Email
	ctx        context.Context
	conn       *limitedConn
	stopCancel func() bool
	step       smtpStep
}

// send delivers m to the recipients in to that the server accepts, and returns the others. It does
// the steps of SMTP itself: those of go-mail mix the answer of the server with the error, and wait
// for another answer after a refusal.
func (t *smtpSession) send(m *gomail.Msg, to []*mail.Address) (list []refusedRecipient, err error) {
	client, err := gomail.NewClient(t.e.cfg.Host, t.options()...)
	if err != nil {
		return nil, failure.Permanent(t.e.secrets.Wrap("preparing the connection", err))
	}
	c, err := client.DialToSMTPClientWithContext(t.ctx)
	if err != nil {
		return nil, t.connectionError(err)
	}
	t.step = stepMail
	if err := c.Mail(bareAddress(t.e.from)); err != nil {
		return nil, t.connectionError(err)
	}
	t.step = stepRcpt
	for _, r := range to {
		err := c.Rcpt(bareAddress(r))
		answer, ok := errors.AsType[*textproto.Error](err)
		switch {
		case ok && answer.Code != 421: // with 421 the server hangs up
			list = append(list, refusedRecipient{r, answer, t.reportAnswer(answer.Code, answer.Msg)})
		case err != nil:
			return nil, t.connectionError(err)
		}
	}
	if len(list) == len(to) {
		return list, nil
	}
	t.step = stepData
	w, err := c.Data()
	if err != nil {
		return nil, t.connectionError(err)
	}
	t.step = stepContent
	if _, err := m.WriteTo(w); err != nil {
		return nil, t.connectionError(err)
	}
	t.step = stepEnd
	if err := w.Close(); err != nil {
		return nil, t.connectionError(err)
	}
	// The message is delivered, however the connection ends.
	if taken, ok := w.(*smtp.DataCloser); ok {
		t.reportAnswer(250, taken.ServerResponse())
	}
	if c.UpdateDeadline(quitTimeout) == nil {
		_ = c.Quit()
	}
	return list, nil
}

// options are those of go-mail for one connection.
func (t *smtpSession) options() []gomail.Option {
	// Over a connection that is TLS already, go-mail must not ask for STARTTLS.
	policy := gomail.NoTLS
	if t.e.cfg.TLS == StartTLS {
		policy = gomail.TLSMandatory
	}
	deadline, _ := t.ctx.Deadline() // Deliver has set one
	opts := []gomail.Option{
		gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(t.e.tls), gomail.WithDialContextFunc(t.dial),
		gomail.WithTimeout(max(time.Until(deadline), time.Millisecond)), gomail.WithoutSMTPUTF8(),
	}
	if t.e.cfg.Helo != "" {
		opts = append(opts, gomail.WithHELO(t.e.cfg.Helo))
	}
	if t.e.cfg.Username != "" {
		// Discovery would leave PLAIN and LOGIN out: behind a dial function it takes every
		// connection for one in the clear. Both look for TLS themselves.
		opts = append(opts, gomail.WithUsername(t.e.cfg.Username), gomail.WithPassword(t.e.cfg.Password.Reveal()),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthCramMD5))
	}
	return opts
}

// bareAddress returns the address in angle brackets, without a name.
func bareAddress(a *mail.Address) string { return (&mail.Address{Address: a.Address}).String() }

// connectionError classifies err, which ended the session. It says why the message was not delivered and
// what to do.
func (t *smtpSession) connectionError(err error) error {
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return t.refusalError(answer)
	}
	_, refused := errors.AsType[*outbound.AddressError](err)
	if class, _ := failure.ClassOf(err); refused || class == failure.ClassPermanent {
		return failure.Permanent(t.e.secrets.Wrap("refused to connect", err))
	}
	what := "the connection failed"
	if t.ctx.Err() != nil {
		what, err = "broken off", t.ctx.Err()
		if errors.Is(err, context.DeadlineExceeded) {
			what = "no answer in time"
		}
	}
	advice := t.tlsAdvice(err)
	if err = t.e.secrets.Wrap(what, err); advice != "" {
		return &outbound.Advised{Err: err, Advice: advice}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return failure.TellAtOnce(err)
	}
	if t.step == stepEnd {
		return failure.Ambiguous(err)
	}
	return err
}

// wrongAddressCode are the enhanced status codes (RFC 3463) that say that the recipient's
// address is wrong: no such mailbox, no such domain, ill-formed, moved, no mail there.
// Others of the family are about the sender's, or can be.
var wrongAddressCode = regexp.MustCompile(`^5\.1\.(1|2|3|6|10)\b`)

// loginRefusedCodes are the codes (RFC 4954) with which a server refuses to let us sign in: it wants
// that, or another way of it, or the password is wrong.
var loginRefusedCodes = []int{530, 534, 535, 538}

// refusalError returns the error for an answer that refuses something, with its class.
//
// Before the message is sent, a refusal is about the sender: the password, the address, a block
// list, a denied relay. Like the statuses 401 and 403 of a webhook it is retried on the schedule; a
// refused password is reported at once by a health event. A recipient is gone only if the enhanced
// status code says that the address is wrong, since a bare 550 can mean anything; its notifications
// are kept for replay. Other refusals after the message are about the message.
func (t *smtpSession) refusalError(a *textproto.Error) error {
	err := errors.New("the server answered " + t.reportAnswer(a.Code, a.Msg))
	switch {
	case a.Code < 500:
		return err
	case t.step == stepConnect && slices.Contains(loginRefusedCodes, a.Code):
		return failure.TellAtOnce(fmt.Errorf("the user name or password is refused: %w", err))
	case t.step == stepMail && t.e.cfg.TLS == Plain && a.Code == 530:
		return &outbound.Advised{Err: err, Advice: adviceStartTLS}
	case t.step > stepRcpt && wrongAddressCode.MatchString(a.Msg) && len(t.e.recipients) == 1:
		return failure.Gone(err)
	case t.step == stepEnd:
		return failure.Refused(err)
	}
	return err
}

// reportAnswer returns an answer in one short line without secrets, and passes it to the observer of
// the attempt.
func (t *smtpSession) reportAnswer(code int, text string) string {
	text = render.Cut(t.e.secrets.Clean(render.Clean(text)), maxReportedAnswer, render.Runes)
	line := fmt.Sprintf("%d %s", code, text)
	outbound.Tell(t.ctx, line)
	return line
}

// maxReadBytes bounds what is read of a server, in bytes: its answers, and the handshake of
// TLS with its certificates.
const maxReadBytes = 256 << 10

// errTooMuchRead is returned when a server sends more than maxReadBytes.
var errTooMuchRead = errors.New("the server says too much")

// limitedConn is a connection of which at most left bytes are read.
type limitedConn struct {
	net.Conn
	left int
}

func (b *limitedConn) Read(p []byte) (int, error) {
	if b.left == 0 && len(p) > 0 {
		return 0, errTooMuchRead
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// dial connects to the server of the sink, whatever the arguments are. The connection ends with the
// context of the session, since go-mail's context covers the dialing only. For implicit
// TLS it has to be a *tls.Conn: go-mail would talk in the clear over any other.
func (t *smtpSession) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	raw, err := t.e.dialer.DialContext(ctx, "tcp", net.JoinHostPort(t.e.cfg.Host, strconv.Itoa(t.e.cfg.Port)))
	if err != nil {
		return nil, err
	}
	t.conn = &limitedConn{Conn: raw, left: maxReadBytes}
	t.stopCancel = context.AfterFunc(t.ctx, func() { raw.Close() })
	if t.e.cfg.TLS == Implicit {
		c := tls.Client(t.conn, t.e.tls)
		return c, c.HandshakeContext(ctx)
	}
	return t.conn, nil
}

// What to try if the server does not support the configured encryption.
const (
	adviceStartTLS = "try tls: starttls (mostly on port 587)"
	adviceImplicit = "try tls: implicit (mostly on port 465)"
)

// tlsAdvice returns which other setting of tls to try after err; it is empty if tls is not known to
// be the reason.
func (t *smtpSession) tlsAdvice(err error) string {
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case t.conn == nil || t.step != stepConnect || errors.Is(err, context.Canceled):
		return ""
	case t.e.cfg.TLS == Implicit && notTLS:
		return adviceStartTLS
	case t.e.cfg.TLS == Implicit:
		return ""
	case t.conn.left == maxReadBytes: // it sent nothing: perhaps it waits for TLS to begin
		return "the server did not greet: " + adviceImplicit
	case t.e.cfg.TLS == StartTLS && strings.Contains(err.Error(), "does not support STARTTLS"): // of go-mail
		return adviceImplicit
	}
	return ""
}

// close ends the connection, if there is one.
func (t *smtpSession) close() {
	if t.conn != nil {
		t.stopCancel()
		t.conn.Close()
	}
}

// newDialer returns the dialer for g. For unencrypted connections it refuses public addresses, so
// that no message crosses the internet unencrypted.
func newDialer(way string, g outbound.Config) outbound.Dialer {
	if way == Plain {
		g.Permit = func(a netip.Addr) error {
			if outbound.Check(a, nil) == nil {
				return failure.Permanent(errors.New("it is a public address, for which tls cannot be none"))
			}
			return outbound.Check(a, g.Allow)
		}
	}
	return outbound.NewDialer(g)
}
