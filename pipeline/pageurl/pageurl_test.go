package pageurl

import (
	"net/url"
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
		"http://example.com/%7Euser/../a":          "http://example.com/a",
		"http://example.com/..":                    "http://example.com/",
		"http://example.com/a/b/..":                "http://example.com/a/",
		"http://example.com/a/b/.":                 "http://example.com/a/b/",
		"http://example.com/a%2Fb/%2E./c/%2e?d=..": "http://example.com/c/?d=..",
		"http://example.com/a//../b//./c":          "http://example.com/a/b//c",
		"http://example.com//a/..b/...?":           "http://example.com//a/..b/...?",
		"https://example.com/x/../a%2F..%2Fb":      "https://example.com/a%2F..%2Fb",
		"file:///srv/page.html":                    "file:///srv/page.html",
		"FILE://LocalHost/srv//a/./../b c.md#part": "file:///srv/b%20c.md",
		"file:///srv/%61%2Fdocs/":                  "file:///srv/a/docs/",
		"file:///":                                 "file:///",
		"https://example.com:8443/?a=https://b/#c": "https://example.com:8443/?a=https://b/",
		"https://example.com/s?q=red lamp":         "https://example.com/s?q=red%20lamp",
		"https://example.com/s?q=red%20lamp":       "https://example.com/s?q=red%20lamp",
		"https://example.com/s?q=red+lamp":         "https://example.com/s?q=red+lamp",
		"https://example.com/s?q=grün&n=\xff\x01x": "https://example.com/s?q=gr%C3%BCn&n=%FF%01x",
		"https://example.com/s?q=gr%c3%bcn":        "https://example.com/s?q=gr%c3%bcn",
		`https://example.com/s?q="a"<b>'c'`:        "https://example.com/s?q=%22a%22%3Cb%3E%27c%27",
		"https://example.com/s?a[]={1|2}^\\`/?@:%": "https://example.com/s?a[]={1|2}^\\`/?@:%",
		"https://example.com/s?a\tb\n=c":           "https://example.com/s?ab=c",
		"https://example.com/s?":                   "https://example.com/s?",
		"https://example.com?q=a b/c":              "https://example.com/?q=a%20b/c",
		"https://example.com/a%2Fb c/ü|d":          "https://example.com/a%2Fb%20c/%C3%BC%7Cd",
		"https://example.com/a%2fb/[c]'(d)!":       "https://example.com/a%2fb/[c]'(d)!",
		"https://example.com/100%/50%25/%zz":       "https://example.com/100%25/50%25/%25zz",
		`HTTP:\\Example.com\a\b?c=\d`:              `http://example.com/a/b?c=\d`,
		`file:///srv/a\b 100%.txt`:                 "file:///srv/a%5Cb%20100%25.txt",
		"table://db/x?name='a b'":                  "table://db/x?name='a%20b'",
	} {
		got, err := Canonical(raw)
		if err != nil || got != want {
			t.Errorf("Canonical(%q) = %q, %v, want %q", raw, got, err, want)
		}
		if again, err := Canonical(got); err != nil || again != got {
			t.Errorf("Canonical(%q) = %q, %v, want it unchanged", got, again, err)
		}
	}
	for _, raw := range []string{"", "example.com", "/a", "http://", "mailto:a@b", "http:example.com", "http://a b/", "http://x:99999999999/", "http://x:0/", "http://:80/"} {
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

// TestEncode encodes references as a redirect or a link has them, and every byte once.
func TestEncode(t *testing.T) {
	for ref, want := range map[string]string{
		"?q=a b":                 "?q=a%20b",
		"s?q=ö#top of page":      "s?q=%C3%B6",
		"//example.com/a b?c":    "//example.com/a%20b?c",
		"/a:b c":                 "/a:b%20c",
		"../100%/?x=100%":        "../100%25/?x=100%",
		`\a\b`:                   "/a/b",
		"mailto:a b@example.com": "mailto:a%20b@example.com",
		"#top":                   "",
		"":                       "",
	} {
		got := Encode(ref)
		if got != want {
			t.Errorf("Encode(%q) = %q, want %q", ref, got, want)
		}
		if again := Encode(got); again != got {
			t.Errorf("Encode(%q) = %q, want it unchanged", got, again)
		}
	}
}

// FuzzCanonical holds that a canonical URL stays as it is, and is the one that net/url sends.
func FuzzCanonical(f *testing.F) {
	for _, raw := range []string{"http://example.com/a%2Fb c?d=e f%", "https://[::1]:443/\xff|%", `https:\\a\b`, "file:///a/../%", "x://y/?'", "http://a//../..//%2E%2f"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		page, err := Canonical(raw)
		if err != nil {
			return
		}
		if again, err := Canonical(page); err != nil || again != page {
			t.Errorf("Canonical(%q) = %q, %v, want it unchanged", page, again, err)
		}
		u, err := url.Parse(page)
		if err != nil {
			t.Fatalf("%q: %v", page, err)
		}
		if sent := u.RequestURI(); strings.ContainsFunc(sent, func(c rune) bool { return c <= ' ' || c > '~' }) || !strings.HasSuffix(page, sent) {
			t.Errorf("%q is requested as %q", page, sent)
		}
	})
}

// TestCanonicalMakesLittle: it is called for each URL of each message, and of each entry of a configuration.
func TestCanonicalMakesLittle(t *testing.T) {
	made := testing.AllocsPerRun(100, func() {
		if _, err := Canonical("https://example.com/a/b?c=d"); err != nil {
			t.Fatal(err)
		}
	})
	if made > 20 {
		t.Errorf("%v allocations, want at most 20", made)
	}
}

// TestMissingScheme: a name of a host without a scheme is answered with the URL that was probably meant.
func TestMissingScheme(t *testing.T) {
	for raw, want := range map[string]string{
		"example.com":     `"example.com" is not an absolute URL; write https://example.com`,
		"example.com/a b": `"example.com/a b" is not an absolute URL; write https://example.com/a%20b`,
		"a word":          `"a word" is not an absolute URL such as https://example.com/page`,
		"/a.html":         `"/a.html" is not an absolute URL such as https://example.com/page`,
	} {
		if _, err := Canonical(raw); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", raw, err, want)
		}
	}
}
