package config

import (
	"strings"
	"testing"
)

// TestVariablesAreNamed: no message shows what stands in a variable.
func TestVariablesAreNamed(t *testing.T) {
	env := map[string]string{"SECRET": "hunter2\"secret", "LONG": strings.Repeat("hunter2secret", 20)}
	o := options(nil)
	o.LookupEnv = func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for _, line := range []string{
		`listen: "${X}"`, `fetch: {timeout: "${X}"}`, `fetch: {per_host: {rate: "${X}", concurrency: "${X}"}}`, `min_free: "${X}"`, `expire: {after: "${X}"}`,
		`allow: {fetch: ["${X}"]}`, `health: ["${X}"]`, `documents: [{url: "${X}", keep: true}]`, `transport: "${X}"`,
		`documents: [{url: "http://u:${X}@example.com/", keep: true}]`,
		`subscriptions: [{url: "https://example.com/${X}", keywords: ["!"], interval: "${X}", match: "${X}", language: "${X}", sinks: ["${X}"], select: "${X}[", ignore: ["(${X}"], events: ["${X}"]}]`,
	} {
		for name := range env {
			_, err := Parse("c.yaml", []byte(strings.ReplaceAll(line, "X", name)), o)
			if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "${"+name+"}") && !strings.Contains(err.Error(), "xxxxx") {
				t.Errorf("%s: got %v, want the variable named", line, err)
			}
		}
	}
}

// TestRefusedAsByNew: what New refuses has its place in the file.
func TestRefusedAsByNew(t *testing.T) {
	for text, want := range map[string]string{
		`subscriptions: [{url: "https://user:s3cret@example.com/", keywords: [a], sinks: [out]}]`:                         "c.yaml:1:23: subscriptions[0].url: https://xxxxx@example.com/ has a user name or password in it",
		`documents: [{url: "https://user:s3cret@example.com/", keep: true}]`:                                              "c.yaml:1:19: documents[0].url: https://xxxxx@example.com/ has a user name or password in it",
		`subscriptions: [{url: "https://example.com/", keywords: [a], sinks: [out], select: "a:has(b:has(c))"}]`:          ":has within :has is not supported",
		`subscriptions: [{url: "https://example.com/", keywords: [a], sinks: [out], ignore: ["(a{1,30}){1,30}z"]}]`:       "ignore[0]: \"(a{1,30}){1,30}z\" is too large",
		`subscriptions: [{url: "https://example.com/", keywords: [` + strings.Repeat("a,", 10_000) + `a], sinks: [out]}]`: "10001 keywords are too many",
		`subscriptions: [{url: "https://example.com/", keywords: [` + strings.Repeat("a", 1001) + `], sinks: [out]}]`:     "keywords[0]: a keyword of 1001 characters is too long",
	} {
		_, err := Parse("c.yaml", []byte("sinks: {out: {fake: {url: x}}}\n"+text), options(nil))
		want = strings.Replace(want, "c.yaml:1:", "c.yaml:2:", 1)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.100s: got %v, want %s", text, err, want)
		}
	}
}
