package post

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/vokter/vokter/internal/layout"
)

// ask makes a request that is answered with exactly answer, after which the connection stays
// open.
func ask(ctx context.Context, t *testing.T, answer string) (*Answer, error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { close(done); ln.Close() })
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = c.Write([]byte(answer))
			<-done
		}
	}()
	s := Sender{Client: NewClient([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)}
	return s.Do(ctx, http.MethodPost, &url.URL{Scheme: "http", Host: ln.Addr().String()}, nil, []byte("x"))
}

// TestSwitchingProtocols: the context does not end the reading from a connection whose
// protocol was changed, so that nothing must be read from it.
func TestSwitchingProtocols(t *testing.T) {
	a, err := ask(t.Context(), t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
	if err != nil || a.Err() == nil {
		t.Errorf("got %v, %v, want an answer that is a failure", a, err)
	}
}

// TestReasonsAreShort: errors of package net/http quote whatever was sent.
func TestReasonsAreShort(t *testing.T) {
	long := strings.Repeat("x", 30_000)
	for name, answer := range map[string]string{
		"no HTTP":        long + "\r\n\r\n",
		"status":         "HTTP/1.1 " + long + "\r\n\r\n",
		"header":         "HTTP/1.1 200 OK\r\n" + long + "\r\n\r\n",
		"location":       "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: :" + long + "\r\n\r\n",
		"content-length": "HTTP/1.1 200 OK\r\nContent-Length: " + long + "\r\n\r\n",
	} {
		_, err := ask(t.Context(), t, answer)
		if err == nil || layout.Runes(err.Error()) > maxReason+4 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseURL(t *testing.T) {
	for raw, ok := range map[string]bool{
		"https://example.com": true, "http://[::1]:8080/x": true, "http://example.com:/": true, "HTTPS://EXAMPLE.COM/": true,
		"": false, "example.com": false, "//SECRET": false, "ftp://SECRET": false, "http://:80/SECRET": false, "http://SECRET:0/": false,
		"http://SECRET:65536/": false, "http://SECRET:99999999999999999999/": false, "http://[SECRET": false, "http://SECRET\r\n": false, "%zz SECRET": false,
	} {
		u, err := ParseURL(raw, "https://example.com/hook")
		if (err == nil) != ok || (u != nil) != ok || err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: got %v, %v", raw, u, err)
		}
	}
}
