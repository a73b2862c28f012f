package email

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/internal/outbound"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/expiring"
)

func sample() pipeline.Notification {
	return pipeline.Notification{
		Status: pipeline.StatusOK, URL: "https://example.com/argus", ID: "0123456789ABCDEFGHIJKLMNOP", Type: "notification",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), Client: "default", Version: 7, Title: "Argus Panoptes",
		Language: "en", Change: "PONMLKJIHGFEDCBA9876543210",
		Diffs: []pipeline.Diff{
			{Event: pipeline.Added, Keyword: "argus", Text: "Argus' wakeful", Snippet: "In the 5th century and later, Argus' wakeful alertness ...", Offset: 40},
			{Event: pipeline.Removed, Keyword: "zeus", Text: "Zeus", Snippet: "... Zeus sent \"Hermes\" & others ...", Offset: 2},
		},
	}
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name, verb, answer string
		delivered          bool
		class              failure.Class
		ambiguous          bool
	}{
		{name: "all is well", delivered: true},
		{name: "busy", verb: "greeting", answer: "421 4.3.2 too busy"},
		{name: "blocked", verb: "greeting", answer: "554 5.7.1 you are on a list"},
		{name: "no mail server", verb: "greeting", answer: "HTTP/1.1 400 Bad Request"},
		{name: "greeting broken off", verb: "greeting", answer: drop},
		{name: "hello broken off", verb: "EHLO", answer: drop},
		{name: "sender greylisted", verb: "MAIL", answer: "451 4.7.1 later"},
		{name: "sender denied", verb: "MAIL", answer: "553 5.7.1 not your address"},
		{name: "sender unknown", verb: "MAIL", answer: "550 5.1.8 bad sender"},
		{name: "an unknown user, said too early", verb: "MAIL", answer: "550 5.1.1 no such user"},
		{name: "sender broken off", verb: "MAIL", answer: drop},
		{name: "recipient greylisted", verb: "RCPT", answer: "450 4.2.0 greylisted"},
		{name: "recipient unknown", verb: "RCPT", answer: "550 5.1.1 no such user", class: failure.ClassGone},
		{name: "recipient unknown, Exchange", verb: "RCPT", answer: "550 5.1.10 RESOLVER.ADR.RecipientNotFound", class: failure.ClassGone},
		{name: "recipient moved", verb: "RCPT", answer: "551 5.1.6 moved", class: failure.ClassGone},
		{name: "recipient ill-formed", verb: "RCPT", answer: "553 5.1.3 no such address", class: failure.ClassGone},
		{name: "an address is bad, nobody knows which", verb: "RCPT", answer: "550 5.1.0 rejected"},
		{name: "recipient's domain unknown", verb: "RCPT", answer: "550 5.1.2 no such domain", class: failure.ClassGone},
		{name: "sender unknown, said late", verb: "RCPT", answer: "550 5.1.8 bad sender"},
		{name: "sender ill-formed, said late", verb: "RCPT", answer: "550 5.1.7 bad sender"},
		{name: "relay denied", verb: "RCPT", answer: "550 5.7.1 relaying denied"},
		{name: "refused, nobody knows why", verb: "RCPT", answer: "550 no"},
		{name: "mailbox full", verb: "RCPT", answer: "552 5.2.2 over quota"},
		{name: "recipient broken off", verb: "RCPT", answer: drop},
		{name: "data refused", verb: "DATA", answer: "554 5.7.1 policy"},
		{name: "data broken off", verb: "DATA", answer: drop},
		{name: "message refused", verb: ".", answer: "554 5.7.1 looks like spam", class: failure.ClassRefused},
		{name: "message too large", verb: ".", answer: "552 5.3.4 too large", class: failure.ClassRefused},
		{name: "recipient unknown, said late", verb: ".", answer: "550 5.1.1 no such user", class: failure.ClassGone},
		{name: "message not now", verb: ".", answer: "452 4.3.1 disk full"},
		{name: "another answer", verb: ".", answer: "354 go on"},
		{name: "broken off after the dot", verb: ".", answer: drop, ambiguous: true},
		{name: "no goodbye", verb: "QUIT", answer: drop, delivered: true},
		{name: "a bad goodbye", verb: "QUIT", answer: "500 what?", delivered: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := (&scriptedServer{answers: map[string]string{tt.verb: tt.answer}}).start(t)
			err := newEmail(t, unencryptedConfig(s.host, s.port)).Deliver(t.Context(), sample())
			if tt.delivered {
				if err != nil {
					t.Errorf("got %v, want delivered", err)
				}
				return
			}
			if err == nil {
				t.Fatal("delivered, want a failure")
			}
			if class, _ := failure.ClassOf(err); class != tt.class {
				t.Errorf("class %d, want %d: %v", class, tt.class, err)
			}
			if got := failure.IsAmbiguous(err); got != tt.ambiguous {
				t.Errorf("ambiguous: %v, want %v: %v", got, tt.ambiguous, err)
			}
			if tt.answer[0] >= '2' && tt.answer[0] <= '5' && !strings.Contains(err.Error(), "answered "+tt.answer) {
				t.Errorf("the answer %q is not in %q", tt.answer, err)
			}
		})
	}
}

// TestObserver checks that who tests a sink sees the server's last word.
func TestObserver(t *testing.T) {
	for want, answers := range map[string]map[string]string{
		"250 2.0.0 queued as 4711":                              {".": "250 2.0.0 queued as 4711"},
		"450 first line second line":                            {"RCPT": "450-first line\r\n450 second line"},
		"554 " + strings.Repeat("x", maxReportedAnswer-1) + "…": {"DATA": "554 " + strings.Repeat("x", 2*maxReportedAnswer)},
	} {
		s := (&scriptedServer{answers: answers}).start(t)
		var got string
		_ = newEmail(t, unencryptedConfig(s.host, s.port)).Deliver(outbound.WithObserver(t.Context(), func(status string) { got = status }), sample())
		if got != want {
			t.Errorf("saw %q, want %q", got, want)
		}
	}
}

// TestOneMessage checks what is said to the server, and in which order.
func TestOneMessage(t *testing.T) {
	s := (&scriptedServer{offers: "8BITMIME,SMTPUTF8"}).start(t)
	c := unencryptedConfig(s.host, s.port)
	c.Helo = "vokter.sender.example"
	e := newEmail(t, c)
	for range 2 {
		if err := e.Deliver(t.Context(), sample()); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"EHLO vokter.sender.example", "MAIL FROM:<vokter@sender.example> BODY=8BITMIME", "RCPT TO:<ann@recipient.example>", "DATA", "QUIT"}
	got := s.commandLines()
	if strings.Join(got, "\n") != strings.Join(append(want, want...), "\n") {
		t.Errorf("said %q, want %q twice", got, want)
	}
}

func TestCancel(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		s := (&scriptedServer{onVerb: func(verb string) { t.Errorf("%s was said", verb) }}).start(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantCanceled(t, newEmail(t, unencryptedConfig(s.host, s.port)).Deliver(ctx, sample()))
	})
	for _, verb := range []string{"greeting", "EHLO", "MAIL", "RCPT", "DATA", ".", "QUIT"} {
		t.Run(verb, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &scriptedServer{answers: map[string]string{verb: hang}}
			s.onVerb = func(v string) {
				if v == verb {
					cancel()
				}
			}
			s.start(t)
			err := newEmail(t, unencryptedConfig(s.host, s.port)).Deliver(ctx, sample())
			if verb == "QUIT" { // it is delivered
				if err != nil {
					t.Errorf("got %v, want delivered", err)
				}
				return
			}
			wantCanceled(t, err)
			if got, want := failure.IsAmbiguous(err), verb == "."; got != want {
				t.Errorf("ambiguous: %v, want %v", got, want)
			}
		})
	}
	for _, verb := range []string{"EHLO", "STARTTLS", "AUTH"} {
		t.Run("TLS "+verb, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &scriptedServer{offers: "STARTTLS,AUTH PLAIN", answers: map[string]string{verb: hang}}
			var pool option
			s.cert, pool = newTrustedCert(t)
			s.onVerb = func(v string) {
				if v == verb {
					cancel()
				}
			}
			s.start(t)
			wantCanceled(t, newEmail(t, withLogin(unencryptedConfig(s.host, s.port), StartTLS), pool).Deliver(ctx, sample()))
		})
	}
	t.Run("handshake", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := (&scriptedServer{answers: map[string]string{"greeting": hang}, onVerb: func(string) { cancel() }}).start(t)
		wantCanceled(t, newEmail(t, withLogin(unencryptedConfig(s.host, s.port), Implicit)).Deliver(ctx, sample()))
	})
}

func wantCanceled(t *testing.T, err error) {
	t.Helper()
	if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("class %d of %v, want context.Canceled", class, err)
	}
}

// TestDeadline has the deadline pass while the server hangs; the session ends with its context.
func TestDeadline(t *testing.T) {
	for _, verb := range []string{"greeting", "MAIL", "."} {
		ctx, expire := expiring.New(t.Context())
		s := &scriptedServer{answers: map[string]string{verb: hang}}
		s.onVerb = func(v string) {
			if v == verb {
				expire()
			}
		}
		s.start(t)
		err := newEmail(t, unencryptedConfig(s.host, s.port)).Deliver(ctx, sample())
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassRetry || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: got %v, want context.DeadlineExceeded", verb, err)
		}
		if got, want := failure.IsAmbiguous(err), verb == "."; got != want {
			t.Errorf("%s: ambiguous: %v, want %v", verb, got, want)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	for _, verb := range []string{"greeting", "EHLO", "MAIL", "."} {
		s := (&scriptedServer{answers: map[string]string{verb: endless}}).start(t)
		e := newEmail(t, unencryptedConfig(s.host, s.port))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := e.Deliver(t.Context(), sample())
		runtime.ReadMemStats(&after)
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassRetry || len(err.Error()) > 1000 {
			t.Errorf("%s: got %v, want a short error to try again after", verb, err)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
			t.Errorf("%s: %d bytes were allocated", verb, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	s := (&scriptedServer{onVerb: func(verb string) { t.Errorf("%s was said", verb) }}).start(t)
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "::ffff:127.0.0.1", "0.0.0.0", "10.0.0.1", "192.168.0.1", "169.254.169.254"} {
		e, err := New(unencryptedConfig(host, s.port)) // nothing is allowed
		if err != nil {
			t.Fatal(err)
		}
		err = e.Deliver(t.Context(), sample())
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent {
			t.Errorf("%s: class %d of %v, want permanent", host, class, err)
			continue
		}
		if _, ok := errors.AsType[*outbound.AddressError](err); !ok || !strings.Contains(err.Error(), "allow: {sinks: [") {
			t.Errorf("%s: %v does not say how to permit it", host, err)
		}
	}
}

// TestPlainOnlyInPrivate talks to public addresses in the clear, which ends before a packet
// is sent.
func TestPlainOnlyInPrivate(t *testing.T) {
	for _, host := range []string{"8.8.8.8", "2606:4700:4700::1111"} {
		all := func(c *Config) {
			c.Allow = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
		}
		err := newEmail(t, unencryptedConfig(host, 25), all).Deliver(t.Context(), sample())
		if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassPermanent || !strings.Contains(err.Error(), "tls cannot be none") {
			t.Errorf("%s: class %d of %v, want a permanent error that says why", host, class, err)
		}
	}
}

func TestRefusedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	err = newEmail(t, unencryptedConfig("127.0.0.1", port)).Deliver(t.Context(), sample())
	if class, _ := failure.ClassOf(err); err == nil || class != failure.ClassRetry || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v, want connection refused, to try again after", err)
	}
}

// passwordForms are the password, as LOGIN says it, and as PLAIN does.
var passwordForms = []string{
	password, base64.StdEncoding.EncodeToString([]byte(password)), base64.StdEncoding.EncodeToString([]byte("\x00vokter\x00" + password)),
}

// TestThroughAProxy: with a proxy the server is reached through it alone, and what is refused
// without one is refused with it.
func TestThroughAProxy(t *testing.T) {
	for host, want := range map[string]string{
		"93.184.216.34": "the connection failed: the proxy: connecting to 127.0.0.1:1: connection refused",
		"10.0.0.1":      "refused to connect: 10.0.0.1 is not a public address; permit it with allow: {sinks: [10.0.0.1/32]}",
	} {
		c := withLogin(unencryptedConfig(host, 587), StartTLS)
		c.Proxy = registry.NewSecret("socks5h://ann:hunter22@127.0.0.1:1")
		if err := newEmail(t, c).Deliver(t.Context(), sample()); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", host, err, want)
		}
	}
	c := unencryptedConfig("10.0.0.1", 25)
	c.Proxy = registry.NewSecret("socks5://127.0.0.1:1")
	if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "proxy: with tls: none") {
		t.Errorf("got %v, want that it cannot be in the clear", err)
	}
}
