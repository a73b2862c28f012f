package outbound

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/internal/render"
	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/registry"
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
	s := local(t)
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

// slowly answers after no time, with a body whose last byte comes after d.
type slowly struct{ d time.Duration }

func (s slowly) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "o")
		select {
		case <-time.After(s.d):
			_, _ = io.WriteString(w, "k")
			w.Close()
		case <-req.Context().Done():
			w.CloseWithError(req.Context().Err())
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Body: r, Request: req}, nil
}

// TestSlowBodies: a body that decides is waited for, one that does not is not, and none for
// ever.
func TestSlowBodies(t *testing.T) {
	for _, tt := range []struct {
		name          string
		after, within time.Duration
		decides       bool
		want, broken  string
		took          time.Duration
	}{
		{"it decides", 10 * time.Second, time.Minute, true, "ok", "", 10 * time.Second},
		{"it does not decide", 10 * time.Second, time.Minute, false, "o", "the answer broke off: its end did not come in time", time.Second},
		{"it never ends", time.Hour, time.Minute, true, "o", "the answer broke off: its end did not come in time", 15 * time.Second},
		{"the attempt ends", time.Hour, 5 * time.Second, true, "o", "the answer broke off: the timeout of the sink is over", 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.within)
				defer cancel()
				s := Sender{Client: &http.Client{Transport: slowly{tt.after}}, BodyDecides: tt.decides}
				began := time.Now()
				a, err := s.Do(ctx, http.MethodPost, &url.URL{Scheme: "http", Host: "example.com"}, nil, nil)
				if err != nil || string(a.Body) != tt.want || time.Since(began) != tt.took || a.Err() != nil {
					t.Fatalf("got %+v, %v after %s, want %q after %s", a, err, time.Since(began), tt.want, tt.took)
				}
				if tt.broken == "" && a.Broken != nil || tt.broken != "" && (a.Broken == nil || a.Broken.Error() != tt.broken) {
					t.Errorf("got %v, want %q", a.Broken, tt.broken)
				}
				without := a.Without("a word")
				if class, _ := pipeline.ClassOf(without); class != pipeline.ClassRetry || !pipeline.IsAmbiguous(without) {
					t.Errorf("got %v of class %d, ambiguous %v", without, class, pipeline.IsAmbiguous(without))
				}
			})
		})
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
		if err == nil || render.Runes(err.Error()) > maxReason+4 {
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

// local returns a Sender to servers on this machine.
func local(t *testing.T) Sender {
	t.Helper()
	s, err := NewSender(registry.Connection{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
