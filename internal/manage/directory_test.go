package manage

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnnounce(t *testing.T) {
	dir := t.TempDir()
	if _, err := Find(dir); !errors.Is(err, ErrNoAddress) {
		t.Errorf("before: got %v", err)
	}
	_, base := serve(t, &fake{})
	addr := strings.TrimPrefix(base, "http://")
	if err := Announce(dir, addr, aToken, openLogins(t, dir)); err != nil {
		t.Fatal(err)
	}
	c, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if p, err := c.Process(t.Context()); err != nil || p.Data != "/var/lib/vokter" {
		t.Errorf("got %+v, %v", p, err)
	}
	Withdraw(dir, "127.0.0.1:9001", "another") // of one that ended later than its successor began
	if _, err := Find(dir); err != nil {
		t.Errorf("after the end of another one: %v", err)
	}
	Withdraw(dir, addr, aToken)
	left, err := os.ReadDir(dir)
	if len(left) != 2 || left[0].Name() != loginsFile || left[1].Name() != tokenFile || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.Mkdir(filepath.Join(dir, runTokenFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Announce(dir, "127.0.0.1:9000", "second", openLogins(t, dir)); err == nil {
		t.Error("it takes the place of a directory")
	}
	if _, err := os.Stat(filepath.Join(dir, addressFile)); err == nil {
		t.Error("it can be found without a token")
	}
}

// TestReachable: a verb never sends the token to another machine.
func TestReachable(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:1": "127.0.0.1:1", "[::1]:1": "[::1]:1", "0.0.0.0:1": "127.0.0.1:1", "[::]:1": "127.0.0.1:1",
		"203.0.113.9:1": "", "[2001:db8::9]:1": "", "example.com:1": "", "127.0.0.1": "", "": "",
	} {
		if got, err := reachableAddr(addr); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", addr, got, err, want)
		}
	}
}

func TestReadToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if _, err := readToken(path); err == nil || errors.Is(err, ErrToken) {
		t.Errorf("none: got %v", err)
	}
	for mode, bad := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: true, 0o604: true, 0o602: true, 0o666: true} {
		if err := errors.Join(os.WriteFile(path, []byte("secret\n"), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		got, err := readToken(path)
		if bad != errors.Is(err, ErrToken) || !bad && got != "secret" || bad && !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("%o: got %q, %v", mode, got, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
