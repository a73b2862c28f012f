package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// serveLimited serves h to at most limit connections, until the test ends. It returns its address.
func serveLimited(t *testing.T, limit int, patient time.Duration, h http.HandlerFunc) string {
	t.Helper()
	on, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	on = limitConnections(server, on, limit, patient)
	served := make(chan error)
	go func() { served <- server.Serve(on) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return on.Addr().String()
}

// sendTo opens a connection to addr that has sent the text raw. It ends with the test.
func sendTo(t *testing.T, addr, raw string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestSilentConnectionsKeepNobodyOut fills a server with connections without a whole request, which never
// time out.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	const limit = 4
	addr := serveLimited(t, limit, 0, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	var silent []net.Conn
	for range 3 * limit {
		silent = append(silent, sendTo(t, addr, "GET /healthz HTTP/1.1\r\n"))
	}
	for range 2 { // the second connection is new, too
		client := &http.Client{Transport: new(http.Transport)}
		if status, body := askWith(t, client, "http://"+addr+"/healthz"); status != http.StatusOK || body != "ok" {
			t.Errorf("got %d %q", status, body)
		}
	}
	if _, err := silent[0].Read(make([]byte, 1)); err == nil {
		t.Error("the oldest connection was answered")
	}
	last := silent[len(silent)-1]
	if _, err := io.WriteString(last, "Host: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(last, answer); err != nil || string(answer) != "HTTP/1.1 200" {
		t.Errorf("the youngest connection got %q, %v", answer, err)
	}
}

// TestSlowBodiesKeepNobodyOut fills a server with requests whose bodies never come, which the handler reads or refuses.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"read":    func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"refused": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 4
			addr := serveLimited(t, limit, 0, h)
			for range 3 * limit {
				sendTo(t, addr, "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\na")
			}
			for range 2 {
				client := &http.Client{Transport: new(http.Transport)}
				if status, _ := askWith(t, client, "http://"+addr+"/healthz"); status == 0 {
					t.Error("no answer")
				}
			}
		})
	}
}

// TestUnreadAnswersKeepNobodyOut fills a server with clients that do not read their answers.
func TestUnreadAnswersKeepNobodyOut(t *testing.T) {
	const limit = 4
	addr := serveLimited(t, limit, 0, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			fmt.Fprint(w, "ok")
			return
		}
		for part := make([]byte, 1<<20); r.Context().Err() == nil; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	for range 3 * limit {
		conn := sendTo(t, addr, "GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		client := &http.Client{Transport: new(http.Transport), Timeout: 20 * time.Second}
		if status, body := askWith(t, client, "http://"+addr+"/healthz"); status != http.StatusOK || body != "ok" {
			t.Errorf("got %d %q", status, body)
		}
	}
}

// TestBusyClientsKeepNobodyOut fills a server with clients that ask again and again and read their answers.
func TestBusyClientsKeepNobodyOut(t *testing.T) {
	const limit = 4
	addr := serveLimited(t, limit, time.Hour, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	var wg sync.WaitGroup
	defer wg.Wait()
	ended := make(chan struct{})
	defer close(ended)
	var asking sync.WaitGroup
	for range limit {
		asking.Add(1)
		wg.Go(func() {
			client := &http.Client{Transport: new(http.Transport)}
			defer client.CloseIdleConnections()
			for first := true; ; first = false {
				askWith(t, client, "http://"+addr)
				if first {
					asking.Done()
				}
				select {
				case <-ended:
					return
				default:
				}
			}
		})
	}
	asking.Wait()
	client := &http.Client{Transport: new(http.Transport), Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	if status, body := askWith(t, client, "http://"+addr+"/healthz"); status != http.StatusOK || body != "ok" {
		t.Errorf("got %d %q", status, body)
	}
}

// TestRequestsAreNotCutOff has more requests at once than connections.
func TestRequestsAreNotCutOff(t *testing.T) {
	const limit = 4
	began, release := make(chan struct{}, 2*limit), make(chan struct{})
	addr := serveLimited(t, limit, time.Hour, func(w http.ResponseWriter, _ *http.Request) {
		began <- struct{}{}
		<-release
		fmt.Fprint(w, "ok")
	})
	var wg sync.WaitGroup
	for range 2 * limit {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		wg.Go(func() {
			if status, body := askWith(t, client, "http://"+addr); status != http.StatusOK || body != "ok" {
				t.Errorf("got %d %q", status, body)
			}
		})
	}
	for range limit {
		<-began
	}
	close(release)
	wg.Wait()
}

// askWith asks with a client for a URL.
func askWith(t *testing.T, c *http.Client, url string) (status int, body string) {
	t.Helper()
	resp, err := c.Do(newRequest(t, http.MethodGet, url))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}
