package config

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestWeb(t *testing.T) {
	const secret = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	for yaml, want := range map[string]string{
		"public_url: vokter.example.com": "is not the address of the web page", "public_url: https://x.example.com/a/../b": "is not the address",
		"public_url: https://u:p@x.example.com": "is not the address", "public_url: ftp://x.example.com": "is not the address",
		"web: {proxy: {header: X-User}}": "it needs the addresses of the proxy", "web: {proxy: {from: [10.0.0.1/32]}}": "it needs the name of the header",
		`web: {proxy: {header: "X User", from: [10.0.0.1/32]}}`: "it needs the name of the header",
		"web: {feeds: {all: {}}}":                               "web.feeds.all: it has no secret", "web: {feeds: {all: {secret: short}}}": "must not be guessed",
		"web: {feeds: {all: {secret: aaaaaaaaaaaaa/aaaaaaaaaaaa}}}":                   "letters and digits",
		"web: {feeds: {a: {secret: " + secret + "}, b: {secret: " + secret + "}}}":    "it is the secret of web.feeds.a already",
		"web: {proxy: {header: X-User, from: [10.0.0.1/32]}, feeds: {}, nonsense: 1}": "unknown key",
	} {
		_, err := Parse("c.yaml", []byte("listen: 127.0.0.1:9000\n"+yaml+"\n"), Options{})
		if got := fmt.Sprint(err); !strings.Contains(got, want) || strings.Contains(got, secret) {
			t.Errorf("%s: got %v, want %q", yaml, err, want)
		}
	}
	if _, err := Parse("c.yaml", []byte("public_url: https://x.example.com\n"), Options{}); !strings.Contains(fmt.Sprint(err), "there is no listen") {
		t.Errorf("without listen: got %v", err)
	}
	c, err := Parse("c.yaml", []byte("listen: 127.0.0.1:9000\npublic_url: https://x.example.com/\nweb:\n  proxy: {header: x-user, from: [10.0.0.1/32]}\n"+
		"  feeds: {acme: {secret: "+secret+", client: acme}}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Web; w.PublicURL != "https://x.example.com" || w.Proxy.Header != "X-User" || w.Proxy.From[0] != netip.MustParsePrefix("10.0.0.1/32") ||
		len(w.Feeds) != 1 || w.Feeds[0] != (Feed{"acme", HashToken(secret), "acme"}) {
		t.Errorf("got %+v", w)
	}
}
