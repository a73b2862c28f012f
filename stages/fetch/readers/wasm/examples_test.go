package wasm

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/vokter/vokter/pipeline"
	"github.com/vokter/vokter/pipeline/pipelinetest"
)

// examplesDir is where the modules are that documentation shows.
const examplesDir = "../../../../docs/examples"

// newDocx returns a Word document with this body.
func newDocx(t *testing.T, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range map[string]string{
		"word/document.xml": `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>` + body + `</w:body></w:document>`,
		"docProps/core.xml": `<cp:coreProperties xmlns:cp="cp" xmlns:dc="dc"><dc:title>Price list</dc:title><dc:creator>A</dc:creator></cp:coreProperties>`,
	} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGoExample: the example in Go keeps the contract, with pages of 10 MiB in the default memory.
func TestGoExample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docx.wasm")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = filepath.Join(examplesDir, "wasm-reader")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := newReader(t, readFile(t, path), Config{})
	page := pipeline.Raw{Body: newDocx(t, `<w:p><w:r><w:rPr><w:lang w:val="en-GB"/></w:rPr><w:t>Our </w:t></w:r><w:r><w:t>prices</w:t></w:r></w:p>`+
		`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Apples</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>5</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`)}
	noise := make([]byte, 10<<20)
	_, _ = rand.Read(noise)
	pipelinetest.TestReader(t, r, pipelinetest.ReaderPages{
		Samples: []pipeline.Raw{page},
		Broken:  []pipeline.Raw{{Body: newDocx(t, "<w:p>\n<w:t></")}},
		Large:   func(n int) pipeline.Raw { return pipeline.Raw{Body: noise[:n]} },
	})
	want := pipeline.Text{Title: "Price list", Language: "en-GB", Content: "Price list\nOur prices\n\x02Apples\n5\n\x03"}
	if got, err := r.Read(t.Context(), page, pipeline.View{}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	_, err := r.Read(t.Context(), pipeline.Raw{Body: []byte("<html>")}, pipeline.View{})
	if err == nil || !strings.HasSuffix(err.Error(), "it is no Word document: zip: not a valid zip file") {
		t.Errorf("got %v, want what the module said", err)
	}
}

// TestCExample: the example in C does the same.
func TestCExample(t *testing.T) {
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s; install clang, lld, wasi-libc and libclang-rt-dev-wasm32", tool)
		}
	}
	path := filepath.Join(t.TempDir(), "subrip.wasm")
	source := filepath.Join(examplesDir, "wasm-reader-c", "subrip.c")
	if out, err := exec.Command("clang", "--target=wasm32-wasi", "-O2", "-Wall", "-o", path, source).CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("'stdio.h' file not found")) || bytes.Contains(out, []byte("cannot open")) {
			t.Skipf("clang has no C library for WebAssembly; install wasi-libc and libclang-rt-dev-wasm32: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	r := newReader(t, readFile(t, path), Config{Types: []string{"application/x-subrip"}})
	page := pipeline.Raw{Body: []byte("1\r\n00:00:01,000 --> 00:00:02,500\r\nGood morning,\r\nVietnam.\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nHello.\r\n")}
	pipelinetest.TestReader(t, r, pipelinetest.ReaderPages{
		Samples: []pipeline.Raw{page},
		Broken:  []pipeline.Raw{{Body: []byte("1\nnow\n")}},
		Large:   func(n int) pipeline.Raw { return pipeline.Raw{Body: bytes.Repeat([]byte("1\nx --> y\nz\n\n"), n/13)} },
	})
	if got, err := r.Read(t.Context(), page, pipeline.View{}); err != nil || got.Content != "Good morning, Vietnam.\nHello.\n" {
		t.Errorf("got %q, %v", got.Content, err)
	}
}

// TestRustExample: the example in Rust does the same.
func TestRustExample(t *testing.T) {
	if _, err := exec.LookPath("rustc"); err != nil {
		t.Skip("there is no rustc; install Rust, and then its target with: rustup target add wasm32-wasip1")
	}
	path := filepath.Join(t.TempDir(), "gettext.wasm")
	source := filepath.Join(examplesDir, "wasm-reader-rust", "gettext.rs")
	if out, err := exec.Command("rustc", "--target", "wasm32-wasip1", "-O", "--edition", "2021", "-D", "warnings", "-o", path, source).CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("target may not be installed")) || bytes.Contains(out, []byte("could not find specification for target")) {
			t.Skip("rustc has no library for WebAssembly; install it with: rustup target add wasm32-wasip1")
		}
		t.Fatalf("%v: %s", err, out)
	}
	r := newReader(t, readFile(t, path), Config{Types: []string{"text/x-gettext-translation"}})
	page := pipeline.Raw{Body: []byte("msgid \"\"\nmsgstr \"Language: pt_BR\\n\"\n\n#: main.c:1\nmsgid \"Good \\\"morning\\\"\"\nmsgstr \"Bom \"\n\"dia\"\n")}
	pipelinetest.TestReader(t, r, pipelinetest.ReaderPages{
		Samples: []pipeline.Raw{page},
		Broken:  []pipeline.Raw{{Body: []byte("msgid \"\"\nmsgstr \"x\n")}, {Body: []byte("<html>")}, {Body: []byte("msgstr \"x\"")}, {Body: []byte("msgid \"\xff\"")}},
		Large: func(n int) pipeline.Raw {
			return pipeline.Raw{Body: bytes.Repeat([]byte("msgid \"a\"\nmsgstr \"b\"\n"), n/21)}
		},
	})
	want := pipeline.Text{Language: "pt-BR", Content: "\x02Good \"morning\"\nBom dia\n\x03"}
	if got, err := r.Read(t.Context(), page, pipeline.View{}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
