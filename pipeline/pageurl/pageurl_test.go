package pageurl

import (
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	for raw, want := range map[string]string{
		"http://Example.COM":                       "http://example.com/",
		"HTTPS://example.com:443/a":                "https://example.com/a",
		"http://example.com:80":                    "http://example.com/",
		"http://example.com:8081/a?b=1&a=2#part":   "http://example.com:8081/a?b=1&a=2",
		" https://example.com/a b ":                "https://example.com/a%20b",
		"http://[2001:DB8::1]:80/x":                "http://[2001:db8::1]/x",
		"http://[::1]:8080":                        "http://[::1]:8080/",
		"http://user:secret@example.com/?q=%41":    "http://user:secret@example.com/?q=%41",
		"http://example.com/%7Euser/../a":          "http://example.com/%7Euser/../a",
		"file:///srv/page.html":                    "file:///srv/page.html",
		"FILE://LocalHost/srv//a/./../b c.md#part": "file:///srv/b%20c.md",
		"file:///srv/%61%2Fdocs/":                  "file:///srv/a/docs/",
		"file:///":                                 "file:///",
		"https://example.com:8443/?a=https://b/#c": "https://example.com:8443/?a=https://b/",
	} {
		got, err := Canonical(raw)
		if err != nil || got != want {
			t.Errorf("Canonical(%q) = %q, %v, want %q", raw, got, err, want)
		}
		if again, err := Canonical(got); err != nil || again != got {
			t.Errorf("Canonical(%q) = %q, %v, want it unchanged", got, again, err)
		}
	}
	for _, raw := range []string{"", "example.com", "/a", "http://", "mailto:a@b", "http:example.com", "http://a b/", "http://x:99999999999/", "http://x:0/"} {
		if got, err := Canonical(raw); err == nil {
			t.Errorf("Canonical(%q) = %q, want an error", raw, got)
		}
	}
}

func TestErrorsNameNoPassword(t *testing.T) {
	for raw, shown := range map[string]string{
		"https://bob:hunter2@example.com/x":       "https://xxxxx@example.com/x",
		"https://hunter2@example.com/@x":          "https://xxxxx@x",
		"https://bob:hunter2@example.com:99999/x": "https://xxxxx@example.com:99999/x",
		"https://bob:hunter2@@example.com:0/x":    "https://xxxxx@example.com:0/x",
		"https://bob:hunter2@example .com/x":      "https://xxxxx@example .com/x",
		"https://bob:hunter2/x@example.com/":      "https://xxxxx@example.com/",
		"https://bob:hunter2#x@example.com/":      "https://xxxxx@example.com/",
		"//bob:hunter2@example.com/":              "//xxxxx@example.com/",
		"bob:hunter2@example.com":                 "xxxxx@example.com",
		"example.com/@bob":                        "example.com/@bob",
		"https://example.com:99999/x":             "https://example.com:99999/x",
	} {
		err := Check(raw)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), shown+" ") && !strings.Contains(err.Error(), shown+`" `) {
			t.Errorf("%s: got %v, want an error about %s", raw, err, shown)
		}
	}
}

func TestHost(t *testing.T) {
	for page, want := range map[string]string{
		"http://example.com/a":      "example.com:80",
		"https://example.com/":      "example.com:443",
		"https://example.com:8443/": "example.com:8443",
		"http://[::1]/":             "[::1]:80",
		"file:///srv/a":             "file:///srv/a",
	} {
		if got := Host(page); got != want {
			t.Errorf("Host(%q) = %q, want %q", page, got, want)
		}
	}
}
