package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/vokter/vokter/test/kafkatest"
)

// takeTokens starts a broker that takes a login by OAUTHBEARER if good says so of what the client says.
func takeTokens(t *testing.T, good func(said string) bool) (brokers []string) {
	cluster := kafkatest.Cluster(t)
	cluster.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.SupportedMechanisms = []string{"OAUTHBEARER"}
		return resp, nil, true
	})
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		if !good(string(req.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes)) {
			resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		}
		return resp, nil, true
	})
	return cluster.ListenAddrs()
}

// TestConnectWithToken: the brokers get the token of the file, or that which the command prints, with the extensions.
func TestConnectWithToken(t *testing.T) {
	var want atomic.Value // what the client must say
	brokers := takeTokens(t, func(said string) bool { return said == want.Load() })
	file := filepath.Join(t.TempDir(), "token")
	c := Config{Brokers: brokers, SASL: SASL{Mechanism: "OAUTHBEARER", TokenFile: file}}
	for _, token := range []string{"first", "renewed"} {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want.Store("n,,\x01auth=Bearer " + token + "\x01\x01")
		if err := tryConnect(t, c); err != nil {
			t.Fatalf("%s: %v", token, err)
		}
	}
	want.Store("another")
	if err := tryConnect(t, c); err == nil || !strings.Contains(err.Error(), "it waits: ") || !strings.Contains(err.Error(), "the brokers refuse the token") {
		t.Errorf("a refused token: got %v, want that it waits for another one", err)
	}

	command, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PRINT_TOKEN", "printed")
	c.SASL = SASL{Mechanism: "OAUTHBEARER", TokenCommand: []string{command}, Extensions: map[string]string{"logicalCluster": "lkc-1"}}
	want.Store("n,,\x01auth=Bearer printed\x01logicalCluster=lkc-1\x01\x01")
	if err := tryConnect(t, c); err != nil {
		t.Fatal(err)
	}
}

// TestMain prints a token in place of the tests where this binary is the command for one.
func TestMain(m *testing.M) {
	if token := os.Getenv("PRINT_TOKEN"); token != "" {
		os.Stdout.WriteString(token + "\n")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestNoToken: it waits for a token, and the reason names the field.
func TestNoToken(t *testing.T) {
	two := filepath.Join(t.TempDir(), "two")
	if err := os.WriteFile(two, []byte("one\ntwo"), 0o600); err != nil {
		t.Fatal(err)
	}
	brokers := takeTokens(t, func(string) bool { return true })
	for _, tt := range []struct {
		sasl SASL
		want string
	}{
		{SASL{TokenFile: two + "-missing"}, "sasl.token_file: open "},
		{SASL{TokenFile: two}, "sasl.token_file: it must have one token and nothing else"},
		{SASL{TokenCommand: []string{two + "-missing"}}, "sasl.token_command: " + two + "-missing: "},
	} {
		tt.sasl.Mechanism = "OAUTHBEARER"
		err := tryConnect(t, Config{Brokers: brokers, SASL: tt.sasl})
		if err == nil || !strings.Contains(err.Error(), "it waits: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want that it waits with %q", err, tt.want)
		}
	}
}
