package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vokter/vokter/stages/fetch/readers/wasm"
	"github.com/vokter/vokter/test/wasmtest"
)

// withWasm knows readers of the kind wasm.
func withWasm(env map[string]string) Options {
	o := fakeOptions(env)
	wasm.Register(o.Registry)
	return o
}

func writeModule(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, wasmtest.Program(wasmtest.Write(1), text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReaders: readers are those of the file, and a digest tells when one changed, be it its module
// alone.
func TestReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wasm")
	writeModule(t, path, "one")
	var named []string
	o := withWasm(map[string]string{"MODULE": path})
	o.Named = func(path string) { named = append(named, path) }
	parse := func(text string) *Config {
		t.Helper()
		c, err := Parse("c.yaml", []byte(text), o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const file = "readers: {a: {wasm: '${MODULE}', types: [application/a, application/b], memory: 8MB, timeout: 2s}, b: {wasm: '${MODULE}', types: [application/c]}}"
	before := parse(file)
	if len(before.Router.Readers) != 3 || len(named) != 2 || named[0] != path {
		t.Fatalf("got %d readers, and the files %q", len(before.Router.Readers), named)
	}
	if got := strings.Join(before.Router.Readers[1].ContentTypes(), " "); got != "application/a application/b" {
		t.Errorf("the first reads %s", got)
	}
	if same := parse(file); same.Readers["a"] != before.Readers["a"] {
		t.Error("the same options have another digest")
	}
	if other := parse(strings.Replace(file, "2s", "3s", 1)); other.Readers["a"] == before.Readers["a"] || other.Readers["b"] != before.Readers["b"] {
		t.Error("other options of one reader do not show, or in another one")
	}
	writeModule(t, path, "two")
	if other := parse(file); other.Readers["a"] == before.Readers["a"] || other.Readers["b"] == before.Readers["b"] {
		t.Error("another module does not show")
	}
}

func TestReaderMistakes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wasm")
	writeModule(t, path, "one")
	for text, want := range map[string]string{
		"readers: {a: 5}":                                                                  "c.yaml:1:14: readers.a must be a reader with its options, such as {wasm:",
		"readers: {a: {wsm: x, types: [a/b]}}":                                             "c.yaml:1:15: readers.a has no kind of reader; did you mean \"wasm\"?",
		"readers: {a: {types: [a/b]}}":                                                     "readers.a has no kind of reader; add one of: wasm",
		"readers: {a: {wasm: ./none.wasm, types: [a/b]}}":                                  "c.yaml:1:21: readers.a.wasm: the file ./none.wasm does not exist",
		"readers: {a: {wasm: readers_test.go, types: [a/b]}}":                              "c.yaml:1:21: readers.a.wasm: it is no WebAssembly module",
		"readers: {a: {wasm: '${M}'}}":                                                     "readers.a.types: is missing",
		"readers: {a: {wasm: '${M}', types: [a]}}":                                         "readers.a.types: \"a\" is no media type",
		"readers: {a: {wasm: '${M}', types: [a/b], memory: 8}}":                            "c.yaml:1:51: readers.a.memory: \"8\" has no unit",
		"readers: {a: {wasm: '${M}', types: [a/b], memory: 8KB}}":                          "c.yaml:1:51: readers.a.memory: 8000 bytes are not between 1MB and 4GB",
		"readers: {a: {wasm: '${M}', types: [a/b], timeout: 2h}}":                          "readers.a.timeout: 2h0m0s is not between",
		"readers: {a: {wasm: '${M}', types: [a/b], x: 2h}}":                                "unknown key \"x\" in readers.a; known are memory, timeout, types, wasm",
		"readers: {'a b': {wasm: '${M}', types: [a/b]}}":                                   "\"a b\" cannot be the name of a reader",
		"readers: {a: {wasm: '${M}', types: [a/b]}, b: {wasm: '${M}', types: [x, a/b]}}":   "readers.b.types: \"x\" is no media type",
		"readers: {a: {wasm: '${M}', types: [a/b]}, b: {wasm: '${M}', types: [c/d, a/b]}}": "readers.b.types: pages of type a/b are read by the reader \"a\" already",
	} {
		_, err := Parse("c.yaml", []byte(text), withWasm(map[string]string{"M": path}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
