package pipelinetest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/pipeline/failure"
	"github.com/vokter/vokter/test/testcert"
)

func (s *httpSuite) testNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	for name, rawURL := range map[string]string{
		"refused":        "http://" + closed,
		"no such host":   "http://" + strings.Repeat("long", 20) + ".example", // no look-up is made for such a label
		"https to plain": strings.Replace(startServer(t, s.Accept), "http:", "https:", 1),
	} {
		t.Run(name, func(t *testing.T) {
			wantClass(t, deliver(t.Context(), t, s.sinkFor(t, rawURL), newNotification("a")), failure.ClassRetry)
		})
	}
}

func (s *httpSuite) testCertificates(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		host          string
		from, until   time.Duration
		trust, accept bool
	}{
		"good":       {"127.0.0.1", -day, day, true, true},
		"unknown":    {"127.0.0.1", -day, day, false, false},
		"expired":    {"127.0.0.1", -2 * day, -day, true, false},
		"wrong host": {"192.0.2.1", -day, day, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			cert, pool := testcert.New(t, tt.host, time.Now().Add(tt.from), time.Now().Add(tt.until))
			server := httptest.NewUnstartedServer(s.Accept)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what is tested
			server.StartTLS()
			t.Cleanup(server.Close)
			o := HTTPSinkOptions{Allow: loopback, Secret: keySecret}
			if tt.trust {
				o.RootCAs = pool
			}
			err := deliver(t.Context(), t, s.newSink(t, server.URL+"/"+pathSecret, o), newNotification("a"))
			if tt.accept {
				if err != nil {
					t.Errorf("got %v, want delivered", err)
				}
				return
			}
			wantClass(t, err, failure.ClassRetry)
			if err != nil && !strings.Contains(err.Error(), "certificate") {
				t.Errorf("%q does not name the certificate", err)
			}
			if !failure.TellsAtOnce(err) {
				t.Errorf("%q is not told at once, though no later attempt mends it", err)
			}
		})
	}
}
