package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline/registry"
	"github.com/vokter/vokter/sinks/inbox"
	"github.com/vokter/vokter/sinks/webhook"
)

// TestMadeSinks: what was made on the page is written and read without a change, and stands beside what a file has.
func TestMadeSinks(t *testing.T) {
	dir := t.TempDir()
	made := map[string]MadeSink{
		"hook": {Kind: "webhook", Options: map[string]any{
			"url": "https://example.com/${HOME}", "headers": map[string]any{"X-Key": "$${a}"}, "success_status": []any{uint64(200)}, "verify": false,
		}, Beside: map[string]any{"paused": true}},
		"named-in-the-file": {Kind: "webhook", Options: map[string]any{"url": "https://example.com/other"}, Beside: map[string]any{}},
	}
	b, err := EncodeMadeSinks(made)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ReceiversFile)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadMadeSinks(dir); err != nil || !reflect.DeepEqual(got, made) {
		t.Errorf("got %+v, %v from %s", got, err, b)
	}
	var reg registry.Registry
	webhook.Register(&reg)
	inbox.Register(&reg)
	o := Options{Registry: &reg, Data: dir, LookupEnv: func(name string) (string, bool) { t.Errorf("%s is looked up", name); return "", false }}
	file := "listen: 127.0.0.1:9000\nsinks: {named-in-the-file: {webhook: {url: 'https://example.com/of-the-file'}}}\nsubscriptions:\n- {url: 'https://example.com/', sinks: [hook, inbox]}\n"
	c, err := Parse("c.yaml", []byte(file), o)
	if err != nil || len(c.Router.Sinks) != 3 || !c.Router.Delivery.Receivers["hook"].Paused {
		t.Fatalf("got %+v, %v", c, err)
	}
	if got := fmt.Sprint(c.Warnings); !strings.Contains(got, "sinks.named-in-the-file: a receiver that was made on the web page has this name") {
		t.Errorf("warnings: %s", got)
	}
	o.Receivers = []byte("sinks:\n  bad: {webhook: {url: nonsense}}\n  worse:\n")
	_, err = Parse("c.yaml", []byte("listen: 127.0.0.1:9000\n"), o)
	for _, want := range []string{path + ":2:24: sinks.bad.webhook.url", path + ":3:10: sinks.worse has no value"} {
		if got := fmt.Sprint(err); !strings.Contains(got, want) {
			t.Errorf("%q is missing in %s", want, got)
		}
	}
}

// TestMadeOptions: what a form has becomes the value of an option, and the other way round.
func TestMadeOptions(t *testing.T) {
	for _, c := range []struct {
		kind, text string
		want       any
	}{
		{"secret", " a b ", "a b"}, {"template", "a\r\nb", "a\nb"}, {"true or false", "true", true}, {"whole number", "7", uint64(7)}, {"whole number", "seven", "seven"},
		{"list of strings", "a\r\n\r\n b: c ", []any{"a", "b: c"}}, {"list of whole numbers", "200\n204", []any{uint64(200), uint64(204)}},
		{"mapping of names to secrets", "X-Key: a: b\n", map[string]any{"X-Key": "a: b"}},
		{"list of mappings", "- to: chat\n", []any{map[string]any{"to": "chat"}}},
	} {
		got, err := ParseMadeOption(c.kind, c.text)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %q: got %#v, %v, want %#v", c.kind, c.text, got, err, c.want)
		}
		if again, err := ParseMadeOption(c.kind, MadeOptionText(got)); err != nil || !reflect.DeepEqual(again, c.want) {
			t.Errorf("%s %q as text: got %#v from %q, %v", c.kind, c.text, again, MadeOptionText(got), err)
		}
	}
	for kind, text := range map[string]string{"mapping of names to strings": "no colon", "list of mappings": "- {"} {
		if _, err := ParseMadeOption(kind, text); err == nil {
			t.Errorf("%s: %q is read", kind, text)
		}
	}
}
