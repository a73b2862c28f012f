package client_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vokter/vokter/inspect"
	"github.com/vokter/vokter/inspect/client"
)

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
