package email

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/test/expiring"
	"github.com/vokter/vokter/test/testcert"
)

// newTrustedCert returns a good certificate for 127.0.0.1, and the option that trusts it.
func newTrustedCert(t testing.TB) (tls.Certificate, option) {
	t.Helper()
	cert, pool := testcert.New(t, "127.0.0.1", time.Now().Add(-day), time.Now().Add(day))
	return cert, trustPool(pool)
}

func trustPool(pool *x509.CertPool) option { return func(c *Config) { c.RootCAs = pool } }

// TestFirstBytes looks at what is on the wire before TLS: with implicit TLS its handshake,
// and with STARTTLS no more than the greeting. PLAIN is taken before LOGIN.
func TestFirstBytes(t *testing.T) {
	cert, pool := newTrustedCert(t)
	for way, want := range map[string]string{Implicit: "\x16\x03", StartTLS: "EHLO "} {
		s := (&scriptedServer{cert: cert, implicit: way == Implicit, offers: "AUTH LOGIN PLAIN"}).start(t)
		if way == StartTLS {
			s.offers = "STARTTLS,AUTH LOGIN PLAIN"
		}
		if err := newEmail(t, withLogin(unencryptedConfig(s.host, s.port), way), pool).Deliver(t.Context(), sample()); err != nil {
			t.Errorf("%s: %v", way, err)
			continue
		}
		if got := string(s.raw); !strings.HasPrefix(got, want) {
			t.Errorf("%s: began with %q, want %q", way, got, want)
		}
		if !s.hasCommand("AUTH PLAIN") {
			t.Errorf("%s: not signed in: %q", way, s.commandLines())
		}
		if way == StartTLS && strings.Join(s.commandLines()[1:3], " ")[:14] != "STARTTLS EHLO " {
			t.Errorf("said %q, want STARTTLS second and a new EHLO after it", s.commandLines())
		}
	}
}

// TestNoFallback has servers without STARTTLS, or without TLS: nothing is told to them.
func TestNoFallback(t *testing.T) {
	cert, pool := newTrustedCert(t)
	for _, tt := range []struct {
		name, way string
		server    *scriptedServer
	}{
		{"not offered", StartTLS, &scriptedServer{offers: "AUTH PLAIN"}},
		{"only HELO", StartTLS, &scriptedServer{answers: map[string]string{"EHLO": "502 what?"}}},
		{"refused", StartTLS, &scriptedServer{offers: "STARTTLS,AUTH PLAIN", answers: map[string]string{"STARTTLS": "454 not now"}}},
		{"a plain server", Implicit, &scriptedServer{offers: "AUTH PLAIN"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.server
			s.cert = cert
			s.start(t)
			err := newEmail(t, withLogin(unencryptedConfig(s.host, s.port), tt.way), pool).Deliver(t.Context(), sample())
			if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassRetry {
				t.Errorf("class %d of %v, want a failure to try again after", class, err)
			}
			for _, verb := range []string{"AUTH", "MAIL"} {
				if s.hasCommand(verb) {
					t.Errorf("%s was said in the clear: %q", verb, s.commandLines())
				}
			}
		})
	}
}

// TestInjectedAnswer has somebody in between add an answer behind that to STARTTLS, in the
// clear: it must not count as one that came over TLS.
func TestInjectedAnswer(t *testing.T) {
	cert, pool := newTrustedCert(t)
	s := (&scriptedServer{cert: cert, offers: "STARTTLS", answers: map[string]string{"STARTTLS": "220 go\r\n250 AUTH PLAIN"}}).start(t)
	err := newEmail(t, withLogin(unencryptedConfig(s.host, s.port), StartTLS), pool).Deliver(t.Context(), sample())
	if err == nil || s.hasCommand("AUTH") {
		t.Errorf("got %v after %q, want a failure before signing in", err, s.commandLines())
	}
}

func TestCertificates(t *testing.T) {
	for name, tt := range map[string]struct {
		host        string
		from, until time.Duration
		trust, good bool
	}{
		"good":       {"127.0.0.1", -day, day, true, true},
		"unknown":    {"127.0.0.1", -day, day, false, false},
		"expired":    {"127.0.0.1", -2 * day, -day, true, false},
		"wrong host": {"192.0.2.1", -day, day, true, false},
	} {
		for _, way := range []string{StartTLS, Implicit} {
			t.Run(name+" "+way, func(t *testing.T) {
				cert, pool := testcert.New(t, tt.host, time.Now().Add(tt.from), time.Now().Add(tt.until))
				s := &scriptedServer{cert: cert, implicit: way == Implicit, offers: "AUTH PLAIN"}
				if way == StartTLS {
					s.offers = "STARTTLS,AUTH PLAIN"
				}
				s.start(t)
				var opts []option
				if tt.trust {
					opts = append(opts, trustPool(pool))
				}
				err := newEmail(t, withLogin(unencryptedConfig(s.host, s.port), way), opts...).Deliver(t.Context(), sample())
				if tt.good {
					if err != nil {
						t.Errorf("got %v, want delivered", err)
					}
					return
				}
				if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassRetry || !strings.Contains(err.Error(), "certificate") {
					t.Errorf("class %d of %v, want one of the certificate to try again after", class, err)
				}
				if !failure.TellsAtOnce(err) {
					t.Errorf("%v is not told at once", err)
				}
				if s.hasCommand("AUTH") || s.hasCommand("MAIL") {
					t.Errorf("said %q", s.commandLines())
				}
			})
		}
	}
}

// TestRefusedLogin has the server refuse to let us sign in, which is told at once, and waits.
func TestRefusedLogin(t *testing.T) {
	for answer, atOnce := range map[string]bool{
		"535 5.7.8 bad credentials":           true,
		"534 5.7.9 use another way":           true,
		"454 4.7.0 the directory is not here": false,
	} {
		cert, pool := newTrustedCert(t)
		s := (&scriptedServer{cert: cert, implicit: true, offers: "AUTH PLAIN", answers: map[string]string{"AUTH": answer}}).start(t)
		err := newEmail(t, withLogin(unencryptedConfig(s.host, s.port), Implicit), pool).Deliver(t.Context(), sample())
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassRetry || failure.TellsAtOnce(err) != atOnce ||
			strings.Contains(err.Error(), "password is refused: the server answered "+answer) != atOnce {
			t.Errorf("%s: class %d, told at once %v: %v", answer, class, failure.TellsAtOnce(err), err)
		}
	}
}

// TestOtherTLS: after the wrong way to encrypt the error names the other one.
func TestOtherTLS(t *testing.T) {
	const implicit, startTLS = "; try tls: implicit (mostly on port 465)", "; try tls: starttls (mostly on port 587)"
	for _, tt := range []struct {
		name, way string
		server    *scriptedServer
		want      string
	}{
		{"starttls is not offered", StartTLS, &scriptedServer{offers: "AUTH PLAIN"}, implicit},
		{"implicit, and the server speaks in the clear", Implicit, &scriptedServer{}, startTLS},
		{"starttls, and the server wants TLS and hangs up", StartTLS, &scriptedServer{answers: map[string]string{"greeting": drop}}, "; the server did not greet: try tls: implicit (mostly on port 465)"},
		{"none, and the server wants STARTTLS", Plain, &scriptedServer{answers: map[string]string{"MAIL": "530 5.7.0 Must issue a STARTTLS command first"}}, startTLS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cert, pool := newTrustedCert(t)
			tt.server.cert = cert
			s := tt.server.start(t)
			c := unencryptedConfig(s.host, s.port)
			if tt.way != Plain {
				c = withLogin(c, tt.way)
			}
			err := newEmail(t, c, pool).Deliver(t.Context(), sample())
			if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassRetry || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("class %d of %v, want one to try again after that ends with %q", class, err, tt.want)
			}
		})
	}
	// A server that waits for TLS says nothing until the time is over.
	e := newEmail(t, withLogin(unencryptedConfig("127.0.0.1", 1), StartTLS))
	ctx, expire := expiring.New(t.Context())
	expire()
	waiting := &smtpSession{e: e, ctx: ctx, conn: &limitedConn{left: maxReadBytes}}
	err := waiting.connectionError(context.DeadlineExceeded)
	if want := "no answer in time: the timeout of the sink is over; the server did not greet: try tls: implicit (mostly on port 465)"; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
