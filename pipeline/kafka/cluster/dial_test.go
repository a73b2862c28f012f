package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/kafkatest"
)

var discard = slog.New(slog.DiscardHandler)

// tryConnect connects, and fails t if it has to wait.
func tryConnect(t *testing.T, c Config) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	client, err := c.Await(ctx, discard, func(reason error) {
		if reason != nil {
			cancel(fmt.Errorf("it waits: %w", reason))
		}
	})
	cancel(nil)
	if err == nil {
		_ = client.Close()
	}
	return err
}

func TestConnectWaitsForABroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var logged kafkatest.Log
	c := Config{Brokers: []string{fmt.Sprintf("127.0.0.1:%d", port)}}
	reasons := make(chan error)
	type result struct {
		client sarama.Client
		err    error
	}
	done := make(chan result, 1)
	go func() {
		client, err := c.Await(t.Context(), logged.Logger(), func(reason error) { reasons <- reason })
		done <- result{client, err}
	}()
	want := fmt.Sprintf("no broker answers at 127.0.0.1:%d: connection refused", port)
	for range 2 {
		if got := <-reasons; got == nil || got.Error() != want {
			t.Fatalf("got %v, want %s", got, want)
		}
	}
	kafkatest.Start(t, kfake.Ports(port))
	for reason := range reasons {
		if reason == nil {
			break
		}
	}
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	_ = r.client.Close()
	if got := logged.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "level=WARN") != 1 {
		t.Errorf("got %s\nwant one warning and one line after it", got)
	}
	kafkatest.Mention(t, logged.String(), "kafka: "+want+"; waiting", "the brokers answer")
}

// A broker that takes connections and says nothing holds nobody up.
func TestConnectGivesUpOnASilentBroker(t *testing.T) {
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	silent := kafkatest.Silent(t, func() { cancel(over) })
	c := Config{Brokers: []string{silent}}
	if _, err := c.Await(ctx, discard, func(error) {}); !errors.Is(err, over) {
		t.Errorf("got %v, want %v", err, over)
	}
}

// The first address answers; the one that the cluster names does not.
func TestConnectNamesAnAddressThatDoesNotAnswer(t *testing.T) {
	cluster := kafkatest.Cluster(t)
	cluster.ControlKey(3, func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = 1, "127.0.0.1", 1
		resp.Brokers, resp.ControllerID = []kmsg.MetadataResponseBroker{b}, 1
		return resp, nil, true
	})
	err := tryConnect(t, Config{Brokers: cluster.ListenAddrs()})
	kafkatest.Refused(t, err, "it waits: the broker at 127.0.0.1:1, its advertised address, does not answer: connection refused")
}

func TestConnectWithTLS(t *testing.T) {
	ours, _, pair := certificate(t, "127.0.0.1")
	other, _, _ := certificate(t, "127.0.0.1")
	elsewhere, _, elsewherePair := certificate(t, "kafka.test")
	client, key, clientPair := certificate(t, "client")
	clients := x509.NewCertPool()
	clients.AddCert(clientPair.Leaf)
	brokers := kafkatest.Start(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
	named := kafkatest.Start(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{elsewherePair}}))
	strict := kafkatest.Start(t, kfake.TLS(&tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}))
	for _, tt := range []struct {
		name    string
		brokers []string
		tls     TLS
		want    string // what the error says; empty: none
	}{
		{"trusted", brokers, TLS{Enable: true, CA: ours}, ""},
		{"not trusted", brokers, TLS{Enable: true, CA: other}, "name the authority's certificate in tls.ca"},
		{"insecure", brokers, TLS{Enable: true, Insecure: true}, ""},
		{"another name", named, TLS{Enable: true, CA: elsewhere}, "tls.server_name"},
		{"another name, given", named, TLS{Enable: true, CA: elsewhere, ServerName: "kafka.test"}, ""},
		{"client", strict, TLS{Enable: true, CA: ours, Cert: client, Key: key}, ""},
		{"no client", strict, TLS{Enable: true, CA: ours}, "check tls.cert and tls.key"},
		{"no TLS here", brokers, TLS{}, "the port is for TLS (tls.enable)"},
		{"no TLS there", startServer(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), TLS{Enable: true, CA: ours}, "switch tls.enable off"},
		{"an alert", startServer(t, "\x15\x03\x03\x00\x02\x02\x46"), TLS{}, "switch tls.enable on"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{Brokers: tt.brokers}
			c.TLS = tt.tls
			err := tryConnect(t, c)
			if (err != nil) != (tt.want != "") {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if err != nil {
				kafkatest.Mention(t, err.Error(), tt.want)
			}
		})
	}
}

// startServer returns the address of a server that answers what it is sent with text.
func startServer(t *testing.T, text string) []string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = conn.Write([]byte(text))
			_ = conn.Close()
		}
	}()
	return []string{l.Addr().String()}
}

func TestConnectWithSASL(t *testing.T) {
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			c := Config{Brokers: kafkatest.Start(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "vokter", "secret"))}
			c.SASL = SASL{Mechanism: mechanism, User: "vokter", Password: registry.NewSecret("secret")}
			if err := tryConnect(t, c); err != nil {
				t.Errorf("got %v, want no error", err)
			}
			// The fake hangs up on a wrong password; a real broker says what is wrong.
			c.SASL.Password = registry.NewSecret("wrong")
			if err := tryConnect(t, c); err == nil {
				t.Error("wrong password: got no error")
			}
		})
	}
}

func TestConnectFailsAtOnceWhereTheLoginIsRefused(t *testing.T) {
	for code, want := range map[int16]string{
		58: `the brokers refuse the login of "vokter" with PLAIN: check sasl.user, sasl.password`,
		33: "the brokers do not take PLAIN: choose another sasl.mechanism",
		34: "the brokers ask for no login at this port: remove sasl",
	} {
		cluster := kafkatest.Cluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "vokter", "secret"))
		cluster.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			switch resp := req.ResponseKind().(type) {
			case *kmsg.SASLHandshakeResponse:
				if code != 58 {
					resp.ErrorCode = code
					return resp, nil, true
				}
			case *kmsg.SASLAuthenticateResponse:
				resp.ErrorCode = code
				return resp, nil, true
			}
			return nil, nil, false
		})
		c := Config{Brokers: cluster.ListenAddrs()}
		c.SASL = SASL{Mechanism: "PLAIN", User: "vokter", Password: registry.NewSecret("wrong-secret")}
		err := tryConnect(t, c)
		kafkatest.Refused(t, err, want)
		if strings.Contains(err.Error(), "wrong-secret") || strings.Contains(err.Error(), "it waits") {
			t.Errorf("got %v, want the reason at once and no secret", err)
		}
	}
}
