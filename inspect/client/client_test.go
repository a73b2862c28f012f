package client_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
)

// TestWrongScheme asks a server of plain HTTP over TLS, and servers of HTTPS over plain HTTP.
func TestWrongScheme(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	plain := httptest.NewServer(answer(http.StatusOK, "{}"))
	defer plain.Close()
	secure := httptest.NewTLSServer(answer(http.StatusOK, "{}"))
	defer secure.Close()
	nginx := httptest.NewServer(answer(http.StatusBadRequest, "<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>"))
	defer nginx.Close()
	other := httptest.NewServer(answer(http.StatusBadRequest, "no"))
	defer other.Close()
	host := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	for server, want := range map[string]string{
		"https://" + host(plain): "; it speaks plain HTTP: ask http://" + host(plain),
		"http://" + host(secure): "speaks HTTPS: ask https://" + host(secure),
		host(nginx):              "speaks HTTPS: ask https://" + host(nginx),
		host(other):              "has no such API; it answered 400 Bad Request",
	} {
		c := client.New(server, "token")
		_, err := c.Process(t.Context())
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s", server, err, want)
		}
		c.Close()
	}
}

// TestSilentServer asks a server that accepts a connection and says nothing: no handshake follows.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client.New("https://"+l.Addr().String(), "token")
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := c.Pages(ctx, inspect.ListFilter{}); err == nil || !strings.Contains(err.Error(), "TLS handshake timeout") {
		t.Errorf("got %v", err)
	}
}
