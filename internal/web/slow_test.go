package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vokter/vokter/config"
	"github.com/vokter/vokter/internal/manage"
)

// pipes is a listener whose connections are in memory, for a bubble of synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }
func (p *pipes) Close() error   { close(p.closed); return nil }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p.conns <- there
	return here, nil
}

// serveInBubble serves the web page of f with the timeouts of the listener, and returns a session and its client.
func serveInBubble(t *testing.T, f *fake) (session string, c *http.Client, on *pipes) {
	t.Helper()
	access := new(manage.Access)
	if err := access.Configure(config.API{Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
	api, err := manage.New(f, manage.Options{Access: access})
	if err != nil {
		t.Fatal(err)
	}
	site := New(Options{API: api})
	on = &pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: site, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	go func() {
		if err := server.Serve(on); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { server.Close() })
	transport := &http.Transport{DialContext: on.dial, DisableKeepAlives: true}
	id, err := site.api.Logins().Begin(config.HashToken(aToken))
	if err != nil {
		t.Fatal(err)
	}
	return id, &http.Client{Transport: transport}, on
}

// TestSlowPages: a page that takes longer to fetch than the timeouts of the server is waited for.
func TestSlowPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session, c, _ := serveInBubble(t, &fake{source: "<p id=tea>green tea", slow: 50 * time.Second})
		for _, path := range []string{"/subscribe", "/pick", "/pick/frame"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path+"?url=https://example.com"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.AddCookie(&http.Cookie{Name: sessionCookie, Value: session})
			resp, err := c.Do(r)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK || path != "/pick" && !strings.Contains(string(body), "tea") {
				t.Errorf("%s: got %s %s, %v", path, resp.Status, body, err)
			}
		}
	})
}

// TestSlowAnswerWithoutBody: an answer that has no body arrives, however long it took.
func TestSlowAnswerWithoutBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := &pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			w := manage.NewDeadlineWriter(rw, 10*time.Second)
			if err := w.EndReadTimeout(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			w.WriteHeader(http.StatusNoContent)
		})}
		go func() { _ = server.Serve(on) }()
		defer server.Close()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DialContext: on.dial, DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			t.Errorf("got %s", resp.Status)
		}
	})
}

// TestUserWhoReadsNothing: the connection of a user who reads nothing of a page ends.
func TestUserWhoReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session, _, on := serveInBubble(t, &fake{source: "<p>" + strings.Repeat("green tea ", 10_000)})
		conn, err := on.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := io.WriteString(conn, "GET /pick/frame?url=https://example.com/ HTTP/1.1\r\nHost: localhost\r\nCookie: "+sessionCookie+"="+session+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n, err := io.Copy(io.Discard, conn); err != nil || n > 0 || time.Since(began) > time.Minute {
			t.Errorf("read %d bytes, %v", n, err)
		}
	})
}
