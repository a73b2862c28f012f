package config

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// TestBounds: what would take the parser hours or gigabytes is refused before it is parsed.
func TestBounds(t *testing.T) {
	const n = 20_000
	var keys, maps, aliases strings.Builder
	for i := range n {
		fmt.Fprintf(&keys, "k%d: x\n", i)
	}
	for range 200 {
		maps.WriteString("-\n" + strings.Repeat(" a:\n", 1000))
	}
	for range n {
		aliases.WriteString("- *a\n")
	}
	for name, tc := range map[string]struct{ data, want string }{
		"brackets":            {strings.Repeat("[", n), "c.yaml:1:51: the configuration is nested too deeply; at most 50 levels"},
		"braces":              {strings.Repeat("{a: ", n), "nested too deeply"},
		"both":                {"a: " + strings.Repeat("[{x: ", n), "nested too deeply"},
		"dashes":              {strings.Repeat("- ", n), "nested too deeply"},
		"lines":               {nestedYAML(60), "nested too deeply"},
		"explicit keys":       {strings.Repeat("? ", n), "too many tags"},
		"keys":                {keys.String(), "too many keys"},
		"equal keys":          {strings.Repeat("a:\n", n), "too many keys"},
		"many mappings":       {maps.String(), "too many keys"},
		"aliases in brackets": {"a: &a x\nb: [" + strings.Repeat("*a, ", n) + "]", "too many anchors and aliases"},
		"aliases in lines":    {"a: &a x\nb:\n" + aliases.String(), "too many anchors and aliases"},
		"anchors":             {"a: " + strings.Repeat("&a ", n), "too many anchors and aliases"},
		"tags":                {"a: " + strings.Repeat("!!a ", n), "too many tags"},
		"commas":              {"a: [" + strings.Repeat(",", maxSigns) + "]", "c.yaml:1:1: the configuration is too large"},
		"values":              {amplifiedAliases(), "with its aliases resolved it has more than 1000000 values"},
	} {
		_, err := Parse("c.yaml", []byte(tc.data), fakeOptions(nil))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %.300v, want %q", name, err, tc.want)
		}
	}
	for name, data := range map[string]string{"levels": nestedYAML(20), "two documents": nestedYAML(20) + "---\n" + nestedYAML(20)} {
		if _, err := Parse("c.yaml", []byte(data), fakeOptions(nil)); err == nil || strings.Contains(err.Error(), "nested") {
			t.Errorf("%s: got %v, which is no refusal of the nesting", name, err)
		}
	}
}

// nestedYAML returns a mapping of that many levels, of which every second is a list.
func nestedYAML(levels int) string {
	var b strings.Builder
	for i := range levels / 2 {
		fmt.Fprintf(&b, "%sa:\n%s- b: x\n", strings.Repeat("  ", 2*i), strings.Repeat("  ", 2*i))
		if i < levels/2-1 {
			fmt.Fprintf(&b, "%sc:\n", strings.Repeat("  ", 2*i+1))
		}
	}
	return b.String()
}

// amplifiedAliases returns 9000 aliases of a subscription with 1000 keywords.
func amplifiedAliases() string {
	return "subscriptions:\n- &s\n  url: https://example.com/\n  sinks: [log]\n  keywords: [" + strings.Repeat("a,", 1000) + "a]\n" + strings.Repeat("- *s\n", 9000)
}

// TestVariablesAreNamed: no message shows what stands in a variable.
func TestVariablesAreNamed(t *testing.T) {
	env := map[string]string{"SECRET": "hunter2\"secret", "LONG": strings.Repeat("hunter2secret", 20)}
	o := fakeOptions(nil)
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
		_, err := Parse("c.yaml", []byte("sinks: {out: {fake: {url: x}}}\n"+text), fakeOptions(nil))
		want = strings.Replace(want, "c.yaml:1:", "c.yaml:2:", 1)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.100s: got %v, want %s", text, err, want)
		}
	}
}

// Every key of the file is explained in docs/configuration.md.
func TestEveryKeyIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(typ reflect.Type, path string)
	walk = func(typ reflect.Type, path string) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ.PkgPath() == "net/netip" {
			return
		}
		for i := range typ.NumField() {
			key, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
			if key == "" {
				continue
			}
			named := false
			for name, more := path+key, true; more && !named; _, name, more = strings.Cut(name, ".") {
				for _, end := range []string{"`", ".", ": "} {
					named = named || strings.Contains(string(doc), "`"+name+end)
				}
			}
			if !named {
				t.Errorf("%s%s is not in docs/configuration.md", path, key)
			}
			walk(typ.Field(i).Type, path+key+".")
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[yamlFile]()) {
		walk(reflect.StructOf([]reflect.StructField{{Name: "X", Type: f.Type, Tag: f.Tag}}), "")
	}
}

// TestTooManyAliases: a file that aliases make too large has this one mistake.
func TestTooManyAliases(t *testing.T) {
	_, err := Parse("c.yaml", []byte(amplifiedAliases()), fakeOptions(nil))
	if errs, ok := errors.AsType[Errors](err); !ok || len(errs) != 1 {
		t.Errorf("got %d mistakes: %.300v", len(errs), err)
	}
}

// TestPipes: a pipe is read that is open already, and no other one.
func TestPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skip(err)
	}
	if _, err := Load(path, fakeOptions(nil)); err == nil || !strings.Contains(err.Error(), "is a named pipe") {
		t.Errorf("got %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, _ = w.WriteString("listen: 127.0.0.1:9000\n")
	_ = w.Close()
	c, err := Load(fmt.Sprintf("/dev/fd/%d", r.Fd()), fakeOptions(nil))
	if err != nil || c.Listen != "127.0.0.1:9000" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestNoControlCharacters: no message steers a terminal, and none of them shows a variable with such
// characters.
func TestNoControlCharacters(t *testing.T) {
	o := fakeOptions(nil)
	o.LookupEnv = func(string) (string, bool) { return "hunter2\x1bsecret\nhunter2", true }
	for _, line := range []string{
		`select: "\e[31mx"`, `select: "re:(\e[31m"`, `select: "xpath:\e[31m("`, `select: "jq:\e[31m"`, `select: ":\e[31m"`, `select: "lines:\e"`,
		`remove: {from: "\e[31m", to: "a"}`, `ignore: ["(\e[31m"]`, `follow: {include: ["(\e[31m"]}`, `value: {pattern: "(\e[31m"}`, `value: {select: "a\e"}`,
		`url: "https://example.com/\e"`, `interval: "\e"`, `"\e": x`, `quiet: "\e"`, `client: "a\u009b31m"`, `channel: "\e"`, `tags: ["\e"]`,
		`select: "${X}"`, `select: "re:(${X}"`, `ignore: ["(${X}"]`, `follow: {exclude: ["(${X}"]}`,
	} {
		_, err := Parse("c.yaml", []byte("sinks: {out: {fake: {url: x}}}\nsubscriptions: [{sitemap: \"https://example.com/s\", sinks: [out], "+line+"}]"), o)
		if err == nil || strings.ContainsFunc(strings.ReplaceAll(err.Error(), "\n", ""), unicode.IsControl) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %q", line, err)
		}
	}
}
