package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const oneSubscription = "\nsinks: {out: {fake: {url: https://x.example.com}}}\nsubscriptions: [{url: 'http://shop.example.com/x', keywords: [a], sinks: [out]}]\n"

// TestAccess: the settings of hosts and pages, with secrets from files and variables.
func TestAccess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("hunter22\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var named []string
	o := fakeOptions(map[string]string{"TOKEN": "t-123456"})
	o.Named = func(path string) { named = append(named, path) }
	c, err := Parse("c.yaml", []byte(`
fetch: {robots: true}
access:
  shop:
    hosts: [shop.example.com, "http://127.0.0.1:8080"]
    pages: [https://other.example.com/x]
    headers: {Authorization: "Bearer ${TOKEN}", X-Key_file: `+path+`}
    cookies: {sid_file: `+path+`}
    proxy: socks5h://127.0.0.1:1080
    login:
      url: http://shop.example.com/login
      fields: {user: ann, password_file: `+path+`}
      check: 'a[href="/logout"]'
  basic: {hosts: [intranet.example.com], username: ann, password_file: `+path+`}
`+oneSubscription), o)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Router.Access["shop"]
	if !c.Router.Fetch.Robots || a.Headers["Authorization"].Reveal() != "Bearer t-123456" || a.Headers["X-Key"].Reveal() != "hunter22" || len(a.Headers) != 2 ||
		a.Cookies["sid"].Reveal() != "hunter22" || a.Login.Fields["password"].Reveal() != "hunter22" || a.Login.Check == "" || a.Proxy.IsZero() {
		t.Errorf("got %+v", a)
	}
	if got := c.Router.Access["basic"].Password.Reveal(); got != "hunter22" {
		t.Errorf("the password is %q", got)
	}
	if len(named) != 4 || named[0] != path {
		t.Errorf("the file names %q", named)
	}
	var warnings []string
	for _, w := range c.Warnings {
		warnings = append(warnings, w.Message)
	}
	for _, want := range []string{"access.shop.login.url: the password is sent without encryption", "subscriptions[0].url: access shop is not used for it"} {
		if !slices.ContainsFunc(warnings, func(w string) bool { return strings.HasPrefix(w, want) }) {
			t.Errorf("no warning %q in %q", want, warnings)
		}
	}
}

// TestMistakesInAccess: each stands where it is, and shows no secret.
func TestMistakesInAccess(t *testing.T) {
	_, err := Parse("c.yaml", []byte(`access:
  a b: {hosts: [x.example.com], bearer: t0ken-1}
  two: {hosts: [x.example.com], bearer: "t0ken 2", logins: {}}
  gone: {hosts: [y.example.com], cookies: {sid_file: /does/not/exist}, login: {url: "https://a.example/", fields: {p: "t0ken-3"}, check: "a["}}
`+oneSubscription), fakeOptions(nil))
	if err == nil {
		t.Fatal("no mistake was found")
	}
	for _, want := range []string{
		`c.yaml:2:8: "a b" cannot be the name of a group of access settings`,
		`c.yaml:3:52: unknown key "logins"`,
		"c.yaml:4:54: access.gone.cookies.sid_file: the file /does/not/exist does not exist",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "t0ken") {
		t.Errorf("a secret is shown:\n%v", err)
	}
}
