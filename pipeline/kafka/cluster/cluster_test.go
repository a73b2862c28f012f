package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/test/kafkatest"
	"github.com/vokter/vokter/test/testcert"
)

func TestValidate(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.pem")
	if err := os.WriteFile(garbage, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	cert, key, _ := certificate(t, "127.0.0.1")
	with := func(f func(*Config)) Config {
		c := Config{Brokers: []string{"127.0.0.1:9092"}}
		f(&c)
		return c
	}
	for _, tt := range []struct {
		name   string
		config Config
		want   string // begins the only mistake; empty: none
		says   string
	}{
		{name: "least", config: with(func(*Config) {})},
		{name: "most", config: Config{
			Brokers: []string{"a.example:9092", "[::1]:9092"},
			TLS:     TLS{Enable: true, CA: cert, Cert: cert, Key: key, ServerName: "x", Insecure: true},
			SASL:    SASL{Mechanism: "SCRAM-SHA-512", User: "u", Password: registry.NewSecret("p")},
		}},
		{name: "no brokers", want: "brokers", says: "at least one"},
		{name: "no port", config: Config{Brokers: []string{"kafka-1"}}, want: "brokers[0]", says: `"kafka-1" is not HOST:PORT`},
		{name: "no host", config: Config{Brokers: []string{":9092"}}, want: "brokers[0]", says: "HOST:PORT"},
		{name: "bad port", config: Config{Brokers: []string{"kafka-1:99999"}}, want: "brokers[0]", says: `"99999" is not a port`},
		{name: "TLS off", config: with(func(c *Config) { c.TLS.CA = cert }), want: "tls.enable", says: "set it to true"},
		{name: "no such CA", config: with(func(c *Config) { c.TLS = TLS{Enable: true, CA: filepath.Join(dir, "none")} }), want: "tls.ca", says: "no such file"},
		{name: "no PEM", config: with(func(c *Config) { c.TLS = TLS{Enable: true, CA: garbage} }), want: "tls.ca", says: "no certificate in PEM"},
		{name: "no key", config: with(func(c *Config) { c.TLS = TLS{Enable: true, Cert: cert} }), want: "tls.key"},
		{name: "no cert", config: with(func(c *Config) { c.TLS = TLS{Enable: true, Key: key} }), want: "tls.cert"},
		{name: "bad pair", config: with(func(c *Config) { c.TLS = TLS{Enable: true, Cert: garbage, Key: key} }), want: "tls.cert", says: "PEM"},
		{name: "mechanism", config: with(func(c *Config) { c.SASL = SASL{Mechanism: "GSSAPI", User: "u", Password: registry.NewSecret("p")} }),
			want: "sasl.mechanism", says: `"GSSAPI" is not known; it is one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512`},
		{name: "no mechanism", config: with(func(c *Config) { c.SASL = SASL{User: "u", Password: registry.NewSecret("p")} }), want: "sasl.mechanism", says: "one of PLAIN"},
		{name: "no user", config: with(func(c *Config) { c.SASL = SASL{Mechanism: "PLAIN", Password: registry.NewSecret("p")} }), want: "sasl.user"},
		{name: "no token", config: with(func(c *Config) { c.SASL = SASL{Mechanism: "OAUTHBEARER"} }), want: "sasl.token_file", says: "token_command"},
		{name: "token and user", config: with(func(c *Config) { c.SASL = SASL{Mechanism: "OAUTHBEARER", TokenFile: "t", User: "u"} }), want: "sasl.user"},
		{name: "token with PLAIN", config: with(func(c *Config) {
			c.SASL = SASL{Mechanism: "PLAIN", User: "u", Password: registry.NewSecret("p"), TokenFile: "t"}
		}), want: "sasl.mechanism", says: "OAUTHBEARER"},
		{name: "no password", config: with(func(c *Config) { c.SASL = SASL{Mechanism: "PLAIN", User: "u"} }), want: "sasl.password"},
	} {
		t.Run(tt.name, func(t *testing.T) { kafkatest.Mistake(t, tt.config.Validate(), tt.want, tt.says) })
	}
}

// certificate makes a certificate for host. It returns the PEM files of the certificate, which is its own
// authority, and of its key.
func certificate(t *testing.T, host string) (cert, key string, pair tls.Certificate) {
	t.Helper()
	pair, _ = testcert.New(t, host, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pair
}

func TestProducerForTopicsOfOthers(t *testing.T) {
	c := Config{Brokers: kafkatest.Start(t)}
	conf, err := c.Producer()
	if err != nil {
		t.Fatal(err)
	}
	if err := conf.Validate(); err != nil {
		t.Error(err)
	}
	if p := conf.Producer; !p.Idempotent || p.RequiredAcks != sarama.WaitForAll || p.Compression != sarama.CompressionNone || conf.Net.ReadTimeout <= p.Timeout {
		t.Errorf("got idempotent %t, acks %d, compression %v, timeouts %v and %v", p.Idempotent, p.RequiredAcks, p.Compression, conf.Net.ReadTimeout, p.Timeout)
	}
	client, err := c.Connect(t.Context(), conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Brokers = []string{"127.0.0.1:1"}
	if _, err := c.Connect(ctx, conf); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	_, err = c.Connect(t.Context(), conf)
	if err == nil {
		t.Fatal("connected to nothing")
	}
	kafkatest.Mention(t, err.Error(), "no broker answers at 127.0.0.1:1", "connection refused")
	c.TLS.Enable = true
	kafkatest.Mention(t, c.CreateCommand("alerts"), "kafka-topics --bootstrap-server 127.0.0.1:1 --command-config client.properties --create --topic alerts")
}
