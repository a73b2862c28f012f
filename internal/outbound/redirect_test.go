package outbound

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

func TestRedirectsKeepHeadersFromOthers(t *testing.T) {
	var location string
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/start":
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		case "/next":
			http.Redirect(w, r, "/end", http.StatusFound)
		default:
			got = r.Header
		}
	}))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	other := httptest.NewServer(srv.Config.Handler)
	defer other.Close()
	allow, _ := ParseAllow([]string{"127.0.0.0/8"})
	c := NewClient(Config{Allow: allow, CheckRedirect: Redirects(10)})
	start := "http://127.0.0.1:" + port + "/start?token=secret"
	follow := func() error {
		got = nil
		req, _ := http.NewRequest(http.MethodGet, start, nil)
		for _, name := range private {
			req.Header.Set(name, "mine")
		}
		resp, err := c.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}

	for _, location = range []string{"http://localhost:" + port + "/end", other.URL + "/end", "http://localhost:" + port + "/next", other.URL + "/next"} {
		if err := follow(); err != nil {
			t.Fatalf("to %s: %v", location, err)
		}
		for _, name := range private {
			if v := got.Get(name); v != "" {
				t.Errorf("to %s: %s: %s was sent", location, name, v)
			}
		}
		if v := got.Get("Referer"); v != "" && v != location { // the other server may know its own page
			t.Errorf("to %s: Referer: %s was sent", location, v)
		}
	}
	location = "/end"
	if err := follow(); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(private, []string{"Referer"}) {
		if got.Get(name) == "" {
			t.Errorf("to the same server: %s is missing", name)
		}
	}
	for _, location = range []string{"http://u:hunter2@127.0.0.1:" + port + "/end", "http://u@localhost:" + port + "/end", "//:p@" + other.Listener.Addr().String() + "/end"} {
		var redirect *RedirectError
		if err := follow(); !errors.As(err, &redirect) || got != nil {
			t.Errorf("to %s: got %v and a request with %v, want the redirect refused", location, err, got)
		}
	}
}
