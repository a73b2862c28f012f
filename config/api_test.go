package config

import (
	"slices"
	"strings"
	"testing"
)

func TestAPI(t *testing.T) {
	hash := HashToken("0123456789abcdefghij")
	_, err := Parse("c.yaml", []byte(`
listen: 127.0.0.1:9000
sinks: {hook: {stdout: {}}}
api:
  cors: [https://dashboard.example.com]
  tokens:
    all: {hash: "`+hash+`", scopes: [read, write, admin]}
    shop: {token: aaaaaaaaaaaaaaaaaaaaaaaaaa, scopes: [read], clients: [shop], rate: 5/s}
`), Options{})
	mistakes := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	if strings.Contains(mistakes(err), "api") { // this test knows no sinks
		t.Fatal(err)
	}
	for yaml, want := range map[string]string{
		`{tokens: {a: {hash: "` + hash + `"}}}`:                                                                   "api.tokens.a: it has no scopes",
		`{tokens: {a: {scopes: [read]}}}`:                                                                         "api.tokens.a: it has no hash; write vokter-stream token new",
		`{tokens: {a: {scopes: [reed], hash: "` + hash + `"}}}`:                                                   `unknown scope "reed"`,
		`{tokens: {a: {scopes: [read], hash: "sha256:abc"}}}`:                                                     "it is not the hash of a token",
		`{tokens: {a: {scopes: [read], token: short}}}`:                                                           "too short",
		`{tokens: {a: {scopes: [read], token: aaaaaaaaaaaaaaaaaaaaaaaaaa, hash: "` + hash + `"}}}`:                "not both",
		`{tokens: {a: {scopes: [read], clients: [], hash: "` + hash + `"}}}`:                                      "it names nobody",
		`{tokens: {a: {scopes: [read], sinks: [x], hash: "` + hash + `"}}}`:                                       `no sink is named "x"`,
		`{tokens: {a: {scopes: [read], hash: "` + hash + `"}, b: {scopes: [read], token: 0123456789abcdefghij}}}`: "it is the same token as a",
		`{tokens: {a: {scopes: [read], quota: {pages: 0}, hash: "` + hash + `"}}}`:                                "api.tokens.a.quota.pages: must be at least 1, not 0",
		`{cors: ["https://x.example.com/path"]}`:                                                                  "is not an origin",
	} {
		_, err := Parse("c.yaml", []byte("listen: 127.0.0.1:9000\napi: "+yaml+"\n"), Options{})
		if !strings.Contains(mistakes(err), want) {
			t.Errorf("%s: got %v, want %q", yaml, err, want)
		}
		if strings.Contains(mistakes(err), "aaaaaaaaaa") {
			t.Errorf("%s: the mistake shows the token: %v", yaml, err)
		}
	}
	if _, err := Parse("c.yaml", []byte(`api: {cors: [https://x.example.com]}`), Options{}); !strings.Contains(mistakes(err), "there is no listen") {
		t.Errorf("without listen: got %v", err)
	}
	c, err := Parse("c.yaml", []byte(`
listen: 127.0.0.1:9000
api: {tokens: {shop: {token: aaaaaaaaaaaaaaaaaaaaaaaaaa, scopes: [read], clients: [shop], rate: 5/s, quota: {subscriptions: 10, pages: 20, hosts: 3, previews: 1}}}}
`), Options{})
	if err != nil || len(c.API.Tokens) != 1 {
		t.Fatalf("got %+v, %v", c, err)
	}
	got := c.API.Tokens[0]
	if got.Name != "shop" || got.Hash != HashToken("aaaaaaaaaaaaaaaaaaaaaaaaaa") || got.Rate != 5 || !slices.Equal(got.Clients, []string{"shop"}) || got.Sinks != nil ||
		got.Quota != (Quota{Subscriptions: 10, Pages: 20, Hosts: 3, Streams: defaultStreams, Previews: 1}) {
		t.Errorf("got %+v", got)
	}
}
