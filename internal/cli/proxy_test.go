package cli

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// freeAddress returns an address of this machine where nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestBehindNginx uses the web page through a real nginx with the sample: below a path, which the proxy passes on or
// leaves out, and at a host of its own.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("there is no nginx; apt-get install nginx-light")
	}
	sample, err := os.ReadFile(filepath.Join("..", "..", "deploy", "proxy", "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ base, location, pass string }{
		"the path is passed on": {"/vokter", "/vokter/", ""}, "the path is left out": {"/vokter", "/vokter/", "/"}, "a host of its own": {"", "/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			front, data := freeAddress(t), filepath.Join(t.TempDir(), "d")
			public := "http://" + front + c.base
			run := start(t, "run", "-c", file(t, "c.yaml", fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\npublic_url: %s\n", data, public)))
			back := run.awaitAddress(t, data)
			server := strings.NewReplacer("listen 443 ssl", "listen "+front, "127.0.0.1:9000", back+c.pass, "location /vokter/", "location "+c.location).Replace(string(sample))
			var lines []string
			for line := range strings.Lines(server) {
				if !strings.Contains(line, "ssl_certificate") {
					lines = append(lines, line)
				}
			}
			dir := t.TempDir()
			conf := file(t, "nginx.conf", fmt.Sprintf("pid %[1]s/pid; error_log %[1]s/error.log; daemon off; events {}\nhttp { access_log off; client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; "+
				"fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;\n%[2]s}\n", dir, strings.Join(lines, "")))
			proxy := exec.CommandContext(t.Context(), program, "-c", conf, "-e", filepath.Join(dir, "error.log"))
			if err := proxy.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = proxy.Process.Signal(os.Interrupt) // so that its workers end, too
				_ = proxy.Wait()
			})
			waitFor(t, "nginx", func() bool {
				on, err := new(net.Dialer).DialContext(t.Context(), "tcp", front)
				if err == nil {
					on.Close()
				}
				return err == nil
			})
			me, origin := newPerson(t), "http://"+front
			if path, body := me.open(t, public+"/"); path != c.base+"/" || !strings.Contains(body, "<h1>Log in</h1>") {
				t.Fatalf("before the login: %s %s", path, body)
			}
			token := strings.TrimSpace(runCLI(t, "token", "--data", data).stdout)
			if path, body := me.send(t, origin, c.base+"/login", url.Values{"token": {token}}); path != c.base+"/" || !strings.Contains(body, "Watch a page") {
				t.Fatalf("the login leads to %s: %s", path, body)
			}
			for _, path := range []string{"/subscribe", "/changes", "/receivers", "/process"} {
				if at, body := me.open(t, public+path); at != c.base+path || strings.Contains(body, "<h1>Log in</h1>") {
					t.Errorf("%s: %s %s", path, at, body)
				}
			}
			if path, body := me.send(t, origin, c.base+"/do/password", url.Values{"password": {"a long sentence"}, "back": {"/process"}}); path != c.base+"/process" || !strings.Contains(body, "The password is set") {
				t.Errorf("an action leads to %s: %s", path, body)
			}
			_, body := me.open(t, public+"/")
			for _, part := range strings.Split(body, `"`) {
				if strings.Contains(part, "/assets/") {
					if r, err := me.Get(origin + part); err != nil || r.StatusCode != http.StatusOK {
						t.Errorf("%s: %v", part, err)
					}
				}
			}
			events, err := me.Do(newRequest(t, http.MethodGet, public+"/events?type=notification"))
			if err != nil {
				t.Fatal(err)
			}
			defer events.Body.Close()
			if line, err := bufio.NewReader(events.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "event: ping") {
				t.Errorf("the stream of events begins with %q, %v", line, err)
			}
			me.send(t, origin, c.base+"/logout", nil)
			if _, body := me.open(t, public+"/changes"); !strings.Contains(body, "<h1>Log in</h1>") {
				t.Errorf("after the logout: %s", body)
			}
		})
	}
}
