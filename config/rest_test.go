package config

import (
	"strings"
	"testing"
)

func TestRest(t *testing.T) {
	for text, want := range map[string]string{
		"rest: {}":                                                     "1:7: rest has no listen",
		"rest:\n  format: v1":                                          "2:3: rest has no listen",
		"rest: {listen: nonsense}":                                     `1:16: rest.listen: "nonsense" is not an address`,
		"rest: {listen: '127.0.0.1:9000'}":                             "1:7: rest has no token",
		"rest: {listen: ':9000', token: none}":                         "1:16: rest.listen: :9000 is reached from other machines, so rest needs a token",
		"rest: {listen: '127.0.0.1:9000', token: a, format: v2}":       `1:52: rest.format: "v2" is no format; write documented or v1`,
		"rest: {listen: '127.0.0.1:9000', token: ''}":                  "1:41: rest.token is empty",
		"rest: {listen: '127.0.0.1:9000', tokens: [a]}":                "1:34: unknown key \"tokens\" in rest; did you mean \"token\"?",
		"listen: localhost:9\nrest: {listen: 'localhost:9', token: a}": "2:16: rest.listen: localhost:9 is the address of listen already",
	} {
		_, err := Parse("c.yaml", []byte(text+"\n"), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]Rest{
		"rest: {listen: '127.0.0.1:0', token: none}":                       {Listen: "127.0.0.1:0", Format: "documented"},
		"rest: {listen: '[::1]:9', format: v1, verify: true, token: none}": {Listen: "[::1]:9", Format: "v1", Verify: true},
		"rest: {listen: '0.0.0.0:9', token: abc}":                          {Listen: "0.0.0.0:9", Format: "documented", Verify: true},
	} {
		c, err := Parse("c.yaml", []byte(text+"\n"), Options{})
		if err != nil || c.Rest == nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := *c.Rest; got.Listen != want.Listen || got.Format != want.Format || got.Verify != want.Verify {
			t.Errorf("%s: got %+v", text, got)
		}
		if len(c.Warnings) > 0 {
			t.Errorf("%s: %v", text, c.Warnings)
		}
	}
}
